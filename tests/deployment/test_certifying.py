"""What a certificate is made of, without processes: where blows fall, what is seen of tools, and
what counts as wrong. Whole certificates: tests/processes/test_certify.py.
"""

from __future__ import annotations

import asyncio
import io
import os
import signal
import socket
import sqlite3
import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
from temporalio.client import WorkflowFailureError
from temporalio.exceptions import ApplicationError
from temporalio.testing import ActivityEnvironment

from commanded import refused
from hands import Bench
from holdfast import Here, tool
from holdfast.activities.toolset.tool import Tool
from holdfast.certifying.board import Board, Moment, Noted, Place
from holdfast.certifying.certify import Certificate, Struck, Wanted, failing, quick, why_of
from holdfast.certifying.deployment import SIMULATOR
from holdfast.certifying.failures import FAILURES
from holdfast.certifying.guard import DONE, PREFIX, STATE, guarded, watch
from holdfast.certifying.instruments import noting_tools
from holdfast.certifying.judging import Seen, judge
from holdfast.certifying.page import render_page, summarise
from holdfast.certifying.points import Chosen, choose
from holdfast.certifying.watching import Watch, outside
from holdfast.cli.main import main
from holdfast.cli.screen.exits import Code
from holdfast.contracts import Gap, Goal, Plan, Report, Subtask
from holdfast.contracts.plans import MapSpec
from holdfast.deployment import extras
from holdfast.embedded import processes
from holdfast.history.payloads import activity_error, child_error
from holdfast.intake.goals import Wish
from holdfast.simulator import __main__ as simulator

pytestmark = pytest.mark.anyio


def noted(moment: Moment, step: str = "work-a-1", kind: str = "work", **more: str) -> Noted:
    return Noted("r", Place(moment, step, kind), **more)


def seen(*lines: Noted, **fields: Any) -> Seen:
    about: dict[str, Any] = {"status": "complete", "answer": "Yes", "goal": "g", "run_id": "r"}
    report = Report(**about | {"model_calls": 2, "dollars": Decimal("0.5")} | fields)
    charged = {"dollars": "0.5", "admitted": 2, "again": 0}
    return Seen("r", report, Decimal(2), charged, lines, 1.0)


@tool(effects=True, idempotent=False)
async def send(here: Here, to: str) -> str:
    """Send it."""
    raise AssertionError(f"sent to {to}")


@tool()
async def look(here: Here, at: str) -> str:
    """Look at it."""
    return f"looked at {at}"


TOOLS = {"send": send, "look": look}
AGAIN = "send wrote /srv/x again for one call"

# ---------------------------------------------------------------- where blows fall


def test_few_blows_are_spread_over_all_kinds_of_events_and_all_victims() -> None:
    lines = [
        noted(moment, f"{kind}-{number}", kind)
        for number in range(5)
        for kind in ("plan", "work", "use_tool")
        for moment in ("begins", "sent", "kept", "ends")
    ]
    few = choose(lines, 14, answers_take_time=True)
    assert (len(few.points), few.kinds, few.kinds_in_all, few.in_all) == (14, 14, 14, 210)
    assert str(few) == "14 of 210 points, 14 of 14 kinds of events"
    assert {each.victims for each in few.points} == {
        ("worker",),
        ("server",),
        ("server", "worker"),
    }
    fewer = choose(lines, 4, answers_take_time=False)
    assert len({(each.place.kind, each.place.moment) for each in fewer.points}) == 4
    every = choose(lines, None, answers_take_time=False)
    assert len(set(every.points)) == every.in_all == 180
    assert str(every) == "all 180 points"


# ---------------------------------------------------------------- what counts as wrong


def test_a_run_that_ends_as_the_plain_one_has_nothing_wrong() -> None:
    assert judge(seen(), seen(), TOOLS, killed=True).wrong == ()


