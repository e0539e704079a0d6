"""Check the form that a role file sets for its results: a schema that every endpoint can be given.

What structured outputs do not take is refused when the file is read, by its place in the schema,
and not by an endpoint after the plan was paid.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, get_args

from pydantic import JsonValue

from holdfast.activities.catalogue.tools import CatalogueError
from holdfast.contracts import Severity, Sightings

BYTES = 8_000
"""Bytes of a schema as JSON: each call of its role carries it."""
DEPTH = 10
PARTS = 200
"""Schemas within a schema, each counted as often as something leads to it."""
OPTIONAL, UNIONS = 24, 15
"""Limits of the schemas that an endpoint compiles in one request; one more union is our
own, for words in place of a result.
"""
FORMATS = ("date", "email", "ipv4", "ipv6", "uuid")
"""Those that are checked when an answer comes back; structured outputs take them, too."""
REFERENCE = "#/$defs/"
_PLAIN = re.compile(r"[A-Za-z0-9_.-]{1,100}")
"""Names that need no escape in a reference: `/`, `~` and `%` are read as something else there."""
WORDS = {"description", "title"}
KEYWORDS: Mapping[str, set[str]] = {
    "object": {"properties", "required", "additionalProperties"},
    "array": {"items", "minItems"},
    "string": {"enum", "const", "format"},
    "integer": {"enum", "const"},
    "number": {"enum", "const"},
    "boolean": {"enum", "const"},
    "null": set(),
}
"""Further keywords that a schema of each type may have."""
REMARKS = tuple(Sightings.model_fields)
"""Names of the result that mark it as remarks, as lenses report them."""

DEFECT = "defect"
"""The rule of each remark of a role that names no kinds."""


def remarked(kinds: Sequence[str]) -> dict[str, Any]:
    """Return what an agent of a review hands up: remarks, with the fields of `Remark` that a model
    may fill, each of one of these kinds. What it has to say stands before how much it weighs:
    models defend what they have written.
    """
    fields: dict[str, Any] = {
        "file": {"type": "string", "description": "Its path below the top of the repository."},
        "line": {
            "type": "integer",
            "description": "1-based, in the file as it is now; of a deleted line its number in the"
            " diff; 0: the whole file.",
        },
        "code": {
            "type": "string",
            "description": "That line, or the deleted one, copied exactly; empty for a whole file.",
        },
        "message": {
            "type": "string",
            "description": "What goes wrong, when, and what proves it, in a sentence or two.",
        },
        "suggestion": {"type": "string", "description": "What to do, in a sentence."},
        "rule": {"enum": [*(kinds or (DEFECT,))], "type": "string", "description": "Its kind."},
        "severity": {
            "enum": [*get_args(Severity)],
            "type": "string",
            "description": "critical: wrong results, loss or a hole in production; warning: a"
            " defect, or a test that no longer holds what it is called; info: worth knowing.",
        },
        "confidence": {
            "type": "integer",
            "description": "0 to 100, that a maintainer who knows this code agrees; be honest:"
            " remarks are ranked by it.",
        },
    }
    remark = {
        "type": "object",
        "additionalProperties": False,
        "required": [*fields],
        "properties": fields,
    }
    remarks = {
        "type": "array",
        "description": "One for each defect; empty when there is none.",
        "items": remark,
    }
    return {
        "type": "object",
        "additionalProperties": False,
        "required": ["remarks"],
        "properties": {"remarks": remarks},
    }


class BadSchema(ValueError):
    """A part of a schema that cannot be used, with its place."""


def result_of(path: Path, given: object) -> dict[str, JsonValue]:
    """Return the schema below `result:` as calls carry it, its objects closed; empty: there is
    none. Raise CatalogueError, in a line, for what cannot be used.
    """
    if given is None:
        return {}
    try:
        if not isinstance(given, dict) or given.get("type") != "object":
            raise BadSchema("result: must be a JSON schema with `type: object` and `properties`")
        checked = check_schema(given, "result")
        taken = [name for name in given["properties"] if name in REMARKS]
        if taken:
            named = ", ".join(taken)
            raise BadSchema(f"result.properties: {named}: a name of what lenses report; rename")
        return checked
    except BadSchema as error:
        raise CatalogueError(f"{path.name}: front matter: {error}") from None


def check_schema(given: Mapping[str, Any], top: str) -> dict[str, JsonValue]:
    """Return a schema with its objects closed, as calls carry it. Raise BadSchema, in a line, for
    what no endpoint could be given; `top` names the whole in it.
    """
    try:
        size = len(json.dumps(given, ensure_ascii=False, allow_nan=False).encode())
    except (TypeError, ValueError, RecursionError):
        raise BadSchema(f"{top}: holds what JSON cannot say; put dates in quotes") from None
    less = "leave out what is not needed"
    if size > BYTES:
        raise BadSchema(f"{top}: has {size:,} bytes, more than {BYTES:,}; {less}")
    optional = unions = 0
    for count, part in enumerate(_parts(given, given, top, 1), start=1):
        if count > PARTS:
            raise BadSchema(f"{top}: holds more than {PARTS} schemas; {less}")
        optional += len(set(part.get("properties", ())) - set(part.get("required", ())))
        unions += "anyOf" in part
    if optional > OPTIONAL:
        raise BadSchema(f"{top}: {optional} properties are optional, at most {OPTIONAL} may be")
    if unions > UNIONS:
        raise BadSchema(f"{top}: {unions} parts are `anyOf`, at most {UNIONS} may be")
    return _close(dict(given))


def _parts(
    part: object, whole: Mapping[str, Any], place: str, depth: int
) -> Iterator[Mapping[str, Any]]:
    """Yield a schema and all that it leads to, each checked by itself."""
    if depth > DEPTH:
        raise BadSchema(f"{place}: nested deeper than {DEPTH}, or in itself")
    if not isinstance(part, dict):
        raise BadSchema(f"{place}: must be a schema")
    _refuse(part, whole, place)
    yield part
    inner = {f"properties.{name}": each for name, each in part.get("properties", {}).items()}
    inner |= {f"anyOf[{number}]": each for number, each in enumerate(part.get("anyOf", ()))}
    if "items" in part:
        inner["items"] = part["items"]
    if part is whole:
        inner |= {f"$defs.{name}": each for name, each in part.get("$defs", {}).items()}
    for name, each in inner.items():
        yield from _parts(each, whole, f"{place}.{name}", depth + 1)
    if "$ref" in part:
        name = part["$ref"].removeprefix(REFERENCE)
        top = place.partition(".")[0]
        yield from _parts(whole["$defs"][name], whole, f"{top}.$defs.{name}", depth + 1)


def _refuse(part: Mapping[str, Any], whole: Mapping[str, Any], place: str) -> None:
    """Raise BadSchema naming what of this part alone cannot be used."""
    kind = part.get("type")
    if "$ref" in part:
        allowed = {"$ref"}
        if part["$ref"] not in [f"{REFERENCE}{name}" for name in whole.get("$defs", {})]:
            where = f"with NAME in `$defs` of `{place.partition('.')[0]}`"
            raise BadSchema(f"{place}.$ref: must be {REFERENCE}NAME, {where}")
    elif "anyOf" in part:
        allowed = {"anyOf", *WORDS}
    elif isinstance(kind, str) and kind in KEYWORDS:
        allowed = {"type", *WORDS, *KEYWORDS[kind]}
    else:
        known = ", ".join(KEYWORDS)
        raise BadSchema(f"{place}: must have one `type` of {known}, or `anyOf`, or `$ref`")
    unknown = [str(name) for name in part if name not in allowed]
    unknown = [name for name in unknown if not (name == "$defs" and part is whole)]
    if unknown:
        named = ", ".join(unknown)
        raise BadSchema(
            f"{place}: {named}: structured outputs do not keep to it here; say it in `description`"
        )
    for name in NEEDED.get(str(kind), ()):
        if name not in part:
            raise BadSchema(f"{place}: needs `{name}`")
    for name, (fits, wanted) in VALUES.items():
        if name in part and not fits(part[name], part):
            raise BadSchema(f"{place}.{name}: must be {wanted}")
    _refuse_contradiction(part, place)


def _refuse_contradiction(part: Mapping[str, Any], place: str) -> None:
    """Raise BadSchema for a value that is allowed here and that nothing here could be."""
    if not {"enum", "const"} & set(part):
        return
    # Most workers never see a schema with values of its own.
    from jsonschema import Draft202012Validator

    checker = Draft202012Validator.FORMAT_CHECKER
    held = {"enum": part.get("enum", []), "const": [part["const"]] if "const" in part else []}
    for name, values in held.items():
        others = {
            key: part[key] for key in ("type", "format", "enum") if key in part and key != name
        }
        for key, wanted in others.items():
            fits = Draft202012Validator({key: wanted}, format_checker=checker)
            if not all(map(fits.is_valid, values)):
                raise BadSchema(
                    f"{place}.{name}: contradicts `{key}` beside it; change one of them"
                )


def _primitive(value: object, _: object = None) -> bool:
    return value is None or isinstance(value, str | int | float)


def _named(value: object, _: object) -> bool:
    return isinstance(value, dict) and bool(value) and all(isinstance(each, str) for each in value)


def _text(value: object, _: object) -> bool:
    return isinstance(value, str)


NEEDED = {"object": ("properties",), "array": ("items",)}
VALUES: Mapping[str, tuple[Callable[[Any, Mapping[str, Any]], bool], str]] = {
    "additionalProperties": (lambda value, _: value is False, "false, as it always is"),
    "properties": (_named, "names with a schema each, one at least"),
    "required": (
        lambda value, part: (
            isinstance(value, list)
            and all(isinstance(each, str) and each in part.get("properties", ()) for each in value)
        ),
        "a list of names that `properties` has",
    ),
    "minItems": (lambda value, _: type(value) is int and value in (0, 1), "0 or 1"),
    "enum": (
        lambda value, _: isinstance(value, list) and bool(value) and all(map(_primitive, value)),
        "a list of texts, numbers, true, false or null",
    ),
    "const": (_primitive, "a text, a number, true, false or null"),
    "format": (lambda value, _: value in FORMATS, f"one of {', '.join(FORMATS)}"),
    "anyOf": (lambda value, _: isinstance(value, list) and bool(value), "a list of schemas"),
    "$defs": (
        lambda value, part: _named(value, part) and all(map(_PLAIN.fullmatch, value)),
        "names with a schema each; a name has letters, digits, `_`, `.` and `-`",
    ),
    "description": (_text, "text"),
    "title": (_text, "text"),
}
"""For each keyword, a test of its value and of its schema, and words for the fault."""


def _close(part: dict[str, Any]) -> dict[str, Any]:
    """Return the schema with each of its objects closed, as structured outputs want them."""
    closed = dict(part)
    if part.get("type") == "object":
        closed["additionalProperties"] = False
    for name in ("properties", "$defs"):
        if name in part:
            closed[name] = {key: _close(each) for key, each in part[name].items()}
    if "items" in part:
        closed["items"] = _close(part["items"])
    if "anyOf" in part:
        closed["anyOf"] = [_close(each) for each in part["anyOf"]]
    return closed
