"""One run, as a program follows and steers it."""

from __future__ import annotations

from collections.abc import AsyncGenerator, AsyncIterator, Callable, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from decimal import Decimal
from typing import Any, Generic, TypeVar

from pydantic import BaseModel, ValidationError

from holdfast.client import events, orders
from holdfast.client.ended import read_end
from holdfast.client.forking import ForkChange, wished_fork
from holdfast.client.planned import Waiting
from holdfast.client.reading import Look, Reader, no_such_run
from holdfast.contracts import Goal, Limits, Order, Plan, Report, Tier
from holdfast.contracts.events import AnyEvent
from holdfast.contracts.view import Preview, Row, RunView
from holdfast.errors import NoSuchRun, Refused, RunFailed, Unreachable
from holdfast.intake.connection import Connection
from holdfast.intake.launch import goal_of_run, launch
from holdfast.intake.login import login
from holdfast.rendering.running import run_view
from holdfast.rules.steering import CAPS
from holdfast.state.run import State
from holdfast.text import PLAIN_ID

Data = TypeVar("Data", bound=BaseModel)
MOST_NAMED = 20
"""Subtasks that a refusal names."""


class DataReport(Report, Generic[Data]):
    """The report of a run whose answer is data of a class of the caller's."""

    data: Data | None  # type: ignore[assignment]
    """The answer; None if the run ended without one."""


