"""Certify a playbook: one run left alone, then one for each blow and each failure, on a deployment
of its own with the real server and the real worker process. Models are scripted, or played from a
cassette.
"""

from __future__ import annotations

import asyncio
import os
import sys
import tempfile
import time
from collections import Counter
from collections.abc import AsyncIterator, Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from temporalio.client import WorkflowFailureError
from temporalio.exceptions import ActivityError, ChildWorkflowError
from temporalio.service import RPCError

from holdfast.activities.catalogue.catalogue import Catalogue
from holdfast.activities.toolset.shelf import tools_for
from holdfast.activities.toolset.tool import Tool
from holdfast.certifying.board import LOOK_SECONDS, Board
from holdfast.certifying.deployment import Deployment, ended, running, simulated
from holdfast.certifying.failures import FAILURES
from holdfast.certifying.guard import PREFIX, STATE, guarded
from holdfast.certifying.judging import Seen, Verdict, judge, reasons
from holdfast.certifying.people import answer_to, say, waits_for
from holdfast.certifying.points import Chosen, Point, choose
from holdfast.contracts import Goal, Report
from holdfast.deployment.settings import PACKAGE, Settings
from holdfast.embedded import Programs
from holdfast.errors import HoldfastError, Refused
from holdfast.intake.connection import Connection
from holdfast.intake.goals import Wish, goal_of
from holdfast.intake.launch import launch
from holdfast.replaying.cassette import Cassette
from holdfast.text import one_line

NAME = "certify"
"""Who approves what waits for a person."""
WORKER = (sys.executable, "-P", "-m", "holdfast.serving.certified")
LATENCY = 0.15
"""Seconds that an answer takes, if the script says nothing: time for a blow while it is on its
way."""
QUICK = {"retry-after": "1", "retry-after-ms": "1000"}
"""Waits that an endpoint asks for, in a certificate."""
PINGS_SECONDS = 5.0
PING_SECONDS = 1.0
DELIVERED = ("slow_pings", "json_not_stream")
"""Faults behind which a whole answer arrives."""
OUTAGE_SECONDS = 1.0
REFUSED_CONNECTION = "connection refused"
PERSON_SECONDS = 0.3
ORDER_SECONDS = 15.0
PLAIN_SECONDS = 300.0
LEAST_SECONDS = 90.0
"""The least that a struck run is given; else ten times what the plain one took."""
HANG_SECONDS = 10.0
"""How long beyond its own limit a call of a tool may last until it counts as hanging."""
OTHERS = ("HOLDFAST_", "ANTHROPIC_", "TEMPORAL_", "STORE_", "OTEL_")
"""Begin variables that decide where things go: none of them holds here."""
Tell = Callable[[str], None]
Json = Mapping[str, Any]


class NotCertified(HoldfastError):
    """The run left alone does not come to an end that others can be held against."""

    kind = "not_certified"


@dataclass(frozen=True)
class Wanted:
    """What is to be certified, and how far."""

    wish: Wish
    answers: str
    """Where answers come from, as the rest of a sentence: they are …"""
    project: Path | None = None
    script: Mapping[str, Any] = field(default_factory=dict)
    cassette: Path | None = None
    most: int | None = 24
    """Points at which the run is struck; None: all."""
    only: Callable[[str], bool] = lambda _name: True
    """Which blows and failures, by what the page says of each."""
    every_call: bool = False
    """True if each failure meets each kind of call; else each kind in turn."""
    effects: bool = False
    """True if tools with effects run for real."""

    @property
    def title(self) -> str:
        """The sentence that stands above everything else."""
        return (
            f"Certificate of {self.wish.playbook}: answers are {self.answers}; no model is asked."
        )


@dataclass(frozen=True)
class Struck:
    """One run after the plain one."""

    what: str
    when: str
    seen: Seen
    verdict: Verdict


@dataclass(frozen=True)
class Certificate:
    """All that was found."""

    wanted: Wanted
    goal: Goal
    plain: Seen
    tools: Mapping[str, Tool]
    recorded: tuple[str, ...]
    """Tools that were called and not run."""
    chosen: Chosen
    kills: tuple[Struck, ...]
    not_reached: tuple[Point, ...]
    """Points that the run did not come to again."""
    failures: tuple[Struck, ...]
    approved: int
    """What was approved in our name."""
    seconds: float

    @property
    def wrong(self) -> tuple[str, ...]:
        """Return everything that does not hold, a line each; empty: the certificate is given."""
        plain = self.verdicts[0]
        found = [f"left alone: {each}" for each in plain.wrong]
        for one in (*self.kills, *self.failures):
            new = [each for each in one.verdict.wrong if each not in plain.wrong]
            found += [f"{one.what} {one.when}: {each}" for each in new]
        return tuple(found)

    @property
    def again(self) -> Counter[str]:
        """Count the runs in which something happened again that its tool declares harmless."""
        return Counter(each for one in self.verdicts for each in one.again)

    @property
    def within(self) -> tuple[str, ...]:
        """Return what tools with effects did more than once within one call."""
        return tuple(dict.fromkeys(each for one in self.verdicts for each in one.within))

    @property
    def verdicts(self) -> tuple[Verdict, ...]:
        """Return the verdicts on all runs, the one left alone first."""
        plain = judge(self.plain, self.plain, self.tools, killed=True)
        return (plain, *(one.verdict for one in (*self.kills, *self.failures)))