def test_an_answer_that_had_arrived_and_was_asked_again_is_named() -> None:
    plain = seen(noted("sent", key="1"), noted("kept", key="1"))
    again = seen(
        *plain.noted, noted("sent", "work-a-2", key="2"), noted("kept", "work-a-2", key="2")
    )
    verdict = judge(again, plain, TOOLS, killed=True)
    assert verdict.wrong == ("work-a: its answer had arrived and was paid again",)
    assert verdict.paid_again == 1
    turns = seen(noted("sent", "turn-2", key="1"), noted("kept", "turn-2", key="1"))
    asked = "turn-again1-2"
    lost = seen(
        noted("sent", "turn-2", key="1"),
        noted("sent", asked, key="2"),
        noted("kept", asked, key="2"),
    )
    assert judge(lost, turns, TOOLS, killed=True).wrong == (), "an agent's turn that was lost"
    lost = seen(noted("sent", key="1"), noted("sent", "work-a-2", key="2"), *again.noted[-1:])
    assert judge(lost, plain, TOOLS, killed=True).wrong == (), "the first never arrived"


def test_rows_of_a_map_are_charged_in_dollars_and_no_calls_of_its_bill() -> None:
    each = Subtask(
        id="t", title="T", instruction="i", role="r", map=MapSpec(over="input", by="lines")
    )
    plan = Plan(goal="g", subtasks=(each,))
    assert judge(seen(model_calls=1, plan=plan), seen(), TOOLS, killed=True).wrong == ()
    less = seen(model_calls=1, plan=plan, dollars=Decimal("0.4"))
    assert judge(less, seen(), TOOLS, killed=True).wrong


@pytest.mark.parametrize(
    "fields, wrong",
    [
        ({"answer": "No"}, "another answer: without a reason"),
        ({"status": "failed", "notes": ("a bug",)}, "it ended failed: a bug"),
        ({"model_calls": 1}, "its bill says 1 calls, $0.500000; charged were 2, $0.5"),
        ({"dollars": Decimal("0.4")}, "its bill says 2 calls, $0.400000; charged were 2, $0.5"),
    ],
)
def test_a_killed_run_must_end_like_the_plain_one_with_its_whole_bill(
    fields: dict[str, Any], wrong: str
) -> None:
    assert judge(seen(**fields), seen(), TOOLS, killed=True).wrong == (wrong,)


def test_a_failed_endpoint_may_end_a_run_otherwise_if_the_report_says_why() -> None:
    gap = Gap(title="Answer", status="failed", why="401")
    for said in ({"gaps": (gap,)}, {"notes": ("one agent took it all",)}, {"stopped": "key"}):
        other = seen(status="complete_with_gaps", answer="No", **said)
        assert judge(other, seen(), TOOLS, killed=False).wrong == ()
    silent = seen(answer="No", notes=("as always",))
    assert judge(silent, seen(notes=("as always",)), TOOLS, killed=False).wrong == (
        "it ended complete with another answer, and does not say why",
    )


def test_a_charge_above_the_cap_and_a_run_that_does_not_end_are_wrong() -> None:
    small = replace(seen(), cap=Decimal("0.4"))
    assert judge(small, seen(), TOOLS, killed=True).over_cap
    endless = replace(seen(), report=None, seconds=90.0)
    assert judge(endless, seen(), TOOLS, killed=True).wrong == ("it was not over after 90 s",)


def used(moment: Moment, tool: str, key: str = "k1", about: str = "a") -> Noted:
    return noted(moment, "tool-1-1", "use_tool", tool=tool, key=key, about=about)


