"""An agent's answer in the form that its role sets: text, or data by a schema."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from functools import partial
from typing import Any

from pydantic import JsonValue

from holdfast.activities.asking.replies import Shape
from holdfast.calls.kind import Answer, schema_of
from holdfast.calls.work import DataAnswer, WorkAnswer, to_draft
from holdfast.contracts import Draft
from holdfast.text import visible

Form = Mapping[str, JsonValue]
MOST_MISTAKES = 5
NAMES = 120
"""Characters of a place, or of the values that are allowed there."""


def shape_of(form: Form) -> Shape[Any, Draft]:
    """Return what an agent is asked for, and how its answer becomes a draft."""
    if not form:
        return Shape(WorkAnswer, to_draft)
    return Shape(
        DataAnswer, partial(_to_draft, form), schema=schema_around(DataAnswer, form, or_text=True)
    )


def schema_around(answer: type[Answer], form: Form, *, or_text: bool = False) -> dict[str, Any]:
    """Return the schema of a whole answer whose `result` has this form; `or_text`: or is words,
    where there is no result.
    """
    schema = schema_of(answer)
    shared = form.get("$defs")
    own: Any = {name: value for name, value in form.items() if name != "$defs"}
    result = {"anyOf": [own, {"type": "string"}]} if or_text else own
    properties = schema["properties"] | {"result": result}
    whole = {"type": "object", "properties": properties, "required": schema["required"]}
    return {**whole, "additionalProperties": False, **({"$defs": shared} if shared else {})}


def _to_draft(form: Form, answer: DataAnswer) -> Draft:
    """Return the draft of an answer. Raise ValueError, in words for the model that wrote it, if a
    complete answer is not in its form; one that gives up may be words, or data as far as there is
    any.
    """
    data = answer.result
    if answer.status != "complete":
        fits = isinstance(data, dict) and not [*find_mistakes(form, data)]
        return to_draft(answer, data if fits and isinstance(data, dict) else {})
    if not isinstance(data, dict):
        raise ValueError("result: must be an object in the form of its schema, not text")
    wrong = [*find_mistakes(form, data)]
    if wrong:
        raise ValueError("; ".join(wrong[:MOST_MISTAKES]))
    return to_draft(answer, data)


def find_mistakes(form: Form, data: JsonValue, top: str = "result") -> Iterator[str]:
    """Yield each place where data does not fit the schema, and what is wrong there; `top` names the
    whole. Values are not repeated: one may be a secret.
    """
    # Most workers never see a role with a form of its own.
    from jsonschema import Draft202012Validator
    from referencing import Registry
    from referencing.exceptions import Unresolvable

    try:
        json.dumps(data, allow_nan=False)
    except ValueError:
        yield f"{top}: holds a number that JSON has not"
        return
    # The registry is empty and fetches nothing: a schema refers to nothing but itself.
    checker = Draft202012Validator.FORMAT_CHECKER
    validator = Draft202012Validator(form, registry=Registry(), format_checker=checker)
    try:
        found = [*validator.iter_errors(data)]
    except Unresolvable:
        yield f"{top}: cannot be checked: its schema refers to what it does not hold"
        return
    for error in found:
        where = error.json_path.replace("$", top, 1)
        why = _explain(error.validator, error.validator_value, error.instance, error.schema)
        yield f"{where[:NAMES]}: {why}"


def _explain(keyword: object, wanted: Any, given: Any, form: Any) -> str:
    match keyword:
        case "required":
            missing = [name for name in wanted if name not in given]
            return f"lacks {', '.join(missing)}"[:NAMES]
        case "additionalProperties":
            unknown = [visible(name) for name in given if name not in form.get("properties", ())]
            return f"its form does not know {', '.join(unknown)}"[:NAMES]
        case "type":
            return f"must be of type {wanted}"
        case "enum" | "const":
            allowed = wanted if isinstance(wanted, list) else [wanted]
            return f"must be one of {', '.join(map(json.dumps, allowed))}"[:NAMES]
        case "minItems":
            return "is empty; it must hold at least one item"
        case "format":
            return f"is not a {wanted}"
    return "has none of the forms that it may have"
