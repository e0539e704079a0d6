"""Finds the supervisor's verdict on what came back, by what changed in the run's state. Pure."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from holdfast.calls.review import Review
from holdfast.contracts import Try
from holdfast.state.events import (
    AgentEnded,
    Answered,
    Event,
    Examined,
    MapEnded,
    NotPrepared,
    Prepared,
    TeamEnded,
    Unanswered,
)
from holdfast.state.run import State
from holdfast.text import group_lines

ACCEPTED = "accepted"
TAKEN_BACK = "taken back"


@dataclass(frozen=True)
class Judged:
    """The verdict on one flight."""

    flight: str
    verdict: str
    why: str = ""
    of_try: bool = False
    """True for the verdict on a try at a subtask."""


def judge(before: State, event: Event, after: State) -> Judged | None:
    """Return the verdict on what came back with an event; None: it brought nothing back."""
    match event:
        case Prepared():
            return Judged("prepare", ACCEPTED)
        case NotPrepared(why=why, reason=reason):
            return Judged("prepare", reason, why)
        case Answered() | Unanswered() | Examined() | TeamEnded() | AgentEnded() | MapEnded():
            if event.move.id not in before.flights:
                return Judged(event.move.id, "too late", "it had been given up")
            if event.move.id in before.early.back:
                return _take_back(event.move.id)
            last = last_try(before, after, event.move.subtask_id)
            if last is not None:
                return Judged(event.move.id, last.verdict, last.why, of_try=True)
            return Judged(event.move.id, *_said(event, after))
    return None


def judge_begun(before: State, after: State) -> Iterator[Judged]:
    """Yield the verdicts on what had begun before its plan was whole and is not in it, also where
    it had ended well.
    """
    yield from map(_take_back, after.early.moves[len(before.early.moves) :])


def _take_back(flight: str) -> Judged:
    return Judged(flight, TAKEN_BACK, "it had begun before the plan was whole")


def last_try(before: State, after: State, subtask_id: str) -> Try | None:
    """Return the try at a subtask that was decided between two states; None: there was none."""
    if subtask_id not in after.work:
        return None
    tries = after.work[subtask_id].tries
    had = len(before.work[subtask_id].tries) if subtask_id in before.work else 0
    return tries[-1] if len(tries) > had else None


def _said(
    event: Answered | Unanswered | Examined | TeamEnded | AgentEnded | MapEnded, after: State
) -> tuple[str, str]:
    match event:
        case Unanswered(trouble=trouble):
            return trouble.kind, trouble.why
        case Examined(draft=draft):
            return ACCEPTED if draft.status == "complete" else draft.status, draft.why
        case TeamEnded(report=report, why=why):
            return (report.status, "") if report else ("lost", why)
        case AgentEnded(report=None, why=why):
            return "lost", why
        case AgentEnded(report=report):
            assert report is not None
            answered = report.outcome == "answered"
            return ACCEPTED if answered else report.outcome, report.why
        case MapEnded(report=None, why=why):
            return "lost", why
        case MapEnded(report=report):
            assert report is not None
            return ACCEPTED if report.outcome == "done" else report.outcome, report.why
        case Answered(reply=reply, move=move):
            if reply.problem is not None:
                return reply.problem.kind, reply.problem.why
            if move.call.kind == "plan" and after.plan_errors:
                return "invalid", group_lines(after.plan_errors)
            if isinstance(reply.value, Review) and not reply.value.passed:
                return "failed_review", reply.value.why
            return ACCEPTED, ""
