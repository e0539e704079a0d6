"""What a model is asked for: schemas that every endpoint takes, and what becomes of an answer."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest
from pydantic import ValidationError

from holdfast.calls import MODEL_KINDS
from holdfast.calls.plan import MOST_WHY, PlanAnswer, SubtaskAnswer, to_plan
from holdfast.calls.synthesize import SynthesisAnswer, to_synthesis
from holdfast.calls.work import WorkAnswer, to_draft

ANSWERS = {kind.name: kind.answer for kind in MODEL_KINDS}


def parts(schema: Any) -> Iterator[dict[str, Any]]:
    if isinstance(schema, dict):
        yield schema
        for value in schema.values():
            yield from parts(value)
    elif isinstance(schema, list):
        for value in schema:
            yield from parts(value)


@pytest.mark.parametrize("name", sorted(ANSWERS))
def test_a_schema_holds_closed_objects_with_all_fields_required(name: str) -> None:
    for part in parts(ANSWERS[name].model_json_schema()):
        assert not {"anyOf", "oneOf", "allOf", "default"} & set(part), part
        if part.get("type") == "object":
            assert part["additionalProperties"] is False
            assert set(part["required"]) == set(part["properties"])


@pytest.mark.parametrize("name", sorted(ANSWERS))
def test_each_call_is_told_apart_by_one_property_of_its_own(name: str) -> None:
    others = [
        each for other, shape in ANSWERS.items() if other != name for each in shape.model_fields
    ]
    assert [each for each in ANSWERS[name].model_fields if each not in others]


def work(**fields: object) -> WorkAnswer:
    common = {
        "status": "complete",
        "result": "the result",
        "confidence": 80,
        "sources": ["report"],
        "reason": "",
        "why": "",
    }
    return WorkAnswer.model_validate_json(json.dumps(common | fields))


def test_a_complete_answer_is_a_draft() -> None:
    draft = to_draft(work())
    assert (draft.status, draft.content, draft.confidence) == ("complete", "the result", 80)
    assert draft.sources == ("report",)


@pytest.mark.parametrize(("told", "kept"), [(-5, 0), (0, 0), (100, 100), (900, 100)])
def test_confidence_is_clamped_to_percent(told: int, kept: int) -> None:
    assert to_draft(work(confidence=told)).confidence == kept


def test_the_letters_case_of_an_enum_does_not_matter() -> None:
    draft = to_draft(work(status=" Escalate", reason="Out_Of_Scope"))
    assert draft.escalation is not None and draft.escalation.reason == "out_of_scope"


def test_an_escalation_keeps_what_there_is_as_its_partial() -> None:
    draft = to_draft(work(status="escalate", reason="timeout", why="too much"))
    assert draft.status == "escalated"
    assert draft.escalation is not None
    assert (draft.escalation.partial, draft.escalation.why) == ("the result", "too much")


def test_an_escalation_without_a_reason_is_an_ambiguity() -> None:
    draft = to_draft(work(status="escalate"))
    assert draft.escalation is not None and draft.escalation.reason == "ambiguous_input"


def test_a_failure_always_has_a_reason() -> None:
    assert to_draft(work(status="failed", why="no data")).why == "no data"
    assert to_draft(work(status="failed")).why == "no reason given"


@pytest.mark.parametrize(
    "fields", [{"status": "done"}, {"extra": 1}, {"confidence": "high"}, {"sources": "report"}]
)
def test_an_answer_of_another_shape_is_malformed(fields: dict[str, object]) -> None:
    with pytest.raises(ValidationError):
        work(**fields)


def test_a_plan_answer_becomes_a_plan_and_empty_stands_for_the_roles_own_tier() -> None:
    subtask = {
        "id": "t1",
        "title": "One",
        "instruction": "Find out everything about it",
        "inputs": ["report"],
        "role": "analyst",
        "tier": "",
        "depends_on": [],
        "acceptance_criteria": "It is short",
        "checks": [{"kind": "MAX_WORDS", "argument": "250"}],
        "secondary": "",
        "why": f"The goal asks  for it. {'x' * 400}",
    }
    other = {**subtask, "id": "t2", "tier": "Haiku", "depends_on": ["t1"], "checks": []}
    answer = PlanAnswer.model_validate(
        {
            "subtasks": [subtask, other],
            "goal": "g",
            "strategy": "MERGE",
            "synthesis_instruction": "",
            "roles": [],
            "choices": [],
            "bounds": [{"subtask": "t1", "timeout_seconds": 60, "max_output": 0}],
        }
    )
    first, second = to_plan(answer).subtasks
    assert (first.tier, second.tier) == (None, "haiku")
    assert first.checks[0].kind == "max_words"
    assert second.depends_on == ("t1",)
    assert (first.timeout_seconds, first.max_output) == (60, 0)
    assert first.why.startswith("The goal asks for it. x") and len(first.why) == MOST_WHY


def test_a_planner_cannot_even_say_opus() -> None:
    with pytest.raises(ValidationError, match="tier"):
        SubtaskAnswer.model_validate(
            {
                **dict.fromkeys(("id", "title", "instruction", "role", "acceptance_criteria"), "x"),
                **{"inputs": [], "depends_on": [], "checks": [], "tier": "opus"},
            }
        )


def test_a_synthesis_answer_becomes_a_synthesis() -> None:
    answer = SynthesisAnswer(answer="So [t1].", confidence=120, conflicts=["a"], gaps=["b"])
    synthesis = to_synthesis(answer, answer.answer)
    assert (synthesis.answer, synthesis.confidence) == ("So [t1].", 100)
    assert (synthesis.conflicts, synthesis.gaps) == (("a",), ("b",))
    assert not synthesis.by_template
