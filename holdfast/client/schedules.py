"""Schedules: runs that Temporal's own clock starts. What each is for stands in Temporal, too."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from pathlib import Path
from typing import Any, TypedDict, Unpack

from pydantic import BaseModel, JsonValue
from temporalio.api.workflowservice.v1 import DescribeNamespaceRequest
from temporalio.client import (
    Client,
    Schedule,
    ScheduleActionStartWorkflow,
    ScheduleAlreadyRunningError,
    ScheduleDescription,
    ScheduleHandle,
    ScheduleIntervalSpec,
    ScheduleListActionStartWorkflow,
    ScheduleOverlapPolicy,
    SchedulePolicy,
    ScheduleSpec,
    ScheduleUpdate,
    ScheduleUpdateInput,
    WorkflowExecution,
    WorkflowExecutionStatus,
)
from temporalio.client import ScheduleCalendarSpec as Calendar
from temporalio.client import ScheduleRange as Range
from temporalio.service import RPCError, RPCStatusCode

from holdfast.contracts import Goal
from holdfast.contracts.schedules import (
    BUDGET_DAYS,
    SCHEDULED,
    Outcome,
    Overlap,
    Scheduled,
    Times,
)
from holdfast.contracts.search import UNPRICED
from holdfast.errors import NoSuchSchedule, Refused, ScheduleTaken
from holdfast.intake.connection import Connection, require_keys
from holdfast.intake.fields import naming_fields
from holdfast.intake.launch import allow_inputs, priority_of
from holdfast.intake.requests import RunRequest, read_request
from holdfast.intake.scheduled import check_name, scheduled_of
from holdfast.intake.times import TypedTimes, clock_of, notes_of, times_of, zone_of

OVERLAPS: dict[Overlap, ScheduleOverlapPolicy] = {
    "skip": ScheduleOverlapPolicy.SKIP,
    "queue": ScheduleOverlapPolicy.BUFFER_ONE,
    "cancel": ScheduleOverlapPolicy.CANCEL_OTHER,
    "allow": ScheduleOverlapPolicy.ALLOW_ALL,
}
NEXT, LAST = 5, 3
"""Times to come and outcomes that are shown of a schedule."""
LOOKED_AT = 20
"""Times gone among which the latest are looked for."""


class When(TypedDict, total=False):
    """When a schedule starts runs: one of the first three says it."""

    cron: str
    every: str
    once: str
    zone: str
    jitter: str
    catch_up: str
    overlap: Overlap


@dataclass(frozen=True)
class Happened:
    """One time of a schedule that has come."""

    at: datetime
    outcome: Outcome


@dataclass(frozen=True)
class Shown:
    """A schedule as it stands."""

    scheduled: Scheduled
    paused: bool
    note: str
    """Why it is paused, as whoever paused it said."""
    next: tuple[datetime, ...]
    """The next times, in its zone; none: it is over. A paused one lets them pass."""
    last: tuple[Happened, ...]
    """What came of the latest times, newest first."""
    missed: int
    """Times that were longer ago than it makes up for."""
    overlapped: int
    """Times at which the run before was open."""
    paid: Decimal | None
    """What counts against its budget now; None: it has none."""
    notes: tuple[str, ...] = ()
    """What its times mean that somebody might not expect."""


class Past(Outcome):
    """One time that has come, for programs."""

    at: datetime


class ScheduleView(BaseModel):
    """A schedule as it stands, for programs."""

    name: str
    paused: bool
    note: str
    """Why it is paused."""
    notes: tuple[str, ...]
    """What its times mean that somebody might not expect."""
    times: Times
    budget: Decimal | None
    paid_30_days: Decimal | None
    next: tuple[datetime, ...]
    last: tuple[Past, ...]
    """What came of the latest times, newest first."""
    missed: int
    overlapped: int
    requester: str
    request: dict[str, JsonValue]


def view_of(shown: Shown) -> ScheduleView:
    """Return a schedule as programs read it."""
    scheduled = shown.scheduled
    return ScheduleView(
        name=scheduled.name,
        paused=shown.paused,
        note=shown.note,
        notes=shown.notes,
        times=scheduled.times,
        budget=scheduled.budget,
        paid_30_days=shown.paid,
        next=shown.next,
        last=tuple(Past(at=each.at, **each.outcome.model_dump()) for each in shown.last),
        missed=shown.missed,
        overlapped=shown.overlapped,
        requester=scheduled.requester,
        request=scheduled.request,
    )


@dataclass(frozen=True)
class Asker:
    """Who adds or changes a schedule, where that is not the user of this machine."""

    name: str = ""
    """Who asks, as histories keep it; empty: your login."""
    below: tuple[Path, ...] | None = None
    """The only places whose paths its runs may name."""
    check: Callable[[Goal], None] = lambda _: None
    """Raises where they may not start such a run."""


YOU = Asker()


class Schedules:
    """The schedules of a deployment."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection

    async def add(
        self,
        name: str,
        request: RunRequest,
        *,
        budget: Decimal | None = None,
        by: Asker = YOU,
        **when: Unpack[When],
    ) -> Shown:
        """Add a schedule. Refused if there is one of this name, or a run of it could not start.

        `when`: the options of `holdfast schedule add`, by their names: `cron="0 6 * * 1-5"`.
        """
        with naming_fields():
            return await self.add_at(name, request, times_of(TypedTimes(**when)), budget, by)

    async def add_at(
        self,
        name: str,
        request: RunRequest,
        times: Times,
        budget: Decimal | None = None,
        by: Asker = YOU,
    ) -> Shown:
        """Add a schedule whose times are read."""
        return await self.put(*await self._checked(name, request, times, budget, by))

    async def put(self, scheduled: Scheduled, goal: Goal) -> Shown:
        """Add a schedule that was checked. `goal`: of a run of it, whose inputs a worker may read
        from now on.
        """
        await self._check_retention(scheduled)
        self._allow_inputs(scheduled, goal)
        try:
            handle = await self._connection.client.create_schedule(
                scheduled.name, await self._schedule(scheduled)
            )
        except ScheduleAlreadyRunningError as error:
            raise ScheduleTaken(
                f"there is a schedule {scheduled.name!r}; edit it, or choose another name"
            ) from error
        except RPCError as error:
            raise _explained(error) from error
        if not (await handle.describe()).info.next_action_times:
            await handle.delete()
            raise _never(scheduled.name)
        return await self.show(scheduled.name)

    async def edit(
        self,
        name: str,
        request: RunRequest,
        times: Times,
        *,
        budget: Decimal | None,
        by: Asker = YOU,
    ) -> Shown:
        """Change a schedule; its runs that are open go on as they are."""
        handle = await self._mine(name)
        described = await handle.describe()
        project, ours = (await self._scheduled(described)).project, self._connection.settings.name
        if project != ours:
            raise Refused(f"schedule {name!r} is of project {project!r}; change it from there")
        scheduled, goal = await self._checked(name, request, times, budget, by)
        await self._check_retention(scheduled)
        self._allow_inputs(scheduled, goal)
        changed = await self._schedule(scheduled)

        def update(given: ScheduleUpdateInput) -> ScheduleUpdate:
            changed.state = given.description.schedule.state
            return ScheduleUpdate(changed)

        try:
            await handle.update(update)
        except RPCError as error:
            raise _explained(error) from error
        comes = (await handle.describe()).info.next_action_times
        if not comes and described.info.next_action_times:
            await handle.update(lambda _: ScheduleUpdate(described.schedule))
            raise _never(name)
        return await self.show(name)

    async def show(self, name: str) -> Shown:
        """Return a schedule as it stands. Refused if there is none of this name."""
        await self._mine(name)
        return await self._shown(await self._described(name))

    async def all(self) -> AsyncIterator[Shown]:
        """Yield all schedules, by name."""
        names = [
            each.id
            async for each in await self._connection.client.list_schedules()
            if each.schedule is not None and _is_ours(each.schedule.action)
        ]
        for name in sorted(names):
            described = await self._described(name)
            if self._is_mine(described):
                yield await self._shown(described)

    async def pause(self, name: str, why: str = "") -> None:
        """Let its times pass until it is resumed; its open run goes on."""
        await (await self._mine(name)).pause(note=why or "paused by hand")

    async def resume(self, name: str) -> None:
        """Let it start runs again."""
        await (await self._mine(name)).unpause(note=" ")

    async def trigger(self, name: str) -> bool:
        """Let it start a run now, also if it is paused. Return True if it is, and stays so. Refused
        if a run of it is open that the new one would have to wait for, or pass over.
        """
        handle = await self._mine(name)
        described = await handle.describe()
        policy = described.schedule.policy.overlap
        if described.info.running_actions and policy is ScheduleOverlapPolicy.SKIP:
            raise Refused(
                f"schedule {name!r}: the run before is open, and its overlap is skip; wait for its"
                " end, or cancel it"
            )
        await handle.trigger()
        return described.schedule.state.paused

    async def delete(self, name: str) -> None:
        """Delete it; its runs stay."""
        await (await self._mine(name)).delete()

    # ------------------------------------------------------------ Temporal's words

    async def _checked(
        self, name: str, request: RunRequest, times: Times, budget: Decimal | None, by: Asker
    ) -> tuple[Scheduled, Goal]:
        await require_keys(self._connection)
        scheduled, goal = await scheduled_of(
            name,
            request,
            times,
            self._connection.settings,
            budget=budget,
            embedded=self._connection.target.embedded,
            requester=by.name,
            below=by.below,
        )
        by.check(goal)
        return scheduled, goal

    def _allow_inputs(self, scheduled: Scheduled, goal: Goal) -> None:
        below = None if scheduled.below is None else tuple(map(Path, scheduled.below))
        allow_inputs(goal, self._connection, below)

    async def _schedule(self, scheduled: Scheduled) -> Schedule:
        # Encoded here: a client would put a long one into the store, where no run keeps it alive.
        converter = self._connection.client.data_converter
        payloads = converter.payload_converter.to_payloads([scheduled])
        if converter.payload_codec is not None:
            payloads = await converter.payload_codec.encode(payloads)
        times = scheduled.times
        return Schedule(
            action=ScheduleActionStartWorkflow(
                SCHEDULED,
                payloads[0],
                id=scheduled.name,
                task_queue=self._connection.target.task_queue,
                priority=priority_of(request_of(scheduled).urgency, scheduled.requester),
            ),
            spec=_spec(times),
            policy=SchedulePolicy(
                overlap=OVERLAPS[times.overlap],
                catchup_window=timedelta(seconds=times.catch_up_seconds),
            ),
        )

    async def _described(self, name: str) -> ScheduleDescription:
        handle = self._connection.client.get_schedule_handle(name)
        try:
            return await handle.describe()
        except RPCError as error:
            if error.status is RPCStatusCode.NOT_FOUND:
                raise _unknown(name) from error
            raise

    def _is_mine(self, described: ScheduleDescription) -> bool:
        action = described.schedule.action
        return (
            isinstance(action, ScheduleActionStartWorkflow)
            and action.workflow == SCHEDULED
            and action.task_queue == self._connection.target.task_queue
        )

    async def _mine(self, name: str) -> ScheduleHandle:
        """Return a handle. Refused for a schedule of somebody else on this server, too."""
        if not self._is_mine(await self._described(check_name(name))):
            raise _unknown(name)
        return self._connection.client.get_schedule_handle(name)

    async def _scheduled(self, described: ScheduleDescription) -> Scheduled:
        action = described.schedule.action
        assert isinstance(action, ScheduleActionStartWorkflow)
        converter = self._connection.client.data_converter
        (scheduled,) = await converter.decode(action.args, [Scheduled])
        return scheduled  # type: ignore[no-any-return]

    async def _shown(self, described: ScheduleDescription) -> Shown:
        client, scheduled = self._connection.client, await self._scheduled(described)
        zone = zone_of(scheduled.times.zone)
        state, info = described.schedule.state, described.info
        gone = [each async for each in times_gone(client, described.id, LOOKED_AT, LOOKED_AT)]
        # The server has them by when they ended.
        gone = sorted(gone, key=lambda each: each.start_time, reverse=True)[:LAST]
        last = [Happened(each.start_time.astimezone(zone), await outcome_of(each)) for each in gone]
        return Shown(
            scheduled,
            state.paused,
            state.note or "",
            tuple(each.astimezone(zone) for each in info.next_action_times[:NEXT]),
            tuple(last),
            info.num_actions_missed_catchup_window,
            info.num_actions_skipped_overlap,
            None if scheduled.budget is None else await spent(client, described.id, Decimal(0)),
            notes_of(scheduled.times),
        )

    async def _check_retention(self, scheduled: Scheduled) -> None:
        if scheduled.budget is None:
            return
        found = await self._connection.client.workflow_service.describe_namespace(
            DescribeNamespaceRequest(namespace=self._connection.target.namespace)
        )
        kept = found.config.workflow_execution_retention_ttl.ToTimedelta()
        if kept < timedelta(days=BUDGET_DAYS):
            raise Refused(
                f"--budget: it looks back {BUDGET_DAYS} days, and this namespace forgets runs after"
                f" {kept.days}; raise its retention"
            )


