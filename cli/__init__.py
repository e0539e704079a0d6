"""The command line: one module a command, and a few nouns that the commands share.

Commands: run, start, watch, show, list, fork, inbox, edit, raising (`raise`), cancel, up, down,
replay, export, doctor, completion; and in steering, a row each, those that are one Update and no
more. Nouns: goal (what the options ask for), plans (ready and edited ones), connection (a client of
the right server), launch (starting a run once), follow (watching it), approval (deciding on its
plan), dry_run (only looking at it), board (a running run on screen), preview (a plan before it
runs), waiting (what is asked of a person), report (a finished run), amounts (money and durations),
screen (the two streams), exits (the codes). What a person reads goes to stderr, what a program
reads to stdout.
"""
