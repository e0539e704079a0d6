"""Build what a worker registers: each activity with its collaborators. Every worker is built here,
also those of tests and measurements, which bring parts of their own.
"""

from __future__ import annotations

import logging
import os
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from functools import cache, partial
from pathlib import Path
from typing import Any

from temporalio import activity

from holdfast import __version__
from holdfast.activities import activities_of
from holdfast.activities.agents import Agents
from holdfast.activities.asking.allowance import Allowance
from holdfast.activities.asking.journal import FileJournal
from holdfast.activities.asking.prices import Prices
from holdfast.activities.asking.purses import Purses
from holdfast.activities.asking.shared_journal import SharedJournal
from holdfast.activities.by_project import activities_by_project
from holdfast.activities.catalogue.catalogue import Catalogue
from holdfast.activities.catalogue.templates import TEMPLATES
from holdfast.activities.catalogue.tools import CatalogueError
from holdfast.activities.examine import Lenses
from holdfast.activities.library.library import Library
from holdfast.activities.library.outcomes import read_outcomes_here
from holdfast.activities.library.shelves import Shelves, shelves_for
from holdfast.activities.mapping.maps import Maps
from holdfast.activities.mapping.scanning import Inputs
from holdfast.activities.model_endpoint import ModelEndpoint, model_endpoint, web_of_endpoint
from holdfast.activities.notify import Notices
from holdfast.activities.preparation import Preparation
from holdfast.activities.prompts.evidence import Evidence
from holdfast.activities.prompts.files import system_prompts
from holdfast.activities.proofs.contained import TestCommand
from holdfast.activities.proofs.proving import Proofs
from holdfast.activities.repositories.scratch import Snapshots
from holdfast.activities.review.lenses import find_idle, lenses_of
from holdfast.activities.review.placing import Placing
from holdfast.activities.snapshots import plain, snapshot
from holdfast.activities.toolset import fitting
from holdfast.activities.toolset.notices import Sender
from holdfast.activities.toolset.offering import Offering
from holdfast.activities.toolset.remembered import ToolLists
from holdfast.activities.toolset.servers import read_servers
from holdfast.activities.toolset.shelf import find_lacking, outlets_of, source_of, tools_for
from holdfast.activities.toolset.tool import Tool
from holdfast.activities.turns.workshop import Workshop
from holdfast.activities.use_tool import Tools
from holdfast.contracts import Outlet, Tier
from holdfast.deployment.settings import Settings
from holdfast.embedded import StateDir
from holdfast.embedded.allowed import allowed_roots
from holdfast.embedded.trouble import explained
from holdfast.ports import Gate, Journal, Lens, Store
from holdfast.temporal.connection import Target
from holdfast.temporal.past import ClosedRuns
from holdfast.temporal.treasury import Treasurer, caps_of
from holdfast.untrusted.known_secrets import KnownSecrets

logger = logging.getLogger(__name__)

MakeLenses = Callable[[Store, Path], Mapping[str, Lens]]
"""(store, scratch folder) -> the lenses of this worker, by name."""
MakeJournal = Callable[[Path], Journal]
"""folder -> the journal of this worker."""


def shipped_lenses(store: Store, scratch: Path) -> Mapping[str, Lens]:
    """Return the analysers."""
    return lenses_of(Snapshots(store, scratch))


# ---------------------------------------------------------------- the activities


@dataclass(frozen=True)
class Served:
    """The activities that a process registers, by who may carry them out."""

    preparing: list[Callable[..., Any]]
    """Activities on the queue of runs if these ask models, else on that of tools."""
    free: list[Callable[..., Any]]
    """Activities on the queue of tools: they ask no model."""
    asking: list[Callable[..., Any]]
    """Activities on the queue of runs, or of tools where a template answers."""
    tiers: tuple[Tier, ...]
    journal: Journal
    close: Callable[[], Awaitable[None]]
    """Closes the connections to the models."""


