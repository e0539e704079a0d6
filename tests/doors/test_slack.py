"""Slack: what is said there starts one run, its thread is a view of it, its buttons are orders."""

from __future__ import annotations

import asyncio
import json
import logging
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from decimal import Decimal
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

import pytest

from conftest import Runs, folded, seen
from holdfast.client.runs import Run
from holdfast.contracts.search import RUNS
from holdfast.deployment.settings import Settings
from holdfast.doors.slack import door as doors
from holdfast.doors.slack import workspace
from holdfast.doors.slack.following import SETTLED_CALL
from holdfast.doors.slack.places import of_mention
from holdfast.doors.slack.serving import Secrets, serve
from holdfast.doors.slack.workspace import Rate, Revoked
from holdfast.intake.connection import Connection
from scripted import ScriptedModel, plans, subtask, synthesizes, works
from slack_stand_in import ADA, APP_TOKEN, BOT_TOKEN, BOT_USER, EVE, SECRET, Slack, slack

pytestmark = pytest.mark.anyio
FILE = f"""
[slack.CHANNEL]
people = ["{ADA}"]
dollars = 1
raise_to = 3
"""
ANSWER = "The rate rose to **2.5**. <!channel> [here](https://e.vil)"
ASKS = works("", status="escalate", reason="ambiguous_input", why="Which bank?")
SECRETS = Secrets(BOT_TOKEN, APP_TOKEN, SECRET)


@dataclass
class Stand:
    """A workspace, and a door that may be opened and closed there."""

    slack: Slack
    connection: Connection
    runs: Runs
    model: ScriptedModel
    told: list[str] = field(default_factory=list)

    @asynccontextmanager
    async def door(self, port: int | None = None) -> AsyncIterator[asyncio.Task[None]]:
        """Stand at the door until the block is left, as if it were killed then."""
        self.told.clear()
        self.slack.connected.clear()
        serving = asyncio.create_task(
            serve(self.connection, SECRETS, port, self.told.append, f"{self.slack.address}/api/")
        )
        try:
            await self.slack.until(lambda: serving.done() or self.told)
            yield serving
        finally:
            serving.cancel()
            await asyncio.gather(serving, return_exceptions=True)

    @property
    def url(self) -> str:
        """Return where an open door takes requests."""
        return next(word for word in self.told[-1].split() if word.startswith("http")).rstrip(",")

    def run_of(self, event: dict[str, Any]) -> Run:
        place = of_mention(
            self.slack.channel, event["event"]["ts"], event["event"].get("thread_ts", "")
        )
        assert place
        self.runs.handles.append(self.connection.handle(place.run_id))
        return Run(self.connection, place.run_id)

    async def part(
        self, event: dict[str, Any], part: str, has: Callable[[str], object] = bool
    ) -> dict[str, Any]:
        """Return a part of the thread of a message, once its blocks say something."""

        def found() -> dict[str, Any] | None:
            parts = self.slack.part(event["event"]["ts"], part)
            return parts[0] if parts and has(json.dumps(parts[0], ensure_ascii=False)) else None

        made: dict[str, Any] = await self.slack.until(found)
        return made

    async def count(self) -> int:
        query = f"{RUNS} AND TaskQueue = '{self.runs.queue}'"
        return (await self.runs.client.count_workflows(query)).count


def model() -> ScriptedModel:
    return ScriptedModel(
        {
            "plan": [plans(subtask("t1"), subtask("t2", "t1"))] * 5,
            "t1": [works("2.0, then 2.5")] * 5,
            "t2": [works("it rose")] * 5,
            "synthesize": [synthesizes(ANSWER)] * 5,
        }
    )


