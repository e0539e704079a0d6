"""An agent with tools: turn after turn in a workflow of its own, by small slices of money."""

from __future__ import annotations

import asyncio
import json
from dataclasses import replace
from typing import Any

import pytest

from conftest import Runs
from holdfast.activities.catalogue.catalogue import Catalogue
from holdfast.certifying.deployment import outcome
from holdfast.contracts import Bill, Goal, GoalInput, Order, Report
from holdfast.contracts.errors import PossiblyBilled
from holdfast.ports import ModelAnswer
from holdfast.replaying.replay import replay
from holdfast.workflows import WORKFLOWS
from repositories import Repository
from scripted import USAGE, ScriptedModel, calls, found, lost, ready, subtask, synthesizes, works
from shipped import shipped_catalogue

pytestmark = pytest.mark.anyio

NOTES = {"file_path": "repo/notes.md"}
ROLE = """---
name: reader
description: Reads what it is given
model: haiku
tools: list_files, read_file, search_files, read_result
---
You read.
"""


def catalogue(runs: Runs, role: str = ROLE) -> Catalogue:
    """The shipped roles, and a reader with tools."""
    home = runs.folder / "home" / "roles"
    home.mkdir(parents=True)
    (home / "reader.md").write_text(role)
    extra, shipped = Catalogue.load(runs.folder / "home"), shipped_catalogue()
    return Catalogue({**shipped.roles, **extra.roles}, shipped.playbooks)


def goal(runs: Runs, **fields: Any) -> Goal:
    """A subtask that reads a small repository."""
    repository = Repository.at(runs.folder / "repo")
    repository.commit({"notes.md": "The limit is 40 a minute.\n"})
    given = GoalInput(name="repo", kind="repository", value=str(repository.path))
    plan = ready(subtask("t1", role="reader", inputs=["repo"]))
    base = {"text": "Find the limit", "use_models": True, "inputs": [given], "plan": plan}
    return Goal.model_validate({**base, **fields})


async def segments(runs: Runs, report: Report) -> list[list[str]]:
    """The activities of each segment of t1's agent, by id; each history is replayed."""
    found = []
    for number in range(1, 20):
        handle = runs.client.get_workflow_handle(f"{report.run_id}.t1.{number}")
        try:
            history = await handle.fetch_history()
        except Exception:
            break
        assert await replay(history, WORKFLOWS, runs.store) == ()
        found.append(
            [
                event.activity_task_scheduled_event_attributes.activity_id
                for event in history.events
                if event.HasField("activity_task_scheduled_event_attributes")
            ]
        )
    return found


def told(model: ScriptedModel, place: int) -> list[dict[str, Any]]:
    """What an agent was told last before one of its turns."""
    return list(model.requests[place].messages[-1]["content"])


async def test_calls_of_one_turn_run_in_parallel_and_their_results_go_back_in_one_message(
    runs: Runs,
) -> None:
    model = ScriptedModel(
        {
            "t1": [
                calls(
                    ("list_files", {}),
                    ("read_file", NOTES),
                    says="I look.",
                ),
                works("The limit is 40 a minute.", sources=["repo/notes.md"]),
            ],
            "synthesize": [synthesizes("40 a minute [t1].")],
        }
    )
    report = await runs.run(goal(runs), model, catalogue=catalogue(runs))
    assert report.status == "complete", report.gaps
    assert await segments(runs, report) == [["turn-1", "tool-1-1", "tool-1-2", "turn-2"]]
    results = told(model, 1)
    assert [each["tool_use_id"] for each in results] == ["u1", "u2"]
    assert "The limit is 40 a minute." in results[1]["content"]
    assert "</material>" in results[1]["content"]
    before = json.loads(json.dumps(model.requests[1].messages[1]))
    assert before["role"] == "assistant" and before["content"][0] == {
        "type": "text",
        "text": "I look.",
    }
    assert report.model_calls == 2, "two turns, and the finding is the answer"


READS = calls(("read_file", NOTES))


