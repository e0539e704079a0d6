"""`prepare`, the first activity of every run: it resolves all that the deployment decides into the
Briefing.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import (
    Awaitable,
    Callable,
    Collection,
    Iterable,
    Iterator,
    Mapping,
    Sequence,
)
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from decimal import Decimal
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO, Protocol

from temporalio import activity

from holdfast.activities.asking.heartbeat import beating
from holdfast.activities.catalogue.answer_forms import refuse_form
from holdfast.activities.catalogue.ordering import order_review
from holdfast.activities.given import open_given, read_given
from holdfast.activities.repositories.documents import lacking_for_reader
from holdfast.activities.repositories.wanted import Wanted
from holdfast.activities.toolset.serving import (
    IdleLenses,
    Offer,
    RolesHere,
    add_offers,
    bar_teams,
    drop_idle,
    drop_inputs,
    find_none_idle,
    keep_servable,
    mark_tools,
    offer_nothing,
    omit_roles,
    roles_in,
    serve,
)
from holdfast.calling.lanes import as_batches
from holdfast.calling.proving import PROVE_INPUT
from holdfast.calls.plan import is_offered
from holdfast.contracts import (
    HARD_SUBTASK_LIMIT,
    Briefing,
    Capabilities,
    Goal,
    GoalInput,
    ItemsFound,
    ModelCard,
    Omission,
    Outlet,
    PinnedInput,
    Plan,
    PlaybookCard,
    Proving,
    RoleCard,
    Subtask,
)
from holdfast.contracts.errors import BadGoal, BlobLost, CapTooSmall
from holdfast.contracts.goals import RoleAsWas
from holdfast.contracts.past import RunTook
from holdfast.plans import mapping, validity
from holdfast.ports import Pricing, Store
from holdfast.rules import keeping, past
from holdfast.text.mistakes import refuse_choice, refuse_other
from holdfast.untrusted.redact import redact
from holdfast.untrusted.roots import Roots

if TYPE_CHECKING:
    # Only named in annotations: workflows import this module for its signature.
    from holdfast.activities.catalogue.catalogue import Catalogue
    from holdfast.activities.catalogue.files import PlaybookFile, PlaybookInput
    from holdfast.activities.library.library import Library

PREVIEW_BYTES = 2_000
"""Bytes of each input that the planner sees: 500 tokens of four bytes."""
INPUT_BYTES = 4 * 1024 * 1024

TakeSnapshot = Callable[[str, Path, Roots, Wanted, Store], Awaitable[PinnedInput]]
"""(name of the input, repository, what may be read, how much is wanted, store) -> its snapshot."""
TakeFolder = Callable[[GoalInput, Roots, Store], Awaitable[PinnedInput]]
"""(the input, what may be read, store) -> the snapshot of a plain folder."""


class Mapped(Protocol):
    """What is done with inputs whose items are mapped."""

    async def pin_large(self, name: str, value: str, file: BinaryIO) -> PinnedInput | None:
        """Pin an open file of any size; None for one that is pinned as any other input is. Raise
        BadGoal.
        """
        ...

    async def scan(
        self, pinned: PinnedInput, subtasks: Iterable[Subtask], reuse: Mapping[str, str]
    ) -> ItemsFound | None:
        """Return what the maps among these subtasks find in an input, and what of it they may take
        over of an earlier run, by the tables of that one's maps; None: none is over it. Raise
        BadGoal for what one of them cannot be carried out on.
        """
        ...

    async def peek(self, pinned: PinnedInput) -> ItemsFound | None:
        """Return what an input has that could be mapped; None: nothing."""
        ...


async def _know_no_past() -> Sequence[RunTook]:
    return ()


async def _prove_nothing() -> Proving:
    return Proving(lacking="this worker runs none")


@dataclass(frozen=True)
class Preparation:
    """Resolve what this deployment knows and allows."""

    catalogue: Catalogue
    store: Store
    pricing: Pricing
    lenses: tuple[str, ...]
    tools: tuple[str, ...] = field(default=(), kw_only=True)
    lacking: Mapping[str, str] = field(default_factory=dict, kw_only=True)
    """Tools that cannot do their work here, and why, as the rest of a sentence."""
    effects: tuple[str, ...] = field(default=(), kw_only=True)
    """Tools that change something outside."""
    volatile: tuple[str, ...] = field(default=(), kw_only=True)
    """Tools whose result may be another one later."""
    offer: Offer = field(default=offer_nothing, kw_only=True)
    idle_lenses: IdleLenses = field(default=find_none_idle, kw_only=True)
    asks: Callable[[str], bool] = field(default=lambda _: False, kw_only=True)
    """True if a person must approve each call of a tool."""
    outlets: Callable[[], tuple[Outlet, ...]] = field(default=tuple, kw_only=True)
    """Places that this worker's tools send the words of agents to."""
    tool_sources: Mapping[str, str] = field(default_factory=dict, kw_only=True)
    """Where tools come from that are not shipped, as the rest of a sentence."""
    take_snapshot: TakeSnapshot
    take_folder: TakeFolder = field(kw_only=True)
    mapped: Mapped = field(kw_only=True)
    allowed_roots: Callable[[], Roots]
    capabilities: Callable[[], Awaitable[Capabilities]]
    has_endpoint: bool
    version: str
    endpoint: str = ""
    """The address of the models, as it may be shown."""
    most_dollars: Decimal | None = None
    """What a run may spend here, whatever its goal says; None: what the goal says."""
    capped: str = ""
    """The setting that bounds dollars here, if any: then every model needs a price."""
    untold: str = ""
    """Why the system prompts cannot be used here; empty: they can."""
    proving: Callable[[], Awaitable[Proving]] = field(default=_prove_nothing, kw_only=True)
    """Return how proofs of remarks can be run here. Raise BadGoal for a test command that is not
    there.
    """
    library: Library | None = None
    """The templates of this worker; None: it has none."""
    past: Callable[[], Awaitable[Sequence[RunTook]]] = _know_no_past
    """Return what the latest closed runs took, newest first."""
    today: Callable[[], str] = lambda: datetime.now(UTC).date().isoformat()

    @activity.defn
    async def prepare(self, goal: Goal) -> Briefing:
        """Return everything that the run needs to know of its deployment. Raise BadGoal to refuse
        the run for good.
        """
        async with beating():
            await self._read_probe(goal)
            playbook = self._playbook(goal)
            if not goal.text.strip():
                raise BadGoal("the goal is empty; say what you want")
            if goal.depth >= goal.limits.depth:
                raise BadGoal(f"depth {goal.depth}: the limit is {goal.limits.depth} levels")
            if goal.use_models:
                self._check_models(goal)
            cards = self.catalogue.roles_for(_whose(goal))
            barred = bar_teams(cards, goal.path)
            cards = tuple(card for card in cards if card.name not in barred)
            cards = tuple(card for card in cards if _is_wanted(card, goal))
            ready = goal.plan or (playbook.plan if playbook else None)
            here = serve(cards, self.lenses, self.tools, self.lacking, use_models=goal.use_models)
            served = await add_offers(here, ready, self.offer)
            served = mark_tools(served, self.effects, self.volatile, self.asks)
            unusable = self.catalogue.unusable_for(_whose(goal))
            inputs = await self._pin_all(goal, playbook, _maps_of(ready))
            inputs = await self._scan_all(goal, ready, inputs)
            _refuse_broken(goal, ready, inputs)
            plan, not_run = keep_servable(_ready_plan(goal, playbook), served.missing)
            if plan and playbook and playbook.lenses and goal.plan is None:
                plan, lacking = await drop_idle(
                    plan, served.roles, inputs, self.idle_lenses, self._only_changes(served.roles)
                )
                not_run += lacking
                plan = self._order(plan, inputs)
            if goal.use_models and goal.plan is None and plan is None:
                not_run = omit_roles(
                    self._select_missed(goal, {**unusable, **served.unset}, served)
                )
            not_run += (*served.omissions(goal.plan or plan), *self._idle(goal, playbook))
            named = self._named_roles(goal, ready)
            _refuse_unreached(goal.plan or plan, served)
            proving = await self._proving(goal, playbook)
            if proving and proving.by and proving.lacking:
                not_run += (Omission(what="the test command", why=proving.lacking),)
            briefing = Briefing(
                roles=await self._roles_of(goal, served.roles),
                playbook=self._card(playbook, plan) if playbook else None,
                inputs=inputs,
                models=self._cards(goal) if goal.use_models else (),
                planner=self.pricing.planner() if goal.use_models and not goal.tier else None,
                capabilities=await self.capabilities() if goal.use_models else Capabilities(),
                not_run=not_run,
                unreached=served.named(named),
                version=self.version,
                outlets=served.reached(self.outlets()),
                tool_sources={
                    name: source
                    for name, source in self.tool_sources.items()
                    if any(name in card.tools for card in served.roles)
                },
                endpoint=self.endpoint if goal.use_models else "",
                shortens=True,
                barred=barred,
                most_dollars=self.most_dollars if goal.use_models else None,
                proving=proving,
                today=(goal.today or self.today()) if goal.use_models else "",
            )
        if goal.by_batch:
            briefing = as_batches(briefing)
        refuse_form(goal.form, briefing.playbook, use_models=goal.use_models)
        _refuse_bad_plan(goal, briefing, {**served.missing, **unusable, **barred})
        async with beating():
            briefing = await self._with_template(goal, briefing)
            if goal.use_models:
                learned = past.learn(await self.past(), briefing, goal)
                briefing = briefing.model_copy(update={"past": learned})
        _refuse_small_cap(goal, briefing)
        return briefing

    @activity.defn
    async def pin_inputs(self, goal: Goal) -> Briefing:
        """Return the inputs alone, for a tool that is tried by itself. Raise BadGoal."""
        async with beating():
            await self._read_probe(goal)
            inputs = await self._pin_all(goal, None, ())
        return Briefing(roles=(), inputs=inputs, version=self.version)

    async def _with_template(self, goal: Goal, briefing: Briefing) -> Briefing:
        """Add the template that gives the plan, where a planner would be asked for one."""
        ready = goal.plan or (briefing.playbook and briefing.playbook.plan)
        if self.library is None or not (goal.templates and goal.use_models) or ready:
            return briefing
        found = await self.library.find(goal, briefing)
        return briefing.model_copy(update={"template": found.use, "untemplated": found.why_not})

    async def _proving(self, goal: Goal, playbook: PlaybookFile | None) -> Proving | None:
        proves = goal.use_models and playbook is not None and playbook.prove > 0
        proves = proves and not any(each.name == PROVE_INPUT for each in goal.inputs)
        return await self.proving() if proves else None

    async def _read_probe(self, goal: Goal) -> None:
        if not goal.probe:
            return
        try:
            await self.store.get(goal.probe)
        except BlobLost as lost:
            raise BadGoal(
                "the worker's store does not hold what the starter just wrote: "
                f"give both the same STORE_URL ({lost.message})"
            ) from None

    def _playbook(self, goal: Goal) -> PlaybookFile | None:
        if not goal.playbook:
            return None
        why = self.catalogue.unusable_playbook(goal.playbook)
        if why:
            raise BadGoal(f"playbook {goal.playbook!r} cannot be used: {why}")
        try:
            return self.catalogue.playbooks[goal.playbook]
        except KeyError:
            known = ", ".join(sorted(self.catalogue.playbooks))
            raise BadGoal(f"unknown playbook {goal.playbook!r}; known: {known}") from None

    async def _roles_of(self, goal: Goal, cards: tuple[RoleCard, ...]) -> tuple[RoleCard, ...]:
        """Return the roles as the run has them: as their files are now, but for those that a fork
        has otherwise. Raise BadGoal if the text of one is gone.
        """
        if not goal.use_models:
            return cards
        others = {each.name: each for each in goal.fork.roles} if goal.fork else {}
        kept = await self._keep_prompts(cards)
        return tuple(
            [
                await self._as_was(each, others[each.name]) if each.name in others else each
                for each in kept
            ]
        )

    async def _as_was(self, card: RoleCard, was: RoleAsWas) -> RoleCard:
        try:
            told = await self.store.get(was.prompt)
        except BlobLost:
            raise BadGoal(
                f"role {card.name!r}: the text that the fork is to be told is no longer in the"
                " store; start a new run in place of a fork"
            ) from None
        now = self.catalogue.roles[card.name].prompt
        return card.model_copy(
            update={
                "tier": was.tier,
                "effort": was.effort,
                "prompt": was.prompt,
                "prompt_bytes": card.prompt_bytes - len(now.encode()) + len(told),
                "model": self.pricing.card(was.tier, was.model) if was.model else None,
            }
        )

    async def _keep_prompts(self, cards: Iterable[RoleCard]) -> tuple[RoleCard, ...]:
        """Return the roles with the prompt that each keeps from now on, whatever its file says
        later.
        """
        prompts = {name: role.prompt for name, role in self.catalogue.roles.items()}
        asked = {each.name: prompts.get(each.name, "") for each in cards if each.tier != "none"}
        kept = {name: await self.store.put(text.encode()) for name, text in asked.items() if text}
        return tuple(each.model_copy(update={"prompt": kept.get(each.name, "")}) for each in cards)

    def _card(self, playbook: PlaybookFile, plan: Plan | None) -> PlaybookCard:
        source = self.catalogue.sources.get(playbook.name, "")
        return playbook.card(plan).model_copy(update={"source": source})

    def _cards(self, goal: Goal) -> tuple[ModelCard, ...]:
        """Return the models by tier; where the goal names a tier, its model for each of them."""
        cards = self.pricing.cards()
        chosen = next((each for each in cards if each.tier == goal.tier), None)
        if chosen is None:
            return cards
        return tuple(chosen.model_copy(update={"tier": each.tier}) for each in cards)

    def _check_models(self, goal: Goal) -> None:
        if not self.has_endpoint:
            raise BadGoal(
                "this worker has no model endpoint; set ANTHROPIC_API_KEY or ANTHROPIC_BASE_URL"
            )
        if self.untold:
            raise BadGoal(self.untold)
        cards = (*self.pricing.cards(), self.pricing.planner())
        for each in goal.fork.roles if goal.fork else ():
            cards += (self.pricing.card(each.tier, each.model),) if each.model else ()
        unpriced = [card.id for card in cards if card and not card.prices]
        if unpriced and self.capped:
            raise BadGoal(
                f"{self.capped} is set, and no price is known for {', '.join(unpriced)};"
                " give one in HOLDFAST_PRICE_FILE"
            )
        if unpriced and not goal.unpriced:
            raise BadGoal(
                f"no price is known for {', '.join(unpriced)}; give one in HOLDFAST_PRICE_FILE, "
                "or accept a run bounded by calls and tokens alone with --unpriced"
            )

    def _select_missed(
        self, goal: Goal, lost: Mapping[str, str], served: RolesHere
    ) -> Mapping[str, str]:
        """Return which roles that a planner is not offered are reported: its playbook's, and any
        whose servers were away. `doctor` reports the others.
        """
        own = self.catalogue.own_roles(_whose(goal))
        return {name: why for name, why in lost.items() if name in own or name in served.unreached}

    def _order(self, plan: Plan, inputs: Iterable[PinnedInput]) -> Plan:
        """Return the plan of a review whose agents are told what change it is."""
        changed = (each for each in inputs if each.change is not None)
        pinned = next(changed, None)
        return order_review(plan, pinned) if pinned else plan

    def _only_changes(self, cards: Iterable[RoleCard]) -> list[str]:
        roles = self.catalogue.roles
        return [each.name for each in cards if each.name in roles and roles[each.name].only_changes]

    def _idle(self, goal: Goal, playbook: PlaybookFile | None) -> Iterator[Omission]:
        """Yield the lenses that a plan of all lenses goes without, because no role uses them."""
        if playbook and playbook.lenses and goal.plan is None:
            for name in self.catalogue.idle(self.lenses):
                yield Omission(what=f"lens {name}", why="no role uses it")

    def _named_roles(self, goal: Goal, ready: Plan | None) -> Collection[str]:
        """Return the roles that a goal asks for by name: those of its ready plan, else its
        playbook's.
        """
        if ready is not None:
            return roles_in(ready)
        roles = self.catalogue.roles.items()
        return [name for name, role in roles if goal.playbook and role.playbook == goal.playbook]

    def _inputs(self, goal: Goal, playbook: PlaybookFile | None) -> tuple[GoalInput, ...]:
        names = [each.name for each in goal.inputs]
        if twice := [name for name in names if names.count(name) > 1]:
            raise BadGoal(f"input {twice[0]!r} is given twice")
        declared = playbook.inputs if playbook else {}
        for name in names if playbook else ():
            # A run may come to the server without our starter: what nobody needs is not read.
            if name not in declared:
                known = ", ".join(sorted(declared)) or "none"
                raise BadGoal(
                    f"playbook {goal.playbook!r} has no input {name!r:.80}; it has: {known}"
                )
        for name, spec in declared.items():
            given = next((each for each in goal.inputs if each.name == name), None)
            if given is None and spec.required:
                raise BadGoal(f"playbook {goal.playbook!r} needs the input {name!r}")
            if given and given.kind != spec.kind:
                raise BadGoal(f"input {name!r} must be a {spec.kind}, not a {given.kind}")
            if given and spec.for_models and not goal.use_models:
                raise BadGoal(f"input {name!r}: only models read it; add --models")
            if given is not None and (wrong := refuse_choice(spec.one_of, given.value)):
                raise BadGoal(f"input {name!r}: {wrong}")
        return goal.inputs

    async def _scan_all(
        self, goal: Goal, ready: Plan | None, inputs: tuple[PinnedInput, ...]
    ) -> tuple[PinnedInput, ...]:
        """Return the inputs with what is known of their items: of those that the plan maps, or that
        a planner may want to. What the run above has pinned it has looked at.
        """
        maps = _maps_of(ready)
        over = [each.map.over for each in maps if each.map]
        given = [each.name for each in goal.pinned]
        reuse = goal.reuse.tables if goal.reuse else {}
        looked = []
        for each in inputs:
            found = each.items
            if each.name in over:
                found = await self.mapped.scan(each, maps, reuse)
            elif ready is None and goal.use_models and each.name not in given:
                found = await self.mapped.peek(each)
            looked.append(each.model_copy(update={"items": found}))
        return tuple(looked)

    async def _pin_all(
        self, goal: Goal, playbook: PlaybookFile | None, maps: Iterable[Subtask]
    ) -> tuple[PinnedInput, ...]:
        """Return what an earlier run has pinned, as it was then, and the other inputs as they are
        now. Raise BadGoal if the store no longer has what a fork is to work on.
        """
        given = self._inputs(goal, playbook)
        if goal.fork:
            for each in goal.pinned:
                await self._check_kept(each, goal.fork.run_id)
        names = [each.name for each in goal.pinned]
        mapped = {each.map.over for each in maps if each.map}
        new = [
            await self._pin(goal, each, mapped=each.name in mapped)
            for each in given
            if each.name not in names
        ]
        return (*goal.pinned, *new)

    async def _check_kept(self, pinned: PinnedInput, run_id: str) -> None:
        try:
            await self.store.get(pinned.digest)
        except BlobLost:
            raise BadGoal(
                f"input {pinned.name!r}: what run {run_id} read of it is no longer in the store;"
                " start a new run in place of a fork"
            ) from None

    async def _pin(self, goal: Goal, given: GoalInput, *, mapped: bool) -> PinnedInput:
        roots = await asyncio.to_thread(self.allowed_roots)
        if given.kind == "folder":
            return await self._snapshot(given, self.take_folder(given, roots, self.store))
        if given.kind == "repository":
            playbook = self.catalogue.playbooks.get(goal.playbook)
            declared = playbook.inputs if playbook else ()
            wanted = replace(Wanted.of(goal.inputs, declared), for_models=goal.use_models)
            folder = Path(given.value)
            taking = self.take_snapshot(given.name, folder, roots, wanted, self.store)
            return await self._snapshot(given, taking)
        content, reader = given.value.encode(), ""
        if given.kind == "file" and mapped:
            with await asyncio.to_thread(open_given, given, roots) as file:
                if os.fstat(file.fileno()).st_size > INPUT_BYTES:
                    large = await self.mapped.pin_large(given.name, given.value, file)
                    if large is not None:
                        return large
        if given.kind == "file":
            content, reader = await asyncio.to_thread(read_given, given, roots)
        if lacking := lacking_for_reader(content, reader):
            raise BadGoal(f"input {given.name!r}: to read it this worker {lacking}")
        if len(content) > INPUT_BYTES and not reader:
            raise BadGoal(f"input {given.name!r} is larger than {INPUT_BYTES} bytes")
        spec = self._declared(goal, given)
        if spec and not reader:
            if why := refuse_other(spec.mentions, content.decode("utf-8", "replace")):
                raise BadGoal(f"input {given.name!r}: {given.value!r:.300} {why}")
            if spec.by_others:
                content = await asyncio.to_thread(_without_secrets, content)
        return PinnedInput(
            name=given.name,
            kind=given.kind,
            size=len(content),
            digest=await self.store.put(content),
            preview="" if reader else content[:PREVIEW_BYTES].decode("utf-8", "ignore"),
            path=given.value if given.kind == "file" else "",
            reader=reader,
        )

    def _declared(self, goal: Goal, given: GoalInput) -> PlaybookInput | None:
        playbook = self.catalogue.playbooks.get(goal.playbook)
        return playbook.inputs.get(given.name) if playbook else None

    async def _snapshot(self, given: GoalInput, taking: Awaitable[PinnedInput]) -> PinnedInput:
        try:
            return await taking
        except BadGoal as error:
            raise BadGoal(f"input {given.name!r}: {error.message}") from None


