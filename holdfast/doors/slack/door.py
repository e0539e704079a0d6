"""What is done for a mention, a command and a button: runs are started, orders are given."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Coroutine, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from typing import Any

import structlog
from slack_sdk.errors import SlackApiError
from temporalio.service import RPCError

from holdfast.client.connecting import explain_failure
from holdfast.client.holdfast import Holdfast
from holdfast.client.questions import question_keys
from holdfast.client.runs import Run
from holdfast.contracts.search import RUNS
from holdfast.contracts.view import Question
from holdfast.doors.slack import blocks
from holdfast.doors.slack.blocks import Message
from holdfast.doors.slack.channels import Channel, Channels
from holdfast.doors.slack.following import Follower
from holdfast.doors.slack.places import PREFIX, Place, of_mention, parse
from holdfast.doors.slack.thread import Thread
from holdfast.doors.slack.words import plain
from holdfast.doors.slack.workspace import AWAY, BOT, REVOKED, Revoked, Workspace, error_of
from holdfast.errors import HoldfastError, IdTaken, NoAnswer, RunOver, Unreachable
from holdfast.intake.connection import DESCRIBED, Connection
from holdfast.intake.launch import goal_of_run
from holdfast.rendering.amounts import money

SAID = "said"
"""The part of a thread that says why nothing was started."""
WAIT_SECONDS = 1.0
"""How long Slack waits for a start, of three that it has. What goes on longer is not acknowledged,
so that Slack says it again to whoever is there then.
"""
MISSED_SECONDS = 3600.0
"""How old a mention may be that a door finds when it opens, and starts. Far below the time that any
server keeps what is closed, so no run of it is forgotten.
"""
ORDER_SECONDS = 2.0
"""How long Slack waits for an order before it is acknowledged: whose order is not, is told so."""
CLOSE_SECONDS = 5.0
"""How long a door that is closed finishes what it was asked for."""
TRY_SECONDS = 600.0
"""How long a start is tried while no server answers."""
AGAIN_SECONDS = 5.0
ENDED_DAYS = 3
"""How long ago a run may have ended whose thread is brought up to date when the door comes back."""
SCAN_SECONDS = 60.0
LAG = timedelta(minutes=5)
"""How late the server may list what has ended."""
TURN_SECONDS = 30.0
"""How long the thread of a run that has ended is waited for, before the next one has its turn."""
MOST_KNOWN = 1_000
MOST_GOAL = 20_000
OUTDATED = "That was decided already, or has changed since. The thread shows how it stands now."
EMPTY = "Say what the run is to do, as in: @holdfast which rates changed in these minutes?"
log = structlog.get_logger("holdfast.slack")


@dataclass(frozen=True)
class Asked:
    """What a person asked for."""

    place: Place
    person: str
    goal: str
    """In their words, as they see them."""


@dataclass
class Door:
    """The door to the channels of a project."""

    connection: Connection
    workspace: Workspace
    known: Channels
    revoked: asyncio.Future[tuple[str, str]] = field(default_factory=asyncio.Future)
    """Done once Slack takes a token no more: which, and what it says."""
    _tasks: set[asyncio.Task[Any]] = field(default_factory=set)
    _brief: set[asyncio.Task[Any]] = field(default_factory=set)
    """Those of them that end by themselves."""
    _starting: dict[str, asyncio.Task[str]] = field(default_factory=dict)
    _following: dict[str, Follower] = field(default_factory=dict)
    _told: dict[str, None] = field(default_factory=dict)
    """Messages that start nothing and were told so, the last of them."""
    _over: dict[str, None] = field(default_factory=dict)
    """Runs whose threads show how they ended, the last of them."""

    @property
    def channels(self) -> Mapping[str, Channel]:
        """Return the channels as the project names them now."""
        return self.known.now()

    @property
    def holdfast(self) -> Holdfast:
        return Holdfast.on(self.connection)

    # ------------------------------------------------------------ starting

    async def begin(self, asked: Asked) -> str:
        """Start the run that somebody asked for, once, however often Slack says it; return why
        there is none. Raise TimeoutError where that takes longer than Slack waits; it goes on.
        """
        task = self._begin_once(asked)
        if task is None:
            return ""
        async with asyncio.timeout(WAIT_SECONDS):
            return await asyncio.shield(task)

    def _begin_once(self, asked: Asked) -> asyncio.Task[str] | None:
        run_id = asked.place.run_id
        if run_id in self._following or run_id in self._told:
            return None
        task = self._starting.get(run_id)
        if task is None:
            task = self._spawn(self._begin(asked), brief=True)
            self._starting[run_id] = task
            task.add_done_callback(lambda _: self._starting.pop(run_id, None))
        return task

    async def _begin(self, asked: Asked) -> str:
        why = self.refusal(asked)
        if not why:
            why = await self._start(asked)
        if why:
            keep_last(self._told, asked.place.run_id)
            if not asked.place.command:
                await self._say(asked, blocks.line(why))
        return why

    def refusal(self, asked: Asked) -> str:
        """Return why nobody may start that here; empty if they may."""
        channel = self.channels.get(asked.place.channel)
        if channel is None:
            return self.known.broken or (
                "This channel starts no runs: it is not named in holdfast.toml, as"
                f" [slack.{asked.place.channel}]."
            )
        if asked.person not in channel.people:
            return "You are not one of those who may start runs in this channel."
        if not asked.goal.strip():
            return EMPTY
        if len(asked.goal) > MOST_GOAL:
            return f"That is too long: a goal has at most {MOST_GOAL:,} characters here."
        return ""

    async def _start(self, asked: Asked) -> str:
        """Start the run, or find the one that was; return why there is none."""
        clock = asyncio.get_running_loop().time
        until, told = clock() + TRY_SECONDS, False
        while True:
            try:
                if not await self.connection.has(asked.place.run_id):
                    await self._launch(asked)
                await self.take_up(asked.place.run_id)
                return ""
            except (Unreachable, RPCError) as error:
                if isinstance(error, RPCError):
                    error = explain_failure(error, self.connection.target.address)
                log.warning(
                    "a run could not be started yet", run=asked.place.run_id, why=str(error)
                )
                if clock() > until:
                    return f"Nothing was started: {error}"
                if not told and not asked.place.command:
                    told = True
                    await self._say(asked, blocks.line(f"{error}. It is tried again."))
                await asyncio.sleep(AGAIN_SECONDS)
            except HoldfastError as error:
                return f"Nothing was started: {error}"

    async def _launch(self, asked: Asked) -> None:
        request = self.channels[asked.place.channel].request
        goal = await self.holdfast.goal_of(request.model_copy(update={"goal": asked.goal.strip()}))
        by = await self.workspace.name_of(asked.person)
        goal = goal.model_copy(update={"requester": by})
        # Taken: another door was faster, with another file.
        with suppress(IdTaken):
            await self.holdfast.start_goal(goal, asked.place.run_id)

    async def _say(self, asked: Asked, message: Message) -> None:
        """Say something in the thread of a message that has no run."""
        thread = Thread(self.workspace, asked.place, datetime.now(UTC).timestamp())
        try:
            await thread.put(SAID, message)
        except (SlackApiError, *AWAY) as error:
            self._check(error)
            log.warning(
                "a message could not be answered", run=asked.place.run_id, why=error_of(error)
            )

    # ------------------------------------------------------------ following

    async def take_up(self, run_id: str) -> asyncio.Task[None] | None:
        """Keep the thread of a run up to date from now on; return what does so, if it is new."""
        place = parse(run_id)
        channel = self.channels.get(place.channel) if place else None
        if place is None or channel is None or run_id in self._following:
            return None
        found = await self.connection.handle(run_id).describe(rpc_timeout=DESCRIBED)
        goal = await goal_of_run(self.connection, run_id)
        if run_id in self._following or goal is None:
            return None
        person = person_of(goal.requester)
        thread = Thread(self.workspace, place, found.start_time.timestamp(), goal.text, person)
        follower = Follower(self.connection, thread, channel, person, self.workspace.pace)
        self._following[run_id] = follower
        return self._spawn(self._follow(follower))

    async def _follow(self, follower: Follower) -> None:
        try:
            await follower.follow()
            keep_last(self._over, follower.run_id)
        except Revoked as error:
            self.leave(BOT, str(error))
        finally:
            self._following.pop(follower.run_id, None)

    async def catch_up(self) -> None:
        """Start what was asked for in the last hour, and is no run: no door was there then, or it
        ended before it had started that.
        """
        since = f"{datetime.now(UTC).timestamp() - MISSED_SECONDS:.6f}"
        for channel in self.channels:
            try:
                missed = [
                    asked
                    async for each in self.workspace.messages(channel, since)
                    if self.mentioned in str(each.get("text"))
                    and (asked := asked_of({**each, "channel": channel}, self.mentioned))
                ]
            except (SlackApiError, *AWAY) as error:
                self._check(error)
                log.warning("a channel could not be read", channel=channel, why=error_of(error))
                continue
            for asked in missed:
                known = False
                with suppress(RPCError):
                    known = await self.connection.has(asked.place.run_id)
                # What is a run already is taken up as one.
                if not known:
                    self._begin_once(asked)

    @property
    def mentioned(self) -> str:
        """Return how a message mentions the bot."""
        return f"<@{self.workspace.user}>"

    async def keep_up(self) -> None:
        """Take up what is open, for ever, and what has ended unseen: while no door was there, or
        between two looks.
        """
        since = datetime.now(UTC) - timedelta(days=ENDED_DAYS)
        while True:
            looked = datetime.now(UTC)
            ended = f"ExecutionStatus != 'Running' AND CloseTime > '{since.isoformat()}'"
            try:
                for run_id in [each async for each in self._list("ExecutionStatus = 'Running'")]:
                    await self._try_to_take_up(run_id)
                over = [each async for each in self._list(ended) if each not in self._over]
                self._spawn(self._catch_up_ended(over))
                since = looked - LAG
            except RPCError as error:
                log.warning("the runs could not be listed", why=str(error))
            await asyncio.sleep(SCAN_SECONDS)

    async def _list(self, which: str) -> AsyncIterator[str]:
        query = f"{RUNS} AND WorkflowId STARTS_WITH '{PREFIX}' AND {which}"
        async for each in self.connection.client.list_workflows(query):
            yield each.id

    async def _try_to_take_up(self, run_id: str) -> asyncio.Task[None] | None:
        """Take up a run; one that cannot be looked at keeps no other from it."""
        try:
            return await self.take_up(run_id)
        except (HoldfastError, RPCError) as error:
            log.warning("a run could not be looked at", run=run_id, why=str(error))
            return None

    async def _catch_up_ended(self, run_ids: Sequence[str]) -> None:
        """Tell how runs ended, one after the other, as Slack's rates are for all."""
        for run_id in run_ids:
            if (following := await self._try_to_take_up(run_id)) is not None:
                # A channel that takes nothing any more holds up no other.
                await asyncio.wait({following}, timeout=TURN_SECONDS)

    # ------------------------------------------------------------ deciding

    def check_person(self, run_id: str, channel: str, person: str) -> str:
        """Return why a person may not decide of this run here; empty if they may."""
        place = parse(run_id)
        known = self.channels.get(place.channel) if place else None
        if place is None or known is None or place.channel != channel:
            return (
                self.known.broken
                or "This run is not one of this channel, as holdfast.toml names it."
            )
        if person not in known.people:
            return "You are not one of those who may decide in this channel."
        return ""

    async def open_dialog(
        self, name: str, run_id: str, key: str, person: str, trigger: str, thread: str
    ) -> None:
        """Open the dialog of a button; whoever comes too late is told so."""
        channel = str(run_id.split("-")[1])
        question: Question | None = None
        cap = ""
        try:
            view = await Run(self.connection, run_id).look(wait=False)
            if key != "run":
                question = question_keys(view).get(key)
                if question is None:
                    await self.workspace.tell(channel, person, OUTDATED, thread)
                    return
            highest = self.channels[channel].highest
            cap = f"It is {money(view.dollars_cap)} now, and can become {money(highest)} here."
            context = {"run": run_id, "key": key, "thread": thread}
            await self.workspace.open_dialog(trigger, blocks.dialog(name, question, context, cap))
        except (SlackApiError, *AWAY) as error:
            self._check(error)
            await self.workspace.tell(
                channel,
                person,
                f"Slack did not open the dialog ({error_of(error)}); press again.",
                thread,
            )
        except (HoldfastError, RPCError) as error:
            await self.workspace.tell(channel, person, _words_of(error), thread)

    async def decide(
        self, name: str, run_id: str, key: str, person: str, thread: str, given: Mapping[str, str]
    ) -> None:
        """Give the order of a button or a dialog, in the person's name; what the run refuses they
        are told.
        """
        channel = str(run_id.split("-")[1])
        try:
            by = await self.workspace.name_of(person)
            run = Run(self.connection, run_id)
            question: Question | None = None
            if key != "run":
                question = question_keys(await run.look(wait=False)).get(key)
                if question is None:
                    raise RunOver(OUTDATED)
            # Slack shows no other choice; who alters what it sends has no say.
            if "choice" in given and not (question and _offers(question, given)):
                raise RunOver(OUTDATED)
            await self._order(run, name, question, given, by)
        except NoAnswer as error:
            await self.workspace.tell(channel, person, f"{error}. The order stands.", thread)
        except (HoldfastError, RPCError) as error:
            await self.workspace.tell(channel, person, _words_of(error), thread)

    async def _order(
        self, run: Run, name: str, question: Question | None, given: Mapping[str, str], by: str
    ) -> None:
        text = given.get("text", "").strip()
        subtask = question.subtask_id if question else ""
        call = question.call if question else 0
        chosen, _, role = given.get("choice", "").partition(":")
        match chosen or name:
            case "approve":
                await run.approve(call, by=by)
            case "reject":
                await run.reject(text, by=by)
            case "decline":
                await run.decline(call, text, by=by)
            case "answer":
                await run.answer(subtask, text, by=by)
            case "retry":
                await run.retry(subtask, instruction=text, by=by)
            case "hand":
                await run.hand(subtask, role, by=by)
            case "supply":
                await run.supply(subtask, text, by=by)
            case "skip":
                await run.skip(subtask, text, by=by)
            case "raise":
                await run.raise_cap(Decimal(given["dollars"]), by=by)
            case "resume":
                await run.resume(by=by)
            case "cancel":
                await run.cancel(by=by)

    # ------------------------------------------------------------ tasks

    def do(self, work: Coroutine[Any, Any, object]) -> None:
        """Do something behind an answer that Slack has been given."""
        self._spawn(work, brief=True)

    async def do_first(self, work: Coroutine[Any, Any, object]) -> bool:
        """Do something before Slack is answered; return False if it takes too long, and goes on."""
        done, _ = await asyncio.wait({self._spawn(work, brief=True)}, timeout=ORDER_SECONDS)
        return bool(done)

    def stay(self, work: Coroutine[Any, Any, object]) -> None:
        """Do something for as long as the door is open."""
        self._spawn(work)

    def _spawn(self, work: Coroutine[Any, Any, Any], *, brief: bool = False) -> asyncio.Task[Any]:
        task = asyncio.create_task(work)
        self._tasks.add(task)
        if brief:
            self._brief.add(task)
        task.add_done_callback(self._done)
        return task

    def _done(self, task: asyncio.Task[Any]) -> None:
        self._tasks.discard(task)
        self._brief.discard(task)
        if not task.cancelled() and (error := task.exception()):
            log.error("a mistake of ours", exc_info=error)

    async def close(self) -> None:
        """Finish what takes seconds, and leave all threads as they are; the runs go on."""
        if self._brief:
            await asyncio.wait({*self._brief}, timeout=CLOSE_SECONDS)
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    def _check(self, error: Exception) -> None:
        if error_of(error) in REVOKED:
            self.leave(BOT, error_of(error))

    def leave(self, variable: str, why: str) -> None:
        """Say that Slack takes the token of this variable no more."""
        if not self.revoked.done():
            self.revoked.set_result((variable, why))


