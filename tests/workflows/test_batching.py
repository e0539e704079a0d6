"""How results are handed over together, and when, is not recorded: whatever a worker was given in
its own batches and at its own times, a replay in others must ask for the same, byte by byte.
"""

from __future__ import annotations

from collections.abc import Sequence
from decimal import Decimal
from itertools import combinations
from typing import Any

import pytest
from hypothesis import Phase, given, settings
from hypothesis import strategies as st
from temporalio.bridge.proto.workflow_activation import WorkflowActivationJob
from temporalio.bridge.proto.workflow_commands import ScheduleActivity
from temporalio.exceptions import ApplicationError

import by_hand
from by_hand import SECOND
from holdfast.contracts import Limits, Plan, Standstill
from holdfast.contracts.signals import STANDSTILL
from holdfast.rules.timers import to_datetime
from holdfast.temporal.activations import REFUSED
from outcomes import DRAFTS, PROBLEMS
from parameters import rest_long
from serving import (
    FAILURES,
    FAN,
    FIRST,
    MIXED,
    TIMEOUTS,
    Handed,
    Played,
    again,
    ended,
    goal,
    report,
)

EXAMPLES = settings(
    max_examples=25,
    deadline=None,
    derandomize=True,
    database=None,
    report_multiple_bugs=False,
    phases=(Phase.explicit, Phase.generate, Phase.shrink),
)
MORE = Limits(dollars=Decimal(9_000), model_calls=1_900, tokens=9 * 10**8)
OUTCOMES = ("complete",) * 6 + (*DRAFTS, *PROBLEMS, *FAILURES, *TIMEOUTS)
ORDERS = (
    "pause", "resume", "skip", "retry", "raise_cap", "answer", "cancel_subtask", "supply", "approve"
)  # fmt: skip


@st.composite
def regrouped(
    draw: st.DrawFn, tasks: Sequence[Handed]
) -> list[tuple[int, Sequence[WorkflowActivationJob]]]:
    """Each task in one or more activations, in order. When one that carries an Update or a Signal
    came is recorded; of all others any clock may be told.
    """
    groups: list[tuple[int, Sequence[WorkflowActivationJob]]] = []
    for task in tasks:
        cuts = [place for place in range(1, task.results + 1) if draw(st.booleans())]
        for jobs in task.split(cuts):
            fixed = any(job.WhichOneof("variant") in FIRST for job in jobs)
            groups.append((task.at + (0 if fixed else draw(SKEWS)), jobs))
    return groups


SKEWS = st.sampled_from((0, 0, -7 * SECOND, 1, 45 * SECOND, 3_600 * SECOND, -3_600 * SECOND))


class Chance:
    """Decides what a run meets, task after task."""

    def __init__(self, played: Played, data: st.DataObject) -> None:
        self.played, self.data = played, data
        self.cancelled = False

    def play(self) -> None:
        """Until the run is over, or for as many tasks."""
        for _ in range(40):
            if self.played.run.over:
                return
            jobs = self._jobs()
            if jobs:
                self.played.hand_over(jobs)

    def _jobs(self) -> list[WorkflowActivationJob]:
        draw, desk = self.data.draw, self.played.desk
        desk.now += draw(st.sampled_from((1, SECOND, 20 * SECOND, 20 * SECOND)))
        if not desk.activities and not desk.teams and draw(st.booleans()):
            desk.now = max(desk.now, min(desk.timers.values(), default=desk.now))
        jobs = self.played.fired
        for seq in [each for each in desk.activities if draw(st.integers(0, 3))]:
            asked = desk.activities.pop(seq)
            jobs.append(self._end_of(seq, asked))
        for seq in list(desk.teams):
            jobs += self._team(seq)
            jobs += [self._word() for _ in range(draw(st.sampled_from((0, 0, 1))))]
        if not self.cancelled and draw(st.integers(0, 24)) == 0:
            self.cancelled = True
            jobs.append(by_hand.cancels())
        jobs = draw(st.permutations(jobs))
        started = "resolve_child_workflow_execution_start"
        jobs = sorted(jobs, key=lambda job: job.WhichOneof("variant") != started)
        return [*jobs, *(self._order() for _ in range(draw(st.sampled_from((0, 0, 1, 2)))))]

    def _end_of(self, seq: int, asked: ScheduleActivity) -> WorkflowActivationJob:
        draw, desk = self.data.draw, self.played.desk
        if seq in desk.cut and draw(st.booleans()):
            return by_hand.is_cut(seq)
        outcome = draw(st.sampled_from(OUTCOMES))
        seconds = draw(st.sampled_from((-30.0, 2.0, 2.0, 90.0)))
        plan = self.played.goal.plan or FAN
        return ended(seq, asked, outcome, desk.now, plan, seconds=seconds)

    def _team(self, seq: int) -> list[WorkflowActivationJob]:
        draw, desk = self.data.draw, self.played.desk
        jobs = []
        if not desk.teams[seq]:
            desk.teams[seq] = True
            jobs.append(by_hand.team_starts(seq))
        what = draw(st.sampled_from(("", "complete", "complete_with_gaps", "lost")))
        if what:
            del desk.teams[seq]
            if what == "lost":
                jobs.append(by_hand.team_fails(seq, ApplicationError("terminated")))
            else:
                jobs.append(by_hand.team_returns(seq, report(what, to_datetime(desk.now))))
        return jobs

    def _word(self) -> WorkflowActivationJob:
        """Of a team: that it waits, or that it goes on; it may come late."""
        draw = self.data.draw
        word = Standstill(
            team=draw(st.sampled_from(("run.team.1", "run.team.2"))),
            number=draw(st.integers(1, 4)),
            why=draw(st.sampled_from(("nobody there", ""))),
            at=to_datetime(self.played.desk.now + draw(SKEWS)),
        )
        return by_hand.signals(STANDSTILL, word)

    def _order(self) -> WorkflowActivationJob:
        draw = self.data.draw
        ids = [each.id for each in (self.played.goal.plan or FAN).subtasks]
        return self.played.order(
            draw(st.sampled_from(ORDERS)),
            subtask_id=draw(st.sampled_from(ids)),
            text=draw(st.sampled_from(("as I say", ""))),
            limits=MORE if draw(st.booleans()) else None,
            by="me",
        )


