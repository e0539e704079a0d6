"""An answer with more than was asked for is worth no less: what its form knows is taken."""

from __future__ import annotations

import json
from typing import Any

import pytest

from holdfast.activities.asking.closed import describe_dropped, drop_unknown
from holdfast.activities.asking.forms import shape_of
from holdfast.activities.asking.replies import Shape, read_value
from holdfast.activities.catalogue.results import remarked
from holdfast.calls import KINDS
from holdfast.calls.kind import ModelKind
from holdfast.calls.work import WorkAnswer, to_draft
from scripted import works

REMARK = {
    "severity": "warning", "file": "a.py", "line": 3, "message": "It is wrong.",
    "suggestion": "Mend it.", "code": "x", "rule": "wrong-bound", "confidence": 90,
}  # fmt: skip


def odd(value: Any) -> Any:
    """The same with a property more in each of its objects."""
    if isinstance(value, list):
        return [odd(each) for each in value]
    if isinstance(value, dict):
        return {**{name: odd(each) for name, each in value.items()}, "odd": [1]}
    return value


def filled(schema: dict[str, Any], root: dict[str, Any]) -> Any:
    """Some value by a schema of ours."""
    if "$ref" in schema:
        return filled(root["$defs"][schema["$ref"].rpartition("/")[2]], root)
    if "enum" in schema:
        return schema["enum"][0]
    match schema.get("type"):
        case "object":
            return {name: filled(each, root) for name, each in schema["properties"].items()}
        case "array":
            return [filled(schema["items"], root)]
        case "boolean":
            return True
        case "integer":
            return 7
        case _:
            return "said"


@pytest.mark.parametrize(
    "kind", [each for each in KINDS.values() if isinstance(each, ModelKind)], ids=lambda k: k.name
)
def test_of_every_kind_of_call_unknown_properties_are_left_out(kind: Any) -> None:
    shape = Shape(kind.answer, lambda answer: answer)
    asked = filled(shape.asked, shape.asked)
    value, dropped = read_value(shape, json.dumps(odd(asked)))
    assert value == kind.answer.model_validate(asked)
    assert dropped[-1] == "odd" and all(each.rpartition(".")[2] == "odd" for each in dropped)
    assert read_value(shape, json.dumps(asked)) == (value, ())


def test_of_a_roles_own_form_too_and_each_place_is_named() -> None:
    shape = shape_of(remarked(("wrong-bound",)))
    given = works({"remarks": [{**REMARK, "lens": "bugs"}], "notes": "none"}, thoughts="hm")
    draft, dropped = read_value(shape, json.dumps(given))
    assert draft.data == {"remarks": [REMARK]}
    assert dropped == ("result.remarks[0].lens", "result.notes", "thoughts")
    assert describe_dropped(dropped).endswith("result.remarks[0].lens, result.notes, thoughts")


def test_what_must_be_mended_all_the_same_is_told_with_the_names() -> None:
    shape = shape_of(remarked(("wrong-bound",)))
    misnamed = {name: value for name, value in REMARK.items() if name != "line"} | {"lineno": 3}
    with pytest.raises(ValueError, match=r"its form does not know lineno; .*lacks line"):
        read_value(shape, json.dumps(works({"remarks": [misnamed]})))
    given = works("text")
    given["certainty"] = given.pop("confidence")
    with pytest.raises(ValueError, match="certainty"):
        read_value(Shape(WorkAnswer, to_draft), json.dumps(given))


def test_of_several_forms_the_one_that_loses_least_is_meant() -> None:
    one = {"type": "object", "additionalProperties": False, "properties": {"a": {}}}
    two = {**one, "properties": {"a": {}, "b": {}}, "required": ["b"]}
    schema = {"anyOf": [one, two, {"type": "string"}]}
    assert drop_unknown(schema, '{"a": 1, "b": 2, "c": 3}') == ('{"a": 1, "b": 2}', ("c",))
    assert drop_unknown(schema, '{"a": 1, "c": 3}') == ('{"a": 1}', ("c",))
    assert drop_unknown(schema, '"c"') == ('"c"', ())


def test_names_that_a_model_made_up_are_few_and_harmless() -> None:
    text = json.dumps({f"\x1b[2J{number}" + "x" * 500: 1 for number in range(9)})
    _, dropped = drop_unknown({"properties": {}, "additionalProperties": False}, text)
    said = describe_dropped(dropped)
    assert len(said) < 600 and "\x1b" not in said and said.endswith("and 4 more")