def test_effects_are_counted_by_key_and_what_may_have_run_must_be_said() -> None:
    plain = seen(used("called", "send"), used("done", "send"))
    twice = seen(*plain.noted, *plain.noted)
    assert judge(twice, plain, TOOLS, killed=True).wrong == (
        "send was carried out 2 times for one call",
    )
    anew = seen(*plain.noted, used("called", "send", "k2"), used("done", "send", "k2"))
    assert "called again, by another key" in judge(anew, plain, TOOLS, killed=True).wrong[0]
    lost = seen(used("called", "send"))
    assert judge(lost, plain, TOOLS, killed=True).wrong == (
        "send may have run, and the report does not say so",
    )
    note = "t1: send (Ada): it may have run, nobody knows, and it was not run again."
    said = seen(used("called", "send"), notes=(note,), answer="Perhaps")
    verdict = judge(said, plain, TOOLS, killed=True)
    assert (verdict.wrong, verdict.told) == ((), ("send: it may have run, as the report says",))


def test_a_tool_that_says_it_may_be_repeated_may_with_the_same_key_alone() -> None:
    tools = {"send": replace(send, idempotent=True)}
    plain = seen(used("called", "send"), used("done", "send"))
    verdict = judge(seen(used("called", "send"), *plain.noted), plain, tools, killed=True)
    assert verdict.wrong == () and "ran again with the same key" in verdict.told[0]


def test_what_a_tool_does_that_declares_nothing_is_wrong_and_twice_is_said() -> None:
    wrote = used("outside", "look", about="wrote /srv/x")
    plain = seen(wrote)
    [once] = judge(plain, plain, TOOLS, killed=True).wrong
    assert once.startswith("look wrote /srv/x; it declares no effect: say effects=True")
    [twice] = judge(seen(wrote, wrote), plain, TOOLS, killed=True).wrong
    assert twice.startswith("look wrote /srv/x, 2 times for one call")
    started = seen(used("outside", "look", about="started git"))
    assert judge(started, seen(), TOOLS, killed=True).wrong == (), "what it does is not seen"
    tools = {"look": replace(look, sends_to=lambda _: "a service")}
    reached = seen(used("outside", "look", about="reached 192.0.2.1:443"))
    assert judge(reached, seen(), tools, killed=True).wrong == ()
    assert len(judge(reached, seen(), TOOLS, killed=True).wrong) == 1


def test_effects_that_happen_again_are_counted_also_where_that_is_declared_harmless() -> None:
    tools = {"send": replace(send, idempotent=True)}
    wrote = used("outside", "send", about="wrote /srv/x")
    plain = seen(used("called", "send"), wrote, used("done", "send"))
    again = seen(used("called", "send"), wrote, *plain.noted)
    before = seen(used("called", "send"), *plain.noted)
    twice = seen(used("called", "send"), wrote, wrote, used("done", "send"))
    other = seen(*plain.noted, used("called", "send", "k2"), used("outside", "send", "k2", "x"))
    for run, said in ((plain, ()), (before, ()), (other, ()), (again, (AGAIN,))):
        verdict = judge(run, plain, tools, killed=True)
        assert (verdict.again, verdict.within) == (said, ()), run.noted
    within = judge(twice, twice, tools, killed=True)
    assert (within.again, within.within) == ((), ("send wrote /srv/x 2 times within one call",))
    assert judge(again, plain, TOOLS, killed=True).again == (), "which is wrong, and told so"
    kill = Struck("worker killed", "at a", again, judge(again, plain, tools, killed=True))
    wanted, chosen = Wanted(Wish(playbook="p"), "scripted"), Chosen((), 1, 1, 1)
    goal, kills = Goal(text="g"), (kill, kill)
    made = Certificate(wanted, goal, plain, tools, (), chosen, kills, (), (), 0, 9.0)
    page = render_page(made)
    head = "Certified, but for effects that happened again: 2 repeated by declaration (3 runs, 9 s)"
    assert summarise(made) == head
    assert "| effects repeated by declaration | 2 | 0 |" in page
    assert f"in 2 runs, as `idempotent=True` is the default: {AGAIN}" in page
    made = replace(made, plain=twice, kills=())
    assert "happened again: 1 within one call (1 run" in summarise(made)
    assert "within one call: send wrote /srv/x 2 times within" in render_page(made)
    assert summarise(replace(made, plain=plain)) == "Certified: all holds (1 run, 9 s)"