async def test_an_agent_that_needs_more_gets_it_slice_by_slice_and_nothing_is_asked_or_run_twice(
    runs: Runs,
) -> None:
    turns = [
        calls(("read_file", {**NOTES, "limit": number + 1}), prefix=f"turn{number}-")
        for number in range(5)
    ]
    model = ScriptedModel(
        {"t1": [*turns, works("40")], "synthesize": [synthesizes("40 a minute [t1].")]}
    )
    report = await runs.run(goal(runs), model, catalogue=catalogue(runs))
    assert report.status == "complete", report.gaps
    below = await segments(runs, report)
    assert len(below) > 1
    done = [each for segment in below for each in segment]
    assert len(done) == len(set(done)) == 6 + 5
    assert model.heard.count("t1") == 6
    assert report.model_calls == 6 and report.dollars is not None


async def test_the_third_equal_call_of_an_agent_is_not_carried_out_and_its_model_is_told_why(
    runs: Runs,
) -> None:
    elsewhere = {"file_path": "repo/other.md"}
    model = ScriptedModel(
        {
            "t1": [
                calls(("read_file", NOTES), ("read_file", elsewhere)),
                calls(("read_file", NOTES)),
                calls(("read_file", NOTES), ("read_file", elsewhere)),
                works("40"),
            ],
            "synthesize": [synthesizes("40 a minute [t1].")],
        }
    )
    report = await runs.run(goal(runs), model, catalogue=catalogue(runs))
    assert report.status == "complete", report.gaps
    done = [each for segment in await segments(runs, report) for each in segment]
    assert [each for each in done if each.startswith("tool-")] == [
        "tool-1-1",
        "tool-1-2",
        "tool-2-1",
        "tool-3-2",
    ]
    refused, carried_out = told(model, 3)
    assert refused["is_error"] and "as that of call 1 of your message 2" in refused["content"]
    assert "no file" in carried_out["content"] or "other.md" in carried_out["content"]
    assert (
        "t1: a call of read_file was not made: its agent had made it twice before with the same"
        " arguments."
    ) in report.notes


@pytest.mark.long
async def test_an_agent_that_uses_all_its_turns_is_tried_by_a_stronger_model_with_what_it_found(
    runs: Runs,
) -> None:
    again = calls(("list_files", {}), says="So far: the limit may be 40.")
    model = ScriptedModel(
        {
            "t1": [again, again, calls(("read_file", NOTES)), works("40")],
            "synthesize": [synthesizes("40 a minute [t1].")],
        }
    )
    limits = {"turns_per_agent": 2}
    report = await runs.run(goal(runs, limits=limits), model, catalogue=catalogue(runs))
    assert report.status == "complete", report.gaps
    finding = report.findings[0]
    assert [(each.tier, each.verdict) for each in finding.tries] == [
        ("haiku", "out_of_turns"),
        ("sonnet", "accepted"),
    ]
    assert "all its 2 turns" in finding.tries[0].why
    first = str(model.requests[model.heard.index("t1") + 2].messages[0])
    assert "what an earlier try had found, partial and unchecked" in first
    assert "So far: the limit may be 40." in first and "all its 2 turns" in first


@pytest.mark.long
async def test_an_agent_that_uses_all_its_turns_again_goes_to_the_fallback_and_hands_up_what_it_has(
    runs: Runs,
) -> None:
    again = calls(("list_files", {}), says="So far: the limit may be 40.")
    model = ScriptedModel({"t1": [again] * 6})
    limits = {"turns_per_agent": 2, "replans": 0}
    roles = catalogue(runs)
    reader = roles.roles["reader"]
    card = reader.card.model_copy(update={"fallback": "analyst"})
    roles.roles["reader"] = replace(reader, card=card)
    report = await runs.run(goal(runs, limits=limits), model, catalogue=roles)
    finding = report.findings[0]
    assert (finding.status, finding.content) == ("failed", "So far: the limit may be 40.")
    assert "all its 2 turns" in finding.why
    told_of = [(each.role, each.tier, each.verdict) for each in finding.tries]
    assert told_of == [
        ("", "haiku", "out_of_turns"),
        ("", "sonnet", "out_of_turns"),
        ("analyst", "sonnet", "out_of_turns"),
    ]
    assert report.model_calls == 6 and finding.dollars == report.dollars
    assert sum(each.dollars or 0 for each in finding.tries) == finding.dollars
    assert any("last turn" in each.get("text", "") for each in told(model, 1))


