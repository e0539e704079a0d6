"""The live page when there is nothing new to show: the run not begun, closed, deleted, its server
away. It says so in words, with the right status, and goes on when the run can be seen again.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import aiohttp
import pytest
from temporalio.api.common.v1 import WorkflowExecution
from temporalio.api.workflowservice.v1 import DeleteWorkflowExecutionRequest
from temporalio.client import Client
from temporalio.service import RPCError, RPCStatusCode
from test_live_page import Visitor, approved, goal, visiting, waiting

from browser import CHROMIUM, WITHOUT, Tab, tab
from conftest import Handle, Runs
from holdfast.cli.commands.runs import watch
from holdfast.cli.live.server import live
from holdfast.errors import HoldfastError
from holdfast.intake.connection import Connection

pytestmark = [pytest.mark.long, pytest.mark.anyio]
WAITS = "The plan waits for approval"
GONE = "any more: it was deleted, or the server was started with another state"


async def asked(visitor: Visitor) -> tuple[int, str]:
    async with visitor.session.get(visitor.address) as answer:
        assert answer.headers["Content-Type"].startswith("text/html")
        assert answer.headers["Cache-Control"] == "no-store"
        return answer.status, await answer.text()


async def until(visitor: Visitor, status: int) -> str:
    async with asyncio.timeout(30):
        while True:
            got, page = await asked(visitor)
            if got == status:
                return page
            await asyncio.sleep(0.1)


async def deleted(runs: Runs, handle: Handle) -> None:
    runs.handles.remove(handle)
    execution = WorkflowExecution(workflow_id=handle.id)
    request = DeleteWorkflowExecutionRequest(
        namespace=runs.client.namespace, workflow_execution=execution
    )
    await runs.client.workflow_service.delete_workflow_execution(request)


@dataclass
class Wire:
    """What lies between the page and its server, and can be cut."""

    address: str
    port: int = 0
    _open: list[asyncio.StreamWriter] = field(default_factory=list)

    async def mend(self) -> None:
        self._server = await asyncio.start_server(self._carry, "127.0.0.1", self.port)
        self.port = self._server.sockets[0].getsockname()[1]

    async def cut(self) -> None:
        self._server.close()
        for each in self._open:
            each.transport.abort()
        self._open.clear()

    @asynccontextmanager
    async def away(self) -> AsyncIterator[None]:
        """No server answers as long as the block lasts."""
        await self.cut()
        yield
        await self.mend()

    async def _carry(self, near: asyncio.StreamReader, back: asyncio.StreamWriter) -> None:
        host, port = self.address.split(":")
        far, there = await asyncio.open_connection(host, int(port))
        self._open += [back, there]
        await asyncio.gather(_copy(near, there), _copy(far, back), return_exceptions=True)


async def _copy(source: asyncio.StreamReader, target: asyncio.StreamWriter) -> None:
    while part := await source.read(65_536):
        target.write(part)
        await target.drain()
    target.close()


@pytest.fixture
async def wire(
    runs: Runs, connection: Connection, monkeypatch: pytest.MonkeyPatch
) -> AsyncIterator[Wire]:
    """Between `connection` and the server."""
    monkeypatch.setattr("holdfast.client.live.sight.LOOK_SECONDS", 1.0)
    made = Wire(connection.target.address)
    await made.mend()
    config: dict[str, Any] = {**runs.client.config()}
    other = await Client.connect(f"127.0.0.1:{made.port}")
    connection.client = Client(**{**config, "service_client": other.service_client})
    yield made
    await made.cut()


async def test_a_run_that_was_deleted_is_shown_as_it_was_last_and_takes_no_order(
    runs: Runs, connection: Connection
) -> None:
    async with waiting(runs) as handle, visiting(connection, handle.id) as visitor:
        assert WAITS in await visitor.page()
        await deleted(runs, handle)
        page = await until(visitor, 410)
        assert GONE in page and "This is how the run was seen last, at " in page
        assert WAITS not in page and "<form" not in page
        own = {"Origin": visitor.origin}
        status, page = await visitor.order(own, command="approve", token=visitor.token)
        assert status == 410 and "order not sent: the run could not be read" in page


async def test_a_page_whose_server_goes_away_says_so_and_goes_on_when_it_is_back(
    runs: Runs, connection: Connection, wire: Wire
) -> None:
    async with waiting(runs) as handle, visiting(connection, handle.id) as visitor:
        await visitor.page()
        async with wire.away():
            page = await until(visitor, 503)
            assert "does not answer. This is how the run was seen last, at " in page
            assert "<form" not in page
            own = {"Origin": visitor.origin}
            status, page = await visitor.order(own, command="approve", token=visitor.token)
            assert status == 503 and "order not sent: the run could not be read" in page
        page = await until(visitor, 200)
        assert WAITS in page and "seen last" not in page
        status, page = await visitor.order(own, command="approve", token=visitor.token)
        assert status == 200 and "approved" in page
        await handle.result()


async def test_an_order_that_meets_no_server_is_not_said_to_have_arrived(
    runs: Runs, connection: Connection, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def lost(*_: object) -> str:
        raise RPCError("connection refused", RPCStatusCode.UNAVAILABLE, b"")

    monkeypatch.setattr("holdfast.client.orders.send", lost)
    async with waiting(runs) as handle, visiting(connection, handle.id) as visitor:
        await visitor.page()
        own = {"Origin": visitor.origin}
        status, page = await visitor.order(own, command="approve", token=visitor.token)
        assert status == 200 and "nobody knows whether the order arrived" in page
        assert WAITS in page


async def test_of_a_run_that_was_never_seen_the_page_says_what_is_known(
    runs: Runs, connection: Connection, wire: Wire
) -> None:
    async with visiting(connection, "no-run") as visitor:
        status, page = await asked(visitor)
        assert status == 404 and "No run &#39;no-run&#39;" in page and "<main>" in page
        async with wire.away():
            page = await until(visitor, 503)
            assert "does not answer." in page
    # No worker: nothing of it begins.
    handle = await runs.start(goal(), skipping=False)
    async with visiting(connection, handle.id) as visitor:
        status, page = await asked(visitor)
        assert status == 503 and "The run has not begun" in page
        await handle.terminate()
        runs.handles.remove(handle)
        page = await until(visitor, 200)
        assert f"Run {handle.id} was terminated before it began" in page
        assert 'data-over="yes"' in page


async def test_two_pages_of_a_run_are_told_the_same(runs: Runs, connection: Connection) -> None:
    async with waiting(runs) as handle, visiting(connection, handle.id) as one:
        await one.page()
        jar = aiohttp.CookieJar(unsafe=True)
        async with aiohttp.ClientSession(cookie_jar=jar) as session:
            other = Visitor(session, one.address)
            await other.page()
            own = {"Origin": one.origin}
            _, page = await one.order(own, command="approve", token=one.token)
            assert "approved" in page
            _, page = await other.order(own, command="approve", token=other.token)
            assert "refused" in page or "is over" in page
            await handle.result()


async def test_whoever_watches_a_run_that_is_deleted_tells_the_open_page_before_he_ends(
    runs: Runs, connection: Connection, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with waiting(runs) as handle:
        printed = asyncio.Queue[str]()

        def heard(line: str, *_: object) -> None:
            if "for you alone: " in line:
                printed.put_nowait(line.split("for you alone: ")[1])

        monkeypatch.setattr(watch, "say", heard)
        watching = asyncio.create_task(watch.run(connection, handle.id, False, None, web=True))
        address = await printed.get()
        async with aiohttp.ClientSession() as session:
            visitor = Visitor(session, address)
            await visitor.page()
            await deleted(runs, handle)
            assert GONE in await until(visitor, 410)
        with pytest.raises(HoldfastError, match="no run"):
            await watching


async def test_of_a_run_that_is_over_no_page_is_served_and_that_is_said(
    runs: Runs, connection: Connection, capsys: pytest.CaptureFixture[str]
) -> None:
    async with waiting(runs) as handle:
        await handle.execute_update("approve", {"by": "me"})
        await handle.result()
        assert await watch.run(connection, handle.id, False, None, web=True) == 0
    said = capsys.readouterr().err
    assert f"{handle.id} is over: there is no live page of it any more" in said
    assert f"report {handle.id}" in said and "for you alone" not in said


@pytest.mark.skipif(CHROMIUM is None, reason=WITHOUT)
async def test_a_browser_shows_what_became_of_the_run_and_of_whoever_served_the_page(
    runs: Runs, connection: Connection, wire: Wire, tmp_path: Path
) -> None:
    async with waiting(runs) as handle, tab(tmp_path / "profile") as browser:
        async with live(connection, handle.id) as address:
            await browser.open(address)
            await browser.until("document.getElementById('in-reject')")
            await _typed(browser, "in-reject", "not this")
            async with wire.away():
                await browser.until("document.body.innerText.includes('does not answer')")
                assert await browser.value("document.querySelectorAll('form').length") == 0
            await browser.until(f"document.body.innerText.includes('{WAITS}')")
            assert await browser.value("document.getElementById('lost').hidden")
        await browser.until("!document.getElementById('lost').hidden")
        assert "--web" in await browser.value("document.getElementById('lost').innerText")
        assert await browser.value("document.querySelector('form button').disabled")
        await browser.value("window.scrollTo({top: 1e6, behavior: 'instant'})")
        assert await browser.value("window.scrollY > 0"), "the page is longer than the window"
        place = "document.getElementById('lost').getBoundingClientRect()"
        assert await browser.value(f"{place}.top === 0 && {place}.bottom < innerHeight / 2")
        assert browser.refused == []


async def _typed(browser: Tab, id: str, text: str) -> None:
    await browser.value(f"document.getElementById('{id}').value = '{text}'")


@pytest.mark.skipif(CHROMIUM is None, reason=WITHOUT)
async def test_what_a_person_has_typed_stays_when_the_page_is_brought_up_to_date(
    runs: Runs, connection: Connection, tmp_path: Path
) -> None:
    async with (
        waiting(runs) as handle,
        live(connection, handle.id) as address,
        tab(tmp_path / "profile") as browser,
    ):
        await browser.open(address)
        await _typed(browser, "in-raise_cap", "3.50")
        await browser.value("document.querySelector('[value=pause] ~ button').id = 'old'")
        await handle.execute_update("pause", {"by": "me"})
        await browser.until("document.querySelector('[value=resume]')")
        assert await browser.value("document.getElementById('in-raise_cap').value") == "3.50"
        await handle.execute_update("resume", {"by": "me"})
        await handle.execute_update("approve", {"by": "me"})
        await handle.result()


__all__ = ["approved"]
