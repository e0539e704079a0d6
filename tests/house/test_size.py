"""A module, a function and a folder that one can take in: how long they are at most."""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
CODE = (
    "activities",
    "bench",
    "cli",
    "deployment",
    "intake",
    "orchestrator",
    "simulator",
    "workflows",
)
MODULE_LINES, FUNCTION_LINES, FOLDER_MODULES = 300, 40, 20
LONGER_FUNCTIONS = {"cli/commands/runs/run.py: command"}
"""Its options are its arguments: that is how typer reads them."""


def modules() -> Iterator[Path]:
    yield from sorted(ROOT.glob("*.py"))
    for room in CODE:
        yield from sorted((ROOT / room).rglob("*.py"))


def name_of(path: Path) -> str:
    return path.relative_to(ROOT).as_posix()


def long_modules() -> set[str]:
    sizes = {name_of(each): len(each.read_text("utf-8").splitlines()) for each in modules()}
    return {name for name, lines in sizes.items() if lines > MODULE_LINES}


def long_functions() -> set[str]:
    return {
        f"{name_of(path)}: {node.name}"
        for path in modules()
        for node in ast.walk(ast.parse(path.read_text("utf-8")))
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
        and (node.end_lineno or 0) - node.lineno >= FUNCTION_LINES
    }


def full_folders() -> set[str]:
    folders = [path.parent for path in modules() if path.name != "__init__.py"]
    return {name_of(each) for each in set(folders) if folders.count(each) > FOLDER_MODULES}


@pytest.mark.parametrize(
    ("found", "known", "remedy"),
    [
        (long_modules, set(), f"split it: {MODULE_LINES} lines, one concept"),
        (long_functions, LONGER_FUNCTIONS, f"split it: {FUNCTION_LINES} lines, one thought"),
        (full_folders, set(), f"give it rooms: {FOLDER_MODULES} modules"),
    ],
    ids=["modules", "functions", "folders"],
)
def test_nothing_is_longer_than_one_can_take_in(
    found: Callable[[], set[str]], known: set[str], remedy: str
) -> None:
    now = found()
    assert not now - known, f"{', '.join(sorted(now - known))}: {remedy}"
    done = sorted(known - now)
    assert not done, f"{', '.join(done)}: short enough; take it out of the list here"
