"""The state of one segment of a map, its moves and its events: plain values."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import ClassVar

from holdfast.calls.rows import (
    BatchesLooked,
    BatchesMaterial,
    CloseMaterial,
    CollectMaterial,
    Items,
    MapGoal,
    MapReport,
    MapResume,
    MapTable,
    OpenMaterial,
    Portion,
    RowsDone,
    RowsMaterial,
    Submitted,
)
from holdfast.contracts import policies
from holdfast.contracts.policies import Options
from holdfast.contracts.replacing import replace
from holdfast.ledger.ledger import Amount, Ledger
from holdfast.state.events import CutAsked, HoldAsked, Trouble


@dataclass(frozen=True)
class _Numbered:
    """What a map schedules, with an id by its purpose: `open-1`."""

    purpose: ClassVar[str]
    number: int

    @property
    def id(self) -> str:
        return f"{self.purpose}-{self.number}"


@dataclass(frozen=True)
class OpenMap(_Numbered):
    """Read the input; or group the texts of the level before, where texts are merged."""

    purpose = "open"
    material: OpenMaterial


@dataclass(frozen=True)
class CloseMap(_Numbered):
    """Put together what stands of all rows, and carry out orders on it."""

    purpose = "close"
    material: CloseMaterial


@dataclass(frozen=True)
class OfRows:
    """Some rows, and what is reserved for them."""

    material: RowsMaterial
    portion: Portion
    amount: Amount
    """Reserved for all its rows."""
    left: tuple[Portion, ...]
    """What is still to be asked, without them."""

    @property
    def id(self) -> str:
        return self.material.call.id


class AskRows(OfRows):
    """Ask rows now, several at once."""


class SubmitRows(OfRows):
    """Make a batch of rows."""


@dataclass(frozen=True)
class LookAtBatches(_Numbered):
    purpose = "look"
    material: BatchesMaterial


@dataclass(frozen=True)
class CancelBatches(_Numbered):
    purpose = "cancel"
    material: BatchesMaterial


@dataclass(frozen=True)
class CollectRows(_Numbered):
    """Read the results of a batch that has ended."""

    purpose = "collect"
    material: CollectMaterial
    batch: str
    """The id of the move that submitted it."""


@dataclass(frozen=True)
class End:
    """The segment is over."""

    report: MapReport


Flying = OpenMap | CloseMap | AskRows | SubmitRows | LookAtBatches | CancelBatches | CollectRows
Move = Flying | End
Result = Items | MapTable | RowsDone | Submitted | BatchesLooked


@dataclass(frozen=True)
class Ended:
    """An activity returned."""

    move: Flying
    result: Result

    @property
    def at(self) -> datetime | None:
        return getattr(self.result, "finished", None)


@dataclass(frozen=True)
class Lost:
    """An activity ended without a result."""

    move: Flying
    trouble: Trouble

    @property
    def at(self) -> datetime | None:
        return self.trouble.at


@dataclass(frozen=True)
class TimePassed:
    """A wait is over."""

    at: datetime


Event = Ended | Lost | CutAsked | HoldAsked | TimePassed


@dataclass(frozen=True)
class Timer:
    """The one wait of a map: until it looks at its batches, or asks the rest at once."""

    name: str
    due: datetime

    @property
    def then(self) -> TimePassed:
        return TimePassed(self.due)

    def left(self, now: datetime) -> timedelta:
        return max(self.due - now, policies.SHORTEST_SLEEP)


@dataclass(frozen=True)
class Flight:
    move: Flying
    started: datetime
    options: Options


@dataclass(frozen=True)
class Batch:
    """A batch that was made, until its results are read."""

    move: SubmitRows
    submitted: Submitted
    ended: bool = False
    cancelled: bool = False
    failures: int = 0
    """How often its results were read in vain."""

    @property
    def ids(self) -> tuple[str, ...]:
        """Ids at the endpoint: its own, or those of which one may be its own."""
        return (self.submitted.batch,) if self.submitted.batch else self.submitted.suspects


@dataclass(frozen=True)
class MapState:
    goal: MapGoal
    started: datetime
    now: datetime
    """The latest recorded moment."""
    ledger: Ledger
    stands: MapResume
    shared: int
    """Bytes of what all rows begin with, at most."""
    flights: Mapping[str, Flight] = field(default_factory=dict)
    batches: Mapping[str, Batch] = field(default_factory=dict)
    """Open batches, by the id of the move that submitted each."""
    numbers: Mapping[str, int] = field(default_factory=dict)
    looks: int = 0
    """Looks since a batch was last made."""
    look_at: datetime | None = None
    """When the open batches are to be looked at."""
    ordered: bool = False
    """True once the orders of the goal are carried out."""
    table: MapTable | None = None
    """What stands, once it was put together to end with."""
    text: str = ""
    unpaid_calls: int = 0
    anew: bool = False
    """True if anything was paid that had not been paid before the run above was reset."""
    served: str = ""
    """The model that the endpoint named for the first rows of the segment."""
    asked: int = 0
    """Calls of this segment."""
    notes: tuple[str, ...] = ()
    held: bool = False
    cut: str = ""
    """Reason to end the map; empty while there is none."""
    cut_at: datetime | None = None
    ending: MapReport | None = None
    """How the segment ends once nothing is in flight, where that is settled."""

    @property
    def over(self) -> MapReport | None:
        """How the segment ends once nothing is in flight; None: it goes on."""
        if self.cut:
            return MapReport(outcome="cut", why=self.cut)
        if self.ending is None and self.held:
            return MapReport(outcome="more")
        return self.ending


def stand(state: MapState, **changes: object) -> MapState:
    """Return a state whose rows stand otherwise."""
    return replace(state, stands=state.stands.model_copy(update=changes))
