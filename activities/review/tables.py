"""Print how far each analyser is believed: severity and confidence by rule, as Markdown tables."""

from __future__ import annotations

import sys

from holdfast.activities.review.analysing.lens import Grade
from holdfast.activities.review.lenses import analysers


def markdown() -> str:
    """Return a table per analyser, from the grades in the code."""
    parts = []
    for name, analyser in sorted(analysers().items()):
        rows = [
            f"| {key} | {grade.severity} | {grade.confidence} | {_of_change(grade)} |"
            for key, grade in analyser.grades.items()
        ]
        head = [
            f"### {name}",
            "",
            "| what the tool says | severity | confidence | new in a change |",
            "|---|---|---|---|",
        ]
        parts.append("\n".join([*head, *rows]))
    return "\n\n".join(parts)


def _of_change(grade: Grade) -> str:
    return f"{grade.change.severity} {grade.change.confidence}" if grade.change else ""


if __name__ == "__main__":
    sys.stdout.write(markdown() + "\n")
