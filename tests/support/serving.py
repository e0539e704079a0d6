"""A server by hand: what a run asked for and has not got yet, what its activities come back with,
and the workflow tasks that were made of it; and the same once more, handed over otherwise.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from decimal import Decimal
from itertools import pairwise
from typing import Any

from temporalio.api.enums.v1 import TimeoutType
from temporalio.bridge.proto.workflow_activation import WorkflowActivationJob
from temporalio.bridge.proto.workflow_commands import ScheduleActivity, WorkflowCommand
from temporalio.exceptions import ApplicationError
from temporalio.worker import WorkflowRunner

import by_hand
from by_hand import BEGAN, ONE_AT_A_TIME, Run, is_cut, team_is_never_started
from driving import BRIEFING, subtask
from holdfast.calls.reach import Reached
from holdfast.calls.replan import Change, Patch
from holdfast.contracts import (
    Bill,
    Call,
    Draft,
    Goal,
    Order,
    Plan,
    Reply,
    Report,
    RoleCard,
    Span,
    Unreached,
)
from holdfast.contracts.errors import (
    AllowanceReached,
    AuthenticationRefused,
    CallRefused,
    EndpointUnreachable,
    NotBilled,
    OverReservation,
    PossiblyBilled,
)
from holdfast.contracts.search import DOLLARS, STATUS
from holdfast.ledger.ledger import Amount
from holdfast.rules.timers import to_datetime
from holdfast.state.events import Answered
from holdfast.state.moves import Ask
from outcomes import DRAFTS, comes_back, value_of

TEAM = RoleCard(name="department", description="a whole team", tier="sonnet", team=True)
WITH_TEAM = BRIEFING.model_copy(update={"roles": (*BRIEFING.roles, TEAM)})
READ = {"acceptance_criteria": "It is plausible"}
FAN = Plan(
    goal="Compare",
    subtasks=(
        subtask("first"),
        subtask("second", role="researcher"),
        # Ready together with four others that stand behind it in the plan.
        subtask("t5", "first", role="researcher"),
        *(subtask(f"t{number}", "second").model_copy(update=READ) for number in (1, 2, 3, 4)),
        subtask("last", "t1", "t5"),
    ),
)
MIXED = Plan(
    goal="Compare",
    strategy="select",
    subtasks=(
        subtask("scan", role="scanner"),
        subtask("team", role="department"),
        subtask("t1", role="researcher").model_copy(update=READ),
        subtask("t2", "scan", "t1"),
        subtask("t3", "team", role="expert"),
        subtask("t4", "t1"),
    ),
)
FAILURES: dict[str, ApplicationError] = {
    "not_billed": NotBilled("overloaded", final=True),
    "possibly_billed": PossiblyBilled("dropped", Bill(model="m", calls=1, dollars=None)),
    "over_reservation": OverReservation("too big", Bill(model="m", dollars=Decimal("0.01"))),
    "refused": CallRefused("400"),
    "stopping": AuthenticationRefused("401"),
    "allowance": AllowanceReached("$1 a day"),
    "unreachable": EndpointUnreachable(Unreached(address="http://a", why="refused")),
    "no such host": EndpointUnreachable(
        Unreached(address="http://a", why="no such name", mistaken=True)
    ),
}
TIMEOUTS = {
    "silent": TimeoutType.TIMEOUT_TYPE_HEARTBEAT,
    "too long": TimeoutType.TIMEOUT_TYPE_START_TO_CLOSE,
    "never taken": TimeoutType.TIMEOUT_TYPE_SCHEDULE_TO_CLOSE,
}


def goal(plan: Plan = FAN, **fields: Any) -> Goal:
    limits = {"dollars": "9", "deadline_seconds": 900} | fields.pop("limits", {})
    return Goal.model_validate(
        {
            "text": "Compare",
            "plan": plan,
            "use_models": True,
            "search_attributes": (STATUS.name, DOLLARS.name),
            "limits": limits,
            **fields,
        }
    )


FIRST = ("do_update", "signal_workflow")
"""Of the jobs of a task: when the task began is recorded, and is their moment."""


# ---------------------------------------------------------------- what is open


@dataclass
class Desk:
    """What a run has asked for and not got yet, as its server keeps it."""

    now: int = BEGAN
    """Nanoseconds."""
    activities: dict[int, ScheduleActivity] = field(default_factory=dict)
    timers: dict[int, int] = field(default_factory=dict)
    """When each is due."""
    teams: dict[int, bool] = field(default_factory=dict)
    """Whether each has started."""
    cut: set[int] = field(default_factory=set)
    """Activities that were told to end."""

    def take(self, commands: Iterable[WorkflowCommand]) -> list[WorkflowActivationJob]:
        """What a workflow task asked for; what is answered at once, because it was scheduled and
        cut in one task and so never left the worker.
        """
        fresh: set[tuple[str, int]] = set()
        at_once = []
        for command in commands:
            kind = str(command.WhichOneof("variant"))
            about = getattr(command, kind)
            if kind == "schedule_activity":
                self.activities[about.seq] = about
                fresh.add(("activity", about.seq))
            elif kind == "start_child_workflow_execution":
                self.teams[about.seq] = False
                fresh.add(("team", about.seq))
            elif kind == "start_timer":
                self.timers[about.seq] = self.now + about.start_to_fire_timeout.ToNanoseconds()
            elif kind == "cancel_timer":
                self.timers.pop(about.seq, None)
            elif kind == "request_cancel_activity" and about.seq in self.activities:
                if ("activity", about.seq) in fresh:
                    del self.activities[about.seq]
                    at_once.append(is_cut(about.seq, sent=False))
                else:
                    self.cut.add(about.seq)
            elif kind == "cancel_child_workflow_execution":
                seq = about.child_workflow_seq
                if ("team", seq) in fresh and self.teams.pop(seq, None) is not None:
                    at_once.append(team_is_never_started(seq))
        return at_once


# ---------------------------------------------------------------- what a server recorded


@dataclass
class Handed:
    """One workflow task, or what it was answered at once: what it handed over, and when."""

    at: int
    jobs: list[WorkflowActivationJob]

    def split(self, cuts: Sequence[int]) -> list[list[WorkflowActivationJob]]:
        """Its results in several activations, as they are when some are handed over to answer a
        query; its Updates come with the last, which alone is a task, and stand first in it.
        """
        updates = [job for job in self.jobs if job.HasField("do_update")]
        results = [job for job in self.jobs if not job.HasField("do_update")]
        parts = [results[first:last] for first, last in pairwise((0, *cuts, len(results)))]
        return [*parts[:-1], [*updates, *parts[-1]]]

    @property
    def results(self) -> int:
        return sum(not job.HasField("do_update") for job in self.jobs)


@dataclass
class Played:
    """A run with its server: what it was handed in each task, and what it asked for."""

    goal: Goal
    runner: WorkflowRunner = ONE_AT_A_TIME
    tasks: list[Handed] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.run, self.desk = Run(self.runner), Desk()
        self.given = 0
        self.hand_over([by_hand.begins(self.goal)])

    def hand_over(self, jobs: Sequence[WorkflowActivationJob]) -> None:
        """A workflow task; Updates and Signals stand first, as the SDK sorts them."""
        jobs = sorted(jobs, key=lambda job: job.WhichOneof("variant") not in FIRST)
        commands = self.run.take(jobs, self.desk.now)
        assert self.run.refused == ""
        jobs = [job for job in jobs if not _rejected(job, commands)]
        self.tasks.append(Handed(self.desk.now, jobs))
        at_once = self.desk.take(commands)
        while at_once and not self.run.over:
            self.tasks.append(Handed(self.desk.now, at_once))
            commands = self.run.take(at_once, self.desk.now)
            assert self.run.refused == ""
            at_once = self.desk.take(commands)

    def ends(self, activity_id: str, outcome: str = "complete", **took: float) -> Any:
        """The job of an activity's end."""
        (seq,) = (
            seq for seq, each in self.desk.activities.items() if each.activity_id == activity_id
        )
        asked = self.desk.activities.pop(seq)
        return ended(seq, asked, outcome, self.desk.now, self.goal.plan or FAN, **took)

    def order(self, name: str, **fields: object) -> WorkflowActivationJob:
        self.given += 1
        return by_hand.orders(self.given, name, Order.model_validate(fields))

    @property
    def fired(self) -> list[WorkflowActivationJob]:
        """Timers that are due."""
        due = sorted((at, seq) for seq, at in self.desk.timers.items() if at <= self.desk.now)
        for _, seq in due:
            del self.desk.timers[seq]
        return [by_hand.fires(seq) for _, seq in due]

    def close(self) -> list[bytes]:
        self.run.drop()
        return recorded(self.run.commands)