def _spec(times: Times) -> ScheduleSpec:
    spec = ScheduleSpec(
        time_zone_name=clock_of(times),
        jitter=timedelta(seconds=times.jitter_seconds) if times.jitter_seconds else None,
    )
    if times.cron:
        spec.cron_expressions = [times.cron]
    elif times.every_seconds:
        spec.intervals = [ScheduleIntervalSpec(every=timedelta(seconds=times.every_seconds))]
    elif times.once:
        at = times.once.astimezone(UTC)
        spec.time_zone_name = "UTC"
        spec.calendars = [
            Calendar(
                year=[Range(at.year)],
                month=[Range(at.month)],
                day_of_month=[Range(at.day)],
                hour=[Range(at.hour)],
                minute=[Range(at.minute)],
                second=[Range(at.second)],
            )
        ]
    return spec


def _is_ours(action: object) -> bool:
    return isinstance(action, ScheduleListActionStartWorkflow) and action.workflow == SCHEDULED


def _never(name: str) -> Refused:
    return Refused(f"schedule {name!r}: none of its times ever comes")


def _unknown(name: str) -> NoSuchSchedule:
    return NoSuchSchedule(f"there is no schedule {name!r}; `schedule list` shows those there are")


def _explained(error: RPCError) -> Exception:
    """Return what the server does not like of a schedule as a refusal; what else it is as it is."""
    if error.status is RPCStatusCode.INVALID_ARGUMENT:
        return Refused(f"the server does not take this schedule: {error.message}")
    return error


