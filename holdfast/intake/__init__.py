"""Start a run from what was asked, in whatever way: goals (what was asked, checked), with its
inputs, plans and repositories; connection (a client, and who works there); launch (starting a run
once); refusal (why nothing was started). Who asked is told by whoever calls.
"""
