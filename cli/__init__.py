"""The command line: a module a command in `commands/`, what a terminal shows in `screen/`, and here
the nouns that commands share: connection (a client of the right server), follow (watching a run),
reading (a run as its history has it), outcome (how it ended), exits (the codes). What is asked for
becomes a run in `intake/`.

What a person reads goes to stderr, what a program reads to stdout.
"""