async def certify(wanted: Wanted, tell: Tell) -> Certificate:
    """Return the certificate. Refused or BadSettings for what cannot run, NotCertified for a run
    that does not end well when it is left alone, EmbeddedError without a server.
    """
    tape = Cassette.read(wanted.cassette) if wanted.cassette else None
    with (
        tempfile.TemporaryDirectory(prefix=PREFIX) as name,
        environment(Path(name), tape.settings if tape else {}),
        ExitStack() as stack,
    ):
        folder = Path(name)
        # Before any process: what is wrong with the goal costs nobody a start.
        made = settings_for(wanted, folder, "http://127.0.0.1:9")
        await goal_of(wanted.wish, Catalogue.of(made.project), made, embedded=True)
        tell(wanted.title)
        usual = {"latency": [LATENCY, LATENCY], "ping_seconds": PING_SECONDS}
        script = {**usual, **wanted.script}
        stack.enter_context(guarded(folder))
        async with simulated(folder, script, cassette=wanted.cassette) as simulator:
            settings = settings_for(wanted, folder, simulator.url)
            goal = await goal_of(
                wanted.wish, Catalogue.of(settings.project), settings, embedded=True
            )
            board = Board.of(settings.state_dir)
            if wanted.effects:
                board.effects.touch()
            programs = Programs(worker=WORKER)
            async with running(settings, programs) as (target, client):
                deployment = Deployment(settings, programs, target, client, simulator)
                async with deployment.kept():
                    certifier = Certifier(wanted, goal, script, deployment, board, tell)
                    return await certifier.certify()


@contextmanager
def environment(folder: Path, more: Mapping[str, str]) -> Iterator[None]:
    """Let settings be those of a certificate, and temporary files be its own."""
    before = dict(os.environ)
    try:
        for name in before:
            if name.startswith(OTHERS):
                del os.environ[name]
        (folder / "tmp").mkdir()
        path = [str(PACKAGE.parent), before.get("PYTHONPATH", "")]
        os.environ |= {
            **more,
            "TMPDIR": str(folder / "tmp"),
            # A checkout is on no path.
            "PYTHONPATH": os.pathsep.join(filter(None, path)),
        }
        yield
    finally:
        os.environ.clear()
        os.environ |= before


def settings_for(wanted: Wanted, folder: Path, url: str) -> Settings:
    """Return the settings of the deployment: the project's own, with nothing that leads outside."""
    usual: dict[str, Any] = {
        "projects": (),
        "state_dir": folder / STATE,
        "anthropic_base_url": url,
        "anthropic_api_key": "scripted",
        "workers": 1,
        "rate": "",
        "in_flight": "",
        "metrics_port": 0,
        "most_dollars_day": None,
        "most_dollars_month": None,
        "webhook_secret": None,
    }
    if not wanted.cassette:
        # The simulator has the models that ship.
        usual |= {
            name: Settings.model_fields[name].default
            for name in ("model_haiku", "model_sonnet", "model_opus", "model_planner")
        }
        usual["capabilities"] = "auto"
    if not wanted.effects:
        nothing = folder / "mcp.json"
        nothing.write_text('{"mcpServers": {}}')
        usual |= {
            "mcp_file": nothing,
            "web_search": None,
            "endpoint_web": False,
            "python_sandbox": "",
        }
    return Settings(project=wanted.project, **usual)