def _rejected(job: WorkflowActivationJob, commands: Sequence[WorkflowCommand]) -> bool:
    """An Update that its validator refused is in no history."""
    return any(
        command.update_response.HasField("rejected")
        and command.update_response.protocol_instance_id == job.do_update.protocol_instance_id
        for command in commands
        if job.HasField("do_update") and command.HasField("update_response")
    )


def recorded(commands: Sequence[WorkflowCommand]) -> list[bytes]:
    return [
        each.SerializeToString(deterministic=True)
        for each in commands
        if not each.update_response.HasField("rejected")
    ]


def ended(
    seq: int, asked: ScheduleActivity, outcome: str, now: int, plan: Plan, *, seconds: float = 2.0
) -> WorkflowActivationJob:
    """What an activity came back with, by the clock of the machine that ran it."""
    at = to_datetime(now)
    span = Span(started=at - timedelta(seconds=1), ended=at + timedelta(seconds=seconds))
    if asked.activity_type == "prepare":
        return by_hand.returns(seq, WITH_TEAM.model_copy(update={"span": span}))
    if asked.activity_type == "examine":
        draft = DRAFTS.get(outcome, DRAFTS["failed"])(asked.activity_id)
        return by_hand.returns(seq, Reply[Draft](value=draft, span=span))
    if outcome in TIMEOUTS:
        return by_hand.times_out(seq, TIMEOUTS[outcome], started=outcome != "never taken")
    call = Call.model_validate_json(asked.arguments[0].data)
    if call.kind == "reach":
        if outcome == "failed":
            return by_hand.times_out(seq, TIMEOUTS["never taken"])
        return by_hand.returns(seq, Reply(value=Reached(waited_seconds=1.0), span=span))
    if outcome in FAILURES:
        error = FAILURES[outcome]
        said = ApplicationError(error.message, *error.details, span, type=error.type)
        return by_hand.fails(seq, by_hand.failure(said))
    return by_hand.returns(seq, reply(call, outcome, plan).model_copy(update={"span": span}))


