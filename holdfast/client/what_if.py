"""What if a role had another tier, model, effort or prompt: the last runs that used it, each made a
fork in which only that is changed, with what they would cost. Nothing is asked here.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass, replace
from hashlib import sha256
from typing import TYPE_CHECKING

from holdfast.activities.catalogue.catalogue import Catalogue
from holdfast.calling.lanes import as_batches
from holdfast.calls.judge import JUDGE
from holdfast.client.ended import read_end
from holdfast.client.forking import fork_goal, keep_plan, with_rows
from holdfast.client.listing import PAGE_TIME
from holdfast.client.reading import Reader
from holdfast.contracts import (
    Approval,
    Briefing,
    Goal,
    ModelCard,
    Report,
    RoleCard,
    RoleTier,
    Subtask,
    Tier,
)
from holdfast.contracts.base import Effort
from holdfast.contracts.errors import BlobLost
from holdfast.contracts.goals import RoleAsWas
from holdfast.contracts.past import RunTook
from holdfast.contracts.search import RUNS
from holdfast.contracts.view import Preview
from holdfast.deployment.settings import Settings
from holdfast.errors import NoSuchRun, Refused, Unreachable
from holdfast.intake.connection import Connection
from holdfast.ledger.pricing import at_lane
from holdfast.rules import past, planning
from holdfast.rules.preview import predict
from holdfast.rules.timers import EPOCH
from holdfast.state import graph
from holdfast.state.run import State, first_state
from holdfast.temporal.connection import is_part
from holdfast.temporal.past import read_past
from holdfast.text import one_line, pluralize
from holdfast.text.mistakes import suggest

if TYPE_CHECKING:
    from holdfast.activities.asking.prices import Prices

MOST_READ = 1_000
"""Runs that are looked through for those of a role, newest first."""
AT_ONCE = 10
"""Histories that are read at the same time."""
MOST_WHYS = 5
"""Different reasons that one line names."""
ROOMY = 8
"""Times what a fork that waits is expected to cost, as its cap."""
LONGEST = 7 * 86_400
"""Seconds: the longest deadline that there is. Calls that build on each other wait a day each."""
NO_WORDS = ("raise_cap", "pause", "resume")
"""Orders of people that change nothing of what a run finds."""


@dataclass(frozen=True)
class RoleChange:
    """What of a role is to be otherwise: one of these."""

    role: str
    tier: Tier | None = None
    effort: Effort | None = None
    model: str = ""
    prompt: str = ""
    """The text that its agents are told."""

    def __str__(self) -> str:
        given = {"tier": self.tier, "effort": self.effort, "model": self.model}
        named = [f"{name} {value}" for name, value in given.items() if value]
        return f"role {self.role} with {' and '.join(named) or 'another prompt'}"


@dataclass(frozen=True)
class Candidate:
    """A run that is over, and the fork of it in which only the role is changed."""

    report: Report
    goal: Goal
    again: tuple[str, ...]
    """Subtasks that the fork does again: those of the role, and what builds on them."""
    preview: Preview


@dataclass(frozen=True)
class Unusable:
    run_id: str
    why: str


@dataclass(frozen=True)
class Chosen:
    """The last runs that used a role, newest first."""

    change: RoleChange
    candidates: tuple[Candidate, ...]
    unusable: tuple[Unusable, ...]
    judge: ModelCard
    """The model that judges what code cannot tell apart."""


def check_change(change: RoleChange, catalogue: Catalogue) -> None:
    """Refuse a change that is none, or of more than one thing, and a role that has no model."""
    given = [change.tier, change.effort, change.model, change.prompt]
    if sum(map(bool, given)) != 1:
        raise Refused(
            "what is to be changed: give one of --tier, --effort, --model and --prompt,"
            " so that what differs comes from it"
        )
    if change.model.split() != [change.model] * bool(change.model):
        raise Refused(f"--model {change.model!r:.70} is no model's id; write one word")
    role = catalogue.roles.get(change.role)
    if role is None:
        known = sorted(name for name, each in catalogue.roles.items() if _asks(each.card))
        raise Refused(
            f"there is no role {change.role!r:.70}{suggest(change.role, known)};"
            f" there are: {', '.join(known)}"
        )
    if not _asks(role.card):
        what = (
            "is a team, whose agents have roles of their own" if role.card.team else "asks no model"
        )
        raise Refused(f"role {change.role!r} {what}: name a role of agents")
    if change.prompt and change.prompt == role.prompt:
        raise Refused(f"--prompt: role {change.role!r} is told just that already; change the text")


def _asks(card: RoleCard) -> bool:
    return card.tier != "none" and not card.team


# ---------------------------------------------------------------- choosing the runs


@dataclass(frozen=True)
class _Ran:
    state: State
    report: Report

    @property
    def brief(self) -> Briefing:
        return self.state.brief


async def choose(
    connection: Connection, change: RoleChange, last: int, *, by_batch: bool = False
) -> Chosen:
    """Return forks of the last runs that used the role, with their prices, and the runs that cannot
    be forked so. Refused if no run used it. `by_batch`: each of their calls may wait a day.
    """
    catalogue = Catalogue.of(connection.settings.project)
    check_change(change, catalogue)
    prices = _prices_of(connection.settings)
    took = await read_past(connection.client, connection.target.task_queue)
    making = _Making(connection, change, catalogue, prices, took, by_batch)
    candidates, unusable, read = list[Candidate](), list[Unusable](), 0
    async for found in _read_runs(connection, change.role):
        read += 1
        made = await making.candidate(found) if isinstance(found, _Ran) else found
        if isinstance(made, Candidate):
            candidates.append(made)
        elif made is not None:
            unusable.append(made)
        if len(candidates) + len(unusable) >= last:
            break
    if not candidates:
        raise Refused(_none(change.role, read, unusable))
    (judge,) = (card for card in prices.cards() if card.tier == JUDGE.policy.tier)
    if by_batch:
        judge = at_lane(judge, "batch")
    return Chosen(change, tuple(candidates), tuple(unusable), judge)


def _prices_of(settings: Settings) -> Prices:
    # The library of prices takes a while to load, and the help of all commands needs none.
    from holdfast.activities.asking.prices import PriceFileError, Prices

    try:
        return Prices.of(settings)
    except PriceFileError as error:
        raise Refused(str(error)) from error


def _none(role: str, read: int, unusable: Sequence[Unusable]) -> str:
    """Return why there is nothing to try a change on."""
    if not unusable:
        looked = f"none of the last {pluralize(read, 'run')}" if read else "no run so far"
        return f"{looked} is over and used role {role!r}"
    whys = Counter(each.why for each in unusable).most_common()
    named = "; ".join(f"{why} ({count})" for why, count in whys[:MOST_WHYS])
    return f"no run of role {role!r} can be done again with that: {named}"


async def _read_runs(connection: Connection, role: str) -> AsyncIterator[_Ran | Unusable | None]:
    """Yield the runs of this deployment that are over, newest first; None for one that did not use
    the role.
    """
    query = f"{RUNS} AND TaskQueue = '{connection.target.task_queue}'"
    found = connection.client.list_workflows(query, limit=MOST_READ, rpc_timeout=PAGE_TIME)
    # A run that was reset is listed once for each time.
    ids = list(dict.fromkeys([each.id async for each in found if not is_part(each)]))
    for at in range(0, len(ids), AT_ONCE):
        some = (_read(connection, id, role) for id in ids[at : at + AT_ONCE])
        for each in await asyncio.gather(*some):
            yield each


async def _read(connection: Connection, run_id: str, role: str) -> _Ran | Unusable | None:
    try:
        look = await Reader(connection, run_id).look()
    except NoSuchRun:
        return Unusable(run_id, "its history is gone")
    if look.away:
        raise Unreachable("; ".join(look.notes))
    state = look.state
    if look.closed and look.unreadable:
        return Unusable(run_id, f"its history cannot be read: {one_line(look.unreadable)}")
    if not look.closed or state is None or state.briefing is None or state.goal.plan_only:
        return None
    report = read_end(run_id, look).report
    if report is None or report.plan is None or not state.goal.use_models:
        return None
    if state.goal.fork and state.goal.fork.roles:
        # It was an answer to a question like this one.
        return None
    used = any(each.role == role for each in keep_plan(report).subtasks)
    return _Ran(state, report) if used else None


# ---------------------------------------------------------------- making the forks


@dataclass(frozen=True)
class _OfRun:
    """Implements `Change`: the change of a role in one run."""

    change: RoleChange
    card: RoleCard
    """The role as the run had it."""
    begun: frozenset[RoleTier]
    """Tiers that its subtasks of this role began at."""

    @classmethod
    def of(cls, change: RoleChange, ran: _Ran) -> _OfRun:
        made = cls(change, ran.brief.role(change.role), frozenset())
        own = [each for each in keep_plan(ran.report).subtasks if each.role == change.role]
        return replace(made, begun=frozenset(map(made.begins, own)))

    def begins(self, subtask: Subtask) -> RoleTier:
        return self.card.tier if self.card.fixed_tier else subtask.tier or self.card.tier

    def touches(self, subtask: Subtask) -> bool:
        return subtask.role == self.change.role and self.begins(subtask) != self.change.tier

    def applied(self, subtask: Subtask) -> Subtask:
        tier = self.change.tier
        return subtask.model_copy(update={"tier": tier}) if tier else subtask


class Unfit(Exception):
    """A run cannot be used; the message says why."""


@dataclass(frozen=True)
class _Making:
    """Makes a fork of a run, and prices it."""

    connection: Connection
    change: RoleChange
    catalogue: Catalogue
    prices: Prices
    took: Sequence[RunTook]
    """What the latest runs took, newest first."""
    by_batch: bool = False
    """True if each of their calls may wait a day."""

    async def candidate(self, ran: _Ran) -> Candidate | Unusable:
        try:
            return await self._candidate(ran)
        except (Unfit, Refused) as error:
            return Unusable(ran.report.run_id, one_line(str(error)))

    async def _candidate(self, ran: _Ran) -> Candidate:
        state, report = ran.state, ran.report
        name = self.connection.settings.name
        if state.goal.project not in ("", name):
            raise Unfit(f"it is of the project {state.goal.project!r}")
        if self.by_batch and not ran.brief.capabilities.batches:
            raise Unfit("its endpoint takes no batches")
        _check_people(ran)
        change = _OfRun.of(self.change, ran)
        self._check_differs(change, ran)
        goal = fork_goal(state.goal, report, change, self.catalogue)
        assert goal.plan is not None and goal.fork is not None
        kept = [each.subtask_id for each in goal.fork.findings]
        again = tuple(each.id for each in goal.plan.subtasks if each.id not in kept)
        _check_cone(goal, change, again)
        _check_own(report, again)
        cards = _roles_of([each for each in goal.plan.subtasks if each.id in again], ran.brief)
        check_roles(cards)
        await self._check_inputs(goal)
        # Roles that their plan composed, and those of older runs, have no text in the store.
        told = [each for each in cards if each.prompt or each.name == self.change.role]
        roles = tuple([await self._as_was(each, change) for each in told if _asks(each)])
        goal = goal.model_copy(
            update={
                "project": name,
                "fork": goal.fork.model_copy(update={"roles": roles}),
                # A changed plan would be another difference, and could have any role.
                "limits": goal.limits.model_copy(update={"replans": 0}),
                "approval": Approval(),
                "ask_people": False,
                "wait_for_raise": False,
                "notify": None,
                "requester": "",
            }
        )
        goal = await with_rows(self.connection, goal, report.run_id)
        if self.by_batch:
            goal = waiting(goal)
        preview = self._priced(goal, ran)
        if self.by_batch:
            less = capped(goal, preview)
            # Under a cap that leaves calls less room a difference might come from that.
            if not (priced := self._priced(less, ran)).lowered:
                goal, preview = less, priced
        return Candidate(report, goal, again, preview)

    def _check_differs(self, change: _OfRun, ran: _Ran) -> None:
        """Raise Unfit where the run had it so already."""
        asked, card = self.change, change.card
        own = [each for each in keep_plan(ran.report).subtasks if each.role == asked.role]
        begun = change.begun
        if asked.tier and not any(map(change.touches, own)):
            raise Unfit(f"its {asked.role} had tier {asked.tier} already")
        if asked.effort and asked.effort == card.effort:
            raise Unfit(f"its {asked.role} had effort {asked.effort} already")
        if asked.prompt and _digest(asked.prompt) == card.prompt:
            raise Unfit(f"its {asked.role} was told just that")
        if asked.model and len(begun) > 1:
            raise Unfit(
                f"its subtasks of {asked.role} began at several tiers: {', '.join(sorted(begun))}"
            )
        if asked.model and {self._served(ran, each, card.name).id for each in begun} == {
            asked.model
        }:
            raise Unfit(f"its {asked.role} was model {asked.model} already")

    def _served(self, ran: _Ran, tier: RoleTier, role: str) -> ModelCard:
        assert tier != "none", "a role without a model is refused"
        return ran.brief.model(tier, role)

    async def _check_inputs(self, goal: Goal) -> None:
        for each in goal.pinned:
            if not await self._has(each.digest):
                raise Unfit(f"what it read of its input {each.name!r} is gone from the store")

    async def _as_was(self, card: RoleCard, change: _OfRun) -> RoleAsWas:
        """Return a role as the run had it, the changed one with its change."""
        assert card.tier != "none", "a role without a model is as it is"
        was = RoleAsWas(name=card.name, tier=card.tier, effort=card.effort, prompt=card.prompt)
        asked = self.change
        if card.name == asked.role:
            begins = next(iter(change.begun)) if asked.model else was.tier
            text = asked.prompt or ("" if was.prompt else self.catalogue.roles[card.name].prompt)
            prompt = await self._put(text) if text else was.prompt
            was = was.model_copy(
                update={
                    "tier": asked.tier or begins,
                    "effort": asked.effort or was.effort,
                    "prompt": prompt,
                    "model": asked.model,
                }
            )
        now = self.catalogue.roles.get(card.name)
        same = now is not None and _digest(now.prompt) == was.prompt
        if not same and not await self._has(was.prompt):
            raise Unfit(f"what its {card.name} was told is gone from the store")
        return was

    async def _put(self, text: str) -> str:
        return await self.connection.store.put(text.encode())

    async def _has(self, digest: str) -> bool:
        try:
            await self.connection.store.get(digest)
        except BlobLost:
            return False
        return True

    def _priced(self, goal: Goal, ran: _Ran) -> Preview:
        """Price a fork by the rule by which it prices itself."""
        assert goal.plan is not None and goal.fork is not None
        others = {each.name: each for each in goal.fork.roles}
        cards = [
            card.model_copy(
                update={
                    "tier": was.tier,
                    "effort": was.effort,
                    "prompt_bytes": card.prompt_bytes + self._longer(card),
                    "model": self.prices.card(was.tier, was.model) if was.model else card.model,
                }
            )
            if (was := others.get(card.name))
            else card
            for card in ran.brief.roles
        ]
        models = {"models": self.prices.cards(), "planner": self.prices.planner()}
        brief = ran.brief.model_copy(update={"roles": tuple(cards), **models})
        brief = as_batches(brief) if self.by_batch else brief
        goal = goal.model_copy(update={"limits": brief.within(goal.limits)})
        brief = brief.model_copy(update={"past": past.learn(self.took, brief, goal)})
        state = replace(first_state(ran.report.run_id, goal, EPOCH, ""), briefing=brief)
        assert goal.plan is not None
        return predict(planning.adopt(state, goal.plan))

    def _longer(self, card: RoleCard) -> int:
        """Return how many bytes longer a changed prompt is than today's."""
        now = self.catalogue.roles.get(card.name)
        if not self.change.prompt or card.name != self.change.role or now is None:
            return 0
        return len(self.change.prompt.encode()) - len(now.prompt.encode())


