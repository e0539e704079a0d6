"""`schema`: the JSON schemas of what programs send and are given."""

from __future__ import annotations

import json
from typing import Annotated, Any, Literal

import typer
from pydantic import TypeAdapter

from holdfast.activities.catalogue.files import PlaybookFile
from holdfast.cli.screen.exits import Code
from holdfast.cli.screen.streams import put_json
from holdfast.contracts import Report
from holdfast.contracts.events import AnyEvent
from holdfast.intake.requests import RunRequest


def command(
    what: Annotated[
        Literal["goal", "report", "event", "playbook"],
        typer.Argument(
            metavar="[WHAT]",
            help="goal: what --goal FILE and POST /runs take; report: what --json prints; event;"
            " playbook: what playbook.yaml says.",
        ),
    ] = "goal",
) -> int:
    """Print the JSON schema of a goal, a report, an event of a run, or a playbook's file."""
    shapes: dict[str, Any] = {"goal": RunRequest, "report": Report, "event": AnyEvent}
    shapes["playbook"] = PlaybookFile
    shape: TypeAdapter[object] = TypeAdapter(shapes[what])
    put_json(json.dumps(shape.json_schema(by_alias=True), indent=2))
    return Code.COMPLETE
