"""The rows of a map as batches: made once, found again, read when they have ended, paid once.

A batch has no name of ours, and its rows can be told only from its results. So it is marked as sent
before it is made, and recorded after: a mark without a record means that it may be there, and then
nothing is made before the endpoint's list has been looked at.
"""

from __future__ import annotations

import asyncio
import hashlib
import json
from collections.abc import Sequence
from contextlib import aclosing, suppress
from dataclasses import dataclass
from datetime import timedelta
from typing import ClassVar

from temporalio import activity

from holdfast.activities.asking import senders
from holdfast.activities.asking.batch_of_one import owner_name
from holdfast.activities.asking.heartbeat import Notes, Past
from holdfast.activities.asking.journal import key_of
from holdfast.activities.asking.patience import finish
from holdfast.activities.asking.replies import dump_answer, lost_call
from holdfast.activities.mapping.batch_looks import AGAIN
from holdfast.activities.mapping.tally import Tally
from holdfast.activities.mapping.wanted import Row
from holdfast.calls.rows import CollectMaterial, Submitted
from holdfast.contracts.errors import (
    AllowanceReached,
    BlobLost,
    EndpointUnreachable,
    NoRoom,
    NotBilled,
    OrchestrationError,
    PossiblyBilled,
    RunStopping,
)
from holdfast.ports import Batches, BatchResult, Budget, Journal, ModelRequest

ID_LETTERS = 40
MOST_BYTES = 16 * 2**20
"""Bytes of one batch, about."""
MOST_ROWS = 2_000
SLACK = timedelta(minutes=5)
"""How far the endpoint's clock and this one may differ."""
LOOKS = (0.0, 1.0, 2.0, 4.0, 8.0)
"""Seconds before each look for a batch that may have been made: its list may lag behind."""
UNCLEAR = timedelta(seconds=10)
TRIES = 6
"""How often a batch is offered to an endpoint that refuses it for now, until it goes back."""
LONGEST_PAUSE = 30.0
SIBLING_SECONDS = 0.5
YIELD_ROWS = 25
"""Rows that are read until other calls of this process have their turn."""


def id_of(row: Row) -> str:
    """Return the id of a row in its batch."""
    return hashlib.sha256(row.key.encode()).hexdigest()[:ID_LETTERS]


class _Unclear(Exception):
    """Whether a batch was made cannot be seen for now."""


