"""What a worker held that died is handed back by the next one of its machine, at once."""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
import time
import uuid
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from temporalio import activity, workflow
from temporalio.client import Client, WorkflowFailureError
from temporalio.common import RetryPolicy
from temporalio.testing import WorkflowEnvironment
from temporalio.worker import UnsandboxedWorkflowRunner, Worker

from holdfast.activities.asking.journal import FileJournal
from holdfast.contracts import Bill, policies
from holdfast.contracts.errors import AnswerLost, OrchestrationError, WorkerDied
from holdfast.deployment.settings import HOME
from holdfast.embedded import private
from holdfast.temporal.connection import plugin
from holdfast.workers.held import Attempt, Held, LeftBehind, hand_back, hand_back_given
from holdfast.workers.noting import DIED, Sent
from parameters import rest_long

HEARTBEAT = timedelta(seconds=60)
TRIES = 2
"""Attempts that the activity has."""
PLAIN = UnsandboxedWorkflowRunner()
DIES = """
import asyncio, sys
from pathlib import Path
from temporalio import activity
from temporalio.client import Client
from temporalio.worker import ActivityInboundInterceptor, Interceptor, Worker
from holdfast.activities.asking.journal import FileJournal
from holdfast.workers.held import Held
from holdfast.workers.noting import Sent, note_sent

async def stop() -> str:
    print("took it", flush=True)
    await asyncio.Event().wait()
    return "never"

@activity.defn(name="work")
async def work() -> str:
    if sys.argv[4] == "sent":
        await FileJournal(Path(sys.argv[5])).mark_sent("the call")
        note_sent(Sent("the call", "claude-haiku-5-5"))
    return await stop()

class Stops(ActivityInboundInterceptor):
    async def execute_activity(self, input):
        return await stop()

class Before(Interceptor):
    def intercept_activity(self, next):
        return Stops(next)

async def main() -> None:
    held = Held(Path(sys.argv[3]))
    client = await Client.connect(sys.argv[1], identity=held.identity)
    around = [Before(), held] if sys.argv[4] == "given" else [held]
    async with Worker(client, task_queue=sys.argv[2], activities=[work], interceptors=around):
        await asyncio.Event().wait()

asyncio.run(main())
"""


DEATHS = 4
"""Workers in a row that die with an attempt which they had begun."""


@activity.defn(name="work")
async def work() -> str:
    return f"attempt {activity.info().attempt}"


@activity.defn(name="work")
async def fail() -> None:
    raise RuntimeError(f"attempt {activity.info().attempt} fails")


@workflow.defn
class Waits:
    """One activity whose loss would show by its heartbeat only after a minute."""

    @workflow.run
    async def run(self, tries: int) -> str:
        result: str = await workflow.execute_activity(
            "work",
            start_to_close_timeout=timedelta(hours=1),
            heartbeat_timeout=HEARTBEAT,
            retry_policy=RetryPolicy(maximum_attempts=tries),
        )
        return result


