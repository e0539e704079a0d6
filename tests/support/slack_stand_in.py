"""A stand-in of Slack: its Web API, Socket Mode and signed requests, as strict as the real one is
about tokens, shapes and limits; and people who write and press there.
"""

from __future__ import annotations

import asyncio
import hashlib
import hmac
import itertools
import json
import math
import time
import uuid
from collections import Counter, defaultdict
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import urlencode

import aiohttp
from aiohttp import web

Json = dict[str, Any]
BOT_TOKEN, APP_TOKEN, SECRET = (
    "xoxb-1-stand-in",
    "xapp-1-stand-in",
    "8f742231b10e8888abcd99yyyzzz85a5",
)
BOT, BOT_USER = "B0HOLDFAST", "U0HOLDFAST"
ADA, EVE = "U0ADA", "U0EVE"
NAMES = {ADA: "Ada", EVE: "Eve"}
TYPES = {"section", "header", "context", "actions", "divider"}
MOST_CHARACTERS = 13_200
METHODS = (
    "auth.test", "apps.connections.open", "chat.postMessage", "chat.update", "chat.delete",
    "chat.postEphemeral", "conversations.replies", "conversations.history", "users.info",
    "views.open",
)  # fmt: skip


class Refused(Exception):
    """An answer with `ok: false`."""


