"""Ten thousand rows of one subtask, in both lanes: how long, how much history, memory and CPU they
take, what kills cost, and what was said of the price before.
"""

COLUMNS = (
    (
        "lane",
        "rows",
        "seconds",
        "over the bound",
        "events: run, map",
        "KB: run, map",
        "worker's peak, MB",
        "worker CPU, ms a row",
        "server CPU, ms a row",
        "dollars: preview / bill / charged",
    ),
    (
        "struck",
        "rows",
        "complete",
        "charged, never arrived",
        "arrived and paid again",
        "dollars: ledger / charged / cap",
        "table",
    ),
)
