"""Tools as a request carries them, strict where that can be kept. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import astuple, dataclass
from typing import Any

from anthropic import transform_schema

Json = Mapping[str, Any]


@dataclass(frozen=True)
class Load:
    """Load of compiling schemas; an endpoint refuses a request with more than `MOST`."""

    strict_tools: int = 0
    optional: int = 0
    unions: int = 0

    def __add__(self, other: Load) -> Load:
        return Load(
            *(ours + theirs for ours, theirs in zip(astuple(self), astuple(other), strict=True))
        )

    @property
    def bearable(self) -> bool:
        return all(ours <= most for ours, most in zip(astuple(self), astuple(MOST), strict=True))


MOST = Load(strict_tools=20, optional=24, unions=16)


def offer_tools(tools: Sequence[Json], form: Json | None) -> list[dict[str, Any]]:
    """Return the tools for a request. A tool that asks to be strict is, as long as an endpoint
    takes its schema and all before it, the answer's `form` included. Without `form` the endpoint
    knows no strict tools. A server's own tools, which have a type, stay as they are.
    """
    taken = Load() if form is None else _load(form)
    result = []
    for tool in tools:
        sent = dict(tool)
        if "type" not in tool:
            wanted = sent.pop("strict", False) and form is not None
            schema = _to_strict(tool["input_schema"]) if wanted else None
            more = taken + Load(strict_tools=1) + _load(schema or {})
            if schema is not None and more.bearable:
                taken, sent = more, {**sent, "input_schema": schema, "strict": True}
        result.append(sent)
    return result


def _to_strict(schema: Json) -> dict[str, Any] | None:
    """Return a schema as strict mode takes it; None if that would mean something else: an object
    with any keys would have none, a tuple would lose its parts, and a schema that holds itself
    cannot be compiled.
    """
    try:
        if any(_is_loose(part) for part in _parts(schema)) or _is_recursive(schema):
            return None
        return transform_schema(dict(schema))
    except (ValueError, TypeError, AttributeError, RecursionError):
        # Strangers write schemas, too.
        return None


def _is_loose(part: Json) -> bool:
    if part.get("prefixItems") or part.get("patternProperties"):
        return True
    more = part.get("additionalProperties")
    # An object without properties is closed only if it says so.
    closed = more is False or (more is None and part.get("properties"))
    return part.get("type") == "object" and not closed


def _is_recursive(schema: Json, name: str = "", within: frozenset[str] = frozenset()) -> bool:
    """True if a definition holds itself."""
    definitions = schema.get("$defs", {})
    place = definitions.get(name, {}) if name else schema
    held = {
        str(part["$ref"]).rsplit("/", 1)[-1]
        for part in _parts({key: value for key, value in place.items() if key != "$defs"})
        if "$ref" in part
    }
    inside = within | {name}
    return any(each in inside or _is_recursive(schema, each, inside) for each in held)


def _load(schema: Json) -> Load:
    parts = list(_parts(schema))
    return Load(
        optional=sum(
            len(set(part.get("properties", ())) - set(part.get("required", ()))) for part in parts
        ),
        unions=sum("anyOf" in part or isinstance(part.get("type"), list) for part in parts),
    )


def _parts(schema: Json) -> Iterator[Json]:
    """Yield a schema and all schemas in it, without what only describes, like examples."""
    yield schema
    for name in ("properties", "$defs"):
        for inner in schema.get(name, {}).values():
            yield from _parts(inner)
    for name in ("anyOf", "oneOf", "allOf"):
        for inner in schema.get(name, ()):
            yield from _parts(inner)
    for name in ("items", "additionalProperties"):
        if isinstance(schema.get(name), Mapping):
            yield from _parts(schema[name])