def waiting(goal: Goal) -> Goal:
    """Return a goal each of whose calls may wait a day."""
    limits = goal.limits.model_copy(update={"deadline_seconds": LONGEST})
    return goal.model_copy(update={"by_batch": True, "lane": "batch", "limits": limits})


def capped(goal: Goal, preview: Preview) -> Goal:
    """Return a goal whose cap is several times what is expected: forks that wait are open together,
    so none should keep all that its run could have spent.
    """
    if not preview.expected:
        return goal
    dollars = min(goal.limits.dollars, ROOMY * preview.expected)
    return goal.model_copy(update={"limits": goal.limits.model_copy(update={"dollars": dollars})})


def _roles_of(subtasks: Sequence[Subtask], brief: Briefing) -> list[RoleCard]:
    """Return the roles whose agents may be asked for these subtasks, where others fail, too."""
    names = {name for each in subtasks for name in (each.role, each.secondary)}
    more = names
    while more := {card.fallback for card in brief.roles if card.name in more} - names:
        names |= more
    return [card for card in brief.roles if card.name in names]


def _check_people(ran: _Ran) -> None:
    """Raise Unfit where people had a part in what a run found: they are not asked once more."""
    if ran.state.goal.approval.when == "always" or ran.state.only_approved:
        raise Unfit("a person approves its plan")
    told = [each.command for each in ran.report.orders if not each.refused]
    said = [name for name in told if name not in NO_WORDS]
    if said:
        raise Unfit(f"people had a part in it ({', '.join(dict.fromkeys(said))})")


