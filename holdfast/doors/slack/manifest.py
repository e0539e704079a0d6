"""The manifest that makes the app in Slack: what it may do, and where Slack speaks to it."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

from holdfast.errors import Refused

_ADDRESS = re.compile(r"https://[A-Za-z0-9][A-Za-z0-9.:-]{0,252}(/[A-Za-z0-9._~/-]{0,500})?")
FILE = Path(__file__).parent / "manifest.json"


def manifest(url: str = "") -> str:
    """Return the manifest, to be pasted. `url`: where Slack reaches the door by HTTP; without one
    for Socket Mode. Refused if that is no address of https.
    """
    text = FILE.read_text(encoding="utf-8")
    if not url:
        return text.rstrip()
    if not _ADDRESS.fullmatch(url):
        raise Refused(
            f"--url {url!r:.100}: give the public address of --port, as"
            " https://runs.example.com/slack/events"
        )
    made: dict[str, Any] = json.loads(text)
    for command in made["features"]["slash_commands"]:
        command["url"] = url
    settings = made["settings"]
    settings["socket_mode_enabled"] = False
    settings["event_subscriptions"]["request_url"] = url
    settings["interactivity"]["request_url"] = url
    return json.dumps(made, indent=2)