@pytest.mark.anyio
@pytest.mark.parametrize("how", rest_long(["sent", "begun", "given"]))
async def test_what_a_killed_worker_held_or_was_given_goes_on_at_once(
    env: WorkflowEnvironment, tmp_path: Path, how: str
) -> None:
    queue, folder = f"held-{uuid.uuid4().hex[:8]}", tmp_path / "held"
    journal = FileJournal(tmp_path / "journal")
    config = env.client.config()
    config["plugins"] = [plugin(None)]
    client = Client(**config)
    address = client.service_client.config.target_host
    command = sys.executable, "-c", DIES, address, queue, str(folder), how, tmp_path / "journal"
    with env.with_time_skipping_disabled():
        async with Worker(client, task_queue=queue, workflows=[Waits], workflow_runner=PLAIN):
            # What never began has as many attempts as workers die, and what asks no model enough.
            tries = policies.PREPARE.attempts if how == "begun" else TRIES
            deaths = {"sent": 1, "begun": DEATHS, "given": TRIES + 1}[how]
            handle = await client.start_workflow(
                "Waits", tries, id=queue, task_queue=queue, result_type=str
            )
            for _ in range(deaths):
                process = await asyncio.create_subprocess_exec(
                    *command, cwd=HOME, stdout=subprocess.PIPE
                )
                assert process.stdout is not None
                assert await process.stdout.readline() == b"took it\n"
                assert await hand_back(client, folder, journal) == LeftBehind(), "it lives"
                process.kill()
                await process.communicate()
                began = time.monotonic()
                lost = await hand_back(client, folder, journal)
                assert len(lost.attempts) == (how != "given")
                given = await hand_back_given(client, queue, lost)
                assert given == (how == "given")
            if how == "sent":
                # No attempt is needed to find that it is lost: nobody serves it here.
                with pytest.raises(WorkflowFailureError) as failed:
                    await handle.result()
                assert failed.value.cause is not None and DIED in str(failed.value.cause.__cause__)
            else:
                async with Worker(client, task_queue=queue, activities=[work]):
                    attempt = DEATHS + 1 if how == "begun" else 2
                    assert await handle.result() == f"attempt {attempt}"
    assert time.monotonic() - began < HEARTBEAT.total_seconds() / 2
    assert list(folder.iterdir()) == [], "it is handed back once"


@pytest.mark.anyio
async def test_what_fails_by_itself_ends_at_its_third_attempt(env: WorkflowEnvironment) -> None:
    queue = f"held-{uuid.uuid4().hex[:8]}"
    config = env.client.config()
    config["plugins"] = [plugin(None)]
    client = Client(**config)
    options: dict[str, Any] = {"workflows": [Waits], "workflow_runner": PLAIN}
    async with Worker(client, task_queue=queue, activities=[fail], **options):
        tries = policies.PREPARE.attempts
        handle = await client.start_workflow("Waits", tries, id=queue, task_queue=queue)
        with pytest.raises(WorkflowFailureError) as failed:
            await handle.result()
    assert failed.value.cause is not None
    assert "attempt 3 fails" in str(failed.value.cause.__cause__)


class Silent:
    """A client that notes what it was told."""

    namespace = "default"

    def __init__(self) -> None:
        self.failed: list[bytes] = []
        self.errors: dict[bytes, OrchestrationError] = {}

    @property
    def workflow_service(self) -> Silent:
        return self

    async def reset_sticky_task_queue(self, *_: object, **__: object) -> None:
        """Nobody waits."""

    def get_async_activity_handle(self, *, task_token: bytes) -> Any:
        told, errors = self.failed, self.errors

        class Handle:
            async def fail(self, error: OrchestrationError, **_: object) -> None:
                told.append(task_token)
                errors[task_token] = error

        return Handle()


def dead(held: Held) -> None:
    """As the kernel leaves the file of a process that was killed."""
    os.close(held._file)


@pytest.mark.anyio
async def test_what_had_ended_is_not_handed_back_and_half_a_line_is_none(tmp_path: Path) -> None:
    held, client = Held(tmp_path), Silent()
    over, open_ = (held.begin(Attempt(token, "w", "r")) for token in (b"over", b"open"))
    held.end(over)
    assert open_ == 2
    dead(held)
    (path,) = tmp_path.iterdir()
    path.write_bytes(path.read_bytes() + b'[3, "aGFsZg')
    journal = FileJournal(tmp_path.parent / "journal")
    assert len((await hand_back(_as_client(client), tmp_path, journal)).attempts) == 1
    assert client.failed == [b"open"]


