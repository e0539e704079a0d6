"""The server of the live page: one run, one page, on a free port of this machine."""

from __future__ import annotations

import asyncio
import logging
import secrets
import socket
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime

from aiohttp import web
from aiohttp.http_exceptions import HttpProcessingError
from temporalio.service import RPCError

from holdfast.cli.live.guard import COOKIE, Guard
from holdfast.cli.screen.exits import Exit
from holdfast.client import orders
from holdfast.client.documents import as_page
from holdfast.client.ended import read_end
from holdfast.client.live.forms import changed_plan, order_of
from holdfast.client.live.sight import Sight, Sights
from holdfast.client.reading import with_notes
from holdfast.contracts import Order
from holdfast.deployment.invocation import to_type
from holdfast.errors import HoldfastError, Refused
from holdfast.intake import plans
from holdfast.intake.connection import Connection
from holdfast.rules.reporting import report
from holdfast.state.run import State
from holdfast.text import for_terminal, one_line

BODY_BYTES = 512 * 1024
"""Largest order, which may be a plan."""
PLAN_LETTERS = 100_000
"""Longest plan that is edited on the page; a longer one is for an editor."""
FRESH_SECONDS = 0.5
"""How long the last reading is reused: many tabs ask the server no more often than one."""
SAID_SECONDS = 60.0
"""How long the outcome of an order is shown. Once is too short: open pages ask every second."""
STEP_SECONDS = 10
"""Step of the clock on a page with no other news: drawing it anew loses a reader's selection."""
LAST_SECONDS = 3.0
"""How long a page that is open is given to fetch the run's end."""
UNSURE = "the server did not answer: nobody knows whether the order arrived; look before you repeat"
log = logging.getLogger(__name__)
HEADERS = {
    "Cache-Control": "no-store",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Referrer-Policy": "same-origin",
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
}


def ours(record: logging.LogRecord) -> bool:
    """Return True if a record is of a mistake of ours, not of a request that is none: any program
    of this machine can send one, and what is logged stands in the middle of the board.
    """
    raised = record.exc_info[1] if record.exc_info else None
    return not isinstance(raised, HttpProcessingError | web.RequestPayloadError)


log.addFilter(ours)


