"""Keep the thread of a run as its history is, until the run is over and its report is told."""

from __future__ import annotations

import asyncio
from collections.abc import Collection, Mapping
from contextlib import suppress
from dataclasses import dataclass, field

import structlog
from slack_sdk.errors import SlackApiError
from temporalio.service import RPCError

from holdfast.client.ended import read_end
from holdfast.client.questions import question_keys
from holdfast.client.reading import Look, Reader
from holdfast.client.runs import Run
from holdfast.contracts.view import Question, RunView
from holdfast.doors.slack import blocks
from holdfast.doors.slack.channels import Channel
from holdfast.doors.slack.thread import Thread
from holdfast.doors.slack.workspace import AWAY, GONE, REVOKED, Pace, Revoked, error_of
from holdfast.errors import HoldfastError, NoSuchRun
from holdfast.intake.connection import Connection

BOARD, REPORT, ASK = "board", "report", "ask "
SETTLED_CALL = "This was asked, and is settled: the board shows how."
LOOK_SECONDS = 15.0
"""How often a run is looked at of which nothing is new in its history: nobody may work on it."""
FIRST_PAUSE, LONGEST_PAUSE = 2.0, 300.0
log = structlog.get_logger("holdfast.slack")


@dataclass
class Follower:
    """Writes what is new of one run into its thread."""

    connection: Connection
    thread: Thread
    channel: Channel
    person: str
    """Who asked for it, by Slack's id."""
    pace: Pace
    _changed: asyncio.Event = field(default_factory=asyncio.Event)
    _asked: set[str] = field(default_factory=set)
    """Keys of the questions that people were called to."""
    _settled: set[str] = field(default_factory=set)
    """Keys of those whose call says that they are no more."""
    _seen_open: bool = False
    _trouble: str = ""

    @property
    def run_id(self) -> str:
        return self.thread.place.run_id

    async def follow(self) -> None:
        """Return when the thread shows how the run ended. Raise Revoked."""
        waking = asyncio.create_task(self._wake())
        pause = FIRST_PAUSE
        try:
            while True:
                try:
                    if await self._write():
                        return
                    pause = FIRST_PAUSE
                    with suppress(TimeoutError):
                        async with asyncio.timeout(LOOK_SECONDS):
                            await self._changed.wait()
                except NoSuchRun:
                    return
                except (SlackApiError, HoldfastError, RPCError, *AWAY) as error:
                    if self._gives_up(error):
                        return
                    self.thread.forget()
                    await asyncio.sleep(pause)
                    pause = min(pause * 2, LONGEST_PAUSE)
        finally:
            waking.cancel()
            await asyncio.gather(waking, return_exceptions=True)

    async def _wake(self) -> None:
        """Signal each event of the run."""
        async for _ in Run(self.connection, self.run_id):
            self._changed.set()
        self._changed.set()

    async def _write(self) -> bool:
        """Bring the thread up to date; return True if there is nothing more to come."""
        await self.pace.turn(BOARD, self.run_id)
        self._changed.clear()
        look = await self._reader.look()
        if look.away:
            return False
        if look.closed:
            self.thread.revives = self._seen_open
            await self._tell_end(look)
            return True
        self._seen_open = True
        view = look.view or await Run(self.connection, self.run_id).look(wait=False)
        orders = look.state.orders if look.state else ()
        await self.thread.put(BOARD, blocks.board(view, self.channel.highest, look.notes, orders))
        await self._call(view)
        self._trouble = ""
        return False

    async def _call(self, view: RunView) -> None:
        """Call the person who asked for the run to each question that is new."""
        keys: Mapping[str, Question] = question_keys(view)
        for key, question in keys.items():
            if key not in self._asked and question.kind != "paused":
                if not await self.thread.has(f"{ASK}{key}"):
                    await self.thread.put(f"{ASK}{key}", blocks.ask(question, view, self.person))
                self._asked.add(key)
        await self._settle(keys)

    async def _settle(self, open_keys: Collection[str] = ()) -> None:
        """Let the calls to questions that are no more say so."""
        for part in await self.thread.parts():
            key = part.removeprefix(ASK)
            if key != part and key not in open_keys and key not in self._settled:
                await self.thread.put(part, blocks.line(SETTLED_CALL))
                self._settled.add(key)

    async def _tell_end(self, look: Look) -> None:
        if await self.thread.has(REPORT):
            return
        await self._settle()
        ended = read_end(self.run_id, look)
        if look.view:
            orders = look.state.orders if look.state else ()
            # Closed from outside, a run did not come to say so itself.
            view = look.view.model_copy(update={"phase": "closed"})
            if ended.report:
                view = view.model_copy(update={"status": ended.report.status})
            await self.thread.put(BOARD, blocks.board(view, self.channel.highest, (), orders))
        last = (
            blocks.report(ended.report)
            if ended.report
            else blocks.failed(self.run_id, ended.reason)
        )
        await self.thread.put(REPORT, last)

    def _gives_up(self, error: Exception) -> bool:
        """Log what went wrong, each trouble once; return True if to try again helps nothing."""
        why = error_of(error) if isinstance(error, SlackApiError | OSError) else str(error)
        if why in REVOKED:
            raise Revoked(why)
        if why != self._trouble:
            self._trouble = why
            log.warning("a thread could not be written", run=self.run_id, why=why)
        return why in GONE

    def __post_init__(self) -> None:
        self._reader = Reader(self.connection, self.run_id)
