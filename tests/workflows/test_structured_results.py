"""A role with a form for its results: what it hands up is data, for dependents, the synthesis and
the report; what is not in the form is mended where it was said.
"""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import pytest

from conftest import Runs, asking_once
from documents import pdf
from holdfast.activities.catalogue.catalogue import Catalogue
from holdfast.contracts import Goal, GoalInput, Report
from holdfast.rendering.report import as_markdown
from scripted import ScriptedModel, calls, digests, plans, ready, subtask, synthesizes, works
from shipped import shipped_catalogue

pytestmark = pytest.mark.anyio

FORM: dict[str, Any] = {
    "type": "object",
    "properties": {
        "engines": {
            "type": "array",
            "items": {
                "type": "object",
                "properties": {"name": {"type": "string"}, "since": {"type": "integer"}},
                "required": ["name", "since"],
                "additionalProperties": False,
            },
        }
    },
    "required": ["engines"],
    "additionalProperties": False,
}
DATA = {"engines": [{"name": "A | B", "since": 2019}, {"name": "</material> C", "since": 2021}]}
ASKED = {**subtask("t1", role="researcher")}


def listing(**fields: Any) -> Catalogue:
    """The shipped roles, of which the researcher hands up a list of engines."""
    catalogue = asking_once(shipped_catalogue())
    role = catalogue.roles["researcher"]
    card = role.card.model_copy(update={"result": FORM, **fields})
    return replace(catalogue, roles={**catalogue.roles, "researcher": replace(role, card=card)})


def goal(**fields: object) -> Goal:
    return Goal.model_validate({"text": "Compare the engines", "use_models": True, **fields})


def to_type(command: str, run_id: str) -> str:
    return f"{command} {run_id}"


async def listed(runs: Runs, model: ScriptedModel, **fields: Any) -> Report:
    return await runs.run(goal(**fields), model, catalogue=listing())


async def test_data_reaches_dependents_synthesis_and_report(runs: Runs) -> None:
    model = ScriptedModel(
        {
            "plan": [plans(ASKED, subtask("t2", "t1"))],
            "t1": [works(DATA)],
            "t2": [works("C is newer.")],
            "synthesize": [synthesizes("C is newer [t1] [t2].")],
        }
    )
    report = await listed(runs, model)
    assert report.status == "complete", report.gaps
    planned, first, second, last = model.requests[:4]
    assert (
        "researcher (haiku)" in planned.prompt and "Its finding is JSON: engines." in planned.prompt
    )
    assert "`result` is one object" in first.prompt
    assert first.schema["properties"]["result"]["anyOf"][0] == FORM
    assert 'source="finding of subtask t1, confidence 90, as JSON"' in second.prompt
    # As data, in an envelope that it cannot close.
    for prompt in (second.prompt, last.prompt):
        start = prompt.index("as JSON")
        inside = prompt[prompt.index("\n", start) : prompt.index("</material>", start)]
        assert json.loads(inside)["engines"][0] == {"name": "A | B", "since": 2019}
        assert json.loads(inside)["engines"][1]["name"] == "(/material> C"
    assert "`result` is one object" not in second.prompt
    assert report.findings[0].data == DATA and report.findings[1].data == {}
    page = as_markdown(report, to_type)
    assert "| name | since |" in page and "| A \\| B | 2019 |" in page
    assert '"since"' not in page


async def test_what_is_not_in_its_form_is_mended_by_the_same_model_with_the_place_of_the_mistake(
    runs: Runs,
) -> None:
    crooked = {"engines": [{"name": "A", "since": "2019"}]}
    model = ScriptedModel(
        {
            "t1": [works(crooked), works(DATA)],
            "synthesize": [synthesizes("done [t1].")],
        }
    )
    report = await listed(runs, model, plan=ready(ASKED))
    assert report.status == "complete", report.gaps
    assert "repair-t1-1" in await runs.activities()
    again = model.requests[1]
    assert "result.engines[0].since: must be of type integer" in again.prompt
    assert "your previous answer" in again.prompt
    assert len(report.findings[0].tries) == 1 and report.findings[0].data == DATA


