"""Stand at the door: by Socket Mode, which needs no address, or by signed requests on loopback."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator, Callable, Mapping, MutableMapping
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass

import structlog
from aiohttp import web
from slack_bolt.adapter.aiohttp import to_aiohttp_response
from slack_bolt.adapter.socket_mode.async_handler import AsyncSocketModeHandler
from slack_bolt.async_app import AsyncApp
from slack_bolt.request.async_request import AsyncBoltRequest
from slack_sdk.errors import SlackApiError
from slack_sdk.signature import SignatureVerifier
from slack_sdk.web.async_client import AsyncWebClient

from holdfast.activities.catalogue.catalogue import Catalogue
from holdfast.deployment.settings import Settings
from holdfast.doors.slack.app import make_app
from holdfast.doors.slack.channels import Channel, Channels
from holdfast.doors.slack.door import Door
from holdfast.doors.slack.workspace import (
    AWAY,
    BOT,
    QUIET,
    REVOKED,
    Revoked,
    Workspace,
    error_of,
    make_client,
)
from holdfast.errors import BadSettings, Unreachable
from holdfast.intake.connection import Connection

HOST, PATH = "127.0.0.1", "/slack/events"
APP, SIGNING = "SLACK_APP_TOKEN", "SLACK_SIGNING_SECRET"
OTHERS = ("SLACK_CLIENT_ID", "SLACK_CLIENT_SECRET", "SLACK_VERIFICATION_TOKEN")
"""What the SDK would take from the environment by itself, for ways of working that are not ours."""
MOST_BODY = 1024 * 1024
LOST_SECONDS = 30.0
"""How long the connection may be down until it is said why."""
log = structlog.get_logger("holdfast.slack")


@dataclass(frozen=True)
class Secrets:
    """What Slack gave to whoever made the app."""

    bot: str
    app: str = ""
    signing: str = ""

    @classmethod
    def taken(cls, environment: MutableMapping[str, str], *, http: bool) -> Secrets:
        """Return what the environment has, and take it out: no process that this one starts needs
        it. BadSettings names what is missing.
        """
        found = {name: environment.pop(name, "").strip() for name in (BOT, APP, SIGNING, *OTHERS)}
        needed = SIGNING if http else APP
        kinds = {BOT: "xoxb-", APP: "xapp-", SIGNING: ""}
        for name in (BOT, needed):
            if not found[name]:
                other = "" if http or name == BOT else f", or {SIGNING} with --port"
                raise BadSettings(f"slack needs {name} in the environment{other}; it is not set")
            if not found[name].startswith(kinds[name]) or not found[name].isascii():
                raise BadSettings(f"{name}: begins with {kinds[name] or 'a letter or digit'}")
        return cls(found[BOT], found[APP], found[SIGNING])

    @property
    def all(self) -> tuple[str, ...]:
        return tuple(filter(None, (self.bot, self.app, self.signing)))


def channels_of(settings: Settings) -> Channels:
    """Return the channels of the project. BadSettings if there is none."""
    folder = settings.project
    if folder is None:
        raise BadSettings(
            "slack needs a project, whose holdfast.toml names channels; make one with init"
        )
    return Channels(folder, lambda: Catalogue.of(folder))


async def serve(
    connection: Connection,
    secrets: Secrets,
    port: int | None,
    tell: Callable[[str], None],
    base_url: str = AsyncWebClient.BASE_URL,
) -> None:
    """Stand at the door until cancelled. Revoked when Slack takes a token no more. `port`: where to
    listen; None for Socket Mode.
    """
    known = channels_of(connection.settings)
    channels = known.now()
    client = make_client(secrets.bot, base_url)
    workspace = await _enter(client)
    await _check_channels(workspace, channels, tell)
    door = Door(connection, workspace, known)
    app = make_app(door)
    speaking = (
        _listening(app, secrets.signing, port)
        if port is not None
        else _connected(app, secrets.app, door)
    )
    try:
        async with speaking as where:
            door.stay(door.keep_up())
            door.do(door.catch_up())
            tell(f"In Slack {where}, in {len(channels)} channel{'s' * (len(channels) != 1)}.")
            raise Revoked(_refused(*await door.revoked))
    finally:
        await door.close()


async def _enter(client: AsyncWebClient) -> Workspace:
    try:
        return await Workspace.of(client)
    except SlackApiError as error:
        raise Revoked(_refused(BOT, error_of(error))) from error
    except AWAY as error:
        raise Unreachable(f"Slack does not answer: {error_of(error)}") from error


def _refused(variable: str, why: str) -> str:
    return (
        f"Slack refuses {variable} ({why}): install the app again, set what it shows, and start"
        " this again. Runs go on meanwhile, and their threads are caught up then."
    )


async def _check_channels(
    workspace: Workspace, channels: Mapping[str, Channel], tell: Callable[[str], None]
) -> None:
    """Say of which channels nothing can be read: the bot is not there, or lacks a scope."""
    for each in channels:
        try:
            await workspace.client.conversations_history(channel=each, limit=1)
        except SlackApiError as error:
            tell(f"{each}: Slack says {error_of(error)}; invite the app to that channel")
        except AWAY as error:
            tell(f"{each}: Slack does not answer ({error_of(error)})")


# ---------------------------------------------------------------- Socket Mode


@asynccontextmanager
async def _connected(app: AsyncApp, token: str, door: Door) -> AsyncIterator[str]:
    """Be connected for as long as the block lasts. Revoked if Slack refuses the token."""
    try:
        opened = await app.client.apps_connections_open(app_token=token)
    except SlackApiError as error:
        raise Revoked(_refused(APP, error_of(error))) from error
    except AWAY as error:
        raise Unreachable(f"Slack does not answer: {error_of(error)}") from error
    handler = AsyncSocketModeHandler(app, token, logger=logging.getLogger(QUIET))
    handler.client.wss_uri = opened["url"]
    watching = asyncio.create_task(_watch(handler, token, door))
    try:
        await handler.client.connect()  # type: ignore[no-untyped-call]
        yield "by Socket Mode"
    finally:
        watching.cancel()
        await asyncio.gather(watching, return_exceptions=True)
        with suppress(*AWAY):
            await handler.client.close()  # type: ignore[no-untyped-call]


async def _watch(handler: AsyncSocketModeHandler, token: str, door: Door) -> None:
    """Say why the connection is down, in a line; the SDK goes on to connect again."""
    said = ""
    while True:
        await asyncio.sleep(LOST_SECONDS)
        if await handler.client.is_connected():
            said = ""
            continue
        why = "the connection does not come up"
        try:
            opened = await handler.app.client.apps_connections_open(app_token=token)
            # The SDK tries its first address again and again, which is good for a while only.
            handler.client.wss_uri = opened["url"]
        except SlackApiError as error:
            why = error_of(error)
            if why in REVOKED:
                door.leave(APP, why)
                return
        except AWAY as error:
            why = error_of(error)
        if why != said:
            said = why
            log.warning("not connected to Slack; it is tried again", why=why)


# ---------------------------------------------------------------- HTTP


@asynccontextmanager
async def _listening(app: AsyncApp, secret: str, port: int) -> AsyncIterator[str]:
    """Listen on loopback for as long as the block lasts. BadSettings if the port is taken."""
    served = web.Application(client_max_size=MOST_BODY)
    served.add_routes([web.post(PATH, _Handler(app, secret).take)])
    runner = web.AppRunner(served, access_log=None)
    await runner.setup()
    try:
        site = web.TCPSite(runner, HOST, port)
        try:
            await site.start()
        except OSError as error:
            raise BadSettings(f"--port {port}: it is taken; name another port") from error
        yield f"at http://{HOST}:{runner.addresses[0][1]}{PATH}"
    finally:
        await runner.cleanup()


class _Handler:
    """Takes signed requests."""

    def __init__(self, app: AsyncApp, secret: str) -> None:
        self._app = app
        self._verifier = SignatureVerifier(secret)

    async def take(self, request: web.Request) -> web.Response:
        content = await request.read()
        if not self._is_signed(request, content):
            return web.Response(status=401, text="the signature is missing, wrong or old")
        try:
            given = AsyncBoltRequest(
                body=content.decode(),
                query=request.query_string,
                headers={name: value for name, value in request.headers.items()},
            )
        except (ValueError, TypeError, KeyError, IndexError, AttributeError, RecursionError):
            return web.Response(status=400, text="this is nothing that Slack sends")
        return await to_aiohttp_response(await self._app.async_dispatch(given))

    def _is_signed(self, request: web.Request, content: bytes) -> bool:
        moment = request.headers.get("X-Slack-Request-Timestamp", "")
        signature = request.headers.get("X-Slack-Signature", "")
        # The SDK's own check stumbles over what is no number or no text.
        plain = moment.isascii() and moment.isdecimal() and signature.isascii()
        if not plain or len(moment) > 12:
            return False
        try:
            return self._verifier.is_valid(content, moment, signature)
        except UnicodeDecodeError:
            return False
