"""What Slack sends, taken apart by its own SDK: mentions, commands, buttons and dialogs. Each is
answered at once; what takes longer comes behind.
"""

from __future__ import annotations

import json
import logging
import re
from collections.abc import Mapping
from decimal import Decimal
from typing import Any

from slack_bolt.async_app import AsyncAck, AsyncApp
from slack_bolt.authorization import AuthorizeResult

from holdfast.client.live.forms import dollars_of
from holdfast.doors.slack import places
from holdfast.doors.slack.blocks import ACTION, NEED_WORDS
from holdfast.doors.slack.door import Asked, Door, asked_of
from holdfast.doors.slack.words import escape, plain
from holdfast.doors.slack.workspace import QUIET
from holdfast.errors import Refused
from holdfast.rendering.amounts import money

COMMAND = "/holdfast"
OURS = re.compile(f"{ACTION}[a-z]+")
DIALOGS = ("reject", "decline", "answer", "raise")
"""Buttons that ask for words before they do anything."""
LATE = "It takes longer than usual. If no thread comes, say it again."
SLOW = "It takes longer than usual. See whether the thread shows it, and send it again if not."
Json = Mapping[str, Any]


def make_app(door: Door) -> AsyncApp:
    """Return the application. Who speaks to it is checked before: by the signature of a request, or
    the connection that it came by.
    """
    workspace = door.workspace

    async def authorize(**_: object) -> AuthorizeResult:
        return AuthorizeResult(
            enterprise_id=None,
            team_id=None,
            bot_token=workspace.client.token,
            bot_id=workspace.bot,
            bot_user_id=workspace.user,
        )

    app = AsyncApp(
        # It sets the level of the logger of this name, too.
        name=QUIET,
        logger=logging.getLogger(QUIET),
        client=workspace.client,
        authorize=authorize,
        request_verification_enabled=False,
        # A mention is acknowledged when its run is started, if that is soon: else Slack says it
        # again to whoever comes.
        process_before_response=True,
    )
    app.event("app_mention")(Mentions(door).take)
    app.command(COMMAND)(Commands(door).take)
    app.action(OURS)(Buttons(door).take)
    app.view(OURS)(Dialogs(door).take)
    return app


class Mentions:
    def __init__(self, door: Door) -> None:
        self._door = door

    async def take(self, event: dict[str, Any]) -> None:
        """Start the run that a message asks for which mentions the bot."""
        asked = asked_of(event, self._door.mentioned)
        if asked:
            await self._door.begin(asked)


class Commands:
    def __init__(self, door: Door) -> None:
        self._door = door

    async def take(self, ack: AsyncAck, command: dict[str, Any]) -> None:
        """Start the run of a slash command; why there is none is told to its sender alone."""
        place = places.of_command(
            str(command.get("channel_id", "")), str(command.get("trigger_id", ""))
        )
        if place is None:
            await ack("Runs are started in channels.")
            return
        person, goal = str(command.get("user_id", "")), plain(str(command.get("text", "")))
        # Slack says a command once only, and waits three seconds for an answer.
        try:
            why = await self._door.begin(Asked(place, person, goal))
        except TimeoutError:
            why = LATE
        await ack(escape(why))


class Buttons:
    def __init__(self, door: Door) -> None:
        self._door = door

    async def take(self, ack: AsyncAck, body: dict[str, Any], action: dict[str, Any]) -> None:
        """Give the order of a button, or open its dialog. It is acknowledged when that is done, so
        that Slack tells whoever pressed it where a door was closed meanwhile.
        """
        name = str(action.get("action_id", "")).removeprefix(ACTION)
        run_id, _, key = str(action.get("value", "")).partition(" ")
        person = str((body.get("user") or {}).get("id", ""))
        container = body.get("container") or {}
        channel = str((body.get("channel") or {}).get("id") or container.get("channel_id") or "")
        thread = str(container.get("thread_ts") or "")
        door = self._door
        if why := door.check_person(run_id, channel, person):
            door.do(door.workspace.tell(channel, person, why, thread))
        elif name in DIALOGS:
            trigger = str(body.get("trigger_id", ""))
            door.do(door.open_dialog(name, run_id, key, person, trigger, thread))
        elif not await door.do_first(door.decide(name, run_id, key, person, thread, {})):
            return
        await ack()


class Dialogs:
    def __init__(self, door: Door) -> None:
        self._door = door

    async def take(self, ack: AsyncAck, body: dict[str, Any], view: dict[str, Any]) -> None:
        """Give the order of a dialog; what was typed wrong is told in it."""
        name = str(view.get("callback_id", "")).removeprefix(ACTION)
        context = json.loads(view.get("private_metadata") or "{}")
        run_id, key = str(context.get("run", "")), str(context.get("key", ""))
        person = str((body.get("user") or {}).get("id", ""))
        place, door = places.parse(run_id), self._door
        channel = place.channel if place else ""
        given = _typed(view)
        block = next(iter(given), "text")
        if why := door.check_person(run_id, channel, person):
            await ack(response_action="errors", errors={block: why})
            return
        try:
            given = self._checked(name, channel, given)
        except Refused as error:
            block = "dollars" if name == "raise" else "text"
            await ack(response_action="errors", errors={block: str(error)})
            return
        thread = str(context.get("thread", ""))
        if await door.do_first(door.decide(name, run_id, key, person, thread, given)):
            await ack()
        else:
            await ack(response_action="errors", errors={block: SLOW})

    def _checked(self, name: str, channel: str, given: dict[str, str]) -> dict[str, str]:
        """Return what was typed. Refused if it cannot be an order."""
        if name == "raise":
            dollars, highest = dollars_of(given["dollars"]), self._door.channels[channel].highest
            if dollars > highest:
                raise Refused(f"A run of this channel may cost {money(highest)} at most.")
            return {"dollars": str(Decimal(dollars))}
        if given.get("choice") in NEED_WORDS and not given.get("text", "").strip():
            raise Refused("This needs words.")
        return given


def _typed(view: Json) -> dict[str, str]:
    """Return what stands in the fields of a dialog, by their names."""
    found = {}
    for name, elements in (view.get("state") or {}).get("values", {}).items():
        value = elements.get("value") or {}
        chosen = value.get("selected_option") or {}
        found[name] = str(value.get("value") or chosen.get("value") or "")
    return found