# ---------------------------------------------------------------- what became of its times


def times_gone(
    client: Client,
    name: str,
    at_once: int = 1_000,
    most: int | None = None,
    since: datetime | None = None,
) -> AsyncIterator[WorkflowExecution]:
    """Return the workflows that a schedule has started, the open ones first."""
    begun = f" AND StartTime >= '{since.isoformat()}'" if since else ""
    which = f"TemporalScheduledById = '{name}' AND WorkflowType = '{SCHEDULED}'"
    return client.list_workflows(f"{which}{begun}", page_size=at_once, limit=most)


async def outcome_of(time: WorkflowExecution) -> Outcome:
    """Return what became of a time of a schedule, as far as its memo and Temporal know."""
    memo: dict[str, Any] = {}
    for field in Outcome.model_fields:
        memo[field] = await time.memo_value(field, Outcome.model_fields[field].default)
    outcome = Outcome.model_validate(memo)
    if outcome.status or time.status is WorkflowExecutionStatus.RUNNING:
        return outcome
    # Nobody was left to say more: terminated, or its activities failed for an hour.
    name = time.status.name.lower() if time.status else "unknown"
    known = {"status": name.replace("canceled", "cancelled")}
    worst = {"dollars": outcome.cap, "assumed": outcome.cap} if Decimal(outcome.cap) else {}
    return outcome.model_copy(update={**known, **worst})