@dataclass(frozen=True)
class _Parts:
    """Parts that the activities of one worker share."""

    settings: Settings
    state: StateDir
    store: Store
    journal: Journal
    prices: Prices
    catalogue: Catalogue
    endpoint: ModelEndpoint
    lenses: Mapping[str, Lens]
    tools: Mapping[str, Tool]
    offering: Offering
    system: Mapping[str, str]
    """The system prompt of each kind of call; empty where no model is asked."""
    untold: str
    """Why the system prompts cannot be used; empty: they can, or nobody needs them."""
    purses: Purses | None
    """One for all projects; None: nothing is paid."""

    def preparation(self, *, embedded: bool) -> Preparation:
        return Preparation(
            catalogue=self.catalogue,
            store=self.store,
            pricing=self.prices,
            lenses=tuple(self.lenses),
            tools=tuple(self.tools),
            lacking=self._lacking(),
            effects=tuple(name for name, tool in self.tools.items() if tool.effects),
            volatile=tuple(name for name, tool in self.tools.items() if tool.volatile),
            offer=self.offering.offer_to,
            idle_lenses=partial(find_idle, self.store),
            asks=self.asks,
            outlets=self._outlets,
            tool_sources={
                name: source for name, tool in self.tools.items() if (source := source_of(tool))
            },
            take_snapshot=partial(
                snapshot.take,
                baselines=self.state.baselines,
                snapshots=Snapshots(self.store, self.state.snapshots),
            ),
            take_folder=plain.take,
            mapped=self._inputs(),
            allowed_roots=allowed_roots(self.settings, embedded=embedded),
            capabilities=self.endpoint.capabilities,
            has_endpoint=self.endpoint.model is not None,
            version=__version__,
            endpoint=self.endpoint.address,
            most_dollars=self.settings.most_dollars_run,
            capped=self.settings.capped_by,
            untold=self.untold,
            proving=self._proofs().find_way,
            library=Library(
                Shelves(shelves_for(self.settings.project, self.state.path)),
                self.catalogue,
                read_outcomes_here,
            ),
            past=ClosedRuns(activity.client, lambda: activity.info().task_queue).read,
        )

    def _proofs(self) -> Proofs:
        command = TestCommand.of(
            self.settings.test_command, self.settings.test_folders, as_root=os.geteuid() == 0
        )
        return Proofs(Snapshots(self.store, self.state.snapshots), command)

    def _secrets(self) -> KnownSecrets:
        """Return the values that no person is shown in a call, as the file of servers has them
        now.
        """
        return fitting.collect_secrets(self.settings.secrets, os.environ, self.offering.known()[0])

    def _outlets(self) -> tuple[Outlet, ...]:
        web = web_of_endpoint(self.settings, self.prices)
        ours = outlets_of(self.tools, self.settings.key, endpoint_web=web)
        return (*ours, *self.offering.outlets())

    def asks(self, name: str) -> bool:
        """True if a person must approve each call of a tool."""
        ours = self.tools.get(name)
        return ours.approval if ours else self.offering.asks(name)

    def agents(self, gate: Gate | None) -> Agents:
        return Agents(
            model=self.endpoint.model,
            journal=self.journal,
            store=self.store,
            roles={name: role.prompt for name, role in self.catalogue.roles.items()},
            system=self.system,
            untold=self.untold,
            templates=TEMPLATES,
            price=self.prices.price,
            gate=gate,
            code=Evidence(Snapshots(self.store, self.state.snapshots)).on,
            place=Placing(Snapshots(self.store, self.state.snapshots)).place,
            prover=self._proofs(),
            budget=self._budget(),
            tools={name: tool.spec for name, tool in self.tools.items()},
            unfit=partial(fitting.find_unfit, self.tools, self._secrets),
            address=self.endpoint.address,
            batches=self.endpoint.batches,
        )

    def maps(self, gate: Gate | None) -> Maps:
        return Maps(
            store=self.store,
            inputs=self._inputs(),
            journal=self.journal,
            model=self.endpoint.model,
            price=self.prices.price,
            system=self.system,
            roles={name: role.prompt for name, role in self.catalogue.roles.items()},
            gate=gate,
            budget=self._budget(),
            batches=self.endpoint.batches,
            untold=self.untold,
        )

    def _inputs(self) -> Inputs:
        return Inputs(self.store, Snapshots(self.store, self.state.snapshots))

    def using(self) -> Tools:
        snapshots = Snapshots(self.store, self.state.snapshots)
        scratch = self.state.tools
        workshop = Workshop(
            self.tools,
            self.store,
            snapshots,
            self.journal,
            scratch,
            self.offering.read,
            self.settings.key,
        )
        return Tools(workshop.call, self.store, self.journal)

    def _lacking(self) -> Mapping[str, str]:
        """Return the tools that cannot do their work here, and why."""
        web = web_of_endpoint(self.settings, self.prices)
        whys = {
            name: find_lacking(tool, self.settings, endpoint_web=web)
            for name, tool in self.tools.items()
        }
        return {name: why for name, why in whys.items() if why}

    def _budget(self) -> Allowance | None:
        """Return what holds calls to the deployment's own caps."""
        if self.purses is None:
            return None
        return Allowance(self.prices.price, self.settings.most_dollars_run, self.purses)


