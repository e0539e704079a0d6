"""The command line: one module a command, and a few nouns that the commands share.

Commands: run, start, watch, show, list, cancel, up, down, replay, export, doctor. Nouns: goal (what
the options ask for), connection (a client of the right server), launch (starting a run once),
follow
(watching it), board (a running run on screen), report (a finished one), screen (the two streams),
exits (the codes). What a person reads goes to stderr, what a program reads to stdout.
"""
