"""What journals on disk say was paid."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path


def answers_twice(journals: Iterable[Path]) -> tuple[int, int]:
    """Answers that arrived in these journals, of a machine each, and how many of them for a subtask
    that had been answered before. (The script gives no reason to ask twice; only a replan may be
    answered again.)
    """
    asked = []
    every = 0
    for path in (path for journal in journals for path in journal.glob("*.answer")):
        key = path.with_suffix(".sent").read_text()
        _, workflow, run, activity, _ = key.split("/")
        every += 1
        if activity.startswith("work-"):
            asked.append((workflow, run, activity.rpartition("-")[0]))
    return every, len(asked) - len(set(asked))
