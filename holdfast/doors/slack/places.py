"""Where a run stands in Slack: its id says it, so that nobody need keep it."""

from __future__ import annotations

import hashlib
import re
from dataclasses import dataclass

PREFIX = "slack-"
_TS = r"[0-9]{1,12}\.[0-9]{1,9}"
_ID = re.compile(rf"slack-([CGD][A-Z0-9]{{2,20}})-(?:({_TS})(?:-({_TS}))?|(c[0-9a-f]{{20}}))")
_MOMENT = re.compile(_TS)


@dataclass(frozen=True)
class Place:
    """The message that a run was asked for by, and the thread that it is told in."""

    channel: str
    message: str = ""
    """Slack's timestamp of it; empty for a slash command, which is no message."""
    thread: str = ""
    """The first message of its thread; empty for a command: the door posts one."""
    command: str = ""
    """What names a slash command."""

    @property
    def run_id(self) -> str:
        if self.command:
            return f"{PREFIX}{self.channel}-{self.command}"
        below = f"-{self.thread}" if self.thread != self.message else ""
        return f"{PREFIX}{self.channel}-{self.message}{below}"


def of_mention(channel: str, message: str, thread: str = "") -> Place | None:
    """Return the place of a message; None if its names are not as Slack's are."""
    if not all(map(_MOMENT.fullmatch, (message, thread or message))):
        return None
    place = Place(channel, message, thread or message)
    return place if parse(place.run_id) else None


def of_command(channel: str, trigger: str) -> Place | None:
    """Return the place of a slash command, by the trigger that each has for itself."""
    place = Place(channel, command=f"c{hashlib.sha256(trigger.encode()).hexdigest()[:20]}")
    return place if parse(place.run_id) else None


def parse(run_id: str) -> Place | None:
    """Return the place of a run; None if it was not started here."""
    found = _ID.fullmatch(run_id)
    if found is None:
        return None
    channel, message, thread, command = found.groups()
    return Place(channel, message or "", thread or message or "", command or "")