class Run:
    """A run, wherever it was started. Leaving it, also with an exception, cancels nothing.

    Orders raise OrderRefused if the run refuses them, RunOver if it is closed; each returns what
    came of it in a sentence. `by` is who decides, as the history keeps it: your login unless given.
    Raise NoSuchRun, without asking the server, for what is no id.
    """

    def __init__(self, connection: Connection, id: str, *, attached: bool = False) -> None:
        if not PLAIN_ID.fullmatch(id):
            raise no_such_run(id[:100])
        self.id = id
        self.attached = attached
        """True if a run of this id and request was there already."""
        self._connection = connection
        self._reader = Reader(connection, id)
        """What was read of it: the next look reads only what is new."""

    def __repr__(self) -> str:
        return f"<Run {self.id}>"

    # ------------------------------------------------------------ what is there to see

    def __aiter__(self) -> AsyncIterator[AnyEvent]:
        return self.events()

    def events(self, after: str = "") -> AsyncIterator[AnyEvent]:
        """Yield what has happened since the run began, and what happens until it has ended.
        `after`: the `id` of an event, to go on behind it.
        """
        return events.follow(self._connection, self.id, after)

    async def look(self, *, wait: bool = True) -> RunView:
        """Return the run as it stands now, also when nobody works on it.

        It waits for the run's first step and for a server that is away. Without `wait`: a run that
        has not begun has only its goal and notes; Unreachable if the server is away.
        """
        if wait:
            return await self._seen()
        look = await self._reader.look()
        if look.unreadable:
            # What it lacks may be back by the next look.
            self._reader = Reader(self._connection, self.id)
        if look.away:
            raise Unreachable("; ".join(look.notes))
        view = await self._with_maps(self._reader, look)
        if look.closed and view is None:
            raise RunFailed(read_end(self.id, look).reason)
        if view is None:
            return await self._unbegun(look)
        return view.model_copy(update={"notes": (*look.notes, *view.notes)})

    async def subtask(self, id: str) -> Row:
        """Return one subtask as it stands now. NoSuchRun if the run has none of that name."""
        rows = {row.id: row for row in (await self._seen()).rows}
        if id not in rows:
            there = ", ".join([*rows][:MOST_NAMED]) + ", …" * (len(rows) > MOST_NAMED)
            raise NoSuchRun(
                f"run {self.id} has no subtask {id!r:.80}; it has {there or 'none yet'}"
            )
        return rows[id]

    async def preview(self) -> Preview:
        """Return the plan and its expected price, as soon as there is one. RunFailed if the run
        ended before.
        """
        async for look in self.looks():
            view = look.view
            if view and view.preview:
                return view.preview
            if look.closed:
                break
        raise RunFailed(f"run {self.id} ended before it had a plan: {await self._reason()}")

    async def report(self) -> Report:
        """Return the report, when the run has ended; it waits for that. Refused if the run was told
        something wrong, RunFailed if it closed without a report.
        """
        async for look in self.looks():
            if look.closed:
                ended = read_end(self.id, look)
                if ended.report is None:
                    assert ended.failure is not None
                    raise ended.failure
                return ended.report
        raise AssertionError("looks end with a closed run")

    async def receipt(self, *, with_inputs: bool = False) -> bytes:
        """Return the signed receipt of a run that is over: the content of a file that `holdfast
        verify` checks anywhere. `with_inputs`: also what each call was asked and answered. Refused
        if the run is open, RunFailed if it has no report.
        """
        # Few ask for one, and it needs what a worker needs.
        from holdfast.client.receipts import receipt_of

        return (await receipt_of(self._connection, self.id, content=with_inputs)).dump()

    # ------------------------------------------------------------ orders

    async def approve(self, call: int = 0, *, by: str = "") -> str:
        """Approve the plan that waits, or the call of a tool by its number."""
        return await self.order("approve", orders.order_of(call=call, by=by))

    async def decline(self, call: int, why: str = "", *, by: str = "") -> str:
        """Decline a call of a tool; its agent is told why."""
        return await self.order("decline", orders.order_of(call=call, text=why, by=by))

    async def reject(self, why: str = "", *, by: str = "") -> str:
        """Reject the plan; the run closes as declined, its work unpaid."""
        return await self.order("reject", orders.order_of(text=why, by=by))

    async def edit(self, plan: Plan, *, by: str = "") -> str:
        """Send a changed plan in place of the one that waits, and work on it. Refused lists every
        mistake in it.
        """
        if not isinstance(plan, Plan):
            raise Refused("edit: give a Plan, as preview() has it")
        waiting = Waiting.of(await orders.state_of(self._connection, self.id))
        changed = waiting.checked(plan, "the plan")
        return await self.order("edit", orders.order_of(plan=changed, by=by))

    async def answer(self, subtask: str, text: str, *, by: str = "") -> str:
        """Answer what a subtask asks, or advise one that did not succeed."""
        return await self.order("answer", orders.order_of(subtask_id=subtask, text=text, by=by))

    async def retry(
        self,
        subtask: str,
        *,
        tier: Tier | None = None,
        instruction: str = "",
        rows: str | Sequence[str] = "",
        by: str = "",
    ) -> str:
        """Try a subtask again that did not succeed, or `rows` of a map: "failed", "skipped", or
        ids.
        """
        fields = {"tier": tier, "text": instruction, **orders.about_rows(rows)}
        return await self.order("retry", orders.order_of(subtask_id=subtask, by=by, **fields))

    async def hand(self, subtask: str, role: str, *, by: str = "") -> str:
        """Hand a subtask that did not succeed to another role."""
        return await self.order("hand", orders.order_of(subtask_id=subtask, role=role, by=by))

    async def skip(
        self, subtask: str, why: str = "", *, rows: str | Sequence[str] = "", by: str = ""
    ) -> str:
        """Go on without a subtask, and what needs it; or without `rows` of a map: "failed",
        "open", or ids.
        """
        fields = {"text": why, **orders.about_rows(rows)}
        return await self.order("skip", orders.order_of(subtask_id=subtask, by=by, **fields))

    async def supply(
        self, subtask: str, text: str = "", *, row: str = "", value: Any = None, by: str = ""
    ) -> str:
        """Give a subtask's finding by hand, or the result `value` of one `row` of a map, by its
        item's id; nothing is paid for it.
        """
        order = orders.supply_order(subtask, text, row, value)
        return await self.order("supply", order.model_copy(update={"by": by}))

    async def raise_cap(
        self,
        dollars: float | Decimal | None = None,
        *,
        model_calls: int | None = None,
        tokens: int | None = None,
        by: str = "",
    ) -> str:
        """Raise what the run may spend; the caps that are not given stay as they are."""
        given = {"dollars": dollars, "model_calls": model_calls, "tokens": tokens}
        named = {name: value for name, value in given.items() if value is not None}
        return await raise_caps(self._connection, self.id, limits_from(named), by=by)

    async def pause(self, *, by: str = "") -> str:
        """Start nothing more; calls in flight finish, and the deadline stands still."""
        return await self.order("pause", orders.order_of(by=by))

    async def resume(self, *, by: str = "") -> str:
        return await self.order("resume", orders.order_of(by=by))

    async def cancel(self, subtask: str = "", *, by: str = "") -> str:
        """End the run early, or one subtask of it. Calls in flight settle first: `report` waits for
        that.
        """
        if subtask:
            return await self.order("cancel_subtask", orders.order_of(subtask_id=subtask, by=by))
        named = orders.order_of(by=by)
        if (await Reader(self._connection, self.id).look()).closed:
            raise orders.run_over(self.id)
        await self._connection.handle(self.id).cancel(reason=named.by or login())
        return f"cancelling {self.id}; calls in flight settle first"

    async def order(self, command: str, order: Order) -> str:
        """Send an order by its command's name, as the methods above do."""
        return await orders.send(self._connection, self.id, command, order)

    async def fork(
        self,
        subtask: str = "",
        *,
        instruction: str = "",
        tier: Tier | None = None,
        role: str = "",
        dollars: float | Decimal | None = None,
        id: str = "",
        by: str = "",
        check: Callable[[Goal], None] = lambda _: None,
    ) -> Run:
        """Start the plan of this finished run again with one subtask changed; what that does not
        touch is taken over unpaid. Without a subtask only what had not been finished is done.
        Its plan waits for a person's yes where the run's own had to.
        `check` may refuse its goal by an exception, before anything is started.
        """
        goal = await wished_fork(
            self._connection,
            self.id,
            ForkChange(subtask, instruction, tier, role),
            limits=limits_from({} if dollars is None else {"dollars": dollars}),
        )
        check(goal)
        goal = goal.model_copy(update={"requester": by})
        started = await launch(self._connection, goal, id)
        return Run(self._connection, started.run_id, attached=started.attached)

    # ------------------------------------------------------------ reading

    async def _seen(self) -> RunView:
        """Return the first view there is. RunFailed if the run ended before it began."""
        reader = Reader(self._connection, self.id)
        async for look in reader.looks():
            view = await self._with_maps(reader, look)
            if view:
                return view
            if look.closed:
                break
        raise RunFailed(f"run {self.id} ended before it began: {await self._reason()}")

    async def _with_maps(self, reader: Reader, look: Look) -> RunView | None:
        """Return the view of a look, with how far each map under way is; None: there is none."""
        if not look.closed:
            await reader.find_maps()
            look = replace(look, doing=reader.doing)
        return look.view

    async def _unbegun(self, look: Look) -> RunView:
        """Return what is known of a run before its first step."""
        found = await self._connection.handle(self.id).describe()
        goal = await goal_of_run(self._connection, self.id)
        return RunView(
            run_id=self.id,
            goal=goal.text if goal else "",
            project=goal.project if goal else "",
            phase="preparing",
            dollars_cap=goal.limits.dollars if goal else Decimal(0),
            started=found.start_time,
            now=datetime.now(UTC),
            notes=(f"The run {look.blank}.", *look.notes),
        )

    def looks(self) -> AsyncGenerator[Look]:
        """Yield the run each time that something is new, at least once a second, until it has
        closed.
        """
        return Reader(self._connection, self.id).looks()

    async def _reason(self) -> str:
        look = await Reader(self._connection, self.id).look()
        return read_end(self.id, look).reason if look.closed else ""


