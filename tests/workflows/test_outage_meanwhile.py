"""What people, tools and teams do while the endpoint cannot be reached."""

from __future__ import annotations

import asyncio
from datetime import timedelta

import pytest
from temporalio.client import WorkflowFailureError

from conftest import Runs, seen
from driving import BRIEFING, Drive
from driving import subtask as subtask_of
from holdfast.activities.catalogue.catalogue import Catalogue
from holdfast.calling import outages
from holdfast.calls.reach import Reached
from holdfast.calls.work import WorkMaterial
from holdfast.certifying.deployment import outcome
from holdfast.contracts import Draft, Order, Plan, Reply, RoleCard, Standstill, Unreached, policies
from holdfast.contracts.view import Question
from holdfast.rules.reducer import apply
from holdfast.state.events import Answered, Steered, TeamWaits, Trouble, Unanswered
from holdfast.state.moves import Ask
from outage import goal, paid, tell, waits
from outcomes import AMPLE, begun, end, in_flight
from scripted import ADDRESS, Lost, found, lost, plans, subtask, synthesizes, works
from shipped import shipped_catalogue

pytestmark = pytest.mark.anyio


# ---------------------------------------------------------------- people meanwhile


async def test_a_reader_is_told_the_address_and_since_when(runs: Runs) -> None:
    model = Lost({"t1": [lost(), works("one")], "synthesize": [synthesizes("done")]})
    async with runs.worker(model):
        handle = await runs.start(goal(subtask("t1")), skipping=False)
        said = await waits(handle)
        assert f"the endpoint {ADDRESS} cannot be reached since 20" in said
        assert "Connection refused" in said and "goes on when it answers" in said
        assert said in (await handle.query("view"))["notes"]
        model.back.set()
        report = await handle.result()
    assert not any("cannot be reached" in note for note in report.notes)


@pytest.mark.long
async def test_who_pauses_during_an_outage_finds_the_run_paused_after_it(runs: Runs) -> None:
    model = Lost({"t1": [lost(), works("one")], "synthesize": [synthesizes("done")]})
    async with runs.worker(model):
        handle = await runs.start(goal(subtask("t1")), skipping=False)
        await waits(handle)
        await tell(handle, "pause")
        model.back.set()
        view = await seen(handle, lambda each: not any("reached" in note for note in each.notes))
        assert Question(kind="paused") in view.waiting
        assert model.heard == ["t1"]
        await tell(handle, "resume")
        assert (await handle.result()).status == "complete"


async def test_a_subtask_is_skipped_during_an_outage_at_once(runs: Runs) -> None:
    model = Lost({"t1": [lost()], "t2": [lost(), works("2")], "synthesize": [synthesizes("done")]})
    async with runs.worker(model):
        handle = await runs.start(goal(subtask("t1"), subtask("t2")), skipping=False)
        await waits(handle)
        await tell(handle, "skip", subtask_id="t1", by="me")
        model.back.set()
        report = await handle.result()
    assert report.status == "complete_with_gaps"
    assert model.heard.count("t1") == 1


async def test_a_run_is_cancelled_during_an_outage(runs: Runs) -> None:
    model = Lost({"t1": [lost()]})
    async with runs.worker(model):
        handle = await runs.start(goal(subtask("t1")), skipping=False)
        await waits(handle)
        await handle.cancel()
        with pytest.raises(WorkflowFailureError):
            await handle.result()
    assert model.looking == 0


# ---------------------------------------------------------------- what does not need the endpoint


def roles(runs: Runs, **heads: str) -> Catalogue:
    """The shipped roles and some of the test's own."""
    home = runs.folder / "home" / "roles"
    home.mkdir(parents=True)
    for name, head in heads.items():
        body = "" if "team: true" in head else "Work.\n"
        text = f"---\nname: {name}\ndescription: works\n{head}\n---\n{body}"
        (home / f"{name}.md").write_text(text)
    extra, shipped = Catalogue.load(runs.folder / "home"), shipped_catalogue()
    return Catalogue({**shipped.roles, **extra.roles}, shipped.playbooks)


async def test_roles_without_a_model_go_on_meanwhile(runs: Runs) -> None:
    async def looks(_: WorkMaterial) -> Draft:
        return Draft(content="looked")

    model = Lost({"t1": [lost(), works("one")], "synthesize": [synthesizes("done")]})
    plan = (subtask("t1"), subtask("t2", role="looks"), subtask("t3", "t2", role="looks"))
    catalogue = roles(runs, looks="model: none\ntools: [looks]")
    async with runs.worker(model, {"looks": looks}, catalogue):
        handle = await runs.start(goal(*plan, limits={"concurrency": 2}), skipping=False)
        await seen(handle, lambda view: view.rows and view.rows[2].status == "complete")
        await waits(handle)
        model.back.set()
        assert (await handle.result()).status == "complete"


async def test_a_team_waits_for_itself_and_its_parent_only_for_the_team(runs: Runs) -> None:
    model = found(
        {
            "plan": [lost(), plans(subtask("a"), subtask("b"))],
            "a": [works("a")],
            "b": [works("b")],
            "synthesize": [synthesizes("of the team")],
        }
    )
    catalogue = roles(runs, department="model: sonnet\nteam: true")
    report = await runs.run(goal(subtask("t1", role="department")), model, catalogue=catalogue)
    assert report.answer == "of the team" and model.looks == 1
    assert not any(each.startswith("reach") for each in await runs.activities())
    assert paid(report) == 5


