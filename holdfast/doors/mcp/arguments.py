"""The arguments of each tool, as hosts are told them. Unknown ones are refused."""

from __future__ import annotations

from decimal import Decimal
from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field, WithJsonSchema

from holdfast.doors.mcp.telling import Part
from holdfast.intake.requests import Input

MOST_WAIT = 22.0
"""Seconds: an answer comes within 25."""
Dollars = Annotated[
    Decimal,
    Field(ge=0, le=10_000, allow_inf_nan=False),
    WithJsonSchema({"type": "number", "minimum": 0}),
]
Inputs = Annotated[
    dict[str, Input],
    # What an object may hold is told in words: its schema would be half of what hosts are told.
    WithJsonSchema({"type": "object", "additionalProperties": {"type": ["string", "object"]}}),
]
RunId = Annotated[str, Field(min_length=1, max_length=200, description="The id of a run.")]


class Arguments(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class Wanted(Arguments):
    """What preview and run have in common."""

    goal: str = Field("", max_length=20_000, description="What is wanted, in plain words.")
    inputs: Inputs = Field(
        default_factory=dict,
        max_length=100,
        description="What it may read, by a name of your choice (of a playbook: by its names): a"
        ' path below the current folder; `text:` and literal text; {"text": …}; {"rows": [{…}]}'
        ' for a table; or {"base64": …, "name": "file.pdf"}.',
    )
    dollars: Dollars | None = Field(
        None, description="The hard cap of the run in dollars. It never pays more."
    )
    playbook: str = Field(
        "", description="A ready variant: code-review, contract-review, competitive-intelligence …"
    )
    models: bool = Field(
        False, description="Let a playbook that can do without models ask them, too."
    )
    role: str = Field("", description="Give the whole goal to one agent of this role.")
    lane: Literal["now", "batch", "auto"] | None = Field(
        None,
        description="How the rows of a plan's maps are asked: batch costs half and takes up to a"
        " day. Left out: as the plan says.",
    )
    urgency: Literal["urgent", "normal", "bulk"] = Field(
        "normal", description="Before or behind the work of other runs."
    )
    reuse: str = Field(
        "",
        max_length=200,
        description="The id of a run: what its maps have of equal rows is taken over, unpaid.",
    )


class PreviewArguments(Wanted):
    pass


class RunArguments(Wanted):
    approval: Literal["auto", "always"] | Dollars = Field(
        "auto",
        description="When a person must approve the plan before it is worked on: auto (never),"
        " always, or above so many dollars.",
    )
    plan_of: str = Field(
        "",
        max_length=200,
        description="The id of a preview: its plan is run as it is, and not paid again.",
    )
    id: str = Field(
        "",
        max_length=100,
        description="An id of your own. Calling again with the same id and arguments gives the"
        " same run, and starts no second one.",
    )


class LookArguments(Arguments):
    id: str = Field(
        "", max_length=200, description="The id of a run. Left out: the latest runs of such doors."
    )
    part: Part = Field(
        "summary",
        description="summary; or in full: answer, plan, remarks (of a review), findings (what each"
        " subtask found).",
    )
    subtask: str = Field("", max_length=200, description="One subtask, by its id, in full.")
    offset: int = Field(0, ge=0, description="Where to go on in a long part.")
    wait_seconds: float = Field(
        20.0,
        ge=0,
        le=MOST_WAIT,
        allow_inf_nan=False,
        description="How long to wait for the run to end or to ask something. 0: answer at once.",
    )


class DecideArguments(Arguments):
    id: RunId
    decision: Literal[
        "approve", "reject", "answer", "decline", "skip", "retry", "raise_cap", "pause", "resume"
    ] = Field(
        description="approve or reject the plan, or approve or decline a tool's call; answer, skip"
        " or retry a subtask; raise_cap; pause or resume the run.",
    )
    call: int = Field(0, ge=0, description="The number of the call to approve or decline.")
    subtask: str = Field("", max_length=200, description="The subtask to answer, skip or retry.")
    rows: str = Field(
        "",
        max_length=20_000,
        description="To retry or skip rows of a map alone: failed, or ids of items with commas;"
        " also skipped (to retry) or open (to skip).",
    )
    text: str = Field(
        "", max_length=20_000, description="The answer, the reason, or a new instruction."
    )
    dollars: Dollars | None = Field(None, description="The new cap, for raise_cap.")


class CancelArguments(Arguments):
    id: RunId


class ReviewArguments(Arguments):
    repo: str = Field(
        ".", min_length=1, max_length=4_000, description="The top folder of a Git repository."
    )
    base: str = Field(
        "",
        max_length=300,
        description="Review what differs from this branch, tag or commit. Left out: from where the"
        " branch left its main line.",
    )
    scope: Literal["changed", "all"] = Field(
        "changed", description="all: the whole tree, not only what changed."
    )
    models: bool = Field(
        False, description="Let agents read the code, too. It costs; without, a review is free."
    )
    dollars: Dollars | None = Field(None, description="The hard cap, with models.")
    wait_seconds: float = Field(
        20.0, ge=0, le=MOST_WAIT, allow_inf_nan=False, description="How long to wait for its end."
    )
