"""An agent, by hand, that is held: when a Signal is handed over among results is not recorded, so
it changes nothing. And a run that tells its agents: at the right moment, and whoever hears it.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import timedelta
from decimal import Decimal
from itertools import combinations, pairwise

import pytest
from temporalio.bridge.proto.workflow_activation import WorkflowActivationJob
from temporalio.bridge.proto.workflow_commands import WorkflowCommand
from temporalio.worker import WorkflowRunner

import by_hand
from by_hand import BEGAN, ONE_AT_A_TIME, SECOND, Run
from driving import BRIEFING, READER, subtask
from holdfast.agent.money import worst_turn
from holdfast.calls.turn import AgentGoal, AgentReport, Resume, Slice, ToolResult, ToolUse, Turn
from holdfast.calls.work import WorkMaterial
from holdfast.contracts import Bill, Plan, Reply, Span
from holdfast.contracts.signals import HOLD
from holdfast.rules.timers import to_datetime
from serving import Played, goal, recorded


def agent() -> AgentGoal:
    """A segment with a slice for three turns."""
    made = AgentGoal(
        work=WorkMaterial(goal="Compare", subtask=subtask("t1", role="reader"), dependencies=()),
        role=READER,
        model=BRIEFING.model("haiku"),
        slice=Slice(dollars=Decimal(0), calls=0, tokens=0),
        turns=10,
        first_run="first",
    )
    one = worst_turn(made, Resume())
    part = Slice(dollars=one.dollars * 3, calls=3, tokens=one.tokens * 3)
    return made.model_copy(update={"slice": part})


AGENT = agent()
USES = tuple(ToolUse(id=f"u{place}", name="read_file") for place in (1, 2))


def took(at: int) -> Span:
    return Span(started=to_datetime(at) - timedelta(seconds=1), ended=to_datetime(at))


def spoke(seq: int, at: int) -> WorkflowActivationJob:
    turn = Turn(transcript="one", uses=USES, text="So far: 40.", tokens=900)
    bill = Bill(model="a-haiku", calls=1, dollars=Decimal("0.001"))
    return by_hand.returns(seq, Reply[Turn](value=turn, bill=bill, span=took(at)))


def used(seq: int, place: int, at: int) -> WorkflowActivationJob:
    result = ToolResult(use_id=f"u{place}", digest=f"of u{place}", size=20, span=took(at))
    return by_hand.returns(seq, result)


Task = tuple[int, Sequence[WorkflowActivationJob]]
"""When it was handed over, and what."""


def asks(tasks: Sequence[Task], runner: WorkflowRunner = ONE_AT_A_TIME) -> Run:
    """A fresh instance that was handed these, as a replay does it."""
    run = Run(runner, AGENT)
    for at, jobs in [(BEGAN, [by_hand.begins(AGENT)]), *tasks]:
        if not run.over:
            run.take(jobs, at, replaying=True)
            assert run.refused == ""
    run.drop()
    return run


def scheduled(run: Run) -> list[str]:
    commands = [each.schedule_activity for each in run.commands if _is(each, "schedule_activity")]
    return [each.activity_id for each in commands]


def _is(command: WorkflowCommand, kind: str) -> bool:
    return command.WhichOneof("variant") == kind


def report(run: Run) -> AgentReport:
    (ended,) = [each for each in run.commands if _is(each, "complete_workflow_execution")]
    result = ended.complete_workflow_execution.result
    return AgentReport.model_validate_json(result.data)


def hold() -> WorkflowActivationJob:
    return by_hand.signals(HOLD)


FIRST = (BEGAN + SECOND, [spoke(1, BEGAN + SECOND)])
"""The first turn calls two tools; their activities have the numbers 2 and 3."""


@pytest.mark.parametrize(
    ("before", "results"),
    [
        ([], [spoke(1, BEGAN + SECOND)]),
        ([FIRST], [used(2, 1, BEGAN + 2 * SECOND), used(3, 2, BEGAN + 2 * SECOND)]),
    ],
    ids=["a turn lands", "two tools land"],
)
def test_a_hold_has_the_same_place_however_the_results_of_its_task_were_handed_over(
    before: list[Task], results: list[WorkflowActivationJob]
) -> None:
    """Results that an activation of their own brought came before the Signal; in a replay the SDK
    hands the Signal over before them.
    """
    at = BEGAN + 3 * SECOND
    last = (at + 60 * SECOND, [used(2, 1, at), used(3, 2, at)] if not before else [spoke(4, at)])
    whole = asks([*before, (at, [hold(), *results]), last])
    assert whole.over
    for count in range(1, len(results) + 1):
        for early in combinations(range(1, len(results) + 1), count):
            cuts = (0, *early, len(results))
            parts = [results[a:b] for a, b in pairwise(cuts)]
            groups = [(at, each) for each in parts[:-1]]
            split = asks([*before, *groups, (at, [hold(), *parts[-1]]), last])
            assert recorded(split.commands) == recorded(whole.commands)


def test_an_agent_that_is_held_in_a_turn_hands_back_the_calls_that_it_did_not_begin() -> None:
    run = asks([(BEGAN + SECOND, [hold()]), (BEGAN + 2 * SECOND, [spoke(1, BEGAN)])])
    assert scheduled(run) == ["turn-1"]
    ended = report(run)
    assert (ended.outcome, ended.resume.pending, ended.resume.results) == ("more", USES, ())
    assert ended.bill.dollars == Decimal("0.001") and ended.resume.transcript == "one"


def test_an_agent_that_is_held_in_its_tools_lands_them_all_and_asks_nothing_more() -> None:
    tools = [used(2, 1, BEGAN), used(3, 2, BEGAN)]
    run = asks([FIRST, (BEGAN + 2 * SECOND, [hold(), tools[1]]), (BEGAN + 3 * SECOND, tools[:1])])
    assert scheduled(run) == ["turn-1", "tool-1-1", "tool-1-2"]
    ended = report(run)
    assert ended.outcome == "more" and not ended.resume.pending
    assert [each.digest for each in ended.resume.results] == ["of u1", "of u2"]


def test_what_is_cut_while_it_is_held_is_cut() -> None:
    cut = [hold(), by_hand.cancels()]
    run = asks([(BEGAN + SECOND, cut), (BEGAN + 2 * SECOND, [by_hand.is_cut(1)])])
    assert report(run).outcome == "cut"


# ---------------------------------------------------------------- the run above


def paused() -> Played:
    """A run that was paused while its agent had been asked for and its start was not confirmed."""
    played = Played(goal(Plan(goal="Compare", subtasks=(subtask("t1", role="reader"),))))
    played.desk.now += SECOND
    played.hand_over([played.ends("prepare")])
    played.hand_over([played.order("pause")])
    played.desk.now += SECOND
    played.hand_over(played.fired)
    return played


def told(played: Played) -> list[str]:
    return [
        each.signal_external_workflow_execution.child_workflow_id
        for each in played.run.commands
        if _is(each, "signal_external_workflow_execution")
    ]


def test_an_agent_whose_start_is_not_confirmed_yet_is_told_of_the_pause_once_it_is() -> None:
    played = paused()
    assert told(played) == [], "there is nobody yet to be told"
    (seq,) = played.desk.teams
    played.hand_over([by_hand.team_starts(seq)])
    assert told(played) == ["run.t1.1"]
    played.close()


def test_an_agent_that_had_ended_before_it_was_told_of_the_pause_troubles_nobody() -> None:
    played = paused()
    (seq,) = played.desk.teams
    played.hand_over([by_hand.team_starts(seq)])
    (command,) = [
        each for each in played.run.commands if _is(each, "signal_external_workflow_execution")
    ]
    heard_by_none = by_hand.nobody_hears(command.signal_external_workflow_execution.seq)
    resume = Resume(transcript="one", turns=1, text="So far: 40.", tokens=900)
    bill = Bill(model="a-haiku", calls=1, dollars=Decimal("0.001"))
    more = AgentReport(outcome="more", resume=resume, bill=bill, tokens=900)
    played.hand_over([heard_by_none, by_hand.team_returns(seq, more)])
    before = len(played.desk.teams)
    played.hand_over([played.order("resume")])
    played.desk.now += SECOND
    played.hand_over(played.fired)
    assert len(played.desk.teams) == before + 1, "the next segment goes on"
    assert told(played) == ["run.t1.1"]
    played.close()
