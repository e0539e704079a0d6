"""What each tool does: start, look at, decide and cancel runs, within the door's leash."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from contextlib import aclosing
from contextvars import ContextVar
from dataclasses import dataclass, field
from decimal import Decimal
from typing import Any

from holdfast.client.reading import Look
from holdfast.client.runs import Run
from holdfast.contracts import Limits, Plan
from holdfast.doors.mcp.arguments import (
    CancelArguments,
    DecideArguments,
    LookArguments,
    PreviewArguments,
    ReviewArguments,
    RunArguments,
    Wanted,
)
from holdfast.doors.mcp.leash import (
    REQUESTER,
    Leash,
    NotAllowed,
    alone,
    readable_roots,
    runs_of_doors,
    spent_today,
)
from holdfast.doors.mcp.opening import Opening
from holdfast.doors.mcp.telling import Seen, Told, tell, tell_list
from holdfast.doors.tokens import Caller
from holdfast.errors import OrderRefused, Refused
from holdfast.intake.launch import goal_of_run
from holdfast.intake.requests import RunRequest, read_request

PREVIEW_SECONDS = 20.0
LATEST = 10
MOST_TOLD = 1_000
CALLER: ContextVar[Caller | None] = ContextVar("CALLER", default=None)
"""Whose token the request that is answered bears; None over stdio."""
Enough = Callable[[Seen], bool]


def over(seen: Seen) -> bool:
    return seen.ended is not None


@dataclass
class Door:
    """All tools of the door. `host` is the name by which a host calls itself."""

    opening: Opening
    opened_with: Leash = field(default_factory=Leash)
    _told: dict[str, frozenset[str]] = field(default_factory=dict)
    """Keys of the questions of each run that hosts were told, for the last runs looked at."""
    _starting: asyncio.Lock = field(default_factory=asyncio.Lock)

    @property
    def leash(self) -> Leash:
        """What the caller may do."""
        caller = CALLER.get()
        return self.opened_with.narrowed(caller.scopes if caller else None)

    # ------------------------------------------------------------ starting

    async def preview(self, given: PreviewArguments, host: str, *, wait: bool = True) -> Told:
        """Plan and price; nothing of the plan is run."""
        request = _request(given, approval="always")
        run = await self._start(request, host, plan_only=True)
        return tell(await self.until(run.id, PREVIEW_SECONDS if wait else 0, over))

    async def run(self, given: RunArguments, host: str) -> Told:
        plan = await self._plan_of(given.plan_of) if given.plan_of else None
        approval = given.approval if isinstance(given.approval, str) else str(given.approval)
        request = _request(given, approval=approval, id=given.id, plan=plan)
        run = await self._start(request, host)
        return tell(await self.until(run.id, 0, over))

    async def review(self, given: ReviewArguments, host: str, *, wait: bool = True) -> Told:
        inputs = {"repo": given.repo, "base": given.base, "scope": given.scope}
        if given.base or given.scope == "changed":
            del inputs["scope"]
        wanted = {
            "playbook": "code-review",
            "inputs": {name: value for name, value in inputs.items() if value},
            "models": given.models,
            "dollars": None if given.dollars is None else str(given.dollars),
        }
        run = await self._start(read_request(wanted, "review"), host)
        return tell(await self.until(run.id, given.wait_seconds if wait else 0, over))

    async def _start(self, request: RunRequest, host: str, *, plan_only: bool = False) -> Run:
        """Start a run within the leash."""
        self.leash.check_acts()
        hf = await self.opening.hf()
        connection = hf.connection
        if request.dollars is None and self.leash.per_run:
            usual = min(Limits().dollars, self.leash.per_run)
            request = request.model_copy(update={"dollars": usual})
        roots = readable_roots(connection.settings)
        goal = await hf.goal_of(request, below=roots)
        self.leash.check_cap(goal)
        # Two that start at once must not both find the same money left.
        async with self._starting, alone(connection.settings):
            if goal.use_models:
                spent = await spent_today(connection, besides=request.id)
                self.leash.check_day(goal.limits.dollars, spent)
            asked = {"requester": f"{REQUESTER}{host}", "plan_only": plan_only}
            return await hf.start_goal(goal.model_copy(update=asked), request.id, below=roots)

    async def _plan_of(self, run_id: str) -> dict[str, Any]:
        seen = await self.until(run_id, 0, over)
        plan: Plan | None = seen.view.preview.plan if seen.view and seen.view.preview else None
        if plan is None:
            raise Refused(f"plan_of: run {run_id} has no plan; look(id={run_id!r}) says why")
        return plan.model_dump(mode="json")

    # ------------------------------------------------------------ looking

    async def look(self, given: LookArguments) -> Told:
        """Return a run once it has ended or asks what was not told yet, or when the wait is
        over.
        """
        if not given.id:
            return await self._latest()
        told = self._told.pop(given.id, frozenset())

        def news(now: Seen) -> bool:
            return over(now) or bool({*now.keys()} - told)

        seen = await self.until(given.id, given.wait_seconds, news)
        self._told[given.id] = frozenset(seen.keys())
        if len(self._told) > MOST_TOLD:
            del self._told[next(iter(self._told))]
        return tell(seen, given.part, given.subtask, given.offset)

    async def _latest(self) -> Told:
        """Return the latest runs that were started through such doors."""
        connection = (await self.opening.hf()).connection
        ids: list[str] = []
        async for each in runs_of_doors(connection):
            ids.append(each.id)
            if len(ids) >= LATEST:
                break
        return tell_list([await self.seen(each) for each in ids])

    async def seen(self, run_id: str) -> Seen:
        """Return a run as it stands now. Raise NoSuchRun."""
        return await self.until(run_id, 0, over)

    async def until(self, run_id: str, seconds: float, enough: Enough) -> Seen:
        """Return a run once there is enough to see, or as it is after so many seconds."""
        run = Run((await self.opening.hf()).connection, run_id)
        seen: Seen | None = None
        try:
            async with asyncio.timeout(seconds or None), aclosing(run.looks()) as looks:
                async for look in looks:
                    seen = self._found(run_id, look)
                    if not seconds or enough(seen):
                        break
        except TimeoutError:
            pass
        return seen or self._found(run_id, Look())

    def _found(self, run_id: str, look: Look) -> Seen:
        return Seen(run_id, look, may_decide=self.leash.may_decide)

    # ------------------------------------------------------------ deciding

    async def decide(self, given: DecideArguments, host: str) -> Told:
        self.leash.check_decision(given.decision)
        run = await self._own(given.id)
        said = await self._decide(run, given, f"{REQUESTER}{host}")
        seen = await self.seen(given.id)
        told = tell(seen)
        return Told(f"{said}\n{told.text}", told.data | {"done": said})

    async def _decide(self, run: Run, given: DecideArguments, by: str) -> str:
        subtask, text = given.subtask, given.text
        if given.decision in ("answer", "skip", "retry") and not subtask:
            raise Refused(f"{given.decision}: name the subtask in `subtask`")
        if given.rows and given.decision not in ("skip", "retry"):
            raise Refused(f"{given.decision}: it is not about rows; leave `rows` out")
        match given.decision:
            case "approve":
                return await run.approve(given.call, by=by)
            case "reject":
                return await run.reject(text, by=by)
            case "decline":
                if not given.call:
                    raise Refused("decline: name the number of the call in `call`")
                return await run.decline(given.call, text, by=by)
            case "answer":
                return await run.answer(subtask, text, by=by)
            case "skip":
                return await run.skip(subtask, text, rows=given.rows, by=by)
            case "retry":
                return await run.retry(subtask, instruction=text, rows=given.rows, by=by)
            case "pause":
                return await run.pause(by=by)
            case "resume":
                return await run.resume(by=by)
            case "raise_cap":
                return await self._raise(run, given.dollars, by)

    async def _raise(self, run: Run, dollars: Decimal | None, by: str) -> str:
        if dollars is None:
            raise Refused("raise_cap: give the new cap in `dollars`")
        hf = await self.opening.hf()
        if dollars > self.leash.per_run:
            raise NotAllowed(
                f"raise_cap: one run through this door may cost {self.leash.per_run} dollars at"
                " most (--may-spend); a person can raise it further"
            )
        async with self._starting, alone(hf.connection.settings):
            self.leash.check_day(dollars, await spent_today(hf.connection, besides=run.id))
            return await run.raise_cap(dollars, by=by)

    async def cancel(self, given: CancelArguments, host: str) -> Told:
        run = await self._own(given.id)
        seen = await self.seen(given.id)
        if seen.ended:
            return tell(seen)
        said = await run.cancel(by=f"{REQUESTER}{host}")
        return Told(
            f"{said}. look(id={given.id!r}) has what was finished.",
            {"id": given.id, "done": said},
        )

    async def _own(self, run_id: str) -> Run:
        """Return a run that was started through such a door; no other is steered through it."""
        self.leash.check_acts()
        await self.seen(run_id)
        connection = (await self.opening.hf()).connection
        goal = await goal_of_run(connection, run_id)
        if goal is None or not goal.requester.startswith(REQUESTER):
            raise OrderRefused(
                f"run {run_id} was not started through this door; only a person steers it"
            )
        return Run(connection, run_id)


def _request(given: Wanted, **more: Any) -> RunRequest:
    wanted = given.model_dump(mode="json", by_alias=True, exclude={"approval", "plan_of", "id"})
    if given.role:
        more["single"] = True
    given_more = {name: value for name, value in more.items() if value}
    return read_request(wanted | given_more, "arguments")
