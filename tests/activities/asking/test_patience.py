"""Time limits that only count while the process runs."""

from __future__ import annotations

import asyncio
import socket
import threading
import time

import pytest

from holdfast.activities.asking.patience import LAST_LOOK_SECONDS, LATE_SECONDS, Patience, finish

pytestmark = pytest.mark.anyio


async def test_silence_ends_a_block_and_what_moves_does_not() -> None:
    patience = Patience(stall=0.2, deadline=30)
    with pytest.raises(TimeoutError):
        async with patience:
            for _ in range(4):
                await asyncio.sleep(0.1)
                patience.moved()
            await asyncio.Event().wait()
    assert patience.why == "silence of 0.2 s"


@pytest.mark.parametrize("deadline", [0.2, 0.19986])
async def test_a_deadline_ends_a_block_in_which_something_moves_for_ever(deadline: float) -> None:
    patience = Patience(stall=30, deadline=deadline)
    with pytest.raises(TimeoutError):
        async with patience:
            while True:
                await asyncio.sleep(0.02)
                patience.moved()
    assert patience.why == "deadline of 0.2 s", "as a person reads it"
    assert patience.over


@pytest.mark.parametrize(("stall", "deadline"), [(0.3, 30.0), (30.0, 0.3)])
@pytest.mark.parametrize("absent", [0.5, LATE_SECONDS + 0.7])
async def test_what_arrived_while_the_process_did_not_run_is_read_after_every_limit(
    stall: float, deadline: float, absent: float
) -> None:
    """The whole process stands still, so that timer and data are due in the same moment."""
    reader, writer = await asyncio.open_connection(sock=_pair_with(b"answer" * 100_000))
    async with Patience(stall, deadline) as patience:
        await asyncio.sleep(0)
        time.sleep(absent)  # noqa: ASYNC251 - nothing else stops the loop
        got = b""
        while chunk := await reader.read(1_000):
            patience.moved()
            got += chunk
    assert len(got) == 600_000
    writer.close()
    await writer.wait_closed()


async def test_an_absence_does_not_make_a_limit_endless() -> None:
    patience = Patience(stall=0.2, deadline=0.4)
    began = asyncio.get_running_loop().time()
    with pytest.raises(TimeoutError):
        async with patience:
            time.sleep(LATE_SECONDS + 0.5)  # noqa: ASYNC251 - nothing else stops the loop
            await asyncio.Event().wait()
    took = asyncio.get_running_loop().time() - began
    assert took < LATE_SECONDS + 0.5 + 0.2 + 0.4 + 2 * LAST_LOOK_SECONDS + 5


async def test_work_that_must_be_finished_is_finished_and_the_cancellation_shows() -> None:
    done = asyncio.Event()

    async def work() -> str:
        await asyncio.sleep(0.05)
        done.set()
        return "kept"

    async def task() -> tuple[str, int]:
        kept = await finish(work())
        current = asyncio.current_task()
        assert current is not None
        return kept, current.cancelling()

    running = asyncio.create_task(task())
    await asyncio.sleep(0.01)
    running.cancel()
    assert await running == ("kept", 1)
    assert done.is_set()


def _pair_with(content: bytes) -> socket.socket:
    """A socket whose other end sends this from a thread, as far as it is read, and closes."""
    server = socket.create_server(("127.0.0.1", 0))
    client = socket.create_connection(server.getsockname())
    there, _ = server.accept()
    server.close()

    def send() -> None:
        there.sendall(content)
        there.close()

    threading.Thread(target=send, daemon=True).start()
    return client
