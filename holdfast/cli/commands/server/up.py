"""`up`: hold the embedded server and its worker up until `down`."""

from __future__ import annotations

from holdfast import embedded
from holdfast.cli.screen.exits import Code
from holdfast.cli.screen.streams import say
from holdfast.deployment.invocation import STARTER
from holdfast.deployment.settings import Settings
from holdfast.intake.goals import check_startable


def command() -> int:
    """Start the embedded server and worker, and hold them up until `down`."""
    return run(Settings())


def run(settings: Settings) -> int:
    """Start and hold up; print where they listen."""
    # A worker that cannot start says so in its log alone.
    check_startable(settings)
    endpoint = embedded.up(settings)
    say(f"Up: Temporal at {endpoint.target.address}, state in {settings.state_dir}")
    say(f"Web UI: {endpoint.target.ui_url}")
    say(f"Stop it with: {STARTER} down", "dim")
    return Code.COMPLETE
