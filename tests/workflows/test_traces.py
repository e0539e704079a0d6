"""The trace of a run has every step of it, once, with who did it, what it cost and what came of it,
whatever became of the run.
"""

from __future__ import annotations

import asyncio
from decimal import Decimal

import pytest
from temporalio.client import WorkflowFailureError, WorkflowHistory

from conftest import Runs, asking_once
from holdfast.activities.catalogue.catalogue import Catalogue
from holdfast.contracts import Bill, Goal, GoalInput, Usage
from holdfast.contracts.errors import PossiblyBilled
from holdfast.replaying.replay import export
from holdfast.replaying.tracing import read_trace, read_trace_file
from holdfast.tracing.steps import Trace, TraceStep
from repositories import Repository
from scripted import ScriptedModel, calls, plans, ready, subtask, synthesizes, works
from shipped import shipped_catalogue
from tracing import in_histories, of_history, paused_and_resumed

pytestmark = pytest.mark.anyio

NOTES = {"file_path": "repo/notes.md"}
ROLES = {
    "reader": "model: haiku\ntools: list_files, read_file",
    "department": "model: sonnet\nteam: true",
}


def catalogue(runs: Runs) -> Catalogue:
    """The shipped roles, an agent with tools, and a team."""
    home = runs.folder / "home" / "roles"
    home.mkdir(parents=True, exist_ok=True)
    for name, fields in ROLES.items():
        head = f"name: {name}\ndescription: does {name} work\n{fields}"
        (home / f"{name}.md").write_text(f"---\n{head}\n---\n{'' if 'team' in fields else 'Do.'}")
    extra, shipped = Catalogue.load(runs.folder / "home"), asking_once(shipped_catalogue())
    return Catalogue({**shipped.roles, **extra.roles}, shipped.playbooks)


def goal(**fields: object) -> Goal:
    return Goal.model_validate({"text": "Compare engines", "use_models": True, **fields})


def reading(runs: Runs) -> Goal:
    """A subtask that reads a small repository."""
    repository = Repository.at(runs.folder / "repo")
    repository.commit({"notes.md": "The limit is 40 a minute.\n"})
    given = GoalInput(name="repo", kind="repository", value=str(repository.path))
    return goal(inputs=[given], plan=ready(subtask("t1", role="reader", inputs=["repo"])))


def step(trace: Trace, id: str) -> TraceStep:
    [found] = [each for each in trace.steps if each.id.endswith(id)]
    return found


async def whole(runs: Runs) -> Trace:
    """The trace of the last run; all of it hangs together, and nothing in it stands twice."""
    run_id = runs.handles[-1].id
    trace = await read_trace(runs.client, run_id)
    assert trace.unreadable == ""
    assert of_history(trace) == await in_histories(runs.client, run_id)
    ids = [each.id for each in trace.steps]
    assert len(set(ids)) == len(ids)
    assert all(each.parent in ids for each in trace.steps if each.id != run_id)
    assert {each.session for each in trace.steps} == {run_id}
    return trace


async def test_each_turn_and_each_tool_of_an_agent_hangs_below_its_subtask(runs: Runs) -> None:
    model = ScriptedModel(
        {
            "t1": [
                calls(("list_files", {}), ("read_file", {"file_path": "repo/notes.md"})),
                works("40 a minute"),
            ],
            "synthesize": [synthesizes("40 a minute [t1].")],
        }
    )
    report = await runs.run(reading(runs), model, catalogue=catalogue(runs))
    trace = await whole(runs)
    agent = step(trace, f"{report.run_id}.t1.1")
    assert (agent.kind, agent.agent, agent.parent) == ("agent", "reader", f"{report.run_id}:t1")
    assert (agent.verdict, agent.dollars) == ("accepted", report.findings[0].dollars)
    inside = {each.name: each for each in trace.steps if each.parent == agent.id}
    assert sorted(inside) == sorted(["turn-1", "tool-1-1", "tool-1-2", "turn-2"])
    assert {each.subtask for each in inside.values()} == {"t1"}
    assert (inside["turn-1"].verdict, inside["turn-1"].call) == ("uses tools", "take_turn")
    assert inside["tool-1-2"].tool == "read_file"
    turns = [each for each in inside.values() if each.kind == "call"]
    assert sum((each.tokens for each in turns), Usage()) == agent.tokens
    assert agent.task == step(trace, ":t1").task != ""


@pytest.mark.long
async def test_a_team_and_what_it_did_are_of_the_same_session(runs: Runs) -> None:
    model = ScriptedModel(
        {
            "t2": [works("two")],
            "plan": [plans(subtask("a"), subtask("b"))],
            "b": [works("b")],
            "a": [works("a")],
            "synthesize": [synthesizes("of the team"), synthesizes("all")],
        }
    )
    plan = ready(subtask("t1", role="department"), subtask("t2", "t1"))

    report = await runs.run(goal(plan=plan), model, catalogue=catalogue(runs))
    trace = await whole(runs)
    team = step(trace, f"{report.run_id}.t1.1")
    assert (team.kind, team.parent) == ("team", f"{report.run_id}:t1")
    assert team.verdict == "accepted" and team.dollars is not None and team.dollars > 0
    assert step(trace, ".t1.1:a").parent == team.id
    work = step(trace, ".t1.1/work-a-1")
    assert (work.parent, work.run) == (f"{team.id}:a", team.id)