@pytest.mark.long
@given(st.data())
@EXAMPLES
def test_a_run_asks_for_the_same_in_whatever_batches_and_by_whatever_clock(
    data: st.DataObject,
) -> None:
    wanted = goal(
        data.draw(st.sampled_from((FAN, MIXED))),
        ask_people=data.draw(st.booleans()),
        wait_for_raise=data.draw(st.booleans()),
        approval={"when": data.draw(st.sampled_from(("auto", "auto", "always")))},
        limits={
            "dollars": data.draw(st.sampled_from(("100", "100", "1.5"))),
            "deadline_seconds": data.draw(st.sampled_from((90, 7_200))),
            "concurrency": data.draw(st.sampled_from((2, 5, 8))),
            "outage_seconds": data.draw(st.sampled_from((0, 600))),
        },
    )
    played = Played(wanted)
    Chance(played, data).play()
    first = played.close()
    for _ in range(2):
        groups = data.draw(regrouped(played.tasks))
        assert again(wanted, groups, played.run.flags) == first


# ---------------------------------------------------------------- runs that were meant


def working(plan: Plan = FAN, **fields: Any) -> Played:
    """A run whose plan has just been taken over."""
    played = Played(goal(plan, **fields))
    played.desk.now += SECOND
    played.hand_over([played.ends("prepare")])
    return played


def dependants_ready_together() -> Played:
    """The end of `first` readies t5, that of `second` t1 to t4; a draft is reviewed meanwhile."""
    played = working(limits={"concurrency": 3})
    played.desk.now += SECOND
    played.hand_over([played.ends("work-first-1"), played.ends("work-second-1")])
    return played


def deadline_among_results() -> Played:
    """The deadline of the work fires between two results, one of which came in time."""
    played = working(limits={"deadline_seconds": 60})
    played.desk.now += 40 * SECOND
    first = played.ends("work-first-1", seconds=-20.0)
    second = played.ends("work-second-1", seconds=30.0)
    played.hand_over([first, *played.fired, second])
    return played


def cut_among_late_results() -> Played:
    """The run is cancelled between two results; what was cut comes back, or never does."""
    played = working(MIXED)
    played.desk.now += SECOND
    played.hand_over([played.ends("examine-scan-1"), by_hand.cancels(), played.ends("work-t1-1")])
    played.desk.now += 11 * SECOND
    played.hand_over(played.fired)
    return played


def orders_among_results() -> Played:
    """Two orders come with two results, and their turns with two more."""
    played = working()
    played.desk.now += SECOND
    played.hand_over(
        [
            played.ends("work-first-1"),
            played.order("skip", subtask_id="t2", by="me"),
            played.ends("work-second-1", "unsure"),
            played.order("pause"),
        ]
    )
    played.desk.now += SECOND
    played.hand_over([played.ends("work-t5-1"), *played.fired, played.ends("work-second-2")])
    played.desk.now += SECOND
    resumed = [played.order("resume"), played.order("raise_cap", limits=MORE)]
    played.hand_over(resumed)
    played.desk.now += SECOND
    played.hand_over(played.fired)
    return played