async def test_an_agent_that_the_cap_left_a_cheaper_model_for_is_noted(runs: Runs) -> None:
    model = ScriptedModel({"t1": [works("40")], "synthesize": [synthesizes("40 [t1]")]})
    role = catalogue(runs, ROLE.replace("haiku", "opus"))
    report = await runs.run(goal(runs, limits={"dollars": "0.2"}), model, catalogue=role)
    lower = report.findings[0].model.split("-")[1]
    assert lower != "opus"
    assert f"t1 was asked of {lower} instead of opus: the cap left no more." in report.notes


async def test_an_answer_in_the_wrong_form_is_mended_in_the_same_conversation(runs: Runs) -> None:
    model = ScriptedModel(
        {"t1": [READS, "not JSON", works("40")], "synthesize": [synthesizes("40 [t1].")]}
    )
    report = await runs.run(goal(runs), model, catalogue=catalogue(runs))
    assert report.status == "complete"
    assert [len(each.messages) for each in model.requests[:3]] == [1, 3, 5]
    assert "not in the right form" in told(model, 2)[0]["text"]
    assert len(report.findings[0].tries) == 1


async def test_a_turn_whose_answer_was_lost_is_asked_again_and_no_tool_runs_twice(
    runs: Runs,
) -> None:
    gone = PossiblyBilled("dropped", Bill(model="claude-haiku-5-5", calls=1, final=False))
    model = ScriptedModel(
        {"t1": [READS, gone, works("40")], "synthesize": [synthesizes("40 [t1].")]}
    )
    report = await runs.run(goal(runs), model, catalogue=catalogue(runs))
    assert report.status == "complete"
    done = [each for segment in await segments(runs, report) for each in segment]
    assert done == ["turn-1", "tool-1-1", "turn-2", "turn-again1-2"]
    assert report.assumed > 0 and report.model_calls == 3


@pytest.mark.long
async def test_an_endpoint_that_is_gone_between_two_turns_is_waited_for_and_the_talk_goes_on(
    runs: Runs,
) -> None:
    model = found({"t1": [READS, lost(), works("40")], "synthesize": [synthesizes("40 [t1].")]})
    report = await runs.run(goal(runs), model, catalogue=catalogue(runs))
    assert report.status == "complete" and report.assumed == 0
    assert report.model_calls == 2 and model.looks == 1
    done = [each for segment in await segments(runs, report) for each in segment]
    assert done.count("tool-1-1") == 1


@pytest.mark.long
async def test_a_person_who_ends_the_subtask_cuts_its_agent(runs: Runs) -> None:
    never = asyncio.Event()
    model = ScriptedModel({"t1": [READS, never]})
    async with runs.worker(model, catalogue=catalogue(runs)):
        handle = await runs.start(goal(runs, limits={"replans": 0}), skipping=False)
        await model.asked("t1")
        while len(model.requests) < 2:  # noqa: ASYNC110 - the script tells of the first alone
            await asyncio.sleep(0.02)
        order = Order(subtask_id="t1")
        said = await handle.execute_update("cancel_subtask", order)
        report = await outcome(handle)
    assert said
    assert report.findings[0].status == "cancelled"
    assert report.model_calls == 1, "the second had not left"


async def test_a_call_that_no_tool_can_carry_out_is_an_error_result_and_the_agent_goes_on(
    runs: Runs,
) -> None:
    wrong = calls(("delete_all", {}), ("read_file", {"line": "x"}))
    model = ScriptedModel({"t1": [wrong, works("40")], "synthesize": [synthesizes("40 [t1].")]})
    report = await runs.run(goal(runs), model, catalogue=catalogue(runs))
    assert report.findings[0].status == "complete"
    assert [each.get("is_error") for each in told(model, 1)] == [True, True]
    assert "there is no tool 'delete_all'" in told(model, 1)[0]["content"]


async def test_a_model_that_paused_goes_on_without_a_word_from_us(runs: Runs) -> None:
    thinks = [{"type": "text", "text": "I search."}]
    paused = ModelAnswer("", "pause_turn", "claude-haiku-5-5", USAGE, raw={"content": thinks})
    model = ScriptedModel({"t1": [paused, works("40")], "synthesize": [synthesizes("40 [t1].")]})
    report = await runs.run(goal(runs), model, catalogue=catalogue(runs))
    assert report.findings[0].status == "complete"
    assert [each["role"] for each in model.requests[1].messages] == ["user", "assistant"]
    assert report.model_calls == 2, "a pause is a turn, and paid"
