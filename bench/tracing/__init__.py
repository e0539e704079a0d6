"""What it costs a worker to tell what it does, in its log and to a backend."""

COLUMNS = (("what", "CPU a run, ms", "of the worker's other work"),)
FILE = "BENCH_TRACING_FILE"
"""The environment's name of where the worker tells what it spent."""
