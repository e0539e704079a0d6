"""The live page of each run, for people with a browser: each logs in with a token, under whose name
the history keeps what they decide.

A browser keeps a session, not the token: cookies of 127.0.0.1 are sent to every port of it.
"""

from __future__ import annotations

import asyncio
import hmac
import secrets
import time
from collections import OrderedDict
from dataclasses import dataclass, field
from datetime import UTC, datetime
from urllib.parse import parse_qsl, quote

from htpy import body, button, form, h1, head, html, label, meta, p, title
from htpy import input as box
from starlette.requests import Request
from starlette.responses import RedirectResponse, Response

from holdfast.client import orders
from holdfast.client.documents import as_page
from holdfast.client.ended import read_end
from holdfast.client.live.forms import order_of
from holdfast.client.live.sight import Sight, Sights
from holdfast.client.reading import with_notes
from holdfast.deployment.invocation import STARTER, to_type
from holdfast.doors.http.bodies import read_bytes
from holdfast.doors.http.handlers import Door, caller_of, check_decides, check_dollars, run_of
from holdfast.doors.http.problems import Problem
from holdfast.doors.tokens import Caller, hash_of
from holdfast.errors import HoldfastError
from holdfast.rules.reporting import report as report_of
from holdfast.text import one_line

COOKIE = "holdfast_session"
SESSION_SECONDS = 12 * 3600
MOST_SESSIONS, MOST_PAGES = 1_000, 100
FRESH_SECONDS = 0.5
"""How long a reading is reused: many people ask the server no more often than one."""
SAID_SECONDS = 60.0
STEP_SECONDS = 10
FORM_BYTES = 512 * 1024
HEADERS = {
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    # Without a referrer a browser sends no origin with a form.
    "Referrer-Policy": "same-origin",
    "X-Frame-Options": "DENY",
}
LOGIN_POLICY = "default-src 'none'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'"


@dataclass
class Sessions:
    """Who has logged in with a browser: session -> hash of the token, in memory alone."""

    _known: OrderedDict[str, tuple[str, float]] = field(default_factory=OrderedDict)

    def begin(self, secret: str) -> str:
        """Return the word of a new session of a token's bearer."""
        word = secrets.token_urlsafe(32)
        self._known[hash_of(word)] = (hash_of(secret), time.monotonic() + SESSION_SECONDS)
        while len(self._known) > MOST_SESSIONS:
            self._known.popitem(last=False)
        return word

    def token_of(self, word: str) -> str:
        """Return the hash of the token of a session; empty if there is none, or no more."""
        token, until = self._known.get(hash_of(word), ("", 0.0))
        return token if time.monotonic() < until else ""


@dataclass
class _Page:
    sights: Sights
    last: Sight | None = None
    at: float = 0.0
    turn: asyncio.Lock = field(default_factory=asyncio.Lock)
    said: dict[str, tuple[str, bool, float]] = field(default_factory=dict)
    """What came of the last order of each person, whether it was refused, and when."""

    async def look(self) -> Sight:
        async with self.turn:
            if self.last is None or time.monotonic() - self.at > FRESH_SECONDS:
                self.last = await self.sights.next()
                self.at = time.monotonic()
            return self.last


