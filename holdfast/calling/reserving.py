"""Building a call: its id, its model, and the worst case that the ledger reserves for it. Pure.

Under a small cap a call gets less room for its answer, then a cheaper model: `rooms` and `tiers`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from decimal import Decimal
from typing import Any

from holdfast.calling import gathering, warming
from holdfast.calls.kind import AnyKind
from holdfast.calls.work import WORK
from holdfast.contracts import (
    Briefing,
    Call,
    Contract,
    ModelCard,
    RoleCard,
    RoleTier,
    Tier,
    policies,
)
from holdfast.contracts.replacing import replace
from holdfast.ledger.ledger import Amount, Ledger
from holdfast.ledger.pricing import worst
from holdfast.state.moves import Ask
from holdfast.state.parts import Progress
from holdfast.state.run import State

CHEAPER: Mapping[RoleTier, Tier] = {"opus": "sonnet", "sonnet": "haiku"}


def rooms(most: int) -> Iterator[int]:
    """Yield tokens for an answer: the most, then half each time, down to the least."""
    room = most
    yield room
    while room // 2 >= policies.LEAST_OUTPUT:
        room //= 2
        yield room


def tiers(brief: Briefing, first: Tier) -> Iterator[Tier]:
    """Yield a tier and the cheaper ones that this deployment serves."""
    served = [card.tier for card in brief.models]
    tier: Tier | None = first
    while tier is not None:
        if tier in served or tier == first:
            yield tier
        tier = CHEAPER.get(tier)


def usual_model(brief: Briefing, kind: AnyKind) -> ModelCard:
    """Return the model that a kind of call is asked of where the cap allows it."""
    return (brief.planner if kind.plans else None) or brief.model(kind.policy.tier)


def fitting_call(
    state: State,
    kind: AnyKind,
    purpose: str,
    material: Contract,
    *,
    progress: Progress | None = None,
    keep: bool = True,
    first: Tier | None = None,
) -> Ask:
    """Build a call of the supervisor's own with the strongest model, and then the most room, that
    can be paid now; the cheapest where none can. `first`: a stronger tier than usual, used if it is
    served and its whole room can be paid.
    """
    ask, usual = None, usual_model(state.brief, kind)
    stronger = [card for card in state.brief.models if card.tier == first]
    cheaper = [state.brief.model(tier) for tier in tiers(state.brief, usual.tier)]
    for model in (*stronger, usual, *(card for card in cheaper if card != usual)):
        ask = paid_call(
            state,
            kind,
            purpose,
            material,
            model=model,
            progress=progress,
            keep=keep,
            smaller=model not in stronger,
        )
        if state.ledger.fits(ask.amount, keep=keep):
            return ask
    assert ask is not None, "every kind of call has a tier"
    return ask


def paid_call(
    state: State,
    kind: AnyKind,
    purpose: str,
    material: Contract,
    *,
    model: ModelCard | None = None,
    progress: Progress | None = None,
    role: RoleCard | None = None,
    keep: bool = True,
    smaller: bool = False,
    most: int = 0,
) -> Ask:
    """Build a call with its reservation, by default for its kind's usual model. An answer that was
    cut off gets twice the room, if that can be paid. `smaller`: less where the whole room cannot be
    paid. `most`: the whole room; 0: the kind's.
    """
    model = model or usual_model(state.brief, kind)
    subtask_id = progress.subtask.id if progress else ""
    tokens = input_tokens(kind, material) + (role.prompt_bytes if role else 0)
    tokens = max(tokens, state.needed.get(f"{purpose}/{model.tier}", 0))
    cut_off = (f"{kind.name}-{subtask_id}" if progress else purpose) in state.roomier
    offered = _rooms_offered(
        most or kind.policy.max_output, model, cut_off=cut_off, smaller=smaller
    )
    max_output, amount = _room(state.ledger, model, tokens, offered, keep=keep)
    call = Call(
        kind=kind.name,
        purpose=purpose,
        number=state.next_number(purpose),
        subtask_id=subtask_id,
        mending=getattr(material, "broken", None) is not None,
        tier=model.tier,
        model=model,
        role=role.name if role else "",
        max_output=max_output,
        effort=role.effort if role else kind.policy.effort,
        ceiling=amount.dollars,
        token_ceiling=amount.tokens,
        capabilities=state.brief.capabilities,
        run=state.first_run_id,
        project=state.goal.project,
    )
    return Ask(call, material, amount, keep)


def work_call(state: State, progress: Progress) -> Ask:
    """Build the next try at a subtask with its tier's whole room; where that cannot be paid, with
    the next cheaper tier, unless the role's is fixed; at last with less room. The cheapest of these
    where none can be paid.
    """
    assert progress.tier != "none", "work without a model is a lens's"
    fixed = state.brief.role(progress.subtask.role).fixed_tier
    offered = [progress.tier] if fixed else [*tiers(state.brief, progress.tier)]
    for tier in offered:
        ask = _ask(state, progress, tier)
        if state.ledger.fits(ask.amount):
            return ask
    return _ask(state, progress, offered[-1], smaller=True)


def _ask(state: State, progress: Progress, tier: Tier, *, smaller: bool = False) -> Ask:
    subtask = progress.subtask
    what = "repair" if f"work-{subtask.id}" in state.broken else "work"
    ask = paid_call(
        state,
        WORK,
        f"{what}-{subtask.id}",
        gathering.for_work(state, progress),
        model=state.brief.model(tier, subtask.role),
        progress=progress,
        role=gathering.role_of(state, subtask),
        smaller=smaller,
        most=subtask.max_output,
    )
    if not warming.is_shared(state, progress):
        return ask
    first = {"caching": "5m", "warms": warming.leads(state, progress)}
    return replace(ask, call=ask.call.model_copy(update=first))


def _room(
    ledger: Ledger, model: ModelCard, tokens: int, offered: Iterator[int], *, keep: bool
) -> tuple[int, Amount]:
    """Return the first offered room that can be paid, else the last; and its reservation."""
    room, amount = 0, Amount()
    for room in offered:
        amount = reservation(model, tokens, room)
        if ledger.fits(amount, keep=keep):
            break
    return room, amount


def _rooms_offered(most: int, model: ModelCard, *, cut_off: bool, smaller: bool) -> Iterator[int]:
    """Yield rooms for the answer, the most first."""
    if cut_off:
        yield 2 * most
    # What was cut off is not asked for again with as little, while a cheaper model has the room.
    if smaller and not (cut_off and model.tier in CHEAPER):
        yield from rooms(most)
    else:
        yield most


def least_call(brief: Briefing, kind: AnyKind, tokens: int) -> Amount:
    """Return the least that a call of this kind, with such a prompt, is reserved at."""
    *_, tier = tiers(brief, kind.policy.tier)
    *_, room = rooms(kind.policy.max_output)
    return reservation(brief.model(tier), tokens, room)


def reservation(model: ModelCard, tokens: int, max_output: int, searches: int = 0) -> Amount:
    cost = worst(model, tokens, max_output, searches)
    return Amount(cost or Decimal(0), 1, tokens + max_output)


def input_tokens(kind: AnyKind, material: Contract) -> int:
    """Return the tokens reserved for a prompt of this material, with its inputs' content. A prompt
    that may have more is counted before it leaves.
    """
    # Without defaults, so that a contract that gains a field reserves what it did before. A reset
    # run waits otherwise and must reserve the same, because the journal knows its calls by what
    # they are; how long a finding waited is in no prompt.
    waits = {"__all__": {"waited"}}
    # Nor is where a role comes from, what its tools read, and where its prompt is kept, which is
    # counted by itself.
    kept = {"__all__": {"source", "prompt", "reads"}}
    unsaid: dict[str, Any] = {
        "findings": waits,
        "dependencies": waits,
        "roles": kept,
        "prompt": True,
        "early": True,
    }
    size = len(material.model_dump_json(exclude_defaults=True, exclude=unsaid).encode())
    size += kind.longer + kind.beyond(material)
    return tokens_of(size)


def tokens_of(size: int) -> int:
    """Return the tokens reserved for so many bytes of material, with what stands around it."""
    surely = min(size, policies.UNCOUNTED_BYTES)
    rest = (size - surely) // policies.RESERVED_BYTES_PER_TOKEN
    return surely + rest + policies.PROMPT_OVERHEAD_TOKENS
