"""What the supervisor does next: `moves = next_moves(state, now)`, pure."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime
from decimal import Decimal
from typing import Literal

from orchestrator import graph, policies
from orchestrator.contracts import (
    Call,
    CallKind,
    Contract,
    PlanMaterial,
    RoleTier,
    SynthesisMaterial,
    Tier,
    WorkMaterial,
)
from orchestrator.ledger import Amount
from orchestrator.pricing import worst
from orchestrator.reducer import apply
from orchestrator.state import Ask, Cut, Move, Progress, Started, State, Stop, UseTool

DOWNGRADE: dict[RoleTier, Tier] = {"opus": "sonnet", "sonnet": "haiku"}


def next_moves(state: State, now: datetime) -> tuple[Move, ...]:
    """Everything that can start now, in order; each move takes the ones before it into account."""
    return tuple(_moves(state, now))


def _moves(state: State, now: datetime) -> Iterator[Move]:
    while (move := _next(state, now)) is not None:
        yield move
        state = apply(state, Started(move), now)


def _next(state: State, now: datetime) -> Move | None:
    if state.stop and state.stop.reason == "cancelled":
        return _cut(state)
    deadline = state.work_deadline
    if state.phase in ("planning", "working") and deadline and now >= deadline:
        return _cut(state) if state.stop else Stop("deadline", "the deadline was reached")
    if state.phase == "planning":
        return _plan(state)
    if state.phase == "working":
        return _work(state)
    if state.phase == "synthesizing":
        return _synthesize(state)
    return None


def _plan(state: State) -> Move | None:
    if state.flights or state.stop:
        return None
    asks = state.goal.use_models and _ready_plan(state) is None
    material = plan_material(state)
    ask = _ask(state, "plan", material, tier=policies.POLICIES["plan"].tier if asks else None)
    if asks and not state.ledger.fits(ask.amount):
        return Stop("budget", "the cap does not cover a plan and a synthesis")
    return ask


def _ready_plan(state: State) -> object:
    playbook = state.brief.playbook
    return state.goal.plan or (playbook.plan if playbook else None)


def _work(state: State) -> Move | None:
    if state.stop or len(state.flights) >= state.goal.limits.concurrency:
        return None
    for progress in _ready(state):
        move = _start(state, progress)
        if move is not None:
            return move
    return None


def _cut(state: State) -> Move | None:
    ids = tuple(key for key, flight in state.flights.items() if not flight.cut)
    return Cut(ids) if ids else None


def _ready(state: State) -> list[Progress]:
    """Subtasks that can start now, the one with the longest remaining chain first."""
    below = graph.chain_below([progress.subtask for progress in state.work.values()])
    ready = [
        progress
        for progress in state.work.values()
        if progress.finding is None
        and not progress.flight
        and all(state.settled(edge) for edge in progress.subtask.depends_on)
    ]
    return sorted(ready, key=lambda progress: -below[progress.subtask.id])


def _start(state: State, progress: Progress) -> Move | None:
    """The move that starts a subtask; None: wait, because something in flight may release money."""
    subtask = progress.subtask
    role = state.brief.role(subtask.role)
    if progress.tier == "none":
        number = state.numbers.get(f"use_tool-{subtask.id}", 0) + 1
        return UseTool(f"use_tool-{subtask.id}-{number}", subtask.id, role.tools[0])
    material = work_material(state, subtask.id)
    ask = _ask(state, "work", material, progress=progress, tier=progress.tier)
    if state.ledger.fits(ask.amount):
        return ask
    if state.ledger.reserved:
        return None
    cheaper = None if role.fixed_tier else DOWNGRADE.get(progress.tier)
    while cheaper is not None:
        ask = _ask(state, "work", material, progress=progress, tier=cheaper)
        if state.ledger.fits(ask.amount):
            return ask
        cheaper = DOWNGRADE.get(cheaper)
    return Stop("budget", "the rest of the budget does not cover another call")


def _synthesize(state: State) -> Move | None:
    if state.flights or state.synthesis is not None:
        return None
    material = synthesis_material(state)
    free = _ask(state, "synthesize", material, tier=None)
    if state.synthesis_by_template:
        return free
    paid = _ask(state, "synthesize", material, tier=policies.POLICIES["synthesize"].tier)
    return paid if state.ledger.fits(paid.amount, keep=False) else free


# ---------------------------------------------------------------- calls and their price


def _ask(
    state: State,
    kind: CallKind,
    material: Contract,
    *,
    tier: Tier | Literal["none"] | None,
    progress: Progress | None = None,
) -> Ask:
    """A call and its reservation; without a tier it asks no model and costs nothing."""
    subtask_id = progress.subtask.id if progress else ""
    what = "repair" if progress and progress.broken else kind
    purpose = f"{what}-{subtask_id}" if subtask_id else kind
    number = state.numbers.get(purpose, 0) + 1
    call_id = f"{purpose}-{number}"
    if tier is None or tier == "none":
        return Ask(Call(id=call_id, kind=kind, subtask_id=subtask_id, number=number), Amount())
    policy = policies.POLICIES[kind]
    model = state.brief.model(tier)
    role = state.brief.role(progress.subtask.role) if progress else None
    max_output = policy.max_output * (2 if progress and progress.doubled else 1)
    tokens = input_tokens(material) + (role.prompt_bytes if role else 0) // policies.BYTES_PER_TOKEN
    price = worst(model, tokens, max_output) or Decimal(0)
    needed = progress.needed if progress else Amount()
    amount = Amount(max(price, needed.dollars), 1, max(tokens + max_output, needed.tokens))
    call = Call(
        id=call_id,
        kind=kind,
        subtask_id=subtask_id,
        number=number,
        tier=tier,
        model=model,
        role=role.name if role else "",
        max_output=max_output,
        effort=role.effort if role else policy.effort,
        ceiling=amount.dollars,
        token_ceiling=amount.tokens,
        capabilities=state.brief.capabilities,
    )
    return Ask(call, amount)


def input_tokens(material: Contract) -> int:
    """The most tokens a prompt made of this material can have, its inputs' content included."""
    size = len(material.model_dump_json().encode())
    if isinstance(material, WorkMaterial):
        size += sum(pinned.size for pinned in material.inputs if pinned.kind != "repository")
    return size // policies.BYTES_PER_TOKEN + policies.PROMPT_OVERHEAD_TOKENS