@dataclass
class Certifier:
    """The certificate under way."""

    wanted: Wanted
    goal: Goal
    script: Mapping[str, Any]
    deployment: Deployment
    board: Board
    tell: Tell
    approved: int = 0
    number: int = 0
    limit: float = PLAIN_SECONDS
    """Seconds that a run may take."""

    async def certify(self) -> Certificate:
        """One run left alone, then all others."""
        began = time.monotonic()
        tools = tools_for(self.deployment.settings.project)
        plain = await self._plain(tools)
        self.tell(f"left alone: {plain.seconds:.1f} s")
        self.limit = max(LEAST_SECONDS, 10 * plain.seconds)
        timed = self.wanted.cassette is None
        chosen = choose(
            plain.noted, self.wanted.most, answers_take_time=timed, only=self.wanted.only
        )
        kills, not_reached = [], []
        for at, point in enumerate(chosen.points, start=1):
            seen, struck = await self._run(point)
            if not struck:
                not_reached.append(point)
                continue
            verdict = judge(seen, plain, tools, killed=True)
            kills.append(Struck(point.what, point.when, seen, verdict))
            self._say(f"{at}/{len(chosen.points)}", kills[-1])
        failures = [each async for each in self._failures(plain, tools)]
        called = {each.tool for each in plain.noted if each.tool}
        return Certificate(
            self.wanted,
            self.goal,
            plain,
            tools,
            tuple(sorted(name for name in called if self._is_recorded(tools.get(name)))),
            chosen,
            tuple(kills),
            tuple(not_reached),
            tuple(failures),
            self.approved,
            time.monotonic() - began,
        )

    def _is_recorded(self, tool: Tool | None) -> bool:
        # Only the worker's side may import what it is recorded with.
        if tool is None or self.wanted.effects:
            return False
        return tool.effects or bool(tool.sends_to(self.deployment.settings.key))

    def _say(self, number: str, one: Struck) -> None:
        wrong = "; ".join(one.verdict.wrong or one.verdict.again) or "holds"
        self.tell(f"{number} {one.what} {one.when}: {wrong} ({one.seen.seconds:.1f} s)")

    # ------------------------------------------------------------ the runs

    async def _plain(self, tools: Mapping[str, Tool]) -> Seen:
        """Return the run that is left alone. NotCertified if it is no measure for others."""
        seen, _ = await self._run(tools=tools)
        unheard = seen.charged.get("unheard", [])
        if unheard:
            lines = unheard[0].splitlines()
            new = (line[1:] for line in lines if line[:1] == "+" and line[:3] != "+++")
            first = next(new, unheard[0])
            raise Refused(
                f"--cassette {self.wanted.cassette}: it does not know"
                f" {len(unheard)} of the calls, the first with {one_line(first)[:150]!r}; record it"
                " again for this playbook and these inputs"
            )
        if seen.report is None:
            raise NotCertified(
                f"the run that is left alone was not over after {seen.seconds:.0f} s; nothing is"
                " certified"
            )
        if seen.report.status not in ("complete", "complete_with_gaps"):
            why = one_line("; ".join(reasons(seen.report)))[:300] or "without a reason"
            raise NotCertified(
                f"the run that is left alone ended {seen.report.status}: {why}; nothing is"
                " certified"
            )
        for name, seconds in self._open(seen.run_id, tools):
            raise _hangs(name, seconds)
        return seen

    async def _failures(self, plain: Seen, tools: Mapping[str, Tool]) -> AsyncIterator[Struck]:
        """Yield a run for each failure of the table, at each kind of call or at one in turn."""
        calls = [*dict.fromkeys(each["call"] for each in plain.charged["bodies"].values())]
        pairs = [
            (failure, call)
            for at, failure in enumerate(self._list_failures())
            for call in (calls if self.wanted.every_call else calls[at % len(calls or "-") :][:1])
        ]
        for at, (failure, call) in enumerate(pairs, start=1):
            if failure == REFUSED_CONNECTION:
                seen, _ = await self._run(refuses=True)
            else:
                rules = failing(quick(FAILURES[failure]), call, self.script.get("rules", ()))
                seen, _ = await self._run(script={**self.script, "rules": rules})
            verdict = judge(seen, plain, tools, killed=False)
            struck = Struck(failure, f"at {call}", seen, verdict)
            self._say(f"{at}/{len(pairs)}", struck)
            yield struck

    def _list_failures(self) -> tuple[str, ...]:
        """Return the table, without what a cassette cannot show: a late answer, or one that comes
        as it should not.
        """
        played = self.wanted.cassette is not None
        shown = (
            name
            for name, rule in FAILURES.items()
            if not (played and rule.get("fault") in DELIVERED)
        )
        return tuple(filter(self.wanted.only, (*shown, REFUSED_CONNECTION)))

    async def _run(
        self,
        point: Point | None = None,
        *,
        script: Mapping[str, Any] | None = None,
        refuses: bool = False,
        tools: Mapping[str, Tool] | None = None,
    ) -> tuple[Seen, bool]:
        """Return what was seen of one run, and whether the blow fell. `tools`: NotCertified as soon
        as a call of one hangs.
        """
        self.number += 1
        run_id = f"{NAME}-{self.number:03}"
        simulator = self.deployment.simulator
        await asyncio.to_thread(simulator.reset, script or self.script)
        if point:
            self.board.arm(run_id, point.place, holds=point.holds)
        connection = Connection(
            self.deployment.settings, self.deployment.target, self.deployment.client
        )
        began = time.monotonic()
        await launch(connection, self.goal, run_id)
        ending = asyncio.create_task(self._report(connection, run_id))
        beside = [asyncio.create_task(self._attend(connection, run_id))]
        if refuses:
            beside.append(asyncio.create_task(simulator.outage(OUTAGE_SECONDS)))
        try:
            struck = await self._strike(point, ending) if point else False
            report = await self._ended(ending, run_id, tools or {}, began)
        finally:
            await ended(*beside, ending)
        if simulator.process is None:
            await simulator.start()
        self.board.disarm()
        charged = await asyncio.to_thread(simulator.log)
        noted = self.board.read(run_id)
        seconds = time.monotonic() - began
        cap = self.goal.limits.dollars
        return Seen(run_id, report, cap, charged, noted, seconds), struck

    async def _report(self, connection: Connection, run_id: str) -> Report:
        try:
            return await self.deployment.result(connection.handle(run_id))
        except WorkflowFailureError as error:
            raise NotCertified(f"a run closed without a report: {why_of(error)}") from error

    async def _ended(
        self,
        ending: asyncio.Task[Report],
        run_id: str,
        tools: Mapping[str, Tool],
        began: float,
    ) -> Report | None:
        """Return the report; None if there is none in time, and then the run is ended."""
        while time.monotonic() < began + self.limit:
            done, _ = await asyncio.wait([ending], timeout=1.0)
            if done:
                return ending.result()
            if tools:
                self._refuse_hanging(run_id, tools)
        with suppress(RPCError):
            await self.deployment.client.get_workflow_handle(run_id).terminate("not over in time")
        return None

    def _refuse_hanging(self, run_id: str, tools: Mapping[str, Tool]) -> None:
        """Raise NotCertified for a call of a tool that has outlived its own limit."""
        silent = time.time() - self.board.written
        for name, seconds in self._open(run_id, tools):
            if silent > seconds + HANG_SECONDS:
                raise _hangs(name, seconds)

    def _open(self, run_id: str, tools: Mapping[str, Tool]) -> Iterator[tuple[str, float]]:
        """Yield the tools whose calls have not come back, and how long one may take."""
        noted = self.board.read(run_id)
        back = {each.key for each in noted if each.place.moment == "done"}
        for each in noted:
            if each.place.moment == "called" and each.key not in back:
                yield each.tool, tools[each.tool].seconds

    async def _strike(self, point: Point, ending: asyncio.Task[Report]) -> bool:
        """Kill what the point says when the run gets there; False if it ended before."""
        until = time.monotonic() + self.limit
        while not self.board.struck:
            if ending.done() or time.monotonic() > until:
                return False
            await asyncio.sleep(LOOK_SECONDS)
        if not point.holds:
            await asyncio.sleep(LATENCY / 2)
        self.deployment.kill(*point.victims)
        self.board.disarm()
        with suppress(HoldfastError):
            await self.deployment.revive()
        return True

    async def _attend(self, connection: Connection, run_id: str) -> None:
        """Let a run go on that waits for a person, in our name."""
        if self.goal.approval.when == "auto" and not self.goal.ask_people:
            return
        handle = connection.handle(run_id)
        while True:
            await asyncio.sleep(PERSON_SECONDS)
            for question in await waits_for(handle):
                name, order = answer_to(question, NAME)
                if await say(handle, name, order, ORDER_SECONDS) == "carried out":
                    self.approved += 1


