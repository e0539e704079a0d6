"""Check arguments against the schema that an MCP server gives its tool, and the schema itself.

Run by the client in its child process, so it imports nothing of this project. Schemas are a
stranger's: their size, their depth and the time that they take are bounded, and none leads out.
"""

from __future__ import annotations

import json
import re
import signal
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import islice
from typing import Any

from jsonschema.exceptions import SchemaError
from jsonschema.validators import Draft202012Validator, validator_for
from referencing import Registry
from referencing.jsonschema import DRAFT202012

LETTERS = 20_000
DEPTH = 40
SECONDS = 2.0
"""Time limit of one schema: an expression in it can take forever on a text."""
MISTAKES = 10
LINE_LETTERS = 300
REFERENCE = re.compile(r'"\$ref": ("#(?:/[^"]*)?")')
REFERENCES = ("$ref", "$dynamicRef", "$recursiveRef")
DATA = ("const", "default", "enum", "examples")
"""Keywords whose values are not schemas."""


class TooSlow(Exception):
    """Checking took longer than SECONDS."""


def flaw(schema: Any) -> str:
    """Return why a tool with this schema is left out; empty: nothing is wrong."""
    if not isinstance(schema, dict) or schema.get("type") != "object":
        return "has no object as its arguments"
    try:
        if len(json.dumps(schema)) > LETTERS:
            return f"has a schema of more than {LETTERS:,} letters"
        with _in_time():
            if why := _outside(schema, 0):
                return f"has a schema {why}"
            checker = validator_for(schema, default=Draft202012Validator)
            checker.check_schema(schema)
            _lead_somewhere(schema)
            # What leads in a circle shows when it is used.
            next(checker(schema, registry=Registry()).iter_errors({}), None)
    except TooSlow:
        return f"has a schema that takes more than {SECONDS:g} s to check"
    except SchemaError as error:
        return f"has a schema that is none: {error.message[:LINE_LETTERS]}"
    except Exception as error:
        return f"has a schema that cannot be followed ({_name_error(error)})"
    return ""


def _name_error(error: Exception) -> str:
    """Return the kind of an error; that of a pattern has another name on each Python."""
    return "no such pattern" if isinstance(error, re.error) else type(error).__name__


def unfit(schema: Any, arguments: Any) -> list[str]:
    """Return what is wrong with arguments, each as the place and what is wrong there."""
    checker = validator_for(schema, default=Draft202012Validator)(schema, registry=Registry())
    try:
        with _in_time():
            wrong = [*islice(checker.iter_errors(arguments), MISTAKES + 1)]
    except TooSlow:
        return [f": they take more than {SECONDS:g} s to check; give shorter ones"]
    except Exception as error:
        return [f": the schema of the tool cannot be followed for them ({_name_error(error)})"]
    lines = [
        f"{each.json_path[1:]}: {' '.join(each.message.split())}"[:LINE_LETTERS] for each in wrong
    ]
    return [*lines[:MISTAKES], ": and more"] if len(lines) > MISTAKES else lines


def main(request: bytes) -> bytes:
    """Check arguments in a child of its own, for whoever asks no server."""
    asked = json.loads(request)
    return json.dumps(unfit(asked["schema"], asked["arguments"])).encode()


def _outside(schema: Any, depth: int) -> str:
    """Return what of a schema is not followed: references out of it, and what is too deep."""
    if depth > DEPTH:
        return f"of more than {DEPTH} levels"
    if isinstance(schema, dict):
        for key, value in schema.items():
            if key in REFERENCES and isinstance(value, str) and not value.startswith("#"):
                return "that stands elsewhere, which is not fetched"
            if key == "pattern" and isinstance(value, str):
                re.compile(value)
        schema = [value for key, value in schema.items() if key not in DATA]
    if isinstance(schema, list):
        return next(filter(None, (_outside(each, depth + 1) for each in schema)), "")
    return ""


def _lead_somewhere(schema: dict[str, Any]) -> None:
    """Raise Unresolvable for a reference to nothing, if all are meant from the top of the
    schema.
    """
    resolver = Registry().resolver_with_root(DRAFT202012.create_resource(schema))
    written = json.dumps(schema)
    for each in set(REFERENCE.findall(written)) if '"$id"' not in written else ():
        resolver.lookup(json.loads(each))


@contextmanager
def _in_time() -> Iterator[None]:
    """Raise TooSlow after SECONDS, also in the middle of an expression."""

    def late(*_: object) -> None:
        raise TooSlow

    before = signal.signal(signal.SIGALRM, late)
    signal.setitimer(signal.ITIMER_REAL, SECONDS)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
