"""An answer in the form that somebody asked for: data that is checked, mended, cited, and said to
be text where it could not be had.
"""

from __future__ import annotations

import json
from typing import Any

import pytest

from conftest import Runs
from holdfast.contracts import AnswerForm, Goal, Limits, Report, Usage
from holdfast.contracts.errors import NotBilled
from holdfast.ports import ModelAnswer
from holdfast.rendering.answers import answer_file
from holdfast.rendering.report import as_markdown
from parameters import rest_long
from scripted import ScriptedModel, ready, subtask, works

pytestmark = pytest.mark.anyio

SCHEMA: dict[str, Any] = {
    "type": "object",
    "properties": {
        "best": {"type": "string"},
        "price": {"type": "integer"},
        "risks": {"type": "array", "items": {"type": "string"}},
    },
    "required": ["best", "price", "risks"],
    "additionalProperties": False,
}
JSON = AnswerForm(kind="json", result=SCHEMA)
TABLE = AnswerForm(kind="table", columns=("engine", "why"))
GOOD = {"best": "C [t1]", "price": 40, "risks": ["young [t1]"]}


def says(answer: Any, **fields: Any) -> dict[str, Any]:
    return {"answer": answer, "confidence": 88, "conflicts": [], "gaps": [], **fields}


def goal(form: AnswerForm, *more: dict[str, Any]) -> Goal:
    plan = ready(subtask("t1"), *more)
    return Goal(text="Compare the engines", use_models=True, form=form, plan=plan)


def script(*answers: Any, **more: Any) -> ScriptedModel:
    return ScriptedModel({"t1": [works("C for 40 is young.")], "synthesize": [*answers], **more})


def stopped(reason: str) -> ModelAnswer:
    return ModelAnswer("", reason, "claude-sonnet-5-5", Usage(input_tokens=9, output_tokens=9))


def page(report: Report) -> str:
    return as_markdown(report, lambda command, run_id: f"{command} {run_id}")


def asked(model: ScriptedModel, what: str = "synthesize") -> list[Any]:
    return [each for name, each in zip(model.heard, model.requests, strict=True) if name == what]


async def test_an_answer_as_json_is_asked_for_by_its_schema_and_is_data_in_the_report(
    runs: Runs,
) -> None:
    model = script(says(GOOD))
    report = await runs.run(goal(JSON), model)
    assert report.status == "complete", report.gaps
    (request,) = asked(model)
    assert request.schema["properties"]["answer"] == SCHEMA
    assert "`answer` is one value in the form that its schema gives" in request.prompt
    assert report.document == GOOD and report.form == JSON and report.flags == ()
    assert '  "best": "C [t1]",' in page(report) and "```json" in page(report)
    ending, text = answer_file(report) or ("", "")
    assert ending == "+answer.json" and json.loads(text) == GOOD
    # The critic reads what is delivered.
    (critic,) = asked(model, "critique")
    assert '"price": 40' in critic.prompt


async def test_an_answer_as_json_may_be_a_list_at_the_top(runs: Runs) -> None:
    form = AnswerForm(kind="json", result={"type": "array", "items": {"type": "string"}})
    report = await runs.run(goal(form), script(says(["C [t1]"])))
    assert report.status == "complete" and report.document == ["C [t1]"]


async def test_an_answer_as_a_table_has_the_columns_that_were_asked_for(runs: Runs) -> None:
    rows = [["C | D", "young [t1]"], ["=1+1", ""]]
    model = script(says({"columns": ["engine", "why"], "rows": rows}))
    report = await runs.run(goal(TABLE), model)
    assert report.status == "complete", report.gaps
    assert 'The columns are these: ["engine", "why"].' in asked(model)[0].prompt
    assert report.document == {"columns": ["engine", "why"], "rows": rows}
    assert "| engine | why |\n|---|---|\n| C \\| D | young \\[t1\\] |" in page(report)
    ending, text = answer_file(report) or ("", "")
    assert ending == "+answer.csv"
    assert text == '"engine","why"\r\n"C | D","young [t1]"\r\n"\'=1+1",""\r\n'


@pytest.mark.parametrize(
    ("form", "wrong", "right", "said"),
    rest_long(
        [
            (JSON, {**GOOD, "price": "40"}, GOOD, "answer.price: must be of type integer"),
            (JSON, "C is best", GOOD, "answer: must be of type object"),
            (
                TABLE,
                {"columns": ["why", "engine"], "rows": []},
                {"columns": ["engine", "why"], "rows": []},
                "answer.columns: must be engine, why, in this order",
            ),
            (
                TABLE,
                {"columns": ["engine", "why"], "rows": [["C", "young"], ["D"]]},
                {"columns": ["engine", "why"], "rows": [["C", "young [t1]"]]},
                "answer.rows[1]: has 1 text, not 2",
            ),
            (
                AnswerForm(kind="table"),
                {"columns": [], "rows": []},
                {"columns": ["a"], "rows": [["b"]]},
                "answer.columns: is empty",
            ),
            (
                AnswerForm(kind="table"),
                {"columns": ["a", "a"], "rows": [["b", "c"]]},
                {"columns": ["a", "b"], "rows": [["b", "c"]]},
                "answer.columns: 'a' is given twice",
            ),
            (
                AnswerForm(kind="table"),
                {"columns": ["a", " "], "rows": []},
                {"columns": ["a"], "rows": []},
                "answer.columns: one of them has no name",
            ),
        ],
        first=2,
    ),
)
async def test_an_answer_that_is_not_in_its_form_is_mended_with_the_place_of_the_mistake(
    runs: Runs, form: AnswerForm, wrong: Any, right: Any, said: str
) -> None:
    model = script(says(wrong), says(right))
    report = await runs.run(goal(form), model)
    assert report.status == "complete", report.gaps
    first, second = asked(model)
    assert said in second.prompt and said not in first.prompt
    assert report.document == right


