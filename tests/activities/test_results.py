"""The form that a role sets for its results: what of a schema is taken, what is refused by its
place, what an endpoint is asked for, and what is said of an answer that is not in its form.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from holdfast.activities.asking.forms import find_mistakes, shape_of
from holdfast.activities.catalogue.catalogue import Catalogue
from holdfast.activities.claude.wire import shape
from holdfast.cli.commands.care.doctor import find_unusable
from holdfast.contracts import Capabilities, RoleCard
from holdfast.ports import ModelRequest

YEAR = {"type": "integer", "description": "four digits"}
ENGINE = {
    "type": "object",
    "properties": {
        "name": {"type": "string"},
        "since": {"$ref": "#/$defs/year"},
        "licence": {"type": "string", "enum": ["open", "closed"]},
        "released": {"anyOf": [{"type": "string", "format": "date"}, {"type": "null"}]},
    },
    "required": ["name", "since"],
}
FORM: dict[str, Any] = {
    "type": "object",
    "properties": {"engines": {"type": "array", "minItems": 1, "items": ENGINE}},
    "required": ["engines"],
    "$defs": {"year": YEAR},
}


def load(home: Path, result: object, more: str = "") -> Catalogue:
    (home / "roles").mkdir(parents=True, exist_ok=True)
    # What is JSON is YAML, too.
    head = f"name: lister\ndescription: Lists.\nresult: {json.dumps(result)}\n"
    (home / "roles/lister.md").write_text(f"---\n{head}{more}---\nYou list engines.\n")
    return Catalogue.load(home)


def card(home: Path, result: object) -> RoleCard:
    catalogue = load(home, result)
    assert catalogue.unusable_roles == ()
    return catalogue.roles["lister"].card


def refused(home: Path, result: object, more: str = "") -> str:
    (wrong,) = load(home, result, more).unusable_roles
    assert "\n" not in wrong.why
    return wrong.why


def test_a_schema_in_the_head_of_a_role_is_on_its_card_with_its_objects_closed(
    tmp_path: Path,
) -> None:
    form: Any = card(tmp_path, FORM).result
    assert form["additionalProperties"] is False
    assert form["properties"]["engines"]["items"]["additionalProperties"] is False
    assert form["$defs"] == {"year": YEAR}
    assert card(tmp_path, None).result == {}


def with_(**field: Any) -> dict[str, Any]:
    return {"type": "object", "properties": {"a": {"type": "string"} | field}}


def nested(levels: int) -> dict[str, Any]:
    form: dict[str, Any] = {"type": "string"}
    for _ in range(levels):
        form = {"type": "object", "properties": {"a": form}}
    return form


def named(name: str) -> dict[str, Any]:
    form = {"type": "object", "properties": {"a": {"$ref": f"#/$defs/{name}"}}}
    return {**form, "$defs": {name: {"type": "string"}}}


LOOP = {"type": "object", "properties": {"a": {"$ref": "#/$defs/a"}}}
TWICE = {
    f"d{level}": {
        "type": "object",
        "properties": {key: {"$ref": f"#/$defs/d{level + 1}"} for key in "abcd"},
    }
    for level in range(3)
}


@pytest.mark.parametrize(
    ("result", "place", "why"),
    [
        ("text", "result:", "must be a JSON schema with `type: object`"),
        ({"type": "array", "items": {"type": "string"}}, "result:", "`type: object`"),
        ({"type": "object"}, "result:", "`properties`"),
        (with_(minLength=3), "result.properties.a", "minLength: structured outputs"),
        (
            with_(type="array", items={"type": "string"}, minItems=1, maxItems=0),
            "result.properties.a",
            "maxItems",
        ),
        (with_(type="integer", minimum=5, maximum=1), "result.properties.a", "minimum, maximum"),
        (with_(pattern="^a{5}$", maxLength=2), "result.properties.a", "pattern, maxLength"),
        (with_(pattern="a+"), "result.properties.a", "pattern"),
        (with_(type="integer", minimum=3), "result.properties.a", "minimum"),
        (with_(type=["string", "null"]), "result.properties.a", "one `type`"),
        (with_(type="text"), "result.properties.a", "one `type`"),
        (with_(format="uri"), "result.properties.a.format", "date"),
        (with_(enum=[]), "result.properties.a.enum", "a list"),
        (with_(enum=[["a"]]), "result.properties.a.enum", "a list"),
        (with_(type="array"), "result.properties.a", "needs `items`"),
        (
            with_(type="array", items={"type": "string"}, minItems=2),
            "result.properties.a.minItems",
            "0 or 1",
        ),
        (with_(type="object"), "result.properties.a", "needs `properties`"),
        ({**with_(), "additionalProperties": True}, "result.additionalProperties", "false"),
        ({**with_(), "required": ["b"]}, "result.required", "`properties` has"),
        ({**with_(), "allOf": [{}]}, "result", "allOf"),
        (
            {"type": "object", "properties": {"a": {"$ref": "https://evil.example/s.json"}}},
            "result.properties.a.$ref",
            "#/$defs/NAME",
        ),
        ({**LOOP, "$defs": {"a": LOOP}}, "result.$defs.a", "or in itself"),
        (named("a/b"), "result.$defs", "a name has letters, digits"),
        (named("a~b"), "result.$defs", "a name has letters, digits"),
        (named("a%25b"), "result.$defs", "a name has letters, digits"),
        (with_(enum=["a", 1]), "result.properties.a.enum", "contradicts `type`"),
        (with_(const=1), "result.properties.a.const", "contradicts `type`"),
        (with_(type="integer", enum=[1, True]), "result.properties.a.enum", "contradicts `type`"),
        (with_(const="c", enum=["a", "b"]), "result.properties.a.const", "contradicts `enum`"),
        (with_(const="c", format="date"), "result.properties.a.const", "contradicts `format`"),
        (nested(11), "properties", "deeper than 10"),
        (
            {**with_(), "$defs": {**TWICE, "d3": {"type": "object", "properties": {
                str(number): {"type": "string"} for number in range(9)}}}},
            "result:",
            "more than 200 schemas",
        ),
        ({**with_(), "description": "x" * 9_000}, "result:", "more than 8,000"),
        (
            {"type": "object", "properties": {str(n): {"type": "string"} for n in range(25)}},
            "result:",
            "25 properties are optional, at most 24",
        ),
        (
            {"type": "object", "properties": {"remarks": {"type": "string"}}},
            "result.properties",
            "remarks: a name of what lenses report",
        ),
    ],
)  # fmt: skip
def test_a_schema_that_cannot_be_used_is_refused_by_its_place_in_one_line(
    tmp_path: Path, result: object, place: str, why: str
) -> None:
    said = refused(tmp_path, result)
    assert said.startswith("lister.md: front matter: result") and place in said and why in said


@pytest.mark.parametrize("more", ["model: none\ntools: bugs\n", "team: true\n"])
def test_a_form_for_a_role_without_answers_of_its_own_has_no_effect_and_is_refused(
    tmp_path: Path, more: str
) -> None:
    assert "result: no effect" in refused(tmp_path, FORM, more)


def test_doctor_names_the_role_whose_schema_is_bad(tmp_path: Path) -> None:
    (check,) = find_unusable(load(tmp_path, with_(minLength=3)))
    assert check.name == "role lister" and "minLength" in check.detail


# ---------------------------------------------------------------- what an endpoint is asked for


def body(form: Any, mode: Any) -> dict[str, Any]:
    capabilities = Capabilities(schema_mode=mode)
    asked = shape_of(form).asked
    return shape(ModelRequest("m", "", "p", asked, 100, capabilities=capabilities), capabilities)


def closed(form: Any) -> Any:
    if isinstance(form, list):
        return [closed(each) for each in form]
    if not isinstance(form, dict):
        return form
    more = {"additionalProperties": False} if form.get("type") == "object" else {}
    return {name: closed(each) for name, each in form.items()} | more


def without_types(form: Any) -> Any:
    """An enum says of what type its values are by itself."""
    if isinstance(form, list):
        return [without_types(each) for each in form]
    if not isinstance(form, dict):
        return form
    return {
        name: without_types(each)
        for name, each in form.items()
        if not (name == "type" and "enum" in form)
    }


def test_the_form_goes_to_the_endpoint_inside_the_schema_of_the_answer(tmp_path: Path) -> None:
    form = card(tmp_path, FORM).result
    schema = body(form, "native")["output_config"]["format"]["schema"]
    data, words = schema["properties"]["result"]["anyOf"]
    assert words == {"type": "string"}
    # Nothing of it was moved into a description: it is what every endpoint takes.
    expected = {name: value for name, value in FORM.items() if name != "$defs"}
    assert without_types(data) == without_types(closed(expected))
    assert schema["$defs"] == FORM["$defs"]
    assert "engines" in body(form, "prompt")["system"]


def test_without_a_form_an_agent_is_asked_as_ever() -> None:
    properties = shape_of({}).asked["properties"]
    assert properties["result"]["type"] == "string"


# ---------------------------------------------------------------- what comes back


def answer(result: Any, **fields: Any) -> str:
    common = {"status": "complete", "confidence": 90, "sources": [], "reason": "", "why": ""}
    return json.dumps({**common, "result": result, **fields})


def drafted(form: Any, text: str) -> Any:
    wanted = shape_of(form)
    return wanted.value(wanted.answer.model_validate_json(text))


GOOD = {"engines": [{"name": "Ä", "since": 2024, "released": None}]}


def test_a_complete_answer_is_data_and_its_text_is_the_same_as_json(tmp_path: Path) -> None:
    draft = drafted(card(tmp_path, FORM).result, answer(GOOD))
    assert draft.data == GOOD and json.loads(draft.content) == GOOD


@pytest.mark.parametrize(
    ("result", "said"),
    [
        ("text", "result: must be an object"),
        ({}, "result: lacks engines"),
        ({"engines": [{"name": "a", "since": float("nan")}]}, "a number that JSON has not"),
        ({"engines": []}, "result.engines: is empty"),
        (
            {"engines": [{"name": "a", "since": "x-SECRET"}]},
            "result.engines[0].since: must be of type integer",
        ),
        ({"engines": [{"name": "a"}]}, "result.engines[0]: lacks since"),
        (
            {"engines": [{"name": "a", "since": 1, "shade": "SECRET"}]},
            "result.engines[0]: its form does not know shade",
        ),
        (
            {"engines": [{"name": "a", "since": 1, "licence": "SECRET"}]},
            'result.engines[0].licence: must be one of "open", "closed"',
        ),
        (
            {"engines": [{"name": "a", "since": 1, "released": "2024-13-01"}]},
            "result.engines[0].released: has none",
        ),
    ],
)  # fmt: skip
def test_what_is_wrong_is_said_with_its_path_and_no_value_is_repeated(
    tmp_path: Path, result: Any, said: str
) -> None:
    with pytest.raises(ValueError) as wrong:
        drafted(card(tmp_path, FORM).result, answer(result))
    assert said in str(wrong.value) and "SECRET" not in str(wrong.value)


def test_what_is_given_up_may_be_words_or_what_there_is_of_the_data(tmp_path: Path) -> None:
    form = card(tmp_path, FORM).result
    given_up = {"status": "escalate", "reason": "out_of_scope", "why": "no list"}
    words = drafted(form, answer("two of three", **given_up))
    assert (words.data, words.escalation.partial) == ({}, "two of three")
    part = drafted(form, answer(GOOD, **given_up))
    assert part.data == GOOD and json.loads(part.escalation.partial) == GOOD
    crooked = drafted(form, answer({"engines": 1}, **given_up))
    assert crooked.data == {} and json.loads(crooked.escalation.partial) == {"engines": 1}


def test_nothing_is_fetched_for_a_reference_that_leads_away() -> None:
    """No role file can hold one; a card of a foreign worker could."""
    away: Any = {"type": "object", "properties": {"a": {"$ref": "http://127.0.0.1:9/schema"}}}
    (said,) = find_mistakes(away, {"a": 1})
    assert said == "result: cannot be checked: its schema refers to what it does not hold"


def test_a_reference_by_a_plain_name_is_followed_when_an_answer_is_checked(tmp_path: Path) -> None:
    form = card(tmp_path, named("a_b.c-1")).result
    assert [*find_mistakes(form, {"a": "text"})] == []
    assert [*find_mistakes(form, {"a": 1})] == ["result.a: must be of type string"]


def test_a_schema_that_came_past_every_check_is_said_in_words_and_not_by_an_exception() -> None:
    assert [*find_mistakes(named("a%25b"), {"a": "text"})] == [
        "result: cannot be checked: its schema refers to what it does not hold"
    ]


def test_values_that_agree_with_their_type_are_taken(tmp_path: Path) -> None:
    parts = {
        "a": {"type": "integer", "enum": [1, 2.0]},
        "b": {"type": "string", "enum": ["x", "y"], "const": "x"},
        "c": {"type": "string", "format": "date", "const": "2026-01-02"},
    }
    assert card(tmp_path, {"type": "object", "properties": parts}).result