@pytest.mark.anyio
async def test_only_a_call_that_left_and_has_no_answer_is_handed_back_as_lost(
    tmp_path: Path,
) -> None:
    journal, client = FileJournal(tmp_path / "journal"), Silent()
    held = Held(tmp_path / "held")
    for name in ("lost", "answered", "withdrawn", "unsent", "over"):
        number = held.begin(Attempt(name.encode(), "w", "r", 1.5e9, time.time()))
        if name != "unsent":
            await journal.mark_sent(name)
            held.note_sent(number, Sent(name, "claude-haiku-5-5"))
        if name == "over":
            held.end(number)
            held.note_sent(number, Sent(name, "claude-haiku-5-5"))
    await journal.record("answered", "{}")
    await journal.withdraw("withdrawn")
    dead(held)
    await hand_back(_as_client(client), tmp_path / "held", journal)
    kinds = {token.decode(): type(error) for token, error in client.errors.items()}
    assert kinds == {
        "lost": AnswerLost,
        "answered": WorkerDied,
        "withdrawn": WorkerDied,
        "unsent": WorkerDied,
    }
    unknown = Bill(model="claude-haiku-5-5", calls=1, dollars=None, final=False)
    bill, span = client.errors[b"lost"].details
    assert bill == unknown and client.errors[b"lost"].non_retryable
    assert 0 <= (span.ended - span.started).total_seconds() < 60, "the run's clock goes by it"


@pytest.mark.anyio
async def test_a_file_of_many_attempts_is_written_anew_with_what_is_open(tmp_path: Path) -> None:
    folder, client = tmp_path / "held", Silent()
    held, journal = Held(folder), FileJournal(tmp_path / "journal")
    long = held.begin(Attempt(b"long", "w", "r"))
    await journal.mark_sent("its call")
    held.note_sent(long, Sent("its call", "claude-haiku-5-5"))
    for number in range(3_000):
        held.end(held.begin(Attempt(b"x" * 200, f"run-{number}", "r")))
    (path,) = folder.iterdir()
    assert path.stat().st_size < 300_000
    dead(held)
    await hand_back(_as_client(client), folder, journal)
    assert {token: type(each) for token, each in client.errors.items()} == {b"long": AnswerLost}


@pytest.mark.anyio
async def test_a_worker_that_ends_leaves_no_file(tmp_path: Path) -> None:
    held = Held(tmp_path)
    held.begin(Attempt(b"x", "w", "r"))
    held.close()
    assert list(tmp_path.iterdir()) == []


@pytest.mark.anyio
async def test_rubbish_among_the_files_is_passed_over(tmp_path: Path) -> None:
    (tmp_path / "rubbish").write_bytes(
        b'\xff\x00 not json\n[1]\n[1, 2, 3, 4]\n[7, "k", "m"]\n{}\nnull\n'
        b'[1, "AAAA", "no-such-run", "\\ud800", 1.5, 1.5]\n[2, "AAAA", "w", "r", null, "x"]\n'
    )
    (tmp_path / "link").symlink_to("/etc/passwd")
    journal = FileJournal(tmp_path.parent / "journal")
    assert (await hand_back(_as_client(Silent()), tmp_path, journal)).attempts == ()


@pytest.mark.anyio
async def test_a_worker_killed_while_it_hands_back_leaves_that_to_the_next(tmp_path: Path) -> None:
    held, journal = Held(tmp_path / "held"), FileJournal(tmp_path / "journal")
    held.begin(Attempt(b"open", "w", "r"))
    dead(held)

    class Dies(Silent):
        def get_async_activity_handle(self, *, task_token: bytes) -> Any:
            assert list((tmp_path / "held").iterdir()), "it is there until the server knows"
            return super().get_async_activity_handle(task_token=task_token)

    client = Dies()
    await hand_back(_as_client(client), tmp_path / "held", journal)
    assert client.failed == [b"open"] and not list((tmp_path / "held").iterdir())


def _as_client(silent: Silent) -> Client:
    client: Any = silent
    return client  # type: ignore[no-any-return]


def test_a_file_that_was_taken_for_one_left_behind_before_it_was_locked_is_made_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    opened = []
    made = private.open_file

    def taken_once(path: Path, flags: int) -> int:
        opened.append(made(path, flags))
        if len(opened) == 1:
            path.unlink()
        return opened[-1]

    monkeypatch.setattr(private, "open_file", taken_once)
    held = Held(tmp_path)
    held.begin(Attempt(b"token", "run", "1"))
    (file,) = tmp_path.iterdir()
    assert len(opened) == 2 and "run" in file.read_text()
    held.close()
