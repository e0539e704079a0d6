"""The command line: a module a command in `commands/`, what a terminal shows in `screen/`, and here
the nouns that commands share: connection (a client of the right server), starting (a run, with what
is said of it), follow (watching one), reading (a run as its history has it), orders (telling it
what to do), stuck (why it does not go on), outcome (how it ended), exits (the codes). What is asked
for becomes a run in `holdfast/intake/`.

What a person reads goes to stderr, what a program reads to stdout.
"""
