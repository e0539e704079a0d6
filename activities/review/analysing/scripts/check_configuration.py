"""Find errors of syntax and keys that are given twice, in YAML and TOML.

Reads from stdin, separated by NUL, absolute paths. Prints JSON. Runs isolated, as a program of its
own, so it imports nothing of this project. Nothing is built from what is read: only events are
looked at.
"""

import json
import os
import re
import sys
import tomllib
from collections.abc import Iterator
from typing import Any, TypedDict

import yaml

# What a template makes YAML of is none before.
TEMPLATE = re.compile(r"\{\{|\{%|<%|^\s*#@", re.MULTILINE)
PLACE = re.compile(r"\(at line (\d+), column \d+\)")
OF_A_FILE = 100
"""Keys of one file that are named."""
LETTERS = 200
DEEPEST = 200
"""Levels of nesting beyond which a file is not read on: each further one costs libyaml more."""
MERGE = "<<"
"""The key that may be given again."""


class TooDeep(Exception):
    """The file is nested too deeply to be read."""


class Checked(TypedDict):
    items: list[dict[str, Any]]
    errors: list[str]
    beyond: list[tuple[str, str, int]]


def main() -> None:
    """Print `{"items": […], "errors": […], "beyond": […]}`, as the script beside it does."""
    printed = Checked(items=[], errors=[], beyond=[])
    for path in sys.stdin.buffer.read().decode("utf-8", "surrogateescape").split("\0"):
        if path:
            look_at(path, printed)
    json.dump(printed, sys.stdout)


def look_at(path: str, printed: Checked) -> None:
    """Add what is wrong in one file."""
    with open(path, encoding="utf-8", errors="replace") as file:
        text = file.read()
    found = 0
    try:
        for line, key in find_repeated(text) if is_yaml(path) else toml(text):
            found += 1
            if found <= OF_A_FILE:
                message = f"The key {key} is given twice in one mapping; one of them is lost"
                printed["items"].append(item(path, "repeated-key", line, message))
    except (TooDeep, RecursionError):
        printed["errors"].append(path)
    except (yaml.YAMLError, ValueError) as error:
        printed["errors"].append(path)
        if not TEMPLATE.search(text):
            message = f"Syntax error: {explain(error)}"
            printed["items"].append(item(path, "invalid-syntax", line_of(error), message))
    if found > OF_A_FILE:
        printed["beyond"].append((path, "repeated-key", found - OF_A_FILE))


def is_yaml(path: str) -> bool:
    """True by its ending; the other files that come here are TOML."""
    return os.path.splitext(path)[1].lower() in (".yml", ".yaml")


def item(path: str, rule: str, line: int, message: str) -> dict[str, Any]:
    return {"file": path, "rule": rule, "line": line, "message": message[:LETTERS]}


def toml(text: str) -> Iterator[tuple[int, str]]:
    """Yield nothing: there, a key that is given twice is an error of syntax."""
    tomllib.loads(text)
    return iter(())


def find_repeated(text: str) -> Iterator[tuple[int, str]]:
    """Yield line and name of each plain key that its mapping has already, in all documents."""
    # What is open, the innermost last: of a mapping its keys and whether a key is next; else None.
    open_: list[tuple[set[str], list[bool]] | None] = []
    for event in yaml.parse(text, yaml.CSafeLoader):
        if len(open_) > DEEPEST:
            raise TooDeep
        if isinstance(event, yaml.CollectionEndEvent):
            open_.pop()
            turn(open_)
        elif isinstance(event, yaml.MappingStartEvent):
            open_.append((set(), [True]))
        elif isinstance(event, yaml.SequenceStartEvent):
            open_.append(None)
        elif isinstance(event, (yaml.ScalarEvent, yaml.AliasEvent)):
            inner = open_[-1] if open_ else None
            if inner and inner[1][0] and isinstance(event, yaml.ScalarEvent):
                if event.value in inner[0] and event.value != MERGE:
                    yield mark_line(event.start_mark), event.value[:60]
                inner[0].add(event.value)
            turn(open_)


def turn(open_: list[tuple[set[str], list[bool]] | None]) -> None:
    """Go on after a whole node: in a mapping a key is followed by a value, and a value by a key."""
    if open_ and open_[-1]:
        open_[-1][1][0] = not open_[-1][1][0]


def mark_line(mark: Any) -> int:
    """Return a line, 1-based."""
    return int(mark.line) + 1


def explain(error: Exception) -> str:
    """Return what is wrong, without the place."""
    if isinstance(error, yaml.MarkedYAMLError):
        return str(error.problem or error.context or "not readable")
    return PLACE.sub("", str(error)).strip() or "not readable"


def line_of(error: Exception) -> int:
    """Return where it is wrong; 0 if that is not known."""
    if isinstance(error, yaml.MarkedYAMLError) and error.problem_mark:
        return mark_line(error.problem_mark)
    found = PLACE.search(str(error))
    return int(found[1]) if found else 0


if __name__ == "__main__":
    main()