async def test_what_stays_out_of_its_form_is_given_as_text_and_said_to_be(runs: Runs) -> None:
    wrong = {**GOOD, "price": "40"}
    report = await runs.run(goal(JSON), script(*[says(wrong)] * 3))
    assert report.status == "complete_with_gaps" and report.document is None
    (gap,) = report.gaps
    assert gap.title == "The form of the answer"
    assert gap.why == (
        "JSON by a schema was asked for, and the answer is text:"
        " answer.price: must be of type integer"
    )
    assert '"price": "40"' in report.answer and gap.why in page(report)
    assert answer_file(report) is None


@pytest.mark.long
async def test_a_template_in_the_place_of_the_model_is_said_not_to_have_the_form(
    runs: Runs,
) -> None:
    report = await runs.run(goal(TABLE), script("no", "no", "no"))
    assert report.status == "complete_with_gaps" and report.document is None
    assert [gap.title for gap in report.gaps] == ["The answer", "The form of the answer"]
    assert report.gaps[1].why.endswith("the answer is text: a template merged the findings")


LOOSE = {**GOOD, "price": "40 and paid"}
WHERE = "answer.price: must be of type integer"


@pytest.mark.parametrize(
    ("then", "limits", "why"),
    rest_long(
        [
            ([stopped("refusal")] * 3, Limits(), "the model refused"),
            ([stopped("max_tokens")] * 3, Limits(), "the answer was cut (max_tokens)"),
            (["no", "no"], Limits(), "answer"),
            ([NotBilled("500")] * 9, Limits(), "500"),
            ([], Limits(model_calls=2), "budget"),
        ],
        first=2,
    ),
)
async def test_a_paid_answer_out_of_its_form_is_given_where_what_should_mend_it_does_not_come(
    runs: Runs, then: list[Any], limits: Limits, why: str
) -> None:
    wanted = goal(JSON).model_copy(update={"limits": limits})
    report = await runs.run(wanted, script(says(LOOSE), *then))
    assert report.status in ("complete_with_gaps", "budget_stopped") and report.document is None
    assert "40 and paid" in report.answer and report.confidence == 88
    (gap,) = report.gaps
    assert gap.title == "The form of the answer"
    told, _, reason = gap.why.partition("; it was not mended, because ")
    assert told.endswith(f"the answer is text: {WHERE}") and why in reason
    assert "template" not in gap.why and not any("template" in note for note in report.notes)


async def test_a_name_that_an_object_has_twice_is_mended_and_at_last_said(runs: Runs) -> None:
    twice = json.dumps(says(GOOD)).replace('"price": 40', '"price": 39, "price": 40')
    model = script(twice, says(GOOD))
    report = await runs.run(goal(JSON), model)
    assert report.status == "complete" and report.document == GOOD
    assert "an object has the name 'price' twice" in asked(model)[1].prompt
    report = await runs.run(goal(JSON), script(twice, twice, twice))
    assert report.status == "complete_with_gaps" and report.document is None
    assert '"price": 40' in report.answer
    assert report.gaps[0].why.endswith("an object has the name 'price' twice")


async def test_data_cites_in_its_texts_and_what_no_finding_says_is_flagged(runs: Runs) -> None:
    loose = {"best": "C [t9], see https://x.example/a", "price": 77, "risks": []}
    report = await runs.run(goal(JSON), script(says(loose)))
    assert report.document == loose
    assert report.flags == (
        "cites [t9], and there is no such subtask",
        "gives the address https://x.example/a, which no finding contains",
        "gives the number 77, which no finding contains",
    )


@pytest.mark.long
async def test_a_revision_that_leaves_the_form_leaves_the_answer_that_has_it(runs: Runs) -> None:
    issue = {"severity": "critical", "problem": "No price.", "fix": "Say it."}
    model = script(says(GOOD), *[says("words")] * 3, critique=[{"issues": [issue]}])
    report = await runs.run(goal(JSON), model)
    assert report.document == GOOD
    assert any("could not be revised" in note for note in report.notes)


async def test_an_answer_in_markdown_is_asked_for_as_ever(runs: Runs) -> None:
    model = script(says("C is best [t1]."), t2=[works("two")])
    report = await runs.run(goal(AnswerForm(kind="markdown"), subtask("t2")), model)
    assert report.status == "complete" and report.document is None
    assert asked(model)[0].schema["properties"]["answer"]["type"] == "string"


@pytest.mark.parametrize(
    ("fields", "why"),
    [
        ({"use_models": False}, "a model must write such an answer"),
        ({"form": AnswerForm(kind="json")}, "needs a JSON schema"),
        ({"form": AnswerForm(columns=("a",))}, "columns: no effect"),
    ],
)
async def test_a_form_that_cannot_be_had_and_came_past_the_starter_is_refused(
    runs: Runs, fields: dict[str, Any], why: str
) -> None:
    with pytest.raises(Exception) as refused:
        await runs.run(goal(TABLE).model_copy(update=fields), ScriptedModel({}))
    cause: BaseException | None = refused.value
    said = []
    while cause is not None:
        said.append(str(cause))
        cause = cause.__cause__
    assert any("the form of the answer" in each and why in each for each in said), said