# ---------------------------------------------------------------- what is seen of tools


async def test_what_is_done_outside_is_seen_also_in_threads_and_what_is_private_is_not(
    tmp_path: Path,
) -> None:
    private, out = tmp_path / "private", tmp_path / "out"
    private.mkdir()
    out.mkdir()
    (out / "there").write_text("x")
    database = sqlite3.connect(out / "kept.db")
    database.execute("create table t (a)")
    database.close()
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
        told: list[str] = []
        with Watch(private).over(told.append):
            (private / "own").write_text("x")
            (out / "there").read_text()
            sqlite3.connect(out / "kept.db").close()
            assert told == []
            await asyncio.to_thread((out / "new").write_text, "x")
            (out / "new").rename(out / "newer")
            with sqlite3.connect(out / "kept.db") as database:
                database.execute("insert into t values (1)")
            database.close()
            socket.create_connection(("127.0.0.1", port)).close()
            await (await asyncio.create_subprocess_exec(sys.executable, "-c", "")).wait()
        (out / "later").write_text("x")
    program = Path(sys.executable).name
    assert told == [
        f"wrote {out / 'new'}",
        f"rename {out / 'new'}",
        f"reached 127.0.0.1:{port}",
        f"started {program}",
        f"wrote {out / 'kept.db'}",
    ]


async def test_threads_of_a_call_and_odd_ways_out_are_seen(tmp_path: Path) -> None:
    private = tmp_path / "private"
    shared = Path("/dev/shm") / f"holdfast-{os.getpid()}"
    told: list[str] = []
    cached = tmp_path / "__pycache__"
    cached.mkdir()
    with ThreadPoolExecutor(1) as pool:
        pool.submit(int).result()
        with Watch(private).over(told.append):
            thread = threading.Thread(target=(tmp_path / "thread").write_text, args=("x",))
            thread.start()
            thread.join()
            pool.submit((tmp_path / "pool").write_text, "x").result()
            (cached / "kept").write_text("x")
            (cached / "m.cpython-311.pyc").write_text("x")
            shared.write_text("x")
            shared.unlink()
            os.kill(os.getpid(), 0)
            database = sqlite3.connect(f"file:{tmp_path}/by%20uri.db", uri=True)
            with database:
                database.execute("create table t (a)")
            database.close()
        pool.submit((tmp_path / "later").write_text, "x").result()
    assert told == [
        f"wrote {tmp_path / 'thread'}",
        f"wrote {tmp_path / 'pool'}",
        f"wrote {cached / 'kept'}",
        f"wrote {shared}",
        f"remove {shared}",
        f"sent signal 0 to process {os.getpid()}",
        f"wrote {tmp_path / 'by uri.db'}",
    ]
    assert outside("socket.getaddrinfo", ("secret.example", 443), "") == (
        "reached the name server for secret.example"
    )
    assert outside("socket.getaddrinfo", ("127.0.0.1", 443), "") == ""


async def test_a_noted_tool_is_the_same_to_models_and_one_with_effects_is_not_run(
    tmp_path: Path,
) -> None:
    board = Board.of(tmp_path)
    made = noting_tools(TOOLS, board, tmp_path, lambda _: "")
    assert [each.spec for each in made.values()] == [each.spec for each in TOOLS.values()]
    assert "arguments do not fit" in made["look"].find_misfits({"at": 1})

    async def use(tool: Tool, **arguments: str) -> str:
        return (await Bench().use(tool, **arguments)).text

    environment = ActivityEnvironment()
    environment.info = replace(environment.info, workflow_id="r.t1.1", activity_id="tool-1-1")
    said = await environment.run(use, made["look"], at="it")
    assert said == "looked at it"
    assert await environment.run(use, made["send"], to="Ada") == (
        "(certify) the call of send was recorded, and not made."
    )
    lines = board.read("r")
    assert [(each.place.moment, each.tool) for each in lines] == [
        ("called", "look"),
        ("done", "look"),
        ("called", "send"),
        ("done", "send"),
    ]
    assert {each.place.part for each in lines} == {"t1.1"}