@dataclass
class Slack:
    """A workspace of one channel, with one app in it."""

    address: str = ""
    channel: str = field(default_factory=lambda: f"C{uuid.uuid4().hex[:8].upper()}")
    """Of its own for each: runs of several tests are on one server."""
    messages: list[Json] = field(default_factory=list)
    ephemeral: list[Json] = field(default_factory=list)
    dialogs: list[Json] = field(default_factory=list)
    calls: Counter[str] = field(default_factory=Counter)
    failures: dict[str, list[str | int]] = field(default_factory=lambda: defaultdict(list))
    """What methods answer first: an error, 429 or another status, or `lost`: done and not said."""
    limits: dict[str, tuple[int, float]] = field(default_factory=dict)
    """Of methods: so many calls in so many seconds; what is more is put off."""
    slow: dict[str, float] = field(default_factory=dict)
    """Seconds that methods take."""
    revoked: bool = False
    sockets: list[web.WebSocketResponse] = field(default_factory=list)
    acknowledged: dict[str, asyncio.Future[Json]] = field(default_factory=dict)
    connected: asyncio.Event = field(default_factory=asyncio.Event)
    _times: dict[str, list[float]] = field(default_factory=lambda: defaultdict(list))
    _count: itertools.count[int] = field(default_factory=lambda: itertools.count(1))

    # ------------------------------------------------------------ what there is to see

    def thread(self, ts: str) -> list[Json]:
        """Return the bot's messages in a thread."""
        return [m for m in self.messages if m.get("thread_ts") == ts and m.get("bot_id") == BOT]

    def part(self, ts: str, part: str) -> list[Json]:
        """Return the messages in a thread that are this part of it."""
        found = (m for m in self.thread(ts) if m["metadata"]["event_payload"]["part"] == part)
        return [*found]

    def is_single(self, first: Json) -> bool:
        """True if no part of a thread is there twice."""
        parts = [m["metadata"]["event_payload"]["part"] for m in self.thread(first["ts"])]
        return len({*parts}) == len(parts)

    def button(self, message: Json, name: str) -> Json:
        """Return the button of this name in a message."""
        elements = (e for b in message["blocks"] if b["type"] == "actions" for e in b["elements"])
        return next(e for e in elements if e["action_id"] == f"holdfast_{name}")

    def delete(self, ts: str) -> None:
        self.messages[:] = [m for m in self.messages if m["ts"] != ts]

    async def until(self, condition: Any, seconds: float = 90) -> Any:
        """Return what a condition finds, once it finds something."""
        async with asyncio.timeout(seconds):
            while True:
                if found := condition():
                    return found
                await asyncio.sleep(0.02)

    # ------------------------------------------------------------ people

    def write(self, text: str, person: str = ADA, thread: str = "") -> Json:
        """Let somebody write a message; return the event that tells an app of it."""
        ts = self._now()
        message = {"ts": ts, "user": person, "text": text, "channel": self.channel}
        message |= {"thread_ts": thread} if thread else {}
        self.messages.append(message)
        event = {"type": "app_mention", "event_ts": ts, **message}
        return {
            "type": "event_callback",
            "team_id": "T0",
            "api_app_id": "A0",
            "event": event,
            "event_id": f"Ev{ts}",
            "event_time": int(time.time()),
        }

    def press(self, message: Json, name: str, person: str = ADA) -> Json:
        """Let somebody press a button; return what an app is told of it."""
        button = self.button(message, name)
        container = {
            "type": "message",
            "message_ts": message["ts"],
            "channel_id": message["channel"],
            "thread_ts": message.get("thread_ts"),
        }
        return {
            "type": "block_actions",
            "user": {"id": person, "username": NAMES[person].lower(), "team_id": "T0"},
            "team": {"id": "T0"},
            "channel": {"id": message["channel"], "name": "shop"},
            "container": container,
            "message": message,
            "trigger_id": f"trigger.{next(self._count)}",
            "response_url": f"{self.address}/response",
            "actions": [{**button, "action_ts": self._now()}],
        }

    def submit(self, dialog: Json, values: Mapping[str, str], person: str = ADA) -> Json:
        """Let somebody fill and send a dialog."""
        state: Json = {}
        for block in dialog["blocks"]:
            if block["type"] == "input":
                kind, given = block["element"]["type"], values.get(block["block_id"])
                chosen = {"selected_option": {"value": given}} if given else {}
                if kind == "static_select" and not given:
                    chosen = {"selected_option": block["element"]["initial_option"]}
                value = chosen if kind == "static_select" else {"value": given}
                state[block["block_id"]] = {"value": {"type": kind, **value}}
        view = {**dialog, "id": "V1", "state": {"values": state}}
        return {
            "type": "view_submission",
            "user": {"id": person},
            "team": {"id": "T0"},
            "view": view,
        }

    def command(self, text: str, person: str = ADA, channel: str = "") -> Json:
        """Let somebody type a slash command."""
        return {
            "command": "/holdfast",
            "text": text,
            "user_id": person,
            "user_name": NAMES[person].lower(),
            "channel_id": channel or self.channel,
            "team_id": "T0",
            "trigger_id": f"command.{next(self._count)}",
            "response_url": f"{self.address}/response",
        }

    # ------------------------------------------------------------ telling the app

    async def deliver(self, kind: str, payload: Json, retry: int = 0) -> Json:
        """Send an envelope by Socket Mode; return what acknowledged it."""
        name = f"e{next(self._count)}"
        self.acknowledged[name] = asyncio.get_running_loop().create_future()
        envelope = {
            "envelope_id": name,
            "type": kind,
            "payload": payload,
            "accepts_response_payload": True,
        }
        envelope |= {"retry_attempt": retry, "retry_reason": "timeout"} if retry else {}
        await self.sockets[-1].send_json(envelope)
        async with asyncio.timeout(3):
            return await self.acknowledged[name]

    async def event(self, payload: Json, retry: int = 0) -> Json:
        """Say an event again until it is acknowledged, as Slack does."""
        for again in range(retry, retry + 9):
            with suppress(TimeoutError):
                return await self.deliver("events_api", payload, again)
        return await self.deliver("events_api", payload, retry + 9)

    async def interact(self, payload: Json) -> Json:
        return await self.deliver("interactive", payload)

    async def slash(self, payload: Json) -> Json:
        return await self.deliver("slash_commands", payload)

    @staticmethod
    def signed(body: str, secret: str = SECRET, age: int = 0, **more: str) -> dict[str, str]:
        """Return the headers of a request that Slack has signed."""
        at = str(int(time.time()) - age)
        made = hmac.new(secret.encode(), f"v0:{at}:{body}".encode(), hashlib.sha256).hexdigest()
        kind = "application/json" if body.startswith("{") else "application/x-www-form-urlencoded"
        named = {"X-Slack-Request-Timestamp": at, "X-Slack-Signature": f"v0={made}"}
        return {"Content-Type": kind, **named, **more}

    async def post(
        self, url: str, body: str, headers: Mapping[str, str] | None = None
    ) -> tuple[int, str]:
        """Send a request to the app; signed, unless headers are given."""
        given = self.signed(body) if headers is None else headers
        async with (
            asyncio.timeout(3),
            aiohttp.ClientSession() as session,
            session.post(url, data=body.encode(), headers=given) as answer,
        ):
            return answer.status, await answer.text()

    async def post_again(self, url: str, body: str, headers: Mapping[str, str]) -> None:
        """Send a request until the app takes it, as Slack does; no event is taken that takes the
        app longer than a second.
        """
        for _ in range(10):
            if (await self.post(url, body, headers))[0] == 200:
                return
        raise AssertionError("the app did not take it")

    @staticmethod
    def as_form(payload: Json) -> str:
        """Return what Slack sends of a button or a dialog."""
        return urlencode({"payload": json.dumps(payload)})

    # ------------------------------------------------------------ the Web API

    def _now(self) -> str:
        # Rounded up: what follows the start of a run is not written before it.
        return f"{math.ceil(time.time())}.{next(self._count):06d}"

    async def _answer(self, request: web.Request) -> web.StreamResponse:
        method = request.match_info["method"]
        self.calls[method] += 1
        given: Json = dict(request.query)
        if request.content_type == "application/json":
            given |= await request.json()
        else:
            given |= dict(await request.post())
        await asyncio.sleep(self.slow.get(method, 0))
        if off := self._put_off(method):
            return web.json_response(
                {"ok": False, "error": "ratelimited"}, status=429, headers={"Retry-After": str(off)}
            )
        failure = self.failures[method].pop(0) if self.failures[method] else ""
        if isinstance(failure, int):
            headers = {"Retry-After": "1"} if failure == 429 else {}
            body = {"ok": False, "error": "ratelimited" if failure == 429 else "internal_error"}
            return web.json_response(body, status=failure, headers=headers)
        try:
            if failure and failure != "lost":
                raise Refused(failure)
            self._check_token(request, method, given)
            made = getattr(self, method.replace(".", "_"))(given)
        except Refused as error:
            return web.json_response({"ok": False, "error": str(error)})
        if failure == "lost":
            assert request.transport is not None
            request.transport.abort()
        return web.json_response({"ok": True, **made})

    def _put_off(self, method: str) -> int:
        if method not in self.limits:
            return 0
        most, seconds = self.limits[method]
        times, now = self._times[method], time.monotonic()
        times[:] = [each for each in times if each > now - seconds]
        if len(times) >= most:
            return max(1, round(times[0] + seconds - now))
        times.append(now)
        return 0

    def _check_token(self, request: web.Request, method: str, given: Json) -> None:
        bearer = request.headers.get("Authorization", "").removeprefix("Bearer ")
        wanted = APP_TOKEN if method == "apps.connections.open" else BOT_TOKEN
        if self.revoked:
            raise Refused("token_revoked")
        if (bearer or given.get("token")) != wanted:
            raise Refused("invalid_auth")

    def auth_test(self, _: Json) -> Json:
        return {"bot_id": BOT, "user_id": BOT_USER, "team_id": "T0", "url": "https://x.slack.com/"}

    def apps_connections_open(self, _: Json) -> Json:
        return {"url": f"{self.address.replace('http', 'ws')}/socket"}

    def users_info(self, given: Json) -> Json:
        if given["user"] not in NAMES:
            raise Refused("user_not_found")
        return {"user": {"id": given["user"], "profile": {"display_name": NAMES[given["user"]]}}}

    def chat_postMessage(self, given: Json) -> Json:
        self._check_channel(given)
        thread = given.get("thread_ts")
        if thread and not any(m["ts"] == thread for m in self.messages):
            raise Refused("thread_not_found")
        check_message(given)
        ts = self._now()
        kept = {key: given.get(key) for key in ("text", "blocks", "metadata")}
        message = {"ts": ts, "bot_id": BOT, "user": BOT_USER, "channel": given["channel"], **kept}
        self.messages.append(message | ({"thread_ts": thread} if thread else {}))
        return {"ts": ts, "channel": given["channel"], "message": message}

    def chat_update(self, given: Json) -> Json:
        self._check_channel(given)
        check_message(given)
        found = [m for m in self.messages if m["ts"] == given["ts"]]
        if not found:
            raise Refused("message_not_found")
        if found[0].get("bot_id") != BOT:
            raise Refused("cant_update_message")
        found[0].update({key: given.get(key) for key in ("text", "blocks", "metadata")})
        return {"ts": given["ts"], "channel": given["channel"]}

    def chat_delete(self, given: Json) -> Json:
        if not any(m["ts"] == given["ts"] for m in self.messages):
            raise Refused("message_not_found")
        self.delete(given["ts"])
        return {"ts": given["ts"]}

    def chat_postEphemeral(self, given: Json) -> Json:
        self._check_channel(given)
        assert given["text"] and len(given["text"]) <= 4_000
        self.ephemeral.append(given)
        return {"message_ts": self._now()}

    def conversations_replies(self, given: Json) -> Json:
        self._check_channel(given)
        ts = given["ts"]
        if not any(m["ts"] == ts for m in self.messages):
            raise Refused("thread_not_found")
        found = [m for m in self.messages if m["ts"] == ts or m.get("thread_ts") == ts]
        return self._page(found, given)

    def conversations_history(self, given: Json) -> Json:
        self._check_channel(given)
        # The newest first, other than in a thread.
        return self._page([m for m in self.messages if "thread_ts" not in m][::-1], given)

    def _page(self, found: list[Json], given: Json) -> Json:
        oldest, latest = (
            tuple(map(int, str(given.get(name) or default).split(".")))
            for name, default in (("oldest", "0.0"), ("latest", "9999999999.0"))
        )
        later = [m for m in found if oldest < tuple(map(int, m["ts"].split("."))) < latest]
        start, most = int(given.get("cursor") or 0), int(given.get("limit") or 100)
        page = [dict(m) for m in later[start : start + most]]
        if str(given.get("include_all_metadata")).lower() not in ("1", "true"):
            page = [{k: v for k, v in m.items() if k != "metadata"} for m in page]
        more = start + most < len(later)
        cursor = str(start + most) if more else ""
        return {"messages": page, "has_more": more, "response_metadata": {"next_cursor": cursor}}

    def views_open(self, given: Json) -> Json:
        assert str(given["trigger_id"]).startswith("trigger.")
        view = given["view"]
        check_dialog(json.loads(view) if isinstance(view, str) else view)
        self.dialogs.append(json.loads(view) if isinstance(view, str) else view)
        return {"view": view}

    def _check_channel(self, given: Json) -> None:
        if given.get("channel") != self.channel:
            raise Refused("channel_not_found")

    # ------------------------------------------------------------ Socket Mode

    async def _socket(self, request: web.Request) -> web.WebSocketResponse:
        socket = web.WebSocketResponse()
        await socket.prepare(request)
        await socket.send_json({"type": "hello", "num_connections": 1})
        self.sockets.append(socket)
        self.connected.set()
        async for each in socket:
            if each.type is aiohttp.WSMsgType.TEXT:
                said = each.json()
                future = self.acknowledged.get(said.get("envelope_id", ""))
                if future and not future.done():
                    future.set_result(said.get("payload") or {})
        if socket in self.sockets:
            self.sockets.remove(socket)
        return socket