async def test_what_stays_out_of_its_form_is_a_gap_and_no_data(runs: Runs) -> None:
    text: list[Any] = [works("A since 2019") for _ in range(12)]
    model = ScriptedModel({"t1": text, "replan": [{"changes": []}] * 3})
    limits = {"tries_per_subtask": 1, "replans": 0}
    report = await listed(runs, model, plan=ready(ASKED), limits=limits)
    finding = report.findings[0]
    assert (finding.status, finding.data) == ("failed", {})
    assert "must be an object in the form of its schema" in finding.why


async def test_an_agent_with_tools_answers_in_the_form_and_mends_within_its_conversation(
    runs: Runs,
) -> None:
    path = runs.folder / "engines.pdf"
    path.write_bytes(pdf(["A since 2019, C since 2021"]))
    given = GoalInput(name="report", kind="file", value=str(path))
    model = ScriptedModel(
        {
            "t1": [
                calls(("read_document", {"file_path": "report"})),
                works({"engines": "two"}),
                works(DATA),
            ],
            "synthesize": [synthesizes("done [t1].")],
        }
    )
    plan = ready({**ASKED, "inputs": ["report"]})
    report = await listed(runs, model, plan=plan, inputs=(given,))
    assert report.status == "complete", report.gaps
    turns = model.requests[:3]
    assert all(each.schema["properties"]["result"]["anyOf"][0] == FORM for each in turns)
    assert "`result` is one object" in json.dumps(turns[0].messages[0])
    assert "result.engines: must be of type array" in json.dumps(turns[2].messages[-1])
    assert report.findings[0].data == DATA


async def test_a_fallback_answers_in_the_form_of_the_role_that_it_stands_in_for(runs: Runs) -> None:
    away = works("", status="escalate", reason="out_of_scope", why="not mine")
    model = ScriptedModel(
        {
            "t1": [away, works(DATA)],
            "synthesize": [synthesizes("done [t1].")],
        }
    )
    report = await listed(runs, model, plan=ready(ASKED))
    assert report.status == "complete", report.gaps
    assert report.findings[0].tries[-1].role == "analyst"
    assert model.requests[1].schema["properties"]["result"]["anyOf"][0] == FORM
    assert report.findings[0].data == DATA


async def test_a_digest_of_data_is_told_as_text(runs: Runs) -> None:
    long = {"engines": [{"name": f"engine {number}" * 30, "since": number} for number in range(99)]}
    model = ScriptedModel(
        {
            "t1": [works(long)],
            "digest": [digests("99 engines")],
            "synthesize": [synthesizes("done [t1].")],
        }
    )
    report = await listed(runs, model, plan=ready(ASKED))
    assert report.status == "complete", report.gaps
    asked = dict(zip(model.heard, model.requests, strict=True))
    assert "as JSON" in asked["digest"].prompt
    assert "99 engines" in asked["synthesize"].prompt
    assert "as JSON" not in asked["synthesize"].prompt
    assert report.findings[0].data == long


async def test_checks_of_a_plan_are_made_of_the_data(runs: Runs) -> None:
    checked = {**ASKED, "tier": "haiku", "checks": [{"kind": "keys", "argument": "engines"}]}
    model = ScriptedModel({"t1": [works(DATA)], "synthesize": [synthesizes("done [t1].")]})
    report = await listed(runs, model, plan=ready(checked))
    assert report.status == "complete", report.gaps


async def test_without_a_synthesis_the_template_shows_data_as_people_read_it(runs: Runs) -> None:
    model = ScriptedModel({"t1": [works(DATA)], "synthesize": ["no", "no", "no"]})
    report = await listed(runs, model, plan=ready(ASKED))
    assert "| A \\| B | 2019 |" in report.answer
    assert report.findings[0].data == DATA
