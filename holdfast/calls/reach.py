"""Waiting for an endpoint that could not be reached; nothing is asked of a model."""

from __future__ import annotations

from pydantic import Field

from holdfast.calls.kind import Kind
from holdfast.contracts import Contract, Reply
from holdfast.contracts.policies import Policy


class ReachMaterial(Contract):
    """What `reach` waits for: that the endpoint can be reached again."""

    after_seconds: float = Field(0.0, ge=0)
    """How long it waits before it looks for the first time."""
    address: str = ""
    """As in `Unreached`, for whoever reads the history."""


class Reached(Contract):
    waited_seconds: float
    """In all, as the worker that saw it measured; a worker that took over counts from there."""
    missed: bool = False
    """Whether nobody was there at an earlier look."""


# Each attempt hands itself back in time, so that the Web UI shows what it last saw; how long a run
# waits in all is its limit's business, by schedule-to-close.
REACH = Kind(name="reach", reply=Reply[Reached], policy=Policy())