def reply(call: Call, outcome: str, plan: Plan) -> Reply[Any]:
    amount = Amount(call.ceiling, 1 if call.model else 0, call.token_ceiling)
    ask = Ask(call, FAN, amount)
    value: Any = None
    if outcome in DRAFTS:
        kind = outcome if call.kind == "work" else "failed" if outcome == "failed" else "complete"
        value = patch() if call.kind == "replan" else value_of(ask, kind, plan)
    elif call.model is None:
        value, outcome = value_of(ask, "complete", plan), "complete"
    event = comes_back(ask, outcome, Decimal("0.5"), value)
    assert isinstance(event, Answered)
    return event.reply


def patch() -> Patch:
    return Patch(changes=(Change(op="add", subtask=subtask("extra"), why="one is missing"),))


def report(status: str, at: datetime) -> Report:
    return Report.model_validate(
        {
            "status": status,
            "run_id": "team",
            "goal": "part",
            "answer": "what the team says",
            "confidence": 80,
            "dollars": "0.1",
            "model_calls": 3,
            "finished": at,
        }
    )


# ---------------------------------------------------------------- the same, handed over otherwise


def again(
    goal: Goal,
    groups: Sequence[tuple[int, Sequence[WorkflowActivationJob]]],
    flags: set[int],
    runner: WorkflowRunner = ONE_AT_A_TIME,
) -> list[bytes]:
    """Everything that a fresh instance asks for when it is handed these, as a replay does it."""
    run = Run(runner)
    run.flags = set(flags)
    for at, jobs in groups:
        if run.over:
            break
        for job in jobs:
            if job.HasField("do_update"):
                job.do_update.run_validator = False
        run.take(jobs, at, replaying=True)
        assert run.refused == ""
    run.drop()
    return recorded(run.commands)
