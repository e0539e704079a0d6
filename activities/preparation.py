"""`prepare`: the first activity of every run. It resolves all that the deployment decides into the
Briefing.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from temporalio import activity

from activities import checks
from activities.heartbeat import beating
from activities.seam import Pricing, Store
from orchestrator import graph
from orchestrator.contracts import (
    HARD_SUBTASK_LIMIT,
    Briefing,
    Capabilities,
    Goal,
    GoalInput,
    Omission,
    PinnedInput,
    Plan,
    RoleCard,
)
from orchestrator.errors import BadGoal

if TYPE_CHECKING:
    # Only named in annotations: workflows import this module for its signature.
    from activities.catalogue import Catalogue, PlaybookFile

PREVIEW_BYTES = 2_000
"""500 tokens of four bytes: what the planner sees of each input."""
INPUT_BYTES = 4 * 1024 * 1024

TakeSnapshot = Callable[[str, Path, str, Store], Awaitable[PinnedInput]]
"""(name of the input, repository, base revision or "", store) -> the pinned snapshot."""


@dataclass(frozen=True)
class Preparation:
    """What this deployment knows and allows."""

    catalogue: Catalogue
    store: Store
    pricing: Pricing
    tools: tuple[str, ...]
    take_snapshot: TakeSnapshot
    allowed_roots: Callable[[], tuple[Path, ...]]
    capabilities: Callable[[], Awaitable[Capabilities]]
    has_endpoint: bool
    version: str

    @activity.defn
    async def prepare(self, goal: Goal) -> Briefing:
        """Everything the run needs to know of its deployment. BadGoal refuses the run for good."""
        async with beating():
            await self._read_probe(goal)
            playbook = self._playbook(goal)
            if not goal.text.strip():
                raise BadGoal("the goal is empty; say what you want")
            if goal.depth >= goal.limits.depth:
                raise BadGoal(f"depth {goal.depth}: the limit is {goal.limits.depth} levels")
            if goal.use_models:
                self._models_usable(goal)
            roles, missing = self._served_roles(goal)
            plan, not_run = _servable(playbook.plan if playbook else None, missing)
            inputs = tuple([await self._pin(goal, each) for each in self._inputs(goal, playbook)])
            briefing = Briefing(
                roles=roles,
                playbook=playbook.card(plan) if playbook else None,
                inputs=(*goal.pinned, *inputs),
                models=self.pricing.cards() if goal.use_models else (),
                capabilities=await self.capabilities() if goal.use_models else Capabilities(),
                not_run=not_run,
                version=self.version,
            )
        _refuse_bad_plan(goal, briefing)
        return briefing

    async def _read_probe(self, goal: Goal) -> None:
        if not goal.probe:
            return
        try:
            await self.store.get(goal.probe)
        except FileNotFoundError:
            raise BadGoal(
                "the worker's store does not hold what the starter just wrote: "
                "give both the same STORE_URL"
            ) from None

    def _playbook(self, goal: Goal) -> PlaybookFile | None:
        if not goal.playbook:
            return None
        try:
            return self.catalogue.playbooks[goal.playbook]
        except KeyError:
            known = ", ".join(sorted(self.catalogue.playbooks))
            raise BadGoal(f"unknown playbook {goal.playbook!r}; known: {known}") from None

    def _models_usable(self, goal: Goal) -> None:
        if not self.has_endpoint:
            raise BadGoal(
                "this worker has no model endpoint; set ANTHROPIC_API_KEY or ANTHROPIC_BASE_URL"
            )
        unpriced = [card.id for card in self.pricing.cards() if not card.prices]
        if unpriced and not goal.unpriced:
            raise BadGoal(
                f"no price is known for {', '.join(unpriced)}; give one in HOLDFAST_PRICE_FILE, "
                "or accept a run bounded by calls and tokens alone with --unpriced"
            )

    def _served_roles(self, goal: Goal) -> tuple[tuple[RoleCard, ...], dict[str, str]]:
        """The roles this run may use, and why the others cannot be served."""
        served, missing = [], {}
        for card in self.catalogue.roles_for(goal.playbook):
            absent = [tool for tool in card.tools if tool not in self.tools]
            if card.tier != "none" and not goal.use_models:
                missing[card.name] = "needs a model, and this run uses none"
            elif absent:
                missing[card.name] = f"needs {', '.join(absent)}, which this worker does not have"
            else:
                served.append(card)
        return tuple(served), missing

    def _inputs(self, goal: Goal, playbook: PlaybookFile | None) -> tuple[GoalInput, ...]:
        names = [each.name for each in goal.inputs]
        for name in names:
            if names.count(name) > 1:
                raise BadGoal(f"input {name!r} is given twice")
        for name, spec in (playbook.inputs if playbook else {}).items():
            given = next((each for each in goal.inputs if each.name == name), None)
            if given is None and spec.required:
                raise BadGoal(f"playbook {goal.playbook!r} needs the input {name!r}")
            if given is not None and given.kind != spec.kind:
                raise BadGoal(f"input {name!r} must be a {spec.kind}, not a {given.kind}")
        return goal.inputs

    async def _pin(self, goal: Goal, given: GoalInput) -> PinnedInput:
        if given.kind == "repository":
            base = next((each.value for each in goal.inputs if each.name == "base"), "")
            return await self.take_snapshot(given.name, self._allowed(given), base, self.store)
        content = given.value.encode()
        if given.kind == "file":
            content = await asyncio.to_thread(_read, self._allowed(given), given.name)
        if len(content) > INPUT_BYTES:
            raise BadGoal(f"input {given.name!r} is larger than {INPUT_BYTES} bytes")
        return PinnedInput(
            name=given.name,
            kind=given.kind,
            size=len(content),
            digest=await self.store.put(content),
            preview=content[:PREVIEW_BYTES].decode("utf-8", "ignore"),
        )

    def _allowed(self, given: GoalInput) -> Path:
        """The path of an input, if it is below an allowed root once links are resolved."""
        path = Path(given.value)
        try:
            resolved = path.resolve(strict=True)
        except (OSError, ValueError, RuntimeError):
            # RuntimeError: a link that leads to itself.
            raise BadGoal(f"input {given.name!r}: no such path: {given.value!r}") from None
        roots = [root.resolve() for root in self.allowed_roots()]
        if not any(resolved.is_relative_to(root) for root in roots):
            raise BadGoal(
                f"input {given.name!r}: {given.value!r} is below no allowed root; "
                "name one in HOLDFAST_ALLOWED_ROOTS"
            )
        return resolved


def _read(path: Path, name: str) -> bytes:
    if not path.is_file():
        raise BadGoal(f"input {name!r}: not a regular file: {str(path)!r}")
    try:
        with path.open("rb") as file:
            content = file.read(INPUT_BYTES + 1)
        if len(content) <= INPUT_BYTES:
            content.decode("utf-8")
    except UnicodeDecodeError:
        raise BadGoal(f"input {name!r}: not UTF-8 text: {str(path)!r}") from None
    except OSError as error:
        raise BadGoal(f"input {name!r}: {error.strerror}: {str(path)!r}") from None
    return content


def _servable(
    plan: Plan | None, missing: dict[str, str]
) -> tuple[Plan | None, tuple[Omission, ...]]:
    """The part of a playbook's plan that this deployment can serve; the rest is said, not
    planned.
    """
    if plan is None:
        return None, ()
    left_out = [each for each in plan.subtasks if each.role in missing]
    kept = tuple(each for each in plan.subtasks if each.role not in missing)
    omissions = tuple(Omission(what=each.title, why=missing[each.role]) for each in left_out)
    gone = {each.id for each in left_out}
    kept = tuple(
        each.model_copy(
            update={"depends_on": tuple(edge for edge in each.depends_on if edge not in gone)}
        )
        for each in kept
    )
    return plan.model_copy(update={"subtasks": kept}), omissions


def _refuse_bad_plan(goal: Goal, briefing: Briefing) -> None:
    plan = goal.plan or (briefing.playbook.plan if briefing.playbook else None)
    if plan is None:
        if not goal.use_models:
            raise BadGoal("without a model a run needs a ready plan: a playbook's or a plan file")
        return
    names = tuple(pinned.name for pinned in briefing.inputs)
    wrong = graph.problems(plan, briefing.roles, names, HARD_SUBTASK_LIMIT)
    wrong += checks.plan_problems(plan)
    if wrong:
        raise BadGoal("the plan is not valid: " + "; ".join(wrong))