@dataclass
class LivePage:
    connection: Connection
    run_id: str
    guard: Guard
    said: str = ""
    """Outcome of the last order."""
    refused: bool = False
    """True if it was not carried out."""
    told: float = 0.0
    """When it was given."""
    draft: str = ""
    """The plan as somebody has changed it and not sent it yet."""
    asked: float = 0.0
    """When the page was last asked for."""
    ended: asyncio.Event = field(default_factory=asyncio.Event)
    """Set once a page has shown how the run ended."""
    _sight: Sight | None = None
    _seen: float = 0.0
    _turn: asyncio.Lock = field(default_factory=asyncio.Lock)

    def __post_init__(self) -> None:
        self.sights = Sights(self.connection, self.run_id)

    async def look(self) -> Sight:
        """Return the run as it stood at most FRESH_SECONDS ago."""
        async with self._turn:
            now = asyncio.get_running_loop().time()
            if self._sight is None or now - self._seen > FRESH_SECONDS:
                self._sight = await self.sights.next()
                self._seen = asyncio.get_running_loop().time()
            return self._sight

    async def show(self, request: web.Request) -> web.Response:
        self._check(request)
        self.asked = asyncio.get_running_loop().time()
        sight, nonce = await self.look(), secrets.token_urlsafe(16)
        text, policy = self._page(sight, nonce)
        response = web.Response(
            text=text, status=sight.status, content_type="text/html", headers=HEADERS
        )
        response.headers["Content-Security-Policy"] = f"{policy}; frame-ancestors 'none'"
        response.set_cookie(
            COOKIE, self.guard.cookie, path=f"/{self.guard.key}/", httponly=True, samesite="Strict"
        )
        if sight.final:
            self.ended.set()
        return response

    async def take(self, request: web.Request) -> web.Response:
        """Carry out an order, and lead back to the page, which says what came of it."""
        self._check(request)
        # Before the body is read: nothing of a stranger's is.
        cookie = request.cookies.get(COOKIE, "")
        if why := self.guard.foreign(request.headers, cookie, self.guard.token):
            raise web.HTTPForbidden(text=why)
        given = await _fields(request)
        if why := self.guard.foreign(request.headers, cookie, given.get("token", "")):
            raise web.HTTPForbidden(text=why)
        try:
            sight = await self.look()
            view = sight.look.view if sight.look else None
            if view is None or sight.away:
                raise Exit("order not sent: the run could not be read; try again")
            command = given.get("command", "")
            if command in ("price", "edit") and sight.look and sight.look.state:
                self.draft = given.get("plan", "")
                changed = await asyncio.to_thread(changed_plan, sight.look.state, self.draft)
                if command == "price":
                    self.said = changed.price
                else:
                    order = Order(plan=changed.plan)
                    self.said = await orders.send(self.connection, self.run_id, "edit", order)
                    self.draft = ""
            else:
                order = order_of(command, given, view)
                self.said = await orders.send(self.connection, self.run_id, command, order)
            self.refused = False
        except Refused as error:
            self.said, self.refused = for_terminal(str(error), lines=True), True
        except HoldfastError as error:
            self.said, self.refused = one_line(str(error)), True
        except RPCError as error:
            self.said, self.refused = f"{UNSURE} ({one_line(error.message)})", True
        self._sight, self.told = None, asyncio.get_running_loop().time()
        raise web.HTTPSeeOther(f"/{self.guard.key}/", headers=HEADERS)

    def _check(self, request: web.Request) -> None:
        if why := self.guard.strange(request.headers, request.match_info["key"]):
            raise web.HTTPNotFound(text=why)

    def _page(self, sight: Sight, nonce: str) -> tuple[str, str]:
        """Return the page, and what the browser may do with it."""
        # Only who serves a page loads what draws it.
        from holdfast.rendering.html.page import as_notice, policy
        from holdfast.rendering.html.steering import Live

        scripts = f"script-src 'nonce-{nonce}'; connect-src 'self'; form-action 'self'"
        old = asyncio.get_running_loop().time() - self.told >= SAID_SECONDS
        look = sight.look
        live = Live(
            token=self.guard.token,
            nonce=nonce,
            said="" if old else self.said,
            refused=self.refused,
            notes=look.notes if look else (),
            away=sight.away,
            again=f"{to_type('watch', self.run_id)} --web",
            plan=self._plan(look.state if look else None),
            edits=to_type("edit", self.run_id),
        )
        if look is None or look.state is None:
            return as_notice(self.run_id, sight.away, live, over=look is not None), policy(scripts)
        made = read_end(self.run_id, look).report if look.closed else None
        over = bool(look.closed)
        made = made or with_notes(report(look.state), look.besides)
        page = as_page(made, look, over=over, live=live, drawn=None if sight.away else _moment())
        return page, policy(scripts)

    def _plan(self, state: State | None) -> str:
        """Return the plan that waits, to be edited; empty if none does or it is too long."""
        if state is None or state.phase != "approval" or state.plan is None:
            return ""
        text = self.draft or plans.as_yaml(state.plan)
        return text if len(text) <= PLAN_LETTERS else ""


def _moment() -> datetime:
    return datetime.fromtimestamp(time.time() // STEP_SECONDS * STEP_SECONDS, UTC)


async def _fields(request: web.Request) -> dict[str, str]:
    """Return the fields of a form. Raises HTTPBadRequest for a body that is none."""
    try:
        sent = await request.post()
    except web.HTTPException:
        raise
    except Exception as error:
        # A codec that there is not, bytes that are no text, a broken archive: the body decides.
        raise web.HTTPBadRequest(text="this is not a form; send it from the page itself") from error
    return {name: value for name, value in sent.items() if isinstance(value, str)}


@asynccontextmanager
async def live(connection: Connection, run_id: str) -> AsyncIterator[str]:
    """Serve the page of a run, and yield its address, for as long as the block lasts."""
    listening = socket.create_server(("127.0.0.1", 0))
    page = LivePage(connection, run_id, Guard(listening.getsockname()[1]))
    app = web.Application(client_max_size=BODY_BYTES)
    app.add_routes([web.get("/{key}/", page.show), web.post("/{key}/order", page.take)])
    runner = web.AppRunner(app, access_log=None, handle_signals=False, logger=log)
    with listening:
        try:
            await runner.setup()
            await web.SockSite(runner, listening).start()
            yield page.guard.address
            await _until_seen(page)
        except HoldfastError:
            # The run is gone: whoever has its page open is told why.
            await _until_seen(page)
            raise
        finally:
            await runner.cleanup()
            await page.sights.leave()


async def _until_seen(page: LivePage) -> None:
    """Let a page that is open show the end of its run."""
    if page.asked and asyncio.get_running_loop().time() - page.asked < LAST_SECONDS:
        try:
            async with asyncio.timeout(LAST_SECONDS):
                await page.ended.wait()
        except TimeoutError:
            return
