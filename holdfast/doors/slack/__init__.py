"""The Slack door: a thread for each run, which is a view of its history and never the truth.

A mention or a slash command starts a run, whose id follows from the message: delivered again, it
is the same run. Buttons send orders. Nothing is kept here: what a thread shows is written from the
history, and found again by the metadata of the door's own messages.
"""
