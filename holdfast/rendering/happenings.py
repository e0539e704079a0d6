"""Tell what happened between two states of a run. Pure: equal pairs of states tell the same."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Literal, cast

from holdfast.contracts import Plan
from holdfast.contracts.events import (
    AnyEvent,
    BudgetReached,
    CallWaits,
    EndpointAway,
    EndpointBack,
    OrderTaken,
    PlanMade,
    PlanWaits,
    Price,
    QuestionAsked,
    RunStarted,
    SubtaskEnded,
    SubtaskStarted,
)
from holdfast.contracts.view import Question, Row, RunView
from holdfast.rendering.running import run_view
from holdfast.rendering.status import SETTLED
from holdfast.state.run import State

_Ended = Literal["complete", "failed", "escalated", "skipped", "cancelled"]
OF_PLAN = ("plan", "paused")
"""Questions that other events tell."""


@dataclass(frozen=True)
class Moment:
    """A state of a run and how readers see it."""

    state: State
    view: RunView

    @classmethod
    def of(cls, state: State) -> Moment:
        return cls(state, run_view(state))

    @property
    def common(self) -> dict[str, Any]:
        """What all events of this moment have; their place in the history is not known here."""
        run_id, at = self.state.run_id, self.state.now
        return {"id": "", "run_id": run_id, "at": at, "dollars": self.view.dollars_spent}

    @property
    def price(self) -> Price | None:
        """What the plan is expected to cost; None before there is one."""
        seen = self.view.preview
        return Price(low=seen.low, expected=seen.expected, high=seen.high) if seen else None


def find_happenings(before: Moment | None, after: Moment) -> tuple[AnyEvent, ...]:
    """Return what happened between two moments, causes before effects. `before` is None for the
    first one of a run.
    """
    started = RunStarted(goal=after.state.goal.text, **after.common)
    return (
        *(() if before else (started,)),
        *_orders(before, after),
        *_outage(before, after),
        *_plan(before, after),
        *_subtasks(before, after),
        *_questions(before, after),
    )


def _orders(before: Moment | None, after: Moment) -> Iterator[OrderTaken]:
    known = len(before.state.orders) if before else 0
    for given in after.state.orders[known:]:
        yield OrderTaken(
            command=given.command,
            by=given.order.by,
            subtask=given.order.subtask_id,
            call=given.order.call,
            refused=given.refused,
            **after.common,
        )


def _outage(before: Moment | None, after: Moment) -> Iterator[EndpointAway | EndpointBack]:
    was, now = bool(before and before.view.outage), after.view.outage
    if now and not was:
        yield EndpointAway(text=now, **after.common)
    elif was and not now and after.state.phase != "closed":
        yield EndpointBack(**after.common)


def _plan(before: Moment | None, after: Moment) -> Iterator[PlanMade | PlanWaits]:
    plan, price = after.state.plan, after.price
    if plan is None or price is None:
        return
    old = before.state.plan if before and before.price else None
    if old is None or _is_edited(before, after):
        yield PlanMade(plan=plan, price=price, **after.common)
    waited = before is not None and before.state.phase == "approval"
    if after.state.phase == "approval" and (not waited or _is_edited(before, after)):
        yield PlanWaits(plan=plan, price=price, **after.common)


def _is_edited(before: Moment | None, after: Moment) -> bool:
    known = before.state.plan if before else None
    edited = any(each.command == "edit" and not each.refused for each in after.state.orders)
    return edited and _differ(known, after.state.plan)


def _differ(one: Plan | None, other: Plan | None) -> bool:
    return one is not other and one != other


def _subtasks(before: Moment | None, after: Moment) -> Iterator[SubtaskStarted | SubtaskEnded]:
    old = {row.id: row for row in before.view.rows} if before else {}
    for row in after.view.rows:
        was = old.get(row.id)
        if was == row:
            continue
        tries = was.try_number if was else 0
        begun = row.status == "running" and (was is None or was.status != "running")
        if row.try_number > tries or (begun and row.try_number):
            yield _started(row, after)
        if row.status in SETTLED and (was is None or was.status != row.status):
            yield SubtaskEnded(
                subtask=row.id,
                title=row.title,
                role=row.role,
                status=cast(_Ended, row.status),
                seconds=row.seconds,
                price=row.dollars,
                note=row.note,
                **after.common,
            )


def _started(row: Row, after: Moment) -> SubtaskStarted:
    return SubtaskStarted(
        subtask=row.id,
        title=row.title,
        role=row.role,
        tier=row.tier,
        try_number=row.try_number,
        **after.common,
    )


def _questions(
    before: Moment | None, after: Moment
) -> Iterator[QuestionAsked | CallWaits | BudgetReached]:
    asked = before.view.waiting if before else ()
    for each in after.view.waiting:
        if each not in asked and each.kind not in OF_PLAN:
            yield _question(each, after.common)


def _question(each: Question, common: dict[str, Any]) -> QuestionAsked | CallWaits | BudgetReached:
    if each.kind == "call":
        return CallWaits(subtask=each.subtask_id, call=each.call, text=each.text, **common)
    if each.kind == "budget":
        return BudgetReached(text=each.text, **common)
    undecided = each.kind == "decision"
    return QuestionAsked(subtask=each.subtask_id, text=each.text, undecided=undecided, **common)
