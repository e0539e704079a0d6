"""JSON and YAML that somebody else wrote, read within bounds: plain values only, and one clear line
for whatever else it is. And YAML that ships with the program, which needs no bounds.
"""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any, NoReturn

import yaml

DEPTH = 60
"""Levels of lists and mappings."""
DIGITS = 18
"""No number may have more digits: no figure of ours needs more."""
SHIPPED_LOADER = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
"""libyaml's, where PyYAML was built with it: each process that redacts reads such files first, and
in Python that takes ten times as long.
"""
_INTEGER = re.compile(rf"[-+]?[0-9]{{1,{DIGITS}}}\Z")
_FLOAT = re.compile(
    r"[-+]?(?:[0-9]{1,18}\.[0-9]{0,18}|\.[0-9]{1,18}|[0-9]{1,18})(?:[eE][-+]?[0-9]{1,2})?\Z"
)
_TAG = "tag:yaml.org,2002:"


class NotPlain(ValueError):
    """The text is not what it should be. The message is the rest of a sentence."""


def from_json(text: str) -> Any:
    """Return the value of a JSON text. NotPlain if it is none, or beyond the bounds."""
    try:
        value = json.loads(
            text,
            object_pairs_hook=_once,
            parse_int=_integer,
            parse_float=_float,
            parse_constant=_constant,
        )
    except json.JSONDecodeError as error:
        place = f"line {error.lineno} column {error.colno}"
        raise NotPlain(f"not JSON: {place}: {error.msg}") from None
    except RecursionError:
        raise NotPlain(f"nested more than {DEPTH} levels deep") from None
    refuse_odd(value)
    return value


def from_yaml(text: str) -> Any:
    """Return the value of a YAML text without aliases: texts, numbers, true, false, null, lists and
    mappings. NotPlain if it is none, or beyond the bounds.
    """
    loader = None
    try:
        loader = _Plain(text)
        value = loader.get_single_data()
    except yaml.YAMLError as error:
        raise NotPlain(f"not YAML: {_where(error)}") from None
    except (ValueError, TypeError, KeyError, IndexError, AttributeError, OverflowError) as error:
        # What the loader's own conversions raise for a tag that does not fit its value.
        raise NotPlain(f"not YAML: {' '.join(str(error).split())[:200]}") from None
    finally:
        if loader is not None:
            loader.dispose()
    refuse_odd(value)
    return value


def shipped_yaml(path: Path) -> Any:
    """Return the value of a YAML file that ships with the program."""
    return yaml.load(path.read_text("utf-8"), SHIPPED_LOADER)


def _once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for name, value in pairs:
        if name in found:
            raise NotPlain(f"the key {name!r:.80} is given twice")
        found[name] = value
    return found


def _integer(text: str) -> int:
    if len(text) > DIGITS + 1:
        raise NotPlain(f"a number has more than {DIGITS} digits: {text[:20]}…")
    return int(text)


def _float(text: str) -> float:
    if not _FLOAT.match(text):
        raise NotPlain(f"a number is larger or longer than any figure here: {text[:20]}")
    return float(text)


def _constant(name: str) -> NoReturn:
    raise NotPlain(f"{name} is not a number")


def refuse_odd(value: Any, depth: int = 0) -> None:
    """Raise NotPlain for texts that nothing can show, and for deep nesting."""
    if depth > DEPTH:
        raise NotPlain(f"nested more than {DEPTH} levels deep")
    if isinstance(value, str):
        _refuse_odd_text(value)
    elif isinstance(value, dict):
        for key, each in value.items():
            refuse_odd(key, depth + 1)
            refuse_odd(each, depth + 1)
    elif isinstance(value, list | tuple):
        for each in value:
            refuse_odd(each, depth + 1)


def _refuse_odd_text(text: str) -> None:
    if "\0" in text:
        raise NotPlain(f"{text!r:.60} has a NUL in it")
    try:
        text.encode()
    except UnicodeEncodeError:
        raise NotPlain(f"{text!r:.60} has half a character in it") from None


def _mistake(problem: str, place: Any) -> yaml.MarkedYAMLError:
    return yaml.MarkedYAMLError(problem=problem, problem_mark=place.start_mark)


class _Plain(yaml.SafeLoader):
    """Loads YAML as people write it by hand: nothing that expands, refers or converts."""

    depth = 0

    def compose_node(self, parent: yaml.Node | None, index: int) -> yaml.Node | None:
        event: yaml.Event = self.peek_event()  # type: ignore[no-untyped-call]
        if isinstance(event, yaml.AliasEvent) or getattr(event, "anchor", None):
            # Each of a few lines of aliases can stand for the tenfold of the line before.
            raise _mistake("anchors and aliases (&, *) are not read; write it out", event)
        self.depth += 1
        if self.depth > DEPTH:
            raise _mistake(f"nested more than {DEPTH} levels deep", event)
        try:
            return super().compose_node(parent, index)
        finally:
            self.depth -= 1

    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[Any, Any]:
        seen: set[str] = set()
        for key, _ in node.value:
            if not isinstance(key, yaml.ScalarNode) or key.tag != f"{_TAG}str":
                raise _mistake("a key must be a text; put it in quotes", key)
            if key.value in seen:
                raise _mistake(f"the key {key.value!r:.80} is given twice", key)
            seen.add(key.value)
        return super().construct_mapping(node, deep)

    def refuse(self, node: yaml.Node) -> NoReturn:
        raise _mistake(f"the tag {node.tag!r:.80} is not read", node)

    def integer(self, node: yaml.ScalarNode) -> int:
        if not _INTEGER.match(node.value):
            self.refuse(node)
        return int(node.value)

    def fraction(self, node: yaml.ScalarNode) -> float:
        if not _FLOAT.match(node.value):
            self.refuse(node)
        return float(node.value)


_KEPT = ("null", "bool", "str", "seq", "map")
_CONSTRUCTORS: dict[Any, Any] = {
    **{f"{_TAG}{name}": yaml.SafeLoader.yaml_constructors[f"{_TAG}{name}"] for name in _KEPT},
    f"{_TAG}int": _Plain.integer,
    f"{_TAG}float": _Plain.fraction,
    None: _Plain.refuse,
}
_Plain.yaml_constructors = _CONSTRUCTORS
# Dates, merges, and numbers to the base of 60 are texts like any other.
_Plain.yaml_implicit_resolvers = {
    first: [each for each in rows if each[0] in (f"{_TAG}null", f"{_TAG}bool")]
    for first, rows in yaml.SafeLoader.yaml_implicit_resolvers.items()
}
for _tag, _pattern in (("int", _INTEGER), ("float", _FLOAT)):
    _Plain.add_implicit_resolver(f"{_TAG}{_tag}", _pattern, list("-+.0123456789"))


def _where(error: yaml.YAMLError) -> str:
    mark = getattr(error, "problem_mark", None)
    problem = getattr(error, "problem", None) or getattr(error, "reason", None) or "cannot be read"
    return f"line {mark.line + 1} column {mark.column + 1}: {problem}" if mark else str(problem)
