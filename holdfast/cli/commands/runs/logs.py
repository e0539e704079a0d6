"""`logs`: what a run's workers wrote of it, from the log files of the state directory."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from datetime import datetime
from decimal import Decimal
from pathlib import Path
from typing import Annotated, Any

import typer

from holdfast.cli.screen.exits import Code, Exit
from holdfast.cli.screen.streams import OUT, put_json
from holdfast.cli.shared.connection import tell
from holdfast.cli.shared.options import AsJson, Embedded, RunId
from holdfast.client.connecting import own_target
from holdfast.deployment.settings import Settings
from holdfast.embedded import StateDir
from holdfast.rendering.amounts import money
from holdfast.text import one_line

_BESIDE = ("event", "timestamp", "level", "logger", "workflow_id", "run_id", "workflow_type")
_SHOWN_BEFORE = (*_BESIDE, "story", "exception", "stack")
"""Fields of a line that a person is shown in front, or not at all."""
_FIRST = ("subtask", "call", "tool", "command", "verdict", "status")
"""Facts of a story that need no label."""
_AMOUNTS = ("reserved", "expected")


def command(
    run_id: RunId,
    whole: Annotated[
        bool, typer.Option("--all", help="Not only the story: all that its workers logged of it.")
    ] = False,
    as_json: AsJson = False,
    embedded: Embedded = False,
) -> int:
    """Print a run's story from the logs of its workers: plan, calls, tries, people, answer."""
    settings = Settings()
    if not embedded and own_target(settings, tell) is not None:
        raise Exit(
            "workers of a server of your own write their logs to their standard error, as JSON"
            f" lines: look there for workflow_id {run_id}; `trace {run_id}` tells the same from the"
            " history"
        )
    folder = StateDir.of(settings).logs
    found = [each for each in read_lines(folder, run_id) if whole or "story" in each]
    if not found:
        raise Exit(
            f"no line of {run_id} is in {folder}, where each process of a worker keeps its last"
            f" 15 MB; `list` shows the runs there are, and `trace {run_id}` reads the history"
        )
    if as_json:
        put_json("\n".join(json.dumps(each, ensure_ascii=False) for each in found))
    else:
        for each in found:
            OUT.out(format_line(each, run_id), highlight=False)
    return Code.COMPLETE


def read_lines(folder: Path, run_id: str) -> list[dict[str, Any]]:
    """Return what all processes of a worker logged about a run and the runs below it, by time."""
    found = [each for path in sorted(folder.glob("worker*.jsonl*")) for each in _of(path, run_id)]
    return sorted(found, key=lambda each: str(each.get("timestamp", "")))


def _of(path: Path, run_id: str) -> Iterator[dict[str, Any]]:
    with path.open(encoding="utf-8", errors="replace") as file:
        for line in file:
            if run_id not in line:
                continue
            try:
                said = json.loads(line)
            except ValueError:
                # A worker that was killed may have left half a line.
                continue
            own = str(said.get("workflow_id", "")) if isinstance(said, dict) else ""
            if own == run_id or own.startswith(f"{run_id}."):
                yield said


def format_line(line: dict[str, Any], run_id: str) -> str:
    """Return a log line as text: when, what, and its facts."""
    at = str(line.get("timestamp", ""))
    try:
        at = datetime.fromisoformat(at).astimezone().strftime("%H:%M:%S.%f")[:-3]
    except ValueError:
        at = at[:12]
    below = str(line.get("workflow_id", "")).removeprefix(run_id).lstrip(".")
    # Of a story the attempt is that of the workflow task: nothing that a reader could use.
    hidden = (*_SHOWN_BEFORE, "attempt") if "story" in line else _SHOWN_BEFORE
    facts = {name: value for name, value in line.items() if name not in hidden}
    said = _story(facts) if "story" in line else _listed(facts)
    grave = f"{line['level']}: " if line.get("level") not in ("info", None) else ""
    what = f"{grave}{line.get('event', '')}"
    told = one_line(f"{f'[{below}] ' * bool(below)}{said}")
    return f"{one_line(at)}  {one_line(what):<9}  {told}".rstrip()


def _story(facts: Mapping[str, Any]) -> str:
    """Return the facts as `t1 work-t1-1 accepted $0.0017 tier=sonnet: why`, the most wanted
    first.
    """
    first = [_value(facts[name]) for name in _FIRST if facts.get(name)]
    paid = [_paid(facts["dollars"])] if facts.get("dollars") else []
    known = (*_FIRST, "dollars", "why")
    rest = {name: value for name, value in facts.items() if name not in known and value}
    rest |= {name: _paid(rest[name]) for name in _AMOUNTS if name in rest}
    said = " ".join(filter(None, (*first, *paid, _listed(rest))))
    return f"{said}: {facts['why']}".removeprefix(": ") if facts.get("why") else said


def _paid(amount: Any) -> str:
    try:
        return money(Decimal(str(amount)))
    except ArithmeticError:
        return f"price {_value(amount)}"


def _listed(facts: Mapping[str, Any]) -> str:
    return " ".join(f"{name}={_value(value)}" for name, value in facts.items())


def _value(value: Any) -> str:
    text = ",".join(map(str, value)) if isinstance(value, list) else str(value)
    return json.dumps(text, ensure_ascii=False) if " " in text else text