def _maps_of(plan: Plan | None) -> tuple[Subtask, ...]:
    return tuple(each for each in plan.subtasks if each.map) if plan else ()


def _without_secrets(content: bytes) -> bytes:
    return redact(content.decode("utf-8", "replace")).encode()


def _is_wanted(card: RoleCard, goal: Goal) -> bool:
    """True unless the goal names the roles that a planner may assign, and not this one."""
    return not goal.roles or card.name in goal.roles or not is_offered(card)


def _whose(goal: Goal) -> str:
    """Return the playbook whose roles agents may have beside the common ones; empty: none's."""
    return goal.playbook or goal.roles_of


def _ready_plan(goal: Goal, playbook: PlaybookFile | None) -> Plan | None:
    """Return the ready plan of a playbook for the inputs that are given."""
    if playbook is None:
        return None
    given = [each.name for each in goal.inputs]
    return drop_inputs(playbook.plan, [each for each in playbook.inputs if each not in given])


def _refuse_small_cap(goal: Goal, briefing: Briefing) -> None:
    """Raise CapTooSmall, before anything is paid, for a run that could only end without an answer,
    unless it waits for a higher cap.
    """
    if goal.use_models and (not goal.wait_for_raise or keeping.is_hopeless(goal, briefing)):
        why = keeping.short_of(goal, briefing)
        if why:
            raise CapTooSmall(why)