# ---------------------------------------------------------------- what each activity works from


def plan_material(state: State) -> PlanMaterial:
    """For `plan`: the goal, the menu of roles, a preview of each input; never a repository's
    files.
    """
    brief = state.brief
    return PlanMaterial(
        goal=state.goal.text,
        ready=state.goal.plan or (brief.playbook.plan if brief.playbook else None),
        roles=brief.roles,
        inputs=brief.inputs,
        guidance=brief.playbook.guidance if brief.playbook else "",
        subtask_limit=state.goal.limits.subtasks,
        errors=state.plan_errors,
    )


def work_material(state: State, subtask_id: str) -> WorkMaterial:
    """For `work` and `use_tool`: the subtask, its inputs and what its own dependencies found."""
    progress = state.work[subtask_id]
    subtask = progress.subtask
    role = state.brief.role(subtask.role)
    findings = (state.work[edge].finding for edge in subtask.depends_on)
    return WorkMaterial(
        subtask=subtask,
        inputs=tuple(pinned for pinned in state.brief.inputs if pinned.name in subtask.inputs),
        dependencies=tuple(finding for finding in findings if finding is not None),
        tool=role.tools[0] if role.tier == "none" else "",
        timeout_seconds=state.goal.limits.subtask_timeout_seconds,
        number=len(progress.tries) + 1,
        reason=progress.reason,
        broken=progress.broken[-1] if progress.broken else None,
    )


def synthesis_material(state: State) -> SynthesisMaterial:
    """For `synthesize`: every finding, failures included."""
    assert state.plan is not None
    playbook = state.brief.playbook
    return SynthesisMaterial(
        goal=state.goal.text,
        strategy=state.plan.strategy,
        instruction=state.plan.synthesis_instruction,
        template=playbook.template if playbook else "merge",
        min_confidence=playbook.min_confidence if playbook else 0,
        subtasks=state.plan.subtasks,
        findings=state.findings,
        inputs=state.brief.inputs,
        not_run=state.brief.not_run,
        context_tokens=state.goal.limits.supervisor_context_tokens,
        broken=state.synthesis_broken[-1] if state.synthesis_broken else None,
    )
