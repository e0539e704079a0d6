"""The command line: a module a command in `commands/`, what a terminal shows in `screen/`, and here
the nouns that commands share: goal (what the options ask for), plans (ready and edited ones),
connection (a client of the right server), launch (starting a run once), follow (watching it),
reading (a run as its history has it), outcome (how it ended), exits (the codes).

What a person reads goes to stderr, what a program reads to stdout.
"""
