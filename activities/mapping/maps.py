"""The activities of a map: read its items, ask its rows, put its table together."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from temporalio import activity

from holdfast.activities.asking.flights import Flights
from holdfast.activities.asking.heartbeat import beating
from holdfast.activities.asking.sending import Sending
from holdfast.activities.mapping import batch_looks, closing, merging, opening
from holdfast.activities.mapping.batch import BatchLane
from holdfast.activities.mapping.now import NowLane
from holdfast.activities.mapping.scanning import Inputs
from holdfast.activities.mapping.tally import Tally
from holdfast.activities.mapping.wanted import read_wanted
from holdfast.calls.rows import (
    BatchesLooked,
    BatchesMaterial,
    CloseMaterial,
    CollectMaterial,
    Items,
    MapTable,
    OpenMaterial,
    RowsDone,
    RowsMaterial,
    Submitted,
)
from holdfast.contracts.errors import RunStopping
from holdfast.contracts.plans import Lane
from holdfast.ports import Batches, Budget, Gate, Journal, Model, PriceOf, Store


@dataclass(frozen=True)
class Maps:
    """Activities of maps. Those that ask a model bring what came of each row, once, whatever worker
    dies; what they bring stays in the store.
    """

    store: Store
    inputs: Inputs
    journal: Journal
    model: Model | None
    price: PriceOf
    """Return the dollars of a call by the id of the model that served it; None if it has no price.
    """
    system: Mapping[str, str] = field(default_factory=dict)
    """The system prompts, by the name of their file."""
    roles: Mapping[str, str] = field(default_factory=dict)
    """The prompts of roles, for runs that do not say where theirs is kept."""
    gate: Gate | None = None
    """Paces the calls; None: every call leaves at once."""
    budget: Budget | None = None
    """The spending caps of this deployment; None: there are none but the run's."""
    batches: Batches | None = None
    """The endpoint's batches; None: it has none."""
    flights: Flights = field(default_factory=Flights)
    """The calls that this process has under way."""
    untold: str = ""
    """Why the system prompts cannot be used; empty: they can."""

    @property
    def asking(self) -> list[Callable[..., Any]]:
        """Its activities for workers that ask models."""
        return [
            self.ask_rows,
            self.submit_rows,
            self.look_at_batches,
            self.collect_rows,
            self.cancel_batches,
        ]

    @property
    def free(self) -> list[Callable[..., Any]]:
        """Its activities that ask no model."""
        return [self.open_map, self.close_map]

    @activity.defn
    async def open_map(self, material: OpenMaterial) -> Items:
        """Return the items of a map's input, in chunks. Raise CallRefused, before anything is paid,
        for an input that cannot be mapped as its plan says.
        """
        async with beating():
            if material.of_texts:
                return await merging.open_texts(self.store, material)
            return await opening.open_items(self.inputs, material)

    @activity.defn
    async def close_map(self, material: CloseMaterial) -> MapTable:
        """Return what stands of all rows, after people's decisions about some of them."""
        async with beating():
            return await closing.close(self.store, material)

    @activity.defn
    async def ask_rows(self, material: RowsMaterial) -> RowsDone:
        """Ask for an answer to each of some rows, several at a time. Nothing of a row is raised:
        each is in one of the groups that come back.
        """
        assert self.model is not None, "prepare admits no such run"
        tally = await self._tally(material, "now")
        sending = Sending(self.model, self.journal, self.gate, budget=self.budget)
        await NowLane(tally, sending, self.flights, material.at_once).run()
        return await tally.done(self.store)

    @activity.defn
    async def submit_rows(self, material: RowsMaterial) -> Submitted:
        """Make one batch of some rows, unless an attempt before this one has; nothing is paid yet.
        A batch that may have been made comes back among `suspects`.
        """
        async with beating() as notes:
            return await (await self._batch(material)).submit(notes)

    @activity.defn
    async def look_at_batches(self, material: BatchesMaterial) -> BatchesLooked:
        """Return how batches stand."""
        async with beating():
            return await batch_looks.look(self._batches(), material.batches)

    @activity.defn
    async def collect_rows(self, material: CollectMaterial) -> RowsDone:
        """Return what became of the rows of a batch that has ended; reading it costs nothing."""
        async with beating():
            lane = await self._batch(material.rows)
            await lane.collect(material)
            return await lane.tally.done(self.store)

    @activity.defn
    async def cancel_batches(self, material: BatchesMaterial) -> BatchesLooked:
        """End batches early, and return how they stand. What is done in them stays done."""
        async with beating():
            return await batch_looks.cancel(self._batches(), material.batches)

    async def _batch(self, material: RowsMaterial) -> BatchLane:
        tally = await self._tally(material, "batch")
        return BatchLane(tally, self._batches(), self.journal, self.budget)

    def _batches(self) -> Batches:
        assert self.batches is not None, "prepare admits no such run"
        return self.batches

    async def _tally(self, material: RowsMaterial, lane: Lane) -> Tally:
        if self.untold:
            raise RunStopping(self.untold)
        wanted = await read_wanted(self.store, material, self.system, self.roles)
        return Tally(wanted, material, lane, self.price)