@asynccontextmanager
async def slack(given: Slack | None = None) -> AsyncIterator[Slack]:
    """Have a workspace for as long as the block lasts."""
    workspace = given or Slack()
    app = web.Application()
    methods = "|".join(each.replace(".", r"\.") for each in METHODS)
    app.add_routes(
        [
            web.route("*", f"/api/{{method:{methods}}}", workspace._answer),
            web.get("/socket", workspace._socket),
        ]
    )
    runner = web.AppRunner(app, access_log=None, shutdown_timeout=1)
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", 0)
    await site.start()
    workspace.address = f"http://127.0.0.1:{runner.addresses[0][1]}"
    try:
        yield workspace
    finally:
        for socket in [*workspace.sockets]:
            await socket.close()
        await runner.cleanup()


# ---------------------------------------------------------------- what Slack takes


def check_message(given: Json) -> None:
    """Raise Refused for a message that Slack would not take."""
    blocks = given.get("blocks") or []
    if not given.get("text") or len(given["text"]) > 40_000:
        raise Refused("no_text")
    if len(blocks) > 50 or len({b.get("block_id", id(b)) for b in blocks}) != len(blocks):
        raise Refused("invalid_blocks")
    if sum(len(each) for each in texts_of(blocks)) > MOST_CHARACTERS:
        raise Refused("msg_blocks_too_long")
    metadata = given.get("metadata") or {}
    if {*metadata} != {"event_type", "event_payload"}:
        raise Refused("invalid_metadata_format")
    for block in blocks:
        if block["type"] not in TYPES or len(block.get("block_id", "")) > 255:
            raise Refused("invalid_blocks")
        _check_block(block)


