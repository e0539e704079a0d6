"""Measure cyclomatic complexity and length of functions in many languages, by lizard.

Reads from stdin, separated by NUL, absolute paths. Prints JSON. Runs isolated, as a program of its
own, so it imports nothing of this project.
"""

import contextlib
import io
import json
import os
import re
import sys
from typing import Any, TypedDict

import lizard

# The comments by which lizard leaves out a function or the rest of a file.
SUPPRESSION = re.compile(r"lizard forgive|GENERATED CODE")
# What a class or a function of Python begins with.
HEAD = re.compile(r"\s*(?:async\s+def|def|class)\s+(\w+)")
LONGEST_LINE = 500
"""Characters of a line in which a name is looked for."""
LOOKED_BACK = 10_000
"""Lines before a function in which its class is looked for."""
OF_A_FILE = 200
"""Functions of one file that are named."""
LETTERS = 100
"""Characters of a name that are printed."""


COMPLEX, VERY_COMPLEX, EXTREME = 16, 26, 51
LONG, VERY_LONG = 120, 300
"""Lines of code without blank lines and comments."""
SUGGESTIONS = {
    "complex-function": "Split it along its decisions",
    "long-function": "Split off parts of it",
}


class Function(TypedDict):
    """One function as measured; `length` in lines of code."""

    name: str
    line: int
    last_line: int
    complexity: int
    length: int
    suppressed: bool


class Printed(TypedDict):
    items: list[dict[str, Any]]
    errors: list[str]
    read: int
    beyond: list[tuple[str, str, int]]


def main() -> None:
    """Print `{"items": […], "errors": […], "read": n, "beyond": […]}`."""
    printed = Printed(items=[], errors=[], read=0, beyond=[])
    for path in sys.stdin.buffer.read().decode("utf-8", "surrogateescape").split("\0"):
        if path and lizard.get_reader_for(plain_name(path)) is not None:
            look_at(path, printed)
    json.dump(printed, sys.stdout)


def look_at(path: str, printed: Printed) -> None:
    """Add the functions of one file that are worth reporting, the most complex first."""
    printed["read"] += 1
    measured = measure(path)
    if measured is None:
        printed["errors"].append(path)
        return
    worth = [each for each in measured if each["complexity"] >= COMPLEX or each["length"] >= LONG]
    worth.sort(key=lambda function: -function["complexity"])
    printed["items"] += [item(path, each) for each in add_whole_names(path, worth[:OF_A_FILE])]
    if len(worth) > OF_A_FILE:
        printed["beyond"].append((path, "", len(worth) - OF_A_FILE))


def item(path: str, function: Function) -> dict[str, Any]:
    complexity, length = function["complexity"], function["length"]
    rule = "complex-function" if complexity >= COMPLEX else "long-function"
    return {
        "file": path,
        "name": function["name"],
        "line": function["line"],
        "last_line": function["last_line"],
        "rule": rule,
        "scale": scale(complexity, length),
        "message": (
            f"The function {function['name']} has cyclomatic complexity {complexity}"
            f" over {length} lines of code"
        ),
        "suggestion": SUGGESTIONS[rule],
        "weight": complexity,
        "suppressed": function["suppressed"],
    }


def scale(complexity: int, length: int) -> str:
    """Return the row of the analyser's table."""
    if complexity >= EXTREME:
        return "complexity above 50"
    if complexity >= VERY_COMPLEX:
        return "complexity above 25"
    if complexity >= COMPLEX:
        return "complexity above 15"
    return "300 lines or more" if length >= VERY_LONG else "120 lines or more"


def plain_name(path: str) -> str:
    """Return a name with the path's ending alone: lizard knows no language by a name with line
    ends.
    """
    return "source" + os.path.splitext(path)[1]


def measure(path: str) -> list[Function] | None:
    """Return the functions of a file, suppressed ones marked; None if it cannot be parsed."""
    with open(path, encoding="utf-8", errors="replace") as file:
        code = file.read()
    honoured = functions_of(path, code)
    if honoured is None or not SUPPRESSION.search(code):
        return honoured
    # The same length, so that no line moves.
    everything = functions_of(path, SUPPRESSION.sub(lambda match: "-" * len(match[0]), code))
    shown = {(function["name"], function["line"]) for function in honoured}
    return [
        {**function, "suppressed": (function["name"], function["line"]) not in shown}
        for function in everything or honoured
    ]


def functions_of(path: str, code: str) -> list[Function] | None:
    """Return lizard's findings about a file; None when it gave up."""
    said = io.StringIO()
    try:
        with contextlib.redirect_stderr(said):
            found = lizard.analyze_file.analyze_source_code(plain_name(path), code)
    except Exception:
        # Its parsers fail in many ways on broken code.
        return None
    if said.getvalue():
        return None
    return [
        {
            "name": function.name[:LETTERS],
            "line": function.start_line,
            "last_line": function.end_line,
            "complexity": function.cyclomatic_complexity,
            "length": function.nloc,
            "suppressed": False,
        }
        for function in found.function_list
    ]


def add_whole_names(path: str, functions: list[Function]) -> list[Function]:
    """Return the functions with their whole names, which are looked for in the file."""
    if not functions:
        return []
    with open(path, encoding="utf-8", errors="replace") as file:
        lines = file.read().split("\n")
    return [
        {**each, "name": whole_name(path, each["name"], lines, each["line"])[:LETTERS]}
        for each in functions
    ]


def whole_name(path: str, name: str, lines: list[str], number: int) -> str:
    """Return the name as it stands in the code: with its classes in Python, and with the characters
    that lizard does not count as part of it.
    """
    if not 0 < number <= len(lines):
        return name
    line = lines[number - 1][:LONGEST_LINE]
    if path.endswith((".py", ".pyi")):
        return ".".join([*reversed(classes_around(lines, number)), name])
    if re.fullmatch(r"[\w$]+", name):
        found = re.search(rf"[\w$]*{re.escape(name)}(?![\w$])", line)
        return found[0] if found else name
    return name


def classes_around(lines: list[str], number: int) -> list[str]:
    """Return the classes and functions of Python around a line, the innermost first, by
    indentation.
    """
    found = []
    indent = indent_of(lines[number - 1])
    for line in reversed(lines[max(number - 1 - LOOKED_BACK, 0) : number - 1]):
        if indent == 0:
            break
        if line.strip() and indent_of(line) < indent:
            head = HEAD.match(line[:LONGEST_LINE])
            if head or not line.lstrip().startswith(("#", ")", "]", "}")):
                indent = indent_of(line)
            if head:
                found.append(head[1])
    return found


def indent_of(line: str) -> int:
    """Return how far a line is indented, in columns."""
    wide = line[:LONGEST_LINE].expandtabs(8)
    return len(wide) - len(wide.lstrip())


if __name__ == "__main__":
    main()