def _refuse_broken(goal: Goal, ready: Plan | None, inputs: Iterable[PinnedInput]) -> None:
    """Raise BadGoal for a map of which more items are broken than may fail, unless a person is to
    decide about them, or only the price is asked.
    """
    if goal.ask_people or goal.plan_only:
        return
    kept = [each.subtask_id for each in goal.fork.findings] if goal.fork else []
    for subtask in _maps_of(ready):
        for each in inputs:
            over = subtask.map is not None and subtask.map.over == each.name
            if not over or each.items is None or subtask.id in kept:
                continue
            had = each.items.kept.get(subtask.id)
            if wrong := mapping.broken_problem(subtask, each.items, had.mended if had else 0):
                first = f" ({each.items.samples[0]})" if each.items.samples else ""
                raise BadGoal(f"input {each.name!r}: {wrong}{first}; {mapping.BROKEN_REMEDY}")


def _refuse_unreached(plan: Plan | None, served: RolesHere) -> None:
    """Raise BadGoal if a role of the plan has no tools but those of a server that is away."""
    for name in sorted(roles_in(plan)) if plan else ():
        if name in served.missing and name in served.unreached:
            raise BadGoal(
                f"role {name!r} of the plan is not reachable: {served.missing[name]};"
                " start the run again once the server answers"
            )


