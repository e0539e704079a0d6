"""The state of one segment of a map, its moves and its events: plain values."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta

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
from holdfast.ledger.ledger import Amount, Ledger
from holdfast.state.events import Trouble, cancel_event


@dataclass(frozen=True)
class OpenMap:
    """Read the input; or group the texts of the level before, where texts are merged."""

    number: int
    material: OpenMaterial

    @property
    def id(self) -> str:
        return f"open-{self.number}"


@dataclass(frozen=True)
class CloseMap:
    """Put together what stands of all rows, and carry out orders on it."""

    number: int
    material: CloseMaterial

    @property
    def id(self) -> str:
        return f"close-{self.number}"


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
class LookAtBatches:
    number: int
    material: BatchesMaterial

    @property
    def id(self) -> str:
        return f"look-{self.number}"


@dataclass(frozen=True)
class CancelBatches:
    number: int
    material: BatchesMaterial

    @property
    def id(self) -> str:
        return f"cancel-{self.number}"


@dataclass(frozen=True)
class CollectRows:
    """Read the results of a batch that has ended."""

    number: int
    material: CollectMaterial
    batch: str
    """The id of the move that submitted it."""

    @property
    def id(self) -> str:
        return f"collect-{self.number}"


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
class CutAsked:
    """The map is to end."""

    why: str
    at: datetime


def cut_event(by: str, at: datetime) -> CutAsked:
    """Return the event of a cancel at a recorded moment. `by` is Temporal's reason of it: who
    asked, or nothing where the run above did, which knows why.
    """
    who = cancel_event(by, at).by
    return CutAsked(f"cancelled by {who}" if who else "cut by the run above", at)


@dataclass(frozen=True)
class HoldAsked:
    """The segment is to end once everything in flight has landed: to go on later."""

    at: None = None


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