def _served(parts: Mapping[str, _Parts], gate: Gate | None, target: Target) -> Served:
    """All activities, by who may carry them out, from what each project has."""
    common = parts[""]
    asked = common.endpoint.model is not None
    prepare = {name: each.preparation(embedded=target.embedded) for name, each in parts.items()}
    ask = {name: each.agents(gate) for name, each in parts.items()}
    use = {name: each.using() for name, each in parts.items()}
    # What a map asks is in the store, whatever its project.
    maps = common.maps(gate)
    return Served(
        preparing=activities_by_project(prepare),
        free=[
            *activities_of(Lenses(common.lenses, common.journal)),
            *activities_by_project(use),
            *maps.free,
            *activities_of(_notices(common.settings)),
        ],
        asking=[*activities_by_project(ask), *maps.asking],
        tiers=tuple(card.tier for card in common.prices.cards()) if asked else (),
        journal=common.journal,
        close=partial(_close, common),
    )


async def _close(parts: _Parts) -> None:
    if parts.purses is not None:
        await parts.purses.close()
    await parts.endpoint.close()


def _purses(settings: Settings, target: Target) -> Purses:
    """Return the process's slices of what the deployment may spend."""
    caps = caps_of(settings)
    # A process has one client, which its activities know.
    return Purses(Treasurer(cache(activity.client), target.task_queue, caps), bind=caps.bind)


def _notices(settings: Settings) -> Notices:
    sender = Sender(settings.key("webhook_secret"), private=settings.webhook_private)
    return Notices(sender.send)


def _describe(endpoint: ModelEndpoint) -> tuple[Mapping[str, str], str]:
    """Return the system prompts, and why they cannot be used: a worker without them does all other
    work.
    """
    if endpoint.model is None:
        return {}, ""
    try:
        return system_prompts(), ""
    except CatalogueError as error:
        logger.error("no model is asked: %s", error)
        return {}, str(error)


def build(
    settings: Settings,
    target: Target,
    gate: Gate | None = None,
    *,
    make_lenses: MakeLenses = shipped_lenses,
    make_journal: MakeJournal | None = None,
    store: Store | None = None,
    catalogue: Catalogue | None = None,
    tools: Mapping[str, Tool] | None = None,
    endpoint: ModelEndpoint | None = None,
    pays: bool = True,
) -> Served:
    """Wire the collaborators; what is None is as the settings say, and without a gate every call
    leaves at once. `pays` False: the endpoint costs nothing, and no cap holds. Raise ValueError
    saying what is wrong with a setting or a file.
    """
    state = StateDir.of(settings)
    with explained(state.path):
        state.create()
    store = store or target.store
    common = next(iter(settings.by_project.values()))
    prices = Prices.of(common)
    endpoint = endpoint or model_endpoint(common, prices, state.heard)
    system, untold = _describe(endpoint)
    journal = (make_journal or partial(FileJournal, keys=target.keys))(state.journal)
    lenses = make_lenses(store, state.snapshots)
    if common.shared_journal:
        journal = SharedJournal(journal, store)
    purses = _purses(common, target) if pays else None

    def parts_of(own: Settings) -> _Parts:
        return _Parts(
            settings=own,
            state=state,
            store=store,
            journal=journal,
            prices=Prices.of(own),
            catalogue=catalogue or Catalogue.of(own.project),
            endpoint=endpoint,
            lenses=lenses,
            tools=tools_for(own.project) if tools is None else tools,
            offering=Offering(
                partial(read_servers, own.mcp_file, os.environ), store, ToolLists(state.servers)
            ),
            system=system,
            untold=untold,
            purses=purses,
        )

    parts = {name: parts_of(own) for name, own in settings.by_project.items()}
    # Of a worker of one project, also for runs that name none.
    parts.setdefault("", next(iter(parts.values())))
    return _served(parts, gate, target)
