"""Slack's Web API as the door uses it: within its rates, nothing sent twice by a retry of ours."""

from __future__ import annotations

import asyncio
import logging
from collections import defaultdict
from collections.abc import AsyncIterator, Mapping
from dataclasses import dataclass, field
from typing import Any

import aiohttp
import structlog
from slack_sdk.errors import SlackApiError
from slack_sdk.http_retry.builtin_async_handlers import AsyncRateLimitErrorRetryHandler
from slack_sdk.web.async_client import AsyncWebClient

from holdfast.doors.slack.blocks import Block, Message
from holdfast.doors.slack.words import cut, escape
from holdfast.errors import Refused
from holdfast.text import visible

BOT = "SLACK_BOT_TOKEN"
EVENT_TYPE = "holdfast"
"""Of the metadata of our messages: which run, and which part of its thread."""
REVOKED = ("invalid_auth", "token_revoked", "token_expired", "account_inactive", "not_authed")
"""What Slack says of a token that will never be good again."""
GONE = ("message_not_found", "thread_not_found")
AWAY = (aiohttp.ClientError, TimeoutError, ConnectionError)
LIMITED_TRIES = 20
"""How often a request is sent again that Slack put off; each time after as long as it says."""
MOST_NAME = 60
MOST_NAMES = 1_000
PAGE, MOST_PAGES = 200, 5
QUIET = "holdfast.slack.sdk"
"""The logger of Slack's SDK, which repeats what the door itself says in a line."""
log = structlog.get_logger("holdfast.slack")


class Revoked(Refused):
    """Slack takes a token no more."""


@dataclass(frozen=True)
class Rate:
    """How often something may be done: so many at once, and then one every so many seconds."""

    seconds: float
    burst: int


RATES = {
    # Tier 3: more than 50 a minute for each method; and one message a second in each channel.
    "chat.update": Rate(1.2, 20),
    "conversations": Rate(1.2, 20),
    "chat.postMessage": Rate(1.0, 4),
    "board": Rate(2.0, 3),
}


class Pace:
    """Lets what is limited go as often as its rate allows, in the order of asking."""

    def __init__(self) -> None:
        self._next: dict[tuple[str, str], float] = defaultdict(float)

    async def turn(self, kind: str, of: str = "") -> None:
        """Return when it may be done once more."""
        rate, now = RATES[kind], asyncio.get_running_loop().time()
        free = max(self._next[kind, of], now - rate.seconds * (rate.burst - 1))
        self._next[kind, of] = free + rate.seconds
        if free > now:
            await asyncio.sleep(free - now)


def make_client(token: str, base_url: str = AsyncWebClient.BASE_URL) -> AsyncWebClient:
    """Return a client that sends again what Slack put off, and nothing else: what it may have done
    already must first be looked for.
    """
    limited = AsyncRateLimitErrorRetryHandler(max_retry_count=LIMITED_TRIES)
    quiet = logging.getLogger(QUIET)
    quiet.setLevel(logging.CRITICAL)
    return AsyncWebClient(token, base_url, retry_handlers=[limited], logger=quiet)


def error_of(error: Exception) -> str:
    """Return Slack's name of what went wrong, or what kept it from being asked."""
    if isinstance(error, SlackApiError):
        given = error.response
        data = given if isinstance(given, Mapping) else getattr(given, "data", None)
        named = data.get("error") if isinstance(data, Mapping) else ""
        return visible(str(named or f"status {getattr(given, 'status_code', '?')}"))[:100]
    return type(error).__name__


