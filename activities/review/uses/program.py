"""The program: reads what the lens tells from stdin, as JSON, and prints what it found."""

from __future__ import annotations

import gc
import json
import sys
from collections.abc import Callable, Iterable
from dataclasses import asdict
from typing import Any

from holdfast.activities.review.uses import (
    beside,
    go,
    guards,
    imports,
    java,
    javascript,
    python,
    ruby,
    siblings,
    weakened,
)
from holdfast.activities.review.uses.reporting import Breakage, Changed, Found
from holdfast.activities.review.uses.tree import Tree

MOST_CHANGED = 200
MOST_USES = 20
"""Uses of one definition that are named, the sure ones first."""
MOST_BREAKAGES = 2_000
BREAKS = ("removed-module", "removed-name", "removed-import", "removed-member", "changed-signature")
OF_TESTS = "broken-test"
"""The row of these where a test fails, and no program."""


def main() -> None:
    # A short life full of trees: collecting would take longer than all else.
    gc.disable()
    told = json.loads(sys.stdin.buffer.read())
    json.dump(look(told), sys.stdout, ensure_ascii=True)


def look(told: dict[str, Any]) -> dict[str, Any]:
    """Return what the change did to code, who uses it, what breaks, and what tests it."""
    tree = Tree.given(told)
    program = str(told["ast_grep"])
    parts: list[Callable[[], Found]] = [
        lambda: python.find(tree),
        lambda: javascript.find(tree, program),
        lambda: go.find(tree, program),
        lambda: java.find(tree, program),
        lambda: ruby.find(tree, program),
        lambda: Found(breakages=imports.find(tree, program)),
        lambda: Found(breakages=guards.find(tree)),
        lambda: Found(breakages=siblings.find(tree)),
    ]
    found = [part() for part in parts if tree.on_time()]
    changed = [each for part in found for each in part.changed if not _is_test(tree, each)]
    if tree.on_time():
        found.append(Found(breakages=weakened.find(tree, changed)))
    breakages = _once(each for part in found for each in part.breakages)
    return {
        "items": [_item(tree, each) for each in breakages[:MOST_BREAKAGES]],
        "errors": sorted(tree.unread),
        "beyond": [],
        "read": len({pair.path for pair in tree.pairs} | tree.unread),
        "late": tree.late,
        "not_searched": tree.not_searched,
        "changed": [_change(each) for each in _foremost(changed)],
        "changed_in_all": len(changed),
        "tests": beside.find(tree, changed),
    }


def _is_test(tree: Tree, each: Changed) -> bool:
    """True if a definition is one of the tests that nobody uses."""
    file = tree.head.get(each.file) or tree.base.get(each.file)
    return file is not None and file.kind == "tests" and not each.uses


def _once(breakages: Iterable[Breakage]) -> list[Breakage]:
    """Return one remark a place and defect; an import that fails stands for all that follows it."""
    imports: set[tuple[str, str]] = set()
    kept: dict[tuple[str, int, str, str], Breakage] = {}
    for each in sorted(breakages, key=lambda each: (each.file, each.line, each.column)):
        about = each.message.partition(" is ")[0]
        if (each.file, about) in imports:
            continue
        if " is imported here" in each.message and each.rule == "removed-name":
            imports.add((each.file, about))
        kept.setdefault((each.file, each.line, each.rule, about), each)
    return [*kept.values()]


def _item(tree: Tree, each: Breakage) -> dict[str, Any]:
    file = tree.head.get(each.file) or tree.base.get(each.file)
    tests = file is not None and file.kind == "tests"
    return {
        "file": each.file,
        "line": each.line,
        "column": each.column,
        "rule": each.rule,
        "scale": each.grade or (OF_TESTS if tests and each.rule in BREAKS else each.rule),
        "tests": tests,
        "message": each.message,
        "suggestion": each.suggestion,
        "base_line": each.base_line,
    }


def _foremost(changed: list[Changed]) -> list[Changed]:
    """Return the definitions that are named: what is gone or called otherwise comes first."""
    order = ("removed", "signature", "body", "added")
    ranked = sorted(changed, key=lambda each: (order.index(each.what), -len(each.told)))
    return ranked[:MOST_CHANGED]


def _change(each: Changed) -> dict[str, Any]:
    order = ("call", "name", "import")
    uses = sorted(
        each.told, key=lambda use: (not use.sure, order.index(use.how), use.file, use.line)
    )
    return {
        "file": each.file,
        "line": each.line,
        "name": each.name,
        "what": each.what,
        "kind": each.kind,
        "uses": [asdict(use) for use in uses[:MOST_USES]],
        "uses_in_all": len(uses),
    }


if __name__ == "__main__":
    main()
