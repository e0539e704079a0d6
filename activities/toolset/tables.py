"""The table of all tools, as Markdown for the documentation."""

from __future__ import annotations

import re
import sys

from holdfast.activities.toolset.shelf import shipped_tools
from holdfast.activities.toolset.tool import Tool

_SENTENCE = re.compile(r"(.+?[.:])(?:\s|\Z)", re.DOTALL)


def markdown() -> str:
    """Return a row per tool, from what it declares and what a model is told of it first."""
    rows = [
        f"| `{tool.name}` | {_first(tool)} | {_inputs(tool)} | {_effects(tool)} |"
        f" {tool.seconds:g} | {', '.join(_needs(tool)) or '–'} |"
        for tool in shipped_tools().values()
    ]
    head = (
        "| tool | what it does | inputs | effects | seconds | needs |",
        "|---|---|---|---|---|---|",
    )
    return "\n".join([*head, *rows])


def _first(tool: Tool) -> str:
    """Return the first sentence of its description, on one line and without bars."""
    found = _SENTENCE.match(tool.description)
    sentence = " ".join((found[1] if found else tool.description).split())
    return sentence.rstrip(".:").replace("|", "\\|")


def _inputs(tool: Tool) -> str:
    """Return the inputs that it reads."""
    return "any" if tool.reads is None else ", ".join(tool.reads) or "–"


def _needs(tool: Tool) -> list[str]:
    """Return the settings without which it does nothing, and the extra of this package."""
    extra = tool.extra(lambda _: "")
    return [*tool.needs, *([f"holdfast[{extra}]"] if extra else [])]


def _effects(tool: Tool) -> str:
    asks = ", a person approves each call" if tool.approval else ""
    if not tool.effects:
        return "reads only" + asks
    return ("repeatable" if tool.idempotent else "run once") + asks


if __name__ == "__main__":
    sys.stdout.write(markdown() + "\n")
