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
    schema = shape.json_schema(by_alias=True)
    if what in ("goal", "playbook"):
        _allow_written_maps(schema)
    put_json(json.dumps(schema, indent=2))
    return Code.COMPLETE


def _allow_written_maps(schema: dict[str, Any]) -> None:
    """Allow what `written_maps` reads of a map in a plan: percents, paths of schemas, fields beside
    `map`, and no unit where the input is named like a file.
    """
    for name, each in schema.get("$defs", {}).items():
        if name.startswith("MapSpec"):
            fields = each["properties"]
            fields["tolerate"] = {"anyOf": [fields["tolerate"], {"type": "string"}]}
            fields["result"] = {"anyOf": [fields["result"], {"type": "string"}]}
            each["required"] = [field for field in each["required"] if field != "by"]
