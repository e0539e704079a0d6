"""The examples that come with playbooks: which file is which input, and what is answered to all of
them.
"""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Mapping
from pathlib import Path

from holdfast.deployment.settings import HOME

PLAYBOOKS = HOME / "playbooks"
INPUTS: Mapping[str, Mapping[str, str]] = {
    "competitive-intelligence": {"competitors": "competitors.md", "material": "material"},
    "content": {"brief": "brief.md", "material": "material"},
    "contract-review": {"contract": "contract.md", "rules": "rules.md"},
    "curriculum": {"brief": "brief.md"},
    "documents": {"documents": "invoices"},
    "patient-case": {"case": "case.md"},
    "portfolio": {
        "holdings": "holdings.csv",
        "prices": "prices.csv",
        "targets": "targets.csv",
        "rules": "rules.md",
    },
    "product-launch": {"product": "product.md", "stock": "stock.csv", "rules": "rules.md"},
    "research": {"questions": "questions.md", "sources": "sources"},
    "tech-support": {"ticket": "ticket.md"},
    "tickets": {"tickets": "tickets.jsonl", "house": "house.md"},
}
"""Of each playbook the inputs of its example, by their files."""

APPROVED = ("patient-case",)
"""Playbooks whose runs wait for a person."""
SECONDS = 60.0


def given(playbook: str, folder: Path | str) -> tuple[str, ...]:
    """Return the options of a command that give the example's inputs, below this folder."""
    files = INPUTS[playbook].items()
    return tuple(part for name, file in files for part in ("--input", f"{name}={folder}/{file}"))


def rows_of_playbooks() -> dict[str, list[str]]:
    """Return the cells of each row of docs/playbooks.md behind the first, by playbook."""
    text = (HOME / "docs" / "playbooks.md").read_text(encoding="utf-8")
    rows = re.findall(r"^\| \[([a-z-]+)\]\(\1\.md\) \|(.+)\|$", text, re.MULTILINE)
    return {name: [each.strip() for each in cells.split("|")] for name, cells in rows}


def approve(call: Callable[[], int]) -> None:
    """Call what approves a plan, and returns an exit code, until there is one to approve."""
    until = time.monotonic() + SECONDS
    while call():
        assert time.monotonic() < until, "no plan ever waited for approval"
        time.sleep(0.2)


def all_rules() -> str:
    """Return the rules of the scripts of all examples, as YAML below `rules:`."""
    scripts = sorted(PLAYBOOKS.glob("*/examples/script.yaml"))
    return "".join(each.read_text("utf-8").partition("rules:\n")[2] for each in scripts)
