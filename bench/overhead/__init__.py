"""What the engine adds to the work, beside what bare Temporal adds, and what nothing durable does.

`loads` says what is asked, of a scripted endpoint whose latencies are known; `floor` does it with
asyncio and the SDK alone, `bare` by a workflow written by hand, and `engines` runs both and this
project, each on a server, a worker and a simulator of its own.
"""

COLUMNS = (
    ("load", "ideal", "floor: asyncio and the SDK", "bare Temporal", "here", "here to bare"),
    ("load", "engine", "worker CPU, ms a run", "server CPU, ms a run", "events a run",
     "KB a run", "server's requests a run", "its store's", "model calls a run"),
)  # fmt: skip
"""Beside the modules that print them, so that engines of their own process import nothing else."""