async def test_a_killed_run_has_its_steps_and_says_which_were_cut_off(runs: Runs) -> None:
    held = asyncio.Event()
    model = ScriptedModel({"t1": [works("one")], "t2": [held, works("two")]})
    async with runs.worker(model):
        handle = await runs.start(goal(plan=ready(subtask("t1"), subtask("t2"))), skipping=False)
        await model.asked("t1", "t2")
        during = await read_trace(runs.client, handle.id)
        await handle.terminate(reason="the machine is needed")
        held.set()
    assert step(during, "/work-t2-1").status == "running"
    assert step(during, "/work-t2-1").ended is None
    trace = await whole(runs)
    run = step(trace, handle.id)
    assert (run.status, run.verdict, run.why) == ("error", "terminated", "the machine is needed")
    cut = step(trace, "/work-t2-1")
    assert (cut.status, cut.ended) == ("unfinished", run.ended)
    assert step(trace, ":t2").status == "unfinished"


async def test_a_cancelled_and_a_failed_run_tell_who_ended_them_and_why(runs: Runs) -> None:
    held = asyncio.Event()
    model = ScriptedModel({"t1": [held]})
    async with runs.worker(model):
        handle = await runs.start(goal(plan=ready(subtask("t1"))), skipping=False)
        await model.asked("t1")
        await handle.cancel()
        with pytest.raises(WorkflowFailureError):
            await handle.result()
    trace = await whole(runs)
    assert step(trace, handle.id).status == "cancelled"
    assert step(trace, "/order-1").name == "cancel"
    plan = ready(subtask("t1", why="It needs an analyst.", secondary="writer"))
    limits = {"tries_per_subtask": 1, "replans": 0}
    lacks = works("", status="failed", why="no data")
    unfit = ScriptedModel({"t1": [lacks, lacks]})
    report = await runs.run(goal(plan=plan, limits=limits), unfit)
    assert report.status == "failed"
    failed = await whole(runs)
    assert step(failed, report.run_id).status == "error"
    own = step(failed, ":t1")
    assert (own.because, own.secondary) == ("It needs an analyst.", "writer")
    assert (step(failed, ":t1").verdict, step(failed, ":t1").status) == ("failed", "error")


async def test_tries_carry_their_verdict_their_why_and_what_they_cost_at_worst(runs: Runs) -> None:
    model = ScriptedModel(
        {
            "t1": [
                PossiblyBilled("dropped", Bill(calls=1)),
                works("?", confidence=5),
                works("sure"),
            ],
            "synthesize": [synthesizes("done")],
        }
    )
    report = await runs.run(goal(plan=ready(subtask("t1"))), model)
    trace = await whole(runs)
    lost, doubted, good = (step(trace, f"/work-t1-{number}") for number in (1, 2, 3))
    assert (lost.verdict, lost.try_number, lost.status) == ("possibly_billed", 1, "error")
    assert lost.dollars == lost.assumed > 0
    assert (doubted.verdict, doubted.try_number) == ("confidence_too_low", 1)
    assert "confidence 5" in doubted.why
    assert (good.verdict, good.try_number, good.tier) == ("accepted", 2, "opus")
    paid = [each.dollars or Decimal(0) for each in trace.steps if each.kind == "call"]
    assert sum(paid, Decimal(0)) == step(trace, report.run_id).dollars == report.dollars


async def test_an_order_of_a_person_is_a_step(runs: Runs) -> None:
    await paused_and_resumed(runs)
    trace = await whole(runs)
    assert [each.name for each in trace.steps if each.kind == "order"] == ["pause", "resume"]


async def test_an_exported_run_has_the_same_trace_but_what_stands_in_other_histories(
    runs: Runs,
) -> None:
    model = ScriptedModel({"t1": [works("one")], "synthesize": [synthesizes("done")]})
    await runs.run(goal(plan=ready(subtask("t1"))), model)
    handle = runs.handles[-1]
    text = await export(runs.client, handle.id, runs.store)
    imported = await read_trace_file(WorkflowHistory.from_json("renamed", text).events)
    assert imported == await whole(runs)


async def test_what_was_asked_and_answered_is_in_it_only_when_asked_for(runs: Runs) -> None:
    said = "the answer of a model"
    given = GoalInput(name="note", kind="text", value="what nobody else may read")
    plan = ready(subtask("t1", inputs=["note"]))
    model = ScriptedModel({"t1": [works(said)], "synthesize": [synthesizes("done")]})
    await runs.run(goal(plan=plan, inputs=[given]), model)
    bare = "".join(each.model_dump_json() for each in (await whole(runs)).steps)
    assert said not in bare and "nobody else" not in bare
    full = await read_trace(runs.client, runs.handles[-1].id, content=True)
    assert said in step(full, "/work-t1-1").model_dump_json()
    assert "nobody else" in step(full, "/work-t1-1").model_dump_json()