@pytest.fixture
async def stand(
    connection: Connection, runs: Runs, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> AsyncIterator[Stand]:
    folder = tmp_path / "shop"
    folder.mkdir()
    monkeypatch.setenv("HOLDFAST_PROJECT", str(folder))
    # Tests wait for no minute of Slack's.
    fast = {name: Rate(0.02, rate.burst) for name, rate in workspace.RATES.items()}
    monkeypatch.setattr(workspace, "RATES", fast)
    monkeypatch.setattr("holdfast.doors.slack.following.FIRST_PAUSE", 0.05)
    monkeypatch.setattr("holdfast.doors.slack.door.SCAN_SECONDS", 3.0)
    async with slack() as slack_:
        (folder / "holdfast.toml").write_text(FILE.replace("CHANNEL", slack_.channel))
        settings = Settings(project=folder, state_dir=connection.settings.state_dir)
        ours = Connection(settings, connection.target, connection.client)
        asked = model()
        async with runs.worker(asked, projects=(folder,)):
            with runs.env.with_time_skipping_disabled():
                yield Stand(slack_, ours, runs, asked)


async def test_a_mention_starts_one_run_whose_thread_shows_it_from_plan_to_report(
    stand: Stand,
) -> None:
    async with stand.door():
        said = stand.slack.write(f"<@{BOT_USER}> Which rates changed? A &lt; B")
        for retry in range(3):
            assert await stand.slack.event(said, retry) == {}
        run = stand.run_of(said)
        board = await stand.part(said, "board", lambda text: "holdfast_approve" in text)
        shown = json.dumps(board["blocks"], ensure_ascii=False)
        assert "Which rates changed? A < B" in shown and "t1" in shown and "Expected: " in shown
        assert "of at most $1.00" in shown and "Raise the cap" in shown
        ts = said["event"]["ts"]
        (ask,) = await stand.slack.until(
            lambda: [each for each in stand.slack.thread(ts) if each["text"].startswith("<@")]
        )
        assert f"<@{ADA}> The plan waits for approval" in ask["text"]
        assert await stand.slack.interact(stand.slack.press(board, "approve")) == {}
        report = await stand.part(said, "report")
        assert ask["text"] == SETTLED_CALL
        last = await stand.part(said, "board", lambda text: "holdfast_" not in text)
    assert "Complete" in json.dumps(last) and f"slack:{ADA} (Ada)" in json.dumps(last)
    answer = json.dumps(report["blocks"])
    assert "*2.5*" in answer and "&lt;!channel&gt; here (https://e.vil)" in answer
    assert len(stand.slack.thread(ts)) == 3 and await stand.count() == 1
    state = await folded(stand.connection.handle(run.id))
    assert state is not None and state.goal.requester == f"slack:{ADA} (Ada)"
    assert [(each.command, each.order.by) for each in state.orders] == [
        ("approve", f"slack:{ADA} (Ada)")
    ]
    assert (await run.report()).status == "complete"


async def test_a_command_over_http_is_rejected_with_words_by_those_alone_who_may(
    stand: Stand,
) -> None:
    async with stand.door(port=0):
        workspace_ = stand.slack
        url = stand.url
        for channel, person, why in (
            ("C0OTHER", ADA, "This channel starts no runs"),
            ("", EVE, "not one of those who may start"),
        ):
            typed = workspace_.command("Which rates changed?", person, channel)
            status, said = await workspace_.post(url, urlencode(typed))
            assert status == 200 and why in said
        assert await stand.count() == 0
        body = urlencode(workspace_.command("Which rates changed?"))
        for _ in range(2):
            assert await workspace_.post(url, body) == (200, "")
        root = await workspace_.until(
            lambda: next((m for m in workspace_.messages if "asks: " in m["text"]), None)
        )
        event = {"event": root}
        board = await stand.part(event, "board", lambda text: "holdfast_reject" in text)
        run_id = root["metadata"]["event_payload"]["run"]
        stand.runs.handles.append(stand.connection.handle(run_id))
        pressed = workspace_.press(board, "reject", EVE)
        assert (await workspace_.post(url, workspace_.as_form(pressed)))[0] == 200
        (told,) = await workspace_.until(lambda: workspace_.ephemeral)
        assert told["user"] == EVE and "not one of those who may decide" in told["text"]
        pressed = workspace_.press(board, "reject")
        assert (await workspace_.post(url, workspace_.as_form(pressed)))[0] == 200
        (dialog,) = await workspace_.until(lambda: workspace_.dialogs)
        sent = workspace_.submit(dialog, {"text": "too dear"}, EVE)
        assert "who may decide" in (await workspace_.post(url, workspace_.as_form(sent)))[1]
        sent = workspace_.submit(dialog, {"text": "too dear"})
        assert await workspace_.post(url, workspace_.as_form(sent)) == (200, "")
        report = await stand.part(event, "report")
        assert "Declined" in json.dumps(report)
        # The dialog again, of a plan that is decided.
        workspace_.ephemeral.clear()
        await workspace_.post(url, workspace_.as_form(sent))
        (told,) = await workspace_.until(lambda: workspace_.ephemeral)
        assert doors.OUTDATED in told["text"] or "is over" in told["text"]
    state = await folded(stand.connection.handle(run_id))
    assert state is not None
    assert [(each.order.text, each.order.by) for each in state.orders] == [
        ("too dear", f"slack:{ADA} (Ada)")
    ]
    assert await stand.count() == 1


@pytest.mark.long
async def test_a_door_that_was_killed_catches_up_also_in_a_thread_that_was_deleted(
    stand: Stand,
) -> None:
    asked = [stand.slack.write(f"<@{BOT_USER}> Which rates changed?") for _ in range(3)]
    async with stand.door():
        for said in asked:
            await stand.slack.event(said)
            await stand.part(said, "board", lambda text: "holdfast_approve" in text)
    kept, lost, over = map(stand.run_of, asked)
    for run in (kept, over):
        await run.approve(by="a terminal")
        assert (await run.report()).status == "complete"
    for said in asked[1:]:
        ts = said["event"]["ts"]
        for each in (*stand.slack.thread(ts), said["event"]):
            stand.slack.delete(each["ts"])
    async with stand.door(), stand.door():
        report = await stand.part(asked[0], "report")
        assert "Complete" in json.dumps(report)
        root = await stand.slack.until(
            lambda: next((m for m in stand.slack.messages if "was deleted" in m["text"]), None)
        )
        board = await stand.part({"event": root}, "board", lambda text: "holdfast_" in text)
        await stand.slack.interact(stand.slack.press(board, "approve"))
        assert (await lost.report()).status == "complete"
        await stand.part({"event": root}, "report")
        # Two doors may have posted the same: the later one is taken away.
        await stand.slack.until(lambda: all(map(stand.slack.is_single, (asked[0]["event"], root))))
    assert over.id not in json.dumps(stand.slack.messages), "of what is over it stays deleted"
    (board,) = stand.slack.part(asked[0]["event"]["ts"], "board")
    assert "a terminal" in json.dumps(board) and "holdfast_" not in json.dumps(board["blocks"])


async def test_what_is_not_signed_or_is_nothing_that_slack_sends_starts_nothing(
    stand: Stand,
) -> None:
    async with stand.door(port=0):
        event = json.dumps(stand.slack.write(f"<@{BOT_USER}> Which rates changed?"))
        # A door that has just come up looks for what it missed, and would be right to start this.
        written = [stand.slack.messages.pop()]
        signed, given = Slack.signed(event), Slack.signed
        at, name = "X-Slack-Request-Timestamp", "X-Slack-Signature"
        for body, headers, code in (
            (event, {}, 401),
            (event, given(event, secret="another"), 401),
            (event, given(event, age=301), 401),
            (event, given(event, age=-400), 401),
            (event + " ", signed, 401),
            (event, {**signed, at: "nan"}, 401),
            (event, {**signed, at: "9" * 400}, 401),
            (event, {**signed, name: "v0="}, 401),
            ("[1]", given("[1]"), 404),
            ("{", given("{"), 400),
            ("payload=[1]", given("payload=[1]"), 400),
            ('{"authorizations": [1]}', given('{"authorizations": [1]}'), 400),
            ('{"type": "event_callback"}', given('{"type": "event_callback"}'), 404),
        ):
            assert (await stand.slack.post(stand.url, body, headers))[0] == code, body
        assert await stand.count() == 0 and not stand.slack.thread("")
        challenge = json.dumps({"type": "url_verification", "challenge": "3eZ"})
        assert "3eZ" in (await stand.slack.post(stand.url, challenge))[1]
        retried = {"X-Slack-Retry-Num": "1", "X-Slack-Retry-Reason": "http_timeout"}
        stand.slack.messages += written
        for headers in (signed, {**signed, **retried}):
            await stand.slack.post_again(stand.url, event, headers)
        said = {"event": json.loads(event)["event"]}
        await stand.part(said, "board")
        assert await stand.count() == 1
    stand.run_of(said)


async def test_an_agent_that_asks_is_answered_in_a_dialog(stand: Stand) -> None:
    stand.model._left["t1"].appendleft(ASKS)
    async with stand.door():
        said = stand.slack.write(f"<@{BOT_USER}> Which rates changed?")
        await stand.slack.event(said)
        run = stand.run_of(said)
        board = await stand.part(said, "board", lambda text: "holdfast_approve" in text)
        await stand.slack.interact(stand.slack.press(board, "approve"))
        board = await stand.part(said, "board", lambda text: "holdfast_answer" in text)
        assert "t1 asks: ambiguous input: Which bank?" in json.dumps(board["blocks"])
        # Slack closes a connection now and then.
        await stand.slack.sockets[-1].send_json({"type": "disconnect", "reason": "refresh"})
        await stand.slack.until(lambda: stand.slack.calls["apps.connections.open"] > 1)
        await stand.slack.until(lambda: len(stand.slack.sockets) == 1)
        await stand.slack.interact(stand.slack.press(board, "answer"))
        (dialog,) = await stand.slack.until(lambda: stand.slack.dialogs)
        refused = await stand.slack.interact(stand.slack.submit(dialog, {}))
        assert refused["errors"] == {"text": "This needs words."}
        sent = stand.slack.submit(dialog, {"text": "The one in the north."})
        assert await stand.slack.interact(sent) == {}
        await stand.part(said, "report")
        state = await folded(stand.connection.handle(run.id))
    assert state is not None
    (_, answer) = state.orders
    assert (answer.command, answer.order.text) == ("answer", "The one in the north.")
    assert answer.order.by == f"slack:{ADA} (Ada)"


@pytest.mark.long
async def test_limits_and_lost_answers_of_slack_double_nothing_and_lose_nothing(
    stand: Stand,
) -> None:
    stand.slack.failures |= {
        "chat.postMessage": ["lost", 429, 503],
        "chat.update": ["internal_error", "lost"],
        "conversations.replies": ["lost", "fatal_error"],
        "users.info": ["internal_error"],
    }
    async with stand.door():
        said = stand.slack.write(f"<@{BOT_USER}> Which rates changed?")
        await stand.slack.event(said)
        board = await stand.part(said, "board", lambda text: "holdfast_approve" in text)
        stand.slack.limits["chat.update"] = (1, 1.0)
        await stand.slack.interact(stand.slack.press(board, "approve"))
        await stand.part(said, "report")
    assert not any(stand.slack.failures.values())
    ts = said["event"]["ts"]
    assert stand.slack.is_single(said["event"])
    (board,) = stand.slack.part(ts, "board")
    assert "holdfast_" not in json.dumps(board["blocks"]) and stand.slack.part(ts, "report")
    stand.run_of(said)


async def test_a_token_that_is_revoked_ends_the_command_with_a_line(stand: Stand) -> None:
    async with stand.door() as serving:
        stand.slack.revoked = True
        said = stand.slack.write(f"<@{BOT_USER}> Which rates changed?")
        # Nobody may be there any more to acknowledge it.
        with suppress(TimeoutError):
            await stand.slack.deliver("events_api", said)
        run = stand.run_of(said)
        with pytest.raises(Revoked, match=r"SLACK_BOT_TOKEN \(token_revoked\)"):
            async with asyncio.timeout(20):
                await serving
    async with stand.door() as serving:
        with pytest.raises(Revoked, match="install the app again"):
            await serving
    await seen(stand.connection.handle(run.id), lambda view: view.phase == "approval")


async def test_a_question_is_answered_and_a_cap_raised_within_what_the_channel_allows(
    stand: Stand,
) -> None:
    async with stand.door():
        said = stand.slack.write(f"<@{BOT_USER}> Ask me")
        await stand.slack.event(said)
        run = stand.run_of(said)
        board = await stand.part(said, "board", lambda text: "holdfast_approve" in text)
        await stand.slack.interact(stand.slack.press(board, "raise"))
        (dialog,) = await stand.slack.until(lambda: stand.slack.dialogs)
        for wrong, why in (("3.01", "$3.00 at most"), ("x", "not an amount")):
            refused = await stand.slack.interact(stand.slack.submit(dialog, {"dollars": wrong}))
            assert why in refused["errors"]["dollars"]
        assert await stand.slack.interact(stand.slack.submit(dialog, {"dollars": "$2.5"})) == {}
        assert (await run.look()).dollars_cap == Decimal("2.5"), "it is done when Slack is answered"
        await stand.part(said, "board", lambda text: "of at most $2.50" in text)
        outdated = stand.slack.press(board, "approve")
        await stand.slack.interact(outdated)
        await seen(stand.connection.handle(run.id), lambda view: view.phase != "approval")
        await stand.slack.interact(outdated)
        (told,) = await stand.slack.until(lambda: stand.slack.ephemeral)
        assert told["text"] == doors.OUTDATED
        await stand.slack.interact(stand.slack.press(board, "cancel"))
        await stand.part(said, "report", lambda text: "Cancelled" in text or "Complete" in text)


@pytest.mark.long
async def test_a_mention_that_no_door_has_started_is_started_by_the_next(stand: Stand) -> None:
    missed = stand.slack.write(f"<@{BOT_USER}> Which rates changed?")
    stand.slack.write("Nobody is asked here.")
    stand.slack.slow["users.info"] = 2.5
    async with stand.door() as serving:
        await stand.part(missed, "board")
        late = stand.slack.write(f"<@{BOT_USER}> Which rates fell?")
        with pytest.raises(TimeoutError):
            await stand.slack.deliver("events_api", late)
        serving.cancel()
        await asyncio.gather(serving, return_exceptions=True)
        assert await stand.count() == 2, "what was begun is finished"
    async with stand.door():
        for each in (missed, late):
            await stand.slack.event(each, 1)
            await stand.part(each, "board")
            stand.run_of(each)
    assert await stand.count() == 2


@pytest.mark.long
async def test_a_dialog_that_was_altered_decides_nothing_else(stand: Stand) -> None:
    async with stand.door():
        said = stand.slack.write(f"<@{BOT_USER}> Which rates changed?")
        await stand.slack.event(said)
        run = stand.run_of(said)
        board = await stand.part(said, "board", lambda text: "holdfast_reject" in text)
        await stand.slack.interact(stand.slack.press(board, "raise"))
        (dialog,) = await stand.slack.until(lambda: stand.slack.dialogs)
        sent = stand.slack.submit(dialog, {"dollars": "5000"})
        sent["view"]["callback_id"] = "holdfast_reject"
        chosen = {"value": {"type": "static_select", "selected_option": {"value": "raise"}}}
        sent["view"]["state"]["values"]["choice"] = chosen
        await stand.slack.interact(sent)
        (told,) = await stand.slack.until(lambda: stand.slack.ephemeral)
        assert told["text"] == doors.OUTDATED
        assert (await run.look()).dollars_cap == 1


async def test_who_is_taken_out_of_the_file_decides_nothing_from_then_on(stand: Stand) -> None:
    folder = stand.connection.settings.project
    assert folder is not None
    file = folder / "holdfast.toml"
    async with stand.door():
        said = stand.slack.write(f"<@{BOT_USER}> Which rates changed?")
        await stand.slack.event(said)
        run = stand.run_of(said)
        board = await stand.part(said, "board", lambda text: "holdfast_approve" in text)
        for text, why in (
            (file.read_text().replace(ADA, EVE), "not one of those who may decide"),
            ("[slack", "holdfast.toml cannot be used at the moment"),
        ):
            file.write_text(text)
            stand.slack.ephemeral.clear()
            await stand.slack.interact(stand.slack.press(board, "approve"))
            (told,) = await stand.slack.until(lambda: stand.slack.ephemeral)
            assert why in told["text"]
        assert (await run.look()).phase == "approval"
    assert logging.getLogger("holdfast.slack").isEnabledFor(logging.WARNING), "the SDK's is its own"


@pytest.mark.long
async def test_a_run_that_no_list_told_of_while_it_was_open_is_told_once_it_has_ended(
    stand: Stand, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with stand.door():
        said = stand.slack.write(f"<@{BOT_USER}> Which rates changed?")
        await stand.slack.event(said)
        await stand.part(said, "board", lambda text: "holdfast_approve" in text)
    real, looks = doors.Door._list, 0

    async def late(door: doors.Door, which: str) -> AsyncIterator[str]:
        """List as a server whose lists lag: at the first look it tells of nothing."""
        nonlocal looks
        looks += which.startswith("ExecutionStatus != ")
        if looks > 1 and which.startswith("ExecutionStatus != "):
            async for each in real(door, which):
                yield each

    monkeypatch.setattr(doors.Door, "_list", late)
    monkeypatch.setattr("holdfast.doors.slack.door.SCAN_SECONDS", 0.3)
    async with stand.door():
        await stand.run_of(said).approve(by="a terminal")
        await stand.part(said, "report")
    assert looks > 1


@pytest.mark.long
async def test_the_thread_of_a_command_is_found_again_in_a_busy_channel(stand: Stand) -> None:
    async with stand.door():
        assert await stand.slack.slash(stand.slack.command("Which rates changed?")) == {}
        root = await stand.slack.until(
            lambda: next((m for m in stand.slack.messages if "asks: " in m["text"]), None)
        )
        await stand.part({"event": root}, "board", lambda text: "holdfast_approve" in text)
    run = Run(stand.connection, root["metadata"]["event_payload"]["run"])
    stand.runs.handles.append(stand.connection.handle(run.id))
    late = int(root["ts"].partition(".")[0]) + 4_000
    stand.slack.messages += [
        {"ts": f"{late + n}.000001", "user": EVE, "text": "Lunch?", "channel": stand.slack.channel}
        for n in range(1_100)
    ]
    async with stand.door():
        await run.approve(by="a terminal")
        await stand.part({"event": root}, "report")
    assert stand.slack.is_single(root)
    assert sum("asks: " in m["text"] for m in stand.slack.messages) == 1