def _refuse_bad_plan(goal: Goal, briefing: Briefing, unusable: Mapping[str, str]) -> None:
    """Raise BadGoal if the ready plan cannot be carried out. `unusable` says of roles that exist
    why this run cannot use them.
    """
    plan = goal.plan or (briefing.playbook.plan if briefing.playbook else None)
    unread = validity.only_by_tools(briefing.inputs)
    problem = validity.unread_problem(plan, briefing.roles, unread)
    if problem:
        raise BadGoal(problem)
    if plan is None:
        if not goal.use_models:
            raise BadGoal("without a model a run needs a ready plan: a playbook's or a plan file")
        return
    wrong = validity.problems(
        plan,
        briefing.roles,
        tuple(pinned.name for pinned in briefing.inputs),
        HARD_SUBTASK_LIMIT,
        goal.asked,
        unusable=unusable,
        longest=goal.limits.subtask_timeout_seconds,
    )
    wrong += (*_find_unbatched(goal, plan, briefing.capabilities),)
    wrong += (*mapping.time_problems(plan, goal.lane, goal.limits.deadline_seconds),)
    if wrong:
        raise BadGoal("the plan is not valid: " + "; ".join(wrong))


def _find_unbatched(goal: Goal, plan: Plan, capabilities: Capabilities) -> Iterator[str]:
    """Yield why maps cannot go as batches that must."""
    if capabilities.batches:
        return
    for each in _maps_of(plan):
        if each.map and (goal.lane or each.map.lane) == "batch":
            yield (
                f"subtask {each.id!r}: lane: batch: this endpoint takes no batches; say now or auto"
            )