@dataclass
class Workspace:
    """A workspace, as the bot of a token sees it."""

    client: AsyncWebClient
    bot: str
    """The bot's id, which its messages bear."""
    user: str
    """The bot as people mention it."""
    pace: Pace = field(default_factory=Pace)
    _names: dict[str, str] = field(default_factory=dict)

    @classmethod
    async def of(cls, client: AsyncWebClient) -> Workspace:
        """Return the workspace of a client's token. Revoked if Slack refuses it."""
        found = await client.auth_test()
        return cls(client, str(found["bot_id"]), str(found["user_id"]))

    async def post(
        self, channel: str, message: Message, run_id: str, part: str, thread: str = ""
    ) -> str:
        """Post a message; return its timestamp."""
        await self.pace.turn("chat.postMessage", channel)
        made = await self.client.chat_postMessage(
            channel=channel,
            text=message.text,
            blocks=[*message.blocks],
            metadata=_metadata(run_id, part),
            thread_ts=thread or None,
            # An address that a model wrote would be fetched.
            unfurl_links=False,
            unfurl_media=False,
        )
        return str(made["ts"])

    async def update(self, channel: str, at: str, message: Message, run_id: str, part: str) -> None:
        await self.pace.turn("chat.update")
        await self.client.chat_update(
            channel=channel,
            ts=at,
            text=message.text,
            blocks=[*message.blocks],
            metadata=_metadata(run_id, part),
        )

    async def delete(self, channel: str, at: str) -> None:
        await self.client.chat_delete(channel=channel, ts=at)

    async def tell(self, channel: str, person: str, text: str, thread: str = "") -> None:
        """Tell one person something that nobody else sees. Whatever goes wrong is logged."""
        try:
            await self.client.chat_postEphemeral(
                channel=channel,
                user=person,
                text=cut(escape(text), 2_000),
                thread_ts=thread or None,
            )
        except (SlackApiError, *AWAY) as error:
            log.warning("a person could not be told", channel=channel, why=error_of(error))

    async def open_dialog(self, trigger: str, view: Block) -> None:
        await self.client.views_open(trigger_id=trigger, view=view)

    async def name_of(self, person: str) -> str:
        """Return who a person is, as the history keeps it: their id, and the name they go by."""
        if person not in self._names:
            try:
                async with asyncio.timeout(2):
                    found = (await self.client.users_info(user=person))["user"]
            except (SlackApiError, *AWAY):
                return f"slack:{person}"
            profile = found.get("profile") or {}
            name = profile.get("display_name") or found.get("real_name") or found.get("name") or ""
            plain = visible(" ".join(str(name).split()))[:MOST_NAME]
            if len(self._names) >= MOST_NAMES:
                self._names.clear()
            self._names[person] = f"slack:{person} ({plain})" if plain else f"slack:{person}"
        return self._names[person]

    # ------------------------------------------------------------ finding

    async def find(
        self, channel: str, run_id: str, since: str, thread: str = "", until: str = ""
    ) -> Mapping[str, list[str]]:
        """Return our messages of a run in a channel or a thread by their parts: the timestamps of
        each, the earliest first. Of more than a thousand messages the last are looked through.
        """
        found: dict[str, list[str]] = defaultdict(list)
        async for each in self.messages(channel, since, thread, until):
            made = each.get("metadata") or {}
            of = made.get("event_payload") or {}
            ours = each.get("bot_id") == self.bot and made.get("event_type") == EVENT_TYPE
            if ours and of.get("run") == run_id:
                found[str(of.get("part"))].append(str(each["ts"]))
        return {part: sorted(each, key=_moment) for part, each in found.items()}

    async def messages(
        self, channel: str, since: str, thread: str = "", until: str = ""
    ) -> AsyncIterator[Mapping[str, Any]]:
        """Yield what was written between two moments in a channel, or in one of its threads."""
        cursor: str | None = None
        for _ in range(MOST_PAGES):
            await self.pace.turn("conversations")
            if thread:
                page = await self.client.conversations_replies(
                    channel=channel,
                    ts=thread,
                    oldest=since,
                    limit=PAGE,
                    cursor=cursor,
                    include_all_metadata=True,
                )
            else:
                page = await self.client.conversations_history(
                    channel=channel,
                    oldest=since,
                    latest=until or None,
                    limit=PAGE,
                    cursor=cursor,
                    include_all_metadata=True,
                )
            for each in page["messages"]:
                yield each
            cursor = (page.get("response_metadata") or {}).get("next_cursor")
            if not cursor:
                return


def _moment(ts: str) -> tuple[int, int]:
    whole, _, part = ts.partition(".")
    return int(whole), int(part or 0)


def _metadata(run_id: str, part: str) -> dict[str, Any]:
    return {"event_type": EVENT_TYPE, "event_payload": {"run": run_id, "part": part}}