def _check_block(block: Json) -> None:
    match block["type"]:
        case "section":
            _check_text(block["text"], 3_000, {"mrkdwn", "plain_text"})
        case "header":
            _check_text(block["text"], 150, {"plain_text"})
        case "context":
            if not 1 <= len(block["elements"]) <= 10:
                raise Refused("invalid_blocks")
            for each in block["elements"]:
                _check_text(each, 3_000, {"mrkdwn", "plain_text"})
        case "actions":
            names = [each["action_id"] for each in block["elements"]]
            if not 1 <= len(names) <= 25 or len({*names}) != len(names):
                raise Refused("invalid_blocks")
            for each in block["elements"]:
                _check_button(each)


def _check_button(button: Json) -> None:
    _check_text(button["text"], 75, {"plain_text"})
    if len(button["value"]) > 2_000 or len(button["action_id"]) > 255:
        raise Refused("invalid_blocks")
    if button.get("style", "primary") not in ("primary", "danger"):
        raise Refused("invalid_blocks")
    if confirm := button.get("confirm"):
        for name, most in (("title", 100), ("text", 300), ("confirm", 30), ("deny", 30)):
            _check_text(confirm[name], most, {"plain_text"})


def check_dialog(view: Json) -> None:
    """Raise Refused for a dialog that Slack would not open."""
    for name in ("title", "submit", "close"):
        _check_text(view[name], 24, {"plain_text"})
    if (
        view["type"] != "modal"
        or len(view["private_metadata"]) > 3_000
        or len(view["blocks"]) > 100
    ):
        raise Refused("invalid_arguments")
    for block in view["blocks"]:
        if block["type"] == "section":
            _check_text(block["text"], 3_000, {"plain_text"})
            continue
        assert block["type"] == "input"
        _check_text(block["label"], 2_000, {"plain_text"})
        element = block["element"]
        if element["type"] == "static_select":
            assert 1 <= len(element["options"]) <= 100
            for each in element["options"]:
                _check_text(each["text"], 75, {"plain_text"})
                assert 1 <= len(each["value"]) <= 150
            assert element["initial_option"] in element["options"]
        else:
            assert element["type"] == "plain_text_input" and element["max_length"] <= 3_000


def _check_text(text: Json, most: int, kinds: set[str]) -> None:
    odd = "emoji" in text if text["type"] == "mrkdwn" else "verbatim" in text
    if text["type"] not in kinds or odd or not 1 <= len(text["text"]) <= most:
        raise Refused("invalid_blocks")


def texts_of(shown: Any) -> list[str]:
    """Return all texts that stand anywhere in blocks."""
    if isinstance(shown, dict):
        own = [shown["text"]] if isinstance(shown.get("text"), str) else []
        return own + [each for value in shown.values() for each in texts_of(value)]
    if isinstance(shown, list):
        return [each for value in shown for each in texts_of(value)]
    return []