def lost_and_found_among_results() -> Played:
    """Two calls lose the endpoint, a third had its answer; then it is found with another."""
    played = working(MIXED)
    played.desk.now += SECOND
    lost = played.ends("work-t1-1", "unreachable")
    played.hand_over([lost, played.ends("examine-scan-1")])
    played.desk.now += 30 * SECOND
    played.hand_over([played.ends("reach-1"), *played.fired])
    return played


MEANT = (
    dependants_ready_together,
    deadline_among_results,
    cut_among_late_results,
    orders_among_results,
    lost_and_found_among_results,
)


@pytest.mark.parametrize("meant", rest_long(MEANT, first=3), ids=lambda each: each.__name__)
def test_every_way_to_split_a_task_leads_to_the_same_commands(meant: Any) -> None:
    played = meant()
    first = played.close()
    assert len(first) > 5
    for place, task in enumerate(played.tasks):
        before = [(each.at, each.jobs) for each in played.tasks[:place]]
        after = [(each.at, each.jobs) for each in played.tasks[place + 1 :]]
        for cuts in splits(task.results):
            parts = []
            for number, jobs in enumerate(task.split(cuts)):
                ordered = any(job.HasField("do_update") for job in jobs)
                parts.append((task.at if ordered else task.at - (9 - number) * SECOND, jobs))
            assert again(played.goal, [*before, *parts, *after], played.run.flags) == first


def splits(jobs: int) -> list[tuple[int, ...]]:
    places = range(1, jobs + 1)
    return [cuts for count in range(jobs + 1) for cuts in combinations(places, count)]


# ---------------------------------------------------------------- results without a task


def test_results_that_belong_to_no_task_are_refused_and_change_nothing() -> None:
    played = working()
    run, at = played.run, played.tasks[-1].at
    asked = len(run.commands)
    result = played.ends("work-first-1")
    run.take([result], at, length=4)
    assert run.refused == REFUSED
    assert len(run.commands) == asked
    run.drop()


def test_nothing_but_results_without_a_task_is_refused() -> None:
    played = working()
    run, at = played.run, played.tasks[-1].at
    # What was scheduled and cut in this very task comes back at its time and length.
    run.take([played.ends("work-first-1")], at, length=3)
    assert run.refused == ""
    run.take([query()], at, length=4)
    assert run.refused == "" and run.commands[-1].respond_to_query.HasField("succeeded")
    # A replay may come to a task that began in the same nanosecond.
    run.take([played.ends("work-second-1")], at, replaying=True, length=9)
    assert run.refused == ""
    run.take([by_hand.cancels()], at + 1, length=12)
    assert run.refused == ""
    run.drop()


def test_results_after_a_task_that_the_server_dropped_belong_to_none() -> None:
    """A task of nothing but a refused Update leaves no events: what comes next has their ids."""
    played = working()
    run, at = played.run, played.tasks[-1].at + 1
    run.take([played.order("resume")], at, length=5)
    assert run.commands[-1].update_response.HasField("rejected")
    run.take([played.ends("work-first-1")], at, length=5)
    assert run.refused == REFUSED
    run.drop()


def test_a_query_that_may_have_brought_the_first_new_results_is_refused() -> None:
    """A task that another worker was given, and died with, looks like one of this worker's."""
    played = working()
    taken = by_hand.Run(played.runner)
    for task in played.tasks:
        taken.take(task.jobs, task.at, replaying=True)
    at = played.tasks[-1].at
    taken.take([played.ends("work-first-1")], at + 1, length=9)
    assert taken.refused == ""
    taken.take([query("legacy_query")], at + 1, length=9)
    assert taken.refused == REFUSED
    taken.drop()


def test_a_query_is_answered_once_the_run_was_handed_a_task_here() -> None:
    played = working()
    run, at = played.run, played.tasks[-1].at
    run.take([played.ends("work-first-1")], at + 1, length=9)
    run.take([query("legacy_query")], at + 1, length=9)
    assert run.refused == "" and run.commands[-1].respond_to_query.HasField("succeeded")
    run.drop()


def query(id: str = "1") -> WorkflowActivationJob:
    job = WorkflowActivationJob()
    job.query_workflow.query_id, job.query_workflow.query_type = id, "view"
    return job