# ---------------------------------------------------------------- what is left of it


def test_told_to_end_it_ends_what_it_has_begun_as_at_ctrl_c(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    cleared = []

    async def begun(*_: object) -> None:
        try:
            os.kill(os.getpid(), signal.SIGTERM)
            await asyncio.sleep(60)
        finally:
            cleared.append(True)

    monkeypatch.setattr("holdfast.certifying.certify.certify", begun)
    assert main(["certify", "tech-support"]) == Code.LEFT
    assert cleared == [True]


def test_what_a_certifier_leaves_that_is_gone_is_cleared_away(tmp_path: Path) -> None:
    folder = tmp_path / f"{PREFIX}x"
    state = folder / STATE
    state.mkdir(parents=True, mode=0o700)
    program = [sys.executable, "-Sc", "import time; time.sleep(60)", "--embedded", str(state)]
    lock = os.open(folder / "lock", os.O_RDWR | os.O_CREAT)
    worker = processes.spawn(program, state / "worker.pid", state / "log", {}, lock)
    os.close(lock)
    with guarded(folder):
        pass
    watch(io.BytesIO(DONE), folder)
    assert worker.poll() is None and folder.exists(), "what says that it is done clears away itself"
    watch(io.BytesIO(b""), folder)
    assert worker.wait(5) and not folder.exists()


def test_the_simulator_of_a_certificate_ends_with_its_certifier(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    reading, writing = os.pipe()
    os.close(writing)
    with os.fdopen(reading) as ended:
        monkeypatch.setattr(sys, "stdin", ended)
        monkeypatch.setattr(sys, "argv", [*SIMULATOR[1:]])
        assert simulator.main() == 0


# ---------------------------------------------------------------- failures, bad input


def test_each_failure_meets_the_first_such_call_and_asks_for_no_long_wait() -> None:
    answer = {"call": "work", "text": "tea", "result": "Tea."}
    rules = [answer, {"call": "plan"}]
    once = {"status": 503, "headers": {"retry-after": "1"}, "call": "work", "first": 1}
    assert failing(quick(FAILURES["503 with retry-after: 20"]), "work", rules) == [once, *rules]
    late, *_ = failing(quick(FAILURES["pings past the deadline"]), "work", rules)
    assert late == {**answer, "fault": "slow_pings", "seconds": 5.0, "first": 1}


@pytest.mark.parametrize(
    "line, said",
    [
        ("certify nope", "unknown playbook 'nope'; known: "),
        ("certify code-review", "--input repo"),
        ("certify tech-support --script a --cassette b", "answers come from one of them"),
        ("certify tech-support --cassette none.yaml", "none.yaml'; record it"),
    ],
)
def test_what_cannot_be_certified_is_said_in_one_line(
    line: str, said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    told = refused(capsys, line)
    assert said in told and "\n" not in told.strip()


def test_without_its_packages_it_says_what_to_install(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(extras, "lacking", lambda _: "needs packages that are not installed: pip")
    told = refused(capsys, "certify tech-support")
    assert told.strip() == "certify needs packages that are not installed: pip"


def test_a_run_that_closes_without_a_report_says_why_and_not_that_a_part_failed() -> None:
    refusal = ApplicationError("the plan is not valid: no instruction", type="Refused")
    within = activity_error("prepare-1", 5, 6, refusal)
    for cause in (refusal, within, child_error(3, within)):
        assert why_of(WorkflowFailureError(cause=cause)) == "the plan is not valid: no instruction"