async def spent(client: Client, name: str, cap: Decimal, besides: str = "") -> Decimal:
    """Return what the runs of a schedule have cost in 30 days: of what is open, or has no price,
    its cap. `cap`: of a run that has not begun; `besides`: the time that is not counted.
    """
    since = datetime.now(UTC) - timedelta(days=BUDGET_DAYS)
    total = Decimal(0)
    async for each in times_gone(client, name, since=since):
        if each.id != besides:
            total += _cost(await outcome_of(each), cap)
    return total


def _cost(outcome: Outcome, cap: Decimal) -> Decimal:
    if not outcome.status:
        return Decimal(outcome.cap) if outcome.run else cap
    if not outcome.run:
        return Decimal(0)
    return Decimal(outcome.cap if outcome.dollars == UNPRICED else outcome.dollars or 0)


async def count_active(client: Client, patience: timedelta) -> int:
    """Return how many schedules will start a run."""
    return sum(
        [
            _is_ours(each.schedule.action)
            and not each.schedule.state.paused
            and bool(each.info and each.info.next_action_times)
            async for each in await client.list_schedules(rpc_timeout=patience)
            if each.schedule is not None
        ]
    )


def request_of(scheduled: Scheduled) -> RunRequest:
    """Return what a run of it is asked."""
    return read_request(scheduled.request, f"schedule {scheduled.name}")
