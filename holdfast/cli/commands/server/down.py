"""`down`: stop the embedded server and its worker now."""

from __future__ import annotations

from holdfast import embedded
from holdfast.cli.screen.exits import Code
from holdfast.cli.screen.patience import patience
from holdfast.cli.screen.streams import say
from holdfast.cli.shared.moved import describe_moved
from holdfast.deployment.settings import Settings


def command() -> int:
    """Stop the embedded server and worker; open runs go on when it is up again."""
    return run(Settings())


def run(settings: Settings) -> int:
    """Stop what runs; return 0 also if nothing did."""
    with patience("Stopping the embedded server and its worker"):
        stopped = embedded.down(settings, say)
    if stopped:
        say(f"Stopped (pids {', '.join(map(str, stopped))}). Open runs go on at the next start.")
    else:
        say(f"Nothing was running. {describe_moved(settings)}".rstrip())
    return Code.COMPLETE