@dataclass
class BatchLane:
    """One batch: the rows of one activity, and of those that go on with it."""

    tally: Tally
    batches: Batches
    journal: Journal
    budget: Budget | None = None
    earlier: bool = False
    """True if its results were read before the run was reset."""
    looks: ClassVar[Sequence[float]] = LOOKS

    def __post_init__(self) -> None:
        self.rows = self._choose()
        ids = json.dumps([id_of(row) for row in self.tally.wanted.rows])
        material = self.tally.material
        self.key = key_of(f"batch {ids}", material.run, material.call.id)

    @property
    def _read_key(self) -> str:
        """The name in the journal of that the batch's results were read."""
        return f"{self.key}/read"

    def _choose(self) -> list[Row]:
        """Return as many of the first rows as fit into one batch and its reservation."""
        chosen, size, tally = list[Row](), 0, self.tally
        rest = tally.reserved
        for row in tally.wanted.rows[:MOST_ROWS]:
            most = tally.most_of(row)
            size += tally.wanted.shared + row.size
            if not most <= rest or (chosen and size > MOST_BYTES):
                break
            rest -= most
            chosen.append(row)
        return chosen

    # ---------------------------------------------------------------- to the endpoint

    async def submit(self, notes: Notes) -> Submitted:
        """Return the batch of these rows: made now, or by an attempt before this one. Raise
        NotBilled, so that it is tried again, if it cannot be seen whether there is one, or others
        hold the deployment's dollars.
        """
        if not self.rows:
            return Submitted(batch="", why="what was reserved covers none of its rows")
        try:
            return await self._submit(Past.read(), notes)
        except _Unclear as error:
            raise NotBilled(str(error), retry_after=UNCLEAR) from None

    async def _submit(self, past: Past, notes: Notes) -> Submitted:
        kept = await self.journal.answer(self.key)
        if kept is not None:
            return self._made(kept, found=True)
        here = await self.journal.sent(self.key)
        if here or past.sent:
            kept = await self._wait_for_sibling(past, here)
            if kept is not None:
                return self._made(kept, found=True)
            if not here or await self.journal.sent(self.key):
                suspects = await finish(self._find())
                if suspects:
                    return self._suspected(suspects)
                await self.journal.withdraw(self.key)
        return await self._offer(past, notes)

    async def _offer(self, past: Past, notes: Notes) -> Submitted:
        """Make the batch; go on trying while it is only refused for now."""
        pause, why, unreached = 1.0, "", None
        for number in range(1, TRIES + 1):
            wait = pause
            try:
                made = await finish(self._make(past, notes))
                if made:
                    return self._made(made)
                suspects = await finish(self._find())
                if suspects:
                    return self._suspected(suspects)
                await self._withdraw(past, notes)
                why = "the endpoint lost it"
            except EndpointUnreachable as error:
                return Submitted(batch="", why=error.message, unreached=error.unreached)
            except AllowanceReached as error:
                return Submitted(batch="", why=error.message, stopping="allowance")
            except RunStopping as error:
                return Submitted(batch="", why=error.message, stopping="endpoint")
            except NoRoom:
                raise
            except NotBilled as error:
                why, unreached = error.message, error.unreached
                asked = error.next_retry_delay
                wait = min(max(asked.total_seconds() if asked else 0, pause), LONGEST_PAUSE)
            if _is_cancelled() or number == TRIES:
                break
            await asyncio.sleep(wait)
            pause *= 2
        return Submitted(batch="", why=why, unreached=unreached)

    async def _make(self, past: Past, notes: Notes) -> str:
        """Mark, make, record. Return the batch; empty if it may have been made."""
        try:
            await self.journal.mark_sent(self.key)
        except PossiblyBilled:
            # Another attempt was faster.
            return ""
        try:
            await self._hold()
            past.leaving().note(notes)
            made = await self.batches.create(self._requests())
        except PossiblyBilled:
            return ""
        except OrchestrationError:
            await self._withdraw(past, notes)
            raise
        with suppress(Exception):
            await self.journal.record(self.key, made)
            # So that other batches are not taken for one that is missing.
            await self.journal.record(owner_name(made), self.key)
        return made

    async def _withdraw(self, past: Past, notes: Notes) -> None:
        if self.budget is not None:
            await self.budget.release(self.key)
        await self.journal.withdraw(self.key)
        past.note(notes)

    async def _hold(self) -> None:
        if self.budget is None:
            return
        call = self.tally.wanted.call
        assert call.model is not None
        prompts = [self.tally.wanted.shared + row.size for row in self.rows]
        await self.budget.hold_batch(self.key, call.model.id, prompts, call.max_output)

    async def _wait_for_sibling(self, past: Past, here: bool) -> str | None:
        """Wait for an attempt whose process still lives: it will record its batch or withdraw."""
        while here and senders.is_alive(past.machine, past.process):
            await asyncio.sleep(SIBLING_SECONDS)
            kept = await self.journal.answer(self.key)
            if kept is not None or not await self.journal.sent(self.key):
                return kept
        return await self.journal.answer(self.key)

    async def _find(self) -> tuple[str, ...]:
        """Return the batches that may be this one; none: none was made, as far as can be seen.
        Raise _Unclear if nobody can look.
        """
        since = activity.info().scheduled_time - SLACK
        for pause in self.looks:
            await asyncio.sleep(pause)
            found = []
            try:
                listed = await self.batches.since(since)
            except OrchestrationError as error:
                said = f"a batch may have been made, and cannot be looked for: {error.message}"
                raise _Unclear(said) from None
            for each in listed:
                owner = await self.journal.answer(owner_name(each.id))
                if owner == self.key:
                    return (each.id,)
                if owner is None and each.rows == len(self.rows):
                    found.append(each.id)
            if found:
                return tuple(found)
        return ()

    def _made(self, batch: str, *, found: bool = False) -> Submitted:
        return Submitted(batch=batch, rows=len(self.rows), found=found)

    def _suspected(self, suspects: tuple[str, ...]) -> Submitted:
        return Submitted(batch="", suspects=suspects, rows=len(self.rows))

    def _requests(self) -> list[tuple[str, ModelRequest]]:
        tally = self.tally
        return [
            (id_of(row), tally.wanted.request(row, tally.material, tally.price))
            for row in self.rows
        ]

    # ---------------------------------------------------------------- and back

    async def collect(self, material: CollectMaterial) -> None:
        """Take what became of the rows of a batch that has ended. Rows that are not in it are left.
        Raise NotBilled, so that it is tried again, if its results cannot be read.
        """
        waiting = {id_of(row): row for row in self.tally.wanted.rows}
        why = "its batch was not made"
        # On its first attempt only an execution that was reset can have read it before.
        first = activity.info().attempt == 1
        self.earlier = first and await self.journal.answer(self._read_key) is not None
        for batch in (material.batch,) if material.batch else material.suspects:
            if await self._read(batch, waiting, sure=bool(material.batch)):
                why = "it was not in its batch"
                break
        for row in waiting.values():
            self.tally.leave(row, why)
        with suppress(Exception):
            await self.journal.record(self._read_key, why)
        if self.budget is not None:
            paid = self.tally.dollars if self.tally.priced else None
            await finish(self.budget.settle_batch(self.key, paid))

    async def _read(self, batch: str, waiting: dict[str, Row], *, sure: bool) -> bool:
        """Take the results of a batch. False, after its first one, if it is not ours."""
        for pause in (0.0, *AGAIN):
            await asyncio.sleep(pause)
            try:
                return await self._take_all(batch, waiting, sure=sure)
            except BlobLost as error:
                why = error.message
        if sure:
            # What nobody can read any more may have been paid.
            for row in waiting.values():
                self.tally.lose(row, lost_call(self.tally.wanted.call, why))
            waiting.clear()
        return sure

    async def _take_all(self, batch: str, waiting: dict[str, Row], *, sure: bool) -> bool:
        rows, tally = dict(waiting), self.tally

        def request_of(id: str) -> ModelRequest | None:
            row = rows.get(id)
            return tally.wanted.request(row, tally.material, tally.price) if row else None

        async with aclosing(self.batches.results(batch, request_of)) as results:
            count = 0
            async for result in results:
                row = waiting.pop(result.id, None)
                if row is None and not (sure or count):
                    return False
                count += 1
                if row is not None:
                    self._take(row, result)
                if count % YIELD_ROWS == 0:
                    await asyncio.sleep(0)
        return True

    def _take(self, row: Row, result: BatchResult) -> None:
        if result.answer is None:
            (self.tally.refuse if result.invalid else self.tally.leave)(row, result.why)
            return
        try:
            self.tally.take(row, dump_answer(result.answer), earlier=self.earlier)
        except PossiblyBilled as error:
            self.tally.lose(row, error)


def _is_cancelled() -> bool:
    task = asyncio.current_task()
    return task is not None and task.cancelling() > 0
