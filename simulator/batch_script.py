"""What a script says of batches: how long they take, and what goes wrong with them.

batches:
  seconds: [1, 3]           # from creation to the end; hold: true waits until it is released
  lasts: 60                 # then a batch expires (24 hours, unless a script says less)
  finishes: 0.4             # share of its requests that are answered when it is cut off
  hits: 0.6                 # share of the marked prefixes in the cache that are found there
  faults:                   # the first that applies decides
    - {step: create, first: 1, fault: drop, after: true}    # the batch exists, nobody is told
    - {step: results, nth: [1], fault: cut, at: 0.5}
rules:                      # those of messages hold in batches too; status: that request fails
  - {lane: batch, probability: 0.02, outcome: expired}
  - {lane: batch, text: row 7, status: 500}
"""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, model_validator

Step = Literal["create", "retrieve", "list", "cancel", "delete", "results"]
BatchFailure = Literal["drop", "hang", "html", "cut", "end", "short", "stall"]
WITHIN = ("cut", "end", "short", "stall")
"""Faults in the middle of results."""
DAY_SECONDS = 86_400.0
MOST_ROWS, MOST_BYTES = 100_000, 256 * 2**20


def _range(value: object) -> object:
    return (value, value) if isinstance(value, int | float) else value


Seconds = Annotated[
    tuple[Annotated[float, Field(ge=0)], Annotated[float, Field(ge=0)]], BeforeValidator(_range)
]


class BatchFault(BaseModel):
    """What goes wrong at one step. `drop` cuts the connection, `hang` says nothing for `seconds`
    and then cuts it, `html` is a gateway's page. In the middle of results, `cut` drops the
    connection within a line, `end` ends them well-formed within a line, `short` ends them after a
    whole line, `stall` goes silent.
    """

    model_config = ConfigDict(extra="forbid", frozen=True)

    step: Step
    first: int = Field(0, ge=0)
    """Only this many of the first requests of the step; 0: all."""
    nth: tuple[int, ...] = ()
    """Only these of them, counted from 1."""
    probability: float = Field(1.0, ge=0, le=1)
    after: bool = False
    """True if the request takes effect before it fails."""
    status: int = Field(0, ge=0, le=599)
    type: str = ""
    message: str = ""
    headers: dict[str, str] = {}
    fault: BatchFailure | None = None
    seconds: float = Field(3_600.0, ge=0)
    """How long hang and stall last."""
    at: float = Field(0.5, ge=0, le=1)
    """Share of the results that leave before they break off."""

    @model_validator(mode="after")
    def _is_one(self) -> BatchFault:
        if not (self.status or self.fault):
            raise ValueError("neither a status nor a fault")
        if self.fault in WITHIN and (self.step != "results" or self.after):
            raise ValueError(f"{self.fault!r} happens within results alone, not after them")
        return self


class Batches(BaseModel):
    """The behaviour of the endpoints of batches."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    offered: bool = True
    """False: the endpoint has no batches, as some gateways have none."""
    seconds: Seconds = (0.2, 0.2)
    """From a batch's creation to its end."""
    hold: bool = False
    """True if batches end only when they are released."""
    lasts: float = Field(DAY_SECONDS, gt=0)
    """Seconds until a batch expires."""
    keeps: float = Field(29 * DAY_SECONDS, ge=0)
    """Seconds from its creation until a batch's results are gone."""
    cancel_seconds: float = Field(0.0, ge=0)
    """How long it takes to cancel one."""
    finishes: float = Field(0.0, ge=0, le=1)
    """Share of the requests that were answered when a batch is canceled or expires."""
    hits: float = Field(1.0, ge=0, le=1)
    """Share of the marked prefixes in the cache that are found there."""
    behind: float = Field(0.0, ge=0)
    """Seconds until the list shows a new batch."""
    unseen: float = Field(0.0, ge=0)
    """Seconds until a new batch can be retrieved; before, it is not found."""
    foreign: int = Field(0, ge=0)
    """With each batch come so many of other users of the workspace, of the same size."""
    rate: float = Field(0.0, ge=0)
    """Requests to these endpoints per second of each workspace; beyond: 429. 0: any number."""
    burst: int = Field(1, ge=1)
    queued: int = Field(0, ge=0)
    """Requests of each workspace that may be in unfinished batches; beyond: 429. 0: any number."""
    most_rows: int = Field(MOST_ROWS, ge=1)
    most_bytes: int = Field(MOST_BYTES, ge=1)
    workspaces: dict[str, str] = {}
    """Workspaces by key; any other key has one of its own."""
    faults: tuple[BatchFault, ...] = ()