@pytest.mark.long
async def test_who_skips_all_that_needs_the_endpoint_does_not_wait_for_it(runs: Runs) -> None:
    model = Lost({"t1": [lost()], "t2": [lost()]})
    async with runs.worker(model), asyncio.timeout(60):
        handle = await runs.start(goal(subtask("t1"), subtask("t2")), skipping=False)
        await waits(handle)
        await tell(handle, "skip", subtask_id="t1", by="me")
        await tell(handle, "skip", subtask_id="t2", by="me")
        report = await outcome(handle)
    assert report.status == "failed" and paid(report) == 0
    assert model.looking == 0, "nobody looks any more"


# ---------------------------------------------------------------- how long a run waits


def loses(run: Drive, flight_id: str) -> None:
    """This call finds nobody there; Drive then has a look under way."""
    (ask,) = (each for each in run.in_flight if isinstance(each, Ask) and each.id == flight_id)
    unreached = Unreached(address=ADDRESS, why="Connection refused")
    run.put(Unanswered(ask, Trouble("unreachable", "refused", unreached=unreached)))


def finds(run: Drive, flight_id: str) -> None:
    (ask,) = (each for each in run.in_flight if isinstance(each, Ask) and each.id == flight_id)
    run.put(Answered(ask, Reply(value=Reached(waited_seconds=1.0))))


def test_time_in_which_the_endpoint_was_there_is_no_outage() -> None:
    run = begun(subtask_of("t1"), outage_seconds=600)
    loses(run, "work-t1-1")
    run.wait(10)
    finds(run, "reach-1")
    run.wait(3_600)
    loses(run, "work-t1-2")
    assert run.state.outage is not None and run.state.outage.since == run.now
    assert outages.seconds_left(run.state) == 590


def test_an_endpoint_that_is_found_and_lost_forever_is_given_up_at_the_limit() -> None:
    run = begun(subtask_of("t1"), outage_seconds=600)
    for number in range(1, 4):
        loses(run, f"work-t1-{number}")
        assert outages.seconds_left(run.state) == 600 - 200 * (number - 1)
        run.wait(200)
        finds(run, f"reach-{number}")
    loses(run, "work-t1-4")
    assert outages.seconds_left(run.state) == 1, "as short as a look can be"


def test_an_endpoint_that_was_away_uses_up_no_try_of_a_call() -> None:
    run = begun(subtask_of("t1"))
    for number in range(1, policies.TRANSPORT_TRIES + 1):
        loses(run, f"work-t1-{number}")
        finds(run, f"reach-{number}")
    end(run, f"work-t1-{policies.TRANSPORT_TRIES + 1}", "possibly_billed")
    assert in_flight(run) == [f"work-t1-{policies.TRANSPORT_TRIES + 2}"]


def test_what_a_person_ends_as_its_endpoint_is_lost_waits_for_none() -> None:
    run = begun(subtask_of("t1"), subtask_of("t2"))
    ask = next(each for each in run.in_flight if isinstance(each, Ask))
    unreached = Unreached(address=ADDRESS, why="Connection refused")
    ended = apply(run.state, Steered(1, "cancel_subtask", Order(subtask_id="t1")))
    ended = apply(ended, Unanswered(ask, Trouble("unreachable", "refused", unreached=unreached)))
    finding = ended.work["t1"].finding
    assert finding is not None and finding.status == "cancelled"
    assert ended.outage is None


# ---------------------------------------------------------------- teams that wait


@pytest.mark.long
async def test_a_reader_of_the_run_above_is_told_what_its_team_waits_for(runs: Runs) -> None:
    model = Lost(
        {
            "plan": [lost(), plans(subtask("a"))],
            "a": [works("a")],
            "synthesize": [synthesizes("of the team"), synthesizes("of all")],
        }
    )
    catalogue = roles(runs, department="model: sonnet\nteam: true")
    async with runs.worker(model, catalogue=catalogue):
        handle = await runs.start(goal(subtask("t1", role="department")), skipping=False)
        said = await waits(handle)
        assert said.startswith(f"waiting: the team of t1: the endpoint {ADDRESS} cannot be reached")
        model.back.set()
        await seen(handle, lambda view: not any("the team of" in note for note in view.notes))
        assert (await handle.result()).status == "complete"


def of_team(number: int, why: str, run: Drive, team: str = "run.t1.1") -> TeamWaits:
    return TeamWaits(Standstill(team=team, number=number, why=why, at=run.now))


def test_a_team_s_wait_counts_only_if_it_is_said_by_the_team_and_no_newer_word_came() -> None:
    department = RoleCard(name="department", description="a team", tier="sonnet", team=True)
    briefing = BRIEFING.model_copy(update={"roles": (*BRIEFING.roles, department)})
    subtasks = (subtask_of("t1", role="department"), subtask_of("t2"))
    run = Drive(Plan(goal="Compare", subtasks=subtasks), AMPLE, briefing)
    before = run.state.work_deadline
    run.put(of_team(1, "nobody there", run, team="run.t2.1"))
    assert run.state.work_deadline == before and not run.state.standing
    run.put(of_team(2, "nobody there", run))
    assert run.state.work_deadline == before, "t2 is at work"
    end(run, "work-t2-1")
    assert run.state.work_deadline is None
    run.wait(1_000)
    run.put(of_team(1, "", run))
    assert run.state.work_deadline is None, "an older word that came late"
    run.put(of_team(3, "", run))
    assert before is not None and run.state.work_deadline == before + timedelta(seconds=1_000)
