"""The files by which a machine starts the embedded server when it starts, for schedules."""

from __future__ import annotations

import plistlib
import sys
from collections.abc import Callable, Mapping
from pathlib import Path

from holdfast.deployment import extras
from holdfast.deployment.invocation import OPTION, SCRIPT
from holdfast.deployment.settings import HOME, NAME, Settings

LABEL = "org.holdfast.embedded"


def systemd(settings: Settings) -> tuple[str, list[str]]:
    """Return a user unit of systemd, and where it belongs."""
    start, stop = (
        # A dollar begins a variable, in commands alone.
        " ".join(map(_quoted, _command(settings, what))).replace("$", "$$")
        for what in ("up", "down")
    )
    text = f"""[Unit]
Description=holdfast: embedded server and worker, for schedules

[Service]
Type=oneshot
RemainAfterExit=yes
Environment={_quoted(f"HOLDFAST_STATE_DIR={settings.state_dir}")}
# ANTHROPIC_API_KEY=... and other settings of the worker, a line each:
EnvironmentFile=-%h/.config/holdfast.env
ExecStart={start}
ExecStop={stop}

[Install]
WantedBy=default.target"""
    return text, [
        "Put it into ~/.config/systemd/user/holdfast.service, then:",
        "  systemctl --user enable --now holdfast; loginctl enable-linger",
    ]


def launchd(settings: Settings) -> tuple[str, list[str]]:
    """Return a launch agent of macOS, and where it belongs."""
    agent = {
        "Label": LABEL,
        "ProgramArguments": _command(settings, "up"),
        "EnvironmentVariables": {"HOLDFAST_STATE_DIR": str(settings.state_dir)},
        "RunAtLoad": True,
        # The server outlives the command that starts it.
        "AbandonProcessGroup": True,
    }
    file = f"~/Library/LaunchAgents/{LABEL}.plist"
    return plistlib.dumps(agent).decode().rstrip(), [
        f"Put it into {file}, with ANTHROPIC_API_KEY and other settings of the worker among the",
        f"variables, then: launchctl bootstrap gui/$(id -u) {file}",
    ]


KINDS: Mapping[str, Callable[[Settings], tuple[str, list[str]]]] = {
    "systemd": systemd,
    "launchd": launchd,
}


def _command(settings: Settings, what: str) -> list[str]:
    """Return the whole command, which finds everything from any folder."""
    program = ["-P", "-m", NAME] if extras.INSTALLED else [str(Path(HOME) / SCRIPT)]
    project = [OPTION, str(settings.project)] if settings.project else []
    return [sys.executable, *program, *project, what]


def _quoted(text: str) -> str:
    """Return a word as units write it."""
    escaped = text.replace("\\", "\\\\").replace('"', '\\"').replace("%", "%%")
    return f'"{escaped}"'
