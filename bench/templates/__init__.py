"""What the plan library is worth: whether it finds the right template, how fast, and what that
saves.

    python -m bench.templates            prints Markdown: the 300 pairs, and speed
    python -m bench.templates 100        and so many runs of five kinds, with and without it

`tuned.jsonl`: pairs that the matcher was made with; `untuned.jsonl`: pairs of templates that were
written when it was finished. Both by hand, two thirds of them goals that only look alike.
"""

from __future__ import annotations

COLUMNS = (
    ("pairs", "fit", "matched by words", "of these wrong", "precision", "recall",
     "asked of haiku", "of these fit"),
    ("goals", "templates to choose from", "wrong one chosen"),
    ("templates", "seconds to read them once", "matches per second"),
    ("runs", "of them planned", "dollars", "seconds of a run, mean"),
)  # fmt: skip
