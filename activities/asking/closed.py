"""Leave out, and report, properties of an answer that its schema does not have. Models without
structured outputs add one now and then, and the rest of the answer is worth no less for it.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any

from holdfast.text import visible

Json = Mapping[str, Any]
MOST_NAMED = 5
NAME_LETTERS = 60
REFERENCE = "#/$defs/"


def drop_unknown(schema: Json, text: str) -> tuple[str, tuple[str, ...]]:
    """Return the JSON without properties that the closed objects of its schema do not have, and the
    places of those. Raise ValueError or RecursionError if the text is not JSON that can be written
    again.
    """
    dropped: list[str] = []
    kept = _keep_known(schema, json.loads(text), schema, "", dropped)
    return json.dumps(kept, allow_nan=False), tuple(dropped)


def describe_dropped(dropped: tuple[str, ...]) -> str:
    """Return a note on the properties that were left out; empty if there are none."""
    if not dropped:
        return ""
    more = f" and {len(dropped) - MOST_NAMED} more" if len(dropped) > MOST_NAMED else ""
    named = ", ".join(dropped[:MOST_NAMED])
    return f"what its form does not know was left out of its answer: {named}{more}"


def _keep_known(schema: Json, value: Any, root: Json, place: str, dropped: list[str]) -> Any:
    part = _resolve(schema, root)
    if "anyOf" in part:
        return _keep_best(part["anyOf"], value, root, place, dropped)
    if isinstance(value, dict) and "properties" in part:
        return dict(_properties(part, value, root, place, dropped))
    if isinstance(value, list) and "items" in part:
        return [
            _keep_known(part["items"], each, root, f"{place}[{number}]", dropped)
            for number, each in enumerate(value)
        ]
    return value


def _properties(
    part: Json, value: Json, root: Json, place: str, dropped: list[str]
) -> Iterator[tuple[str, Any]]:
    for name, each in value.items():
        inside = f"{place}.{visible(name[:NAME_LETTERS])}".lstrip(".")
        if name in part["properties"]:
            yield name, _keep_known(part["properties"][name], each, root, inside, dropped)
        elif part.get("additionalProperties") is False:
            dropped.append(inside)
        else:
            yield name, each


def _keep_best(choices: Any, value: Any, root: Json, place: str, dropped: list[str]) -> Any:
    """Return the value by the choice that lacks the fewest required properties, and of those leaves
    out least.
    """
    fitting: list[tuple[int, list[str], Any]] = []
    for choice in choices:
        part = _resolve(choice, root)
        if not _fits_kind(part, value):
            continue
        lost: list[str] = []
        kept = _keep_known(choice, value, root, place, lost)
        missing = [each for each in part.get("required", ()) if each not in value]
        fitting.append((len(missing), lost, kept))
    if not fitting:
        return value
    _, lost, kept = min(fitting, key=lambda each: (each[0], len(each[1])))
    dropped += lost
    return kept


def _fits_kind(part: Json, value: Any) -> bool:
    if isinstance(value, dict):
        return "properties" in part
    return part.get("type") == "array" if isinstance(value, list) else False


def _resolve(schema: Json, root: Json) -> Json:
    reference = schema.get("$ref", "")
    return root["$defs"][reference.removeprefix(REFERENCE)] if reference else schema
