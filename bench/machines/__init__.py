"""Workers on machines of their own, with one server and one store: throughput, kills, the cap."""

ENGINES = ("bare Temporal", "here")
COLUMNS = (
    ("workers", "bare Temporal: runs/s", "calls/s", "here: runs/s", "calls/s", "here to bare"),
    ("workers", "engine", "workers' CPU, ms a run", "server's", "endpoint's and store's"),
    ("killed with -9", "journal", "runs", "stuck", "complete", "answers that had arrived",
     "of them paid again", "sent, read or not, and paid again", "charged, never sent whole",
     "blow to the last run's end, s"),
    ("workers", "killed", "runs", "stuck", "calls charged", "dollars charged", "the day's cap",
     "charged above it", "counted by the treasurer"),
    ("a run of six subtasks, of", "actions in its history", "heartbeats",
     "as often as on a server that bills none"),
)  # fmt: skip