def _check_cone(goal: Goal, change: _OfRun, again: Sequence[str]) -> None:
    """Raise Unfit where more would be asked than the change and what builds on it."""
    assert goal.plan is not None
    touched = [each.id for each in goal.plan.subtasks if each.role == change.change.role]
    cone = {*touched}
    for each in touched:
        cone |= {*graph.dependents(goal.plan.subtasks, each)}
    beside = [each for each in again if each not in cone]
    if beside:
        raise Unfit(f"its {', '.join(beside)} did not end complete and would be asked again")


def _check_own(report: Report, again: Sequence[str]) -> None:
    """Raise Unfit where what is done again was itself taken over: its price stands elsewhere."""
    for each in report.findings:
        if each.subtask_id in again and each.reused_from:
            raise Unfit(f"its {each.subtask_id} was taken over from run {each.reused_from}")


def check_roles(cards: Sequence[RoleCard]) -> None:
    """Raise Unfit where an agent could do something outside a second time, and for a team, which
    would plan anew.
    """
    for card in cards:
        if card.team:
            raise Unfit(f"its team {card.name} would plan anew")
        outside = dict.fromkeys((*card.effects, *card.approval))
        if outside:
            raise Unfit(f"its {card.name} may change something outside ({', '.join(outside)})")


def _digest(text: str) -> str:
    return sha256(text.encode()).hexdigest()
