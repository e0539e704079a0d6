"""Print how far each analyser is believed: severity and confidence by rule, as Markdown tables."""

from __future__ import annotations

import sys

from holdfast.activities.review.lenses import analysers


def markdown() -> str:
    """Return a table per analyser, from the grades in the code."""
    parts = []
    for name, analyser in sorted(analysers().items()):
        rows = [
            f"| {key} | {grade.severity} | {grade.confidence} |"
            for key, grade in analyser.grades.items()
        ]
        head = [
            f"### {name}",
            "",
            "| what the tool says | severity | confidence |",
            "|---|---|---|",
        ]
        parts.append("\n".join([*head, *rows]))
    return "\n\n".join(parts)


if __name__ == "__main__":
    sys.stdout.write(markdown() + "\n")
