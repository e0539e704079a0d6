"""The treasurer of a deployment: all dollars that its workers pay come out of its books. It never
ends, and asks nobody for anything.
"""

from __future__ import annotations

import asyncio
from datetime import datetime

from temporalio import workflow
from temporalio.exceptions import ApplicationError

from holdfast.contracts.treasury import Asked, Books, Caps, Given, Statement
from holdfast.ledger import treasury

UPDATES = 1_000
"""Then its books go on in a new history: a server takes 2,000 in one."""


@workflow.defn
class TreasurerWorkflow:
    """Keep the books. Its name stands in histories."""

    @workflow.init
    def __init__(self, books: Books) -> None:
        self._books = books
        self._updates = 0

    @workflow.run
    async def run(self, books: Books) -> None:  # noqa: ARG002
        while not self._full():
            try:
                await workflow.wait_condition(self._full)
            except asyncio.CancelledError:
                if workflow.cancellation_reason() is None:
                    raise  # this worker only drops it from its cache
                # Without it, nobody would know what was spent. Whoever means it can terminate it.
        await workflow.wait_condition(workflow.all_handlers_finished)
        workflow.continue_as_new(self._books)

    @workflow.update
    def ask(self, asked: list[Asked]) -> list[Given]:
        """Settle and lease slices."""
        given = []
        for each in asked:
            self._books, answer = treasury.ask(self._books, each, workflow.now())
            given.append(answer)
        self._updates += 1
        return given

    @workflow.signal
    def give_back(self, asked: list[Asked]) -> None:
        """Settle the slices of a worker that ends. It may be the last one, so it waits for no
        answer: the next worker reads what it said.
        """
        for each in asked or ():
            self._books, _ = treasury.settle(self._books, each, workflow.now())
        self._updates += 1

    @workflow.update
    def tell(self, settings: Caps) -> None:
        """Take in what a worker's settings say."""
        self._books = treasury.tell(self._books, settings)
        self._updates += 1

    @workflow.update
    def set_caps(self, caps: Caps) -> None:
        """Set the caps: they hold for the next call."""
        self._books = self._books.model_copy(update={"caps": caps})
        self._updates += 1

    @ask.validator
    def _check_asked(self, asked: list[Asked]) -> None:
        _refuse_unless(list, asked)

    @tell.validator
    def _check_told(self, settings: Caps) -> None:
        _refuse_unless(Caps, settings)

    @set_caps.validator
    def _check_caps(self, caps: Caps) -> None:
        _refuse_unless(Caps, caps)

    @workflow.query
    def look(self, now: datetime) -> Statement:
        """Return how the books stand now: its own clock stands still while nobody asks."""
        return treasury.look(self._books, now)

    def _full(self) -> bool:
        return self._updates >= UPDATES or workflow.info().is_continue_as_new_suggested()


def _refuse_unless(kind: type, given: object) -> None:
    """Refuse null, which a client of somebody else's may send: accepted it would stop the
    treasurer.
    """
    if not isinstance(given, kind):
        raise ApplicationError(f"it takes a {kind.__name__}", type="Refused")