@dataclass
class Pages:
    """The handlers of pages for people."""

    door: Door
    sessions: Sessions
    word: str = field(default_factory=lambda: secrets.token_urlsafe(24))
    """In each form: a page of another server cannot know it."""
    _pages: OrderedDict[str, _Page] = field(default_factory=OrderedDict)

    async def ask(self, request: Request) -> Response:
        """Show the form that asks for a token."""
        return _login(request.query_params.get("next", ""))

    async def login(self, request: Request) -> Response:
        """Begin a session for the bearer of a token."""
        given = await _fields(request)
        secret = given.get("token", "").strip()
        caller = request.state.bearer(secret)
        request.state.count(caller.name if caller else "login")
        if caller is None:
            return _login(given.get("next", ""), "That is no token of this server.", 401)
        there = given.get("next", "")
        answer = RedirectResponse(there if _is_page(there) else "/login", 303, headers=HEADERS)
        answer.set_cookie(
            COOKIE,
            self.sessions.begin(secret),
            max_age=SESSION_SECONDS,
            path="/runs/",
            httponly=True,
            samesite="strict",
            secure=request.state.secure,
        )
        return answer

    async def show(self, request: Request) -> Response:
        """Show the page of a run as it stands."""
        run, caller = run_of(self.door, request), caller_of(request)
        page = self._page(run.id)
        sight, nonce = await page.look(), secrets.token_urlsafe(16)
        text, policy = self._draw(run.id, page, sight, nonce, caller)
        answer = Response(text, sight.status, headers=HEADERS, media_type="text/html")
        answer.headers["Content-Security-Policy"] = f"{policy}; frame-ancestors 'none'"
        return answer

    async def take(self, request: Request) -> Response:
        """Carry out an order of the page, and lead back to it: it says what came of it."""
        run, caller = run_of(self.door, request), caller_of(request)
        given = await _fields(request)
        if not hmac.compare_digest(given.get("token", "").encode(), self.word.encode()):
            raise Problem("foreign_origin", "that form is of another server; load the page anew")
        page = self._page(run.id)
        try:
            said = await self._order(run.id, page, given, caller)
            page.said[caller.name] = (said, False, time.monotonic())
        except (HoldfastError, Problem) as error:
            page.said[caller.name] = (one_line(str(error)), True, time.monotonic())
        page.last = None
        return RedirectResponse(f"/runs/{quote(run.id)}/live/", 303, headers=HEADERS)

    async def _order(self, run_id: str, page: _Page, given: dict[str, str], caller: Caller) -> str:
        check_decides(caller)
        sight = await page.look()
        view = sight.look.view if sight.look else None
        if view is None or sight.away:
            return "order not sent: the run could not be read; try again"
        command = given.get("command", "")
        order = order_of(command, given, view)
        if order.limits is not None:
            check_dollars(caller, order.limits.dollars)
        named = order.model_copy(update={"by": caller.name})
        return await orders.send(self.door.connection, run_id, command, named)

    def _page(self, run_id: str) -> _Page:
        if run_id not in self._pages:
            self._pages[run_id] = _Page(Sights(self.door.connection, run_id))
        self._pages.move_to_end(run_id)
        while len(self._pages) > MOST_PAGES:
            self._pages.popitem(last=False)
        return self._pages[run_id]

    def _draw(
        self, run_id: str, page: _Page, sight: Sight, nonce: str, caller: Caller
    ) -> tuple[str, str]:
        """Return the page, and what the browser may do with it."""
        # Only who shows a page loads what draws it.
        from holdfast.rendering.html.page import as_notice, policy
        from holdfast.rendering.html.steering import Live

        scripts = f"script-src 'nonce-{nonce}'; connect-src 'self'; form-action 'self'"
        said, refused, at = page.said.get(caller.name, ("", False, 0.0))
        look = sight.look
        live = Live(
            token=self.word,
            nonce=nonce,
            said=said if time.monotonic() - at < SAID_SECONDS else "",
            refused=refused,
            notes=look.notes if look else (),
            away=sight.away,
            again=f"{STARTER} serve",
            edits=to_type("edit", run_id),
        )
        if look is None or look.state is None:
            return as_notice(run_id, sight.away, live, over=look is not None), policy(scripts)
        made = read_end(run_id, look).report if look.closed else None
        made = made or with_notes(report_of(look.state), look.besides)
        drawn = datetime.fromtimestamp(time.time() // STEP_SECONDS * STEP_SECONDS, UTC)
        text = as_page(
            made, look, over=bool(look.closed), live=live, drawn=None if sight.away else drawn
        )
        return text, policy(scripts)


async def _fields(request: Request) -> dict[str, str]:
    """Return the fields of a form as browsers send it. Raise Problem for what is none."""
    try:
        return dict(
            parse_qsl(
                (await read_bytes(request, FORM_BYTES)).decode(),
                keep_blank_values=True,
                max_num_fields=50,
            )
        )
    except ValueError:
        raise Problem("bad_input", "this is not a form; send it from the page itself") from None


def _is_page(place: str) -> bool:
    """True if a login may lead there: nowhere else than to a page of this server."""
    return place.startswith("/runs/") and not any(each in place for each in ("\\", "//", "\n"))


def _login(there: str, wrong: str = "", status: int = 200) -> Response:
    text = html(lang="en")[
        head[meta(charset="utf-8"), title["holdfast"]],
        body[
            h1["holdfast"],
            wrong and p(role="alert")[wrong],
            form(method="post", action="/login")[
                box(type="hidden", name="next", value=there if _is_page(there) else ""),
                label["Token ", box(type="password", name="token", autofocus=True)],
                " ",
                button["Log in"],
            ],
            p["What you decide stands in the history under the token's name."],
        ],
    ]
    answer = Response(str(text), status, headers=HEADERS, media_type="text/html")
    answer.headers["Content-Security-Policy"] = LOGIN_POLICY
    return answer
