"""What the commands that start a run share: when its plan is shown first, what is said of it
before, its first lines, and the span of it that a backend is sent.
"""

from __future__ import annotations

from collections.abc import Callable, Coroutine
from decimal import Decimal
from typing import Any

from holdfast.cli.checks.endpoint import endpoint_of
from holdfast.cli.screen.exits import Code, Exit
from holdfast.cli.screen.streams import say
from holdfast.cli.shared.connection import announce, tell, with_connection
from holdfast.contracts import Approval, Goal
from holdfast.deployment.address import address_of
from holdfast.deployment.settings import Settings
from holdfast.intake.connection import Connection
from holdfast.intake.goals import approval_of
from holdfast.intake.launch import launch
from holdfast.rendering.amounts import money
from holdfast.telemetry.otel.commands import CommandSpan, begin_span

ASK_ABOVE = Approval(when="above", dollars=Decimal("0.50"))
"""Price above which a terminal asks; elsewhere nobody could answer."""


def approval_when(text: str, *, yes: bool, terminal: bool) -> Approval:
    """Return when the plan is shown first: as typed, else above $0.50 if somebody can answer."""
    if yes and text:
        raise Exit("give either --yes or --approval")
    return approval_of(text, ASK_ABOVE if terminal and not yes else Approval())


def endpoint_known(settings: Settings, *, embedded: bool) -> str:
    """Return where the models of a run are, as far as this shell knows."""
    return address_of(endpoint_of(settings)) if embedded else "the worker's endpoint"


def say_what_is_sent(goal: Goal, endpoint: str) -> None:
    """Print what a run that asks models may spend and send; nothing for one that does not."""
    if not goal.use_models:
        return
    sent = ", ".join(
        each.name if each.kind == "text" else f"{each.name} ({each.value})" for each in goal.inputs
    )
    parts = ["the goal"]
    parts += ["what the run before found"] if goal.fork and goal.fork.findings else []
    parts += [f"what they need of your inputs: {sent}"] if sent else []
    *first, last = parts
    most = money(goal.limits.dollars)
    say(f"Models at {endpoint} are asked; at most {most} is spent.")
    named = ", ".join(first) + f", and {last}" if first else last
    say(f"Sent there: {named}.")


def with_span(
    name: str,
    settings: Settings,
    embedded: bool,
    do: Callable[[Connection, CommandSpan], Coroutine[Any, Any, int]],
) -> int:
    """Run a command that starts a run, with a connection and a span; return its exit code."""
    span = begin_span(name, _warn)
    try:
        code = with_connection(settings, embedded, lambda connection: do(connection, span))
        span.error = Code(code).name.lower() if code else ""
    except BaseException as raised:
        span.error = type(raised).__name__
        raise
    finally:
        span.end(settings.secrets, _warn)
    return code


def _warn(line: str) -> None:
    say(line, "magenta")


async def start_run(
    connection: Connection,
    goal: Goal,
    run_id: str,
    *,
    span: CommandSpan | None = None,
) -> str:
    """Launch a run and print its id; return it. `span` is the command's, the parent of the run's
    spans.
    """
    span = span or CommandSpan()
    launched = await launch(connection, goal, run_id, tell, traceparent=span.handed_on)
    span.run_id = launched.run_id
    await announce(connection, launched.run_id)
    if launched.attached:
        say("A run of this id and goal exists already; attached to it.", "dim")
    return launched.run_id