def why_of(error: WorkflowFailureError) -> str:
    """Return why a run failed, as the call said it that ended it."""
    cause: BaseException = error.cause or error
    # Of these the message only says that a part failed.
    while isinstance(cause, ActivityError | ChildWorkflowError) and cause.cause:
        cause = cause.cause
    return one_line(str(getattr(cause, "message", cause)))[:300]


def _hangs(tool: str, seconds: float) -> NotCertified:
    return NotCertified(
        f"the tool {tool} hangs: a call did not come back within its {seconds:g} s; nothing is"
        " certified"
    )


def failing(rule: Json, call: str, rules: Sequence[Json]) -> list[Json]:
    """Return the rules of a script with a failure of the first such call. What is delivered all the
    same is the answer that the script has for it.
    """
    once = {**rule, "call": call, "first": 1}
    answers = rules if rule.get("fault") in DELIVERED else ()
    same = [
        {**each, **once}
        for each in answers
        if each.get("call", call) == call and not each.get("nth")
    ]
    return [*same, once, *rules]


def quick(rule: Json) -> dict[str, Any]:
    """Return a failure that asks for no long wait."""
    headers = {name: QUICK.get(name, value) for name, value in rule.get("headers", {}).items()}
    made = {**rule, **({"headers": headers} if headers else {})}
    return {**made, "seconds": PINGS_SECONDS} if rule.get("fault") == "slow_pings" else made