def asked_of(message: Mapping[str, Any], mentioned: str) -> Asked | None:
    """Return what a person asks for in a message; None if no person wrote it, or it was changed."""
    if message.get("bot_id") or message.get("subtype") or message.get("edited"):
        return None
    channel, at = str(message.get("channel", "")), str(message.get("ts", ""))
    place = of_mention(channel, at, str(message.get("thread_ts") or ""))
    person = str(message.get("user", ""))
    text = plain(str(message.get("text", "")).replace(mentioned, " "))
    return Asked(place, person, text) if place and person else None


def keep_last(known: dict[str, None], name: str) -> None:
    """Add a name; of more than MOST_KNOWN the oldest is forgotten."""
    known[name] = None
    if len(known) > MOST_KNOWN:
        del known[next(iter(known))]


def person_of(requester: str) -> str:
    """Return Slack's id of who asked for a run."""
    named = requester.removeprefix("slack:").partition(" ")[0]
    return named if requester.startswith("slack:") and named.isalnum() else ""


def _offers(question: Question, given: Mapping[str, str]) -> bool:
    """True if what was chosen can be done about a question."""
    return given["choice"] in blocks.choices(question)


def _words_of(error: Exception) -> str:
    if isinstance(error, Unreachable | RPCError):
        return "Nothing was decided: the server of runs does not answer. Press again later."
    return str(error)