class DataRun(Run, Generic[Data]):
    """A run whose answer is data of a class of the caller's."""

    def __init__(
        self, connection: Connection, id: str, shape: type[Data], *, attached: bool = False
    ) -> None:
        super().__init__(connection, id, attached=attached)
        self._shape = shape

    async def report(self) -> DataReport[Data]:
        """Return the report; its `data` is the answer. RunFailed if that has another shape."""
        made = await super().report()
        try:
            data = None if made.document is None else self._shape.model_validate(made.document)
        except ValidationError as error:
            raise RunFailed(f"the answer of run {self.id} is no {self._shape.__name__}") from error
        given: dict[str, Any] = {name: getattr(made, name) for name in Report.model_fields}
        return DataReport[Data].model_construct(**given | {"data": data})


def limits_from(named: dict[str, Any]) -> Limits:
    """Return Limits in which only these are set. Refused if one cannot be."""
    # Only who changes limits checks them by the words of the command line.
    from holdfast.intake.goals import limits_of

    return limits_of(tuple(f"{name}={value}" for name, value in named.items()))


async def raise_caps(connection: Connection, run_id: str, given: Limits, *, by: str = "") -> str:
    """Raise the caps that are set; the others stay as they are."""
    wanted = raised(await orders.state_of(connection, run_id), given)
    return await orders.send(connection, run_id, "raise_cap", orders.order_of(limits=wanted, by=by))


def raised(state: State, given: Limits) -> Limits:
    """Return the caps of a run with those that are set; the others as they are."""
    view = run_view(state)
    present = Limits(
        dollars=view.dollars_cap, model_calls=view.model_calls_cap, tokens=view.tokens_cap
    )
    named = {name: getattr(given, name) for name in given.model_fields_set if name in CAPS}
    return present.model_copy(update=named)
