"""Waiting for an endpoint that could not be reached; no model is asked."""

from __future__ import annotations

from pydantic import Field

from holdfast.calls.kind import Kind
from holdfast.contracts import Contract, Reply
from holdfast.contracts.policies import Policy


class ReachMaterial(Contract):
    after_seconds: float = Field(0.0, ge=0)
    """Pause before the first look."""
    address: str = ""
    """Address as in `Unreached`, for readers of the history."""


class Reached(Contract):
    waited_seconds: float
    """Total wait as measured by the worker that saw it, or since it took over."""
    missed: bool = False
    """True if an earlier look found nobody."""


# Each attempt hands itself back in time, so that the Web UI shows what it last saw; how long a run
# waits in all is its limit's business, by schedule-to-close.
REACH = Kind(name="reach", reply=Reply[Reached], policy=Policy())
