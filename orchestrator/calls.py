"""Building a call: its id, its model, and the worst case that the ledger reserves for it. Pure."""

from __future__ import annotations

from decimal import Decimal

from orchestrator import policies
from orchestrator.contracts import Call, CallKind, Contract, RoleCard, Tier
from orchestrator.events import Ask
from orchestrator.ledger import Amount
from orchestrator.materials import WorkMaterial
from orchestrator.pricing import worst
from orchestrator.state import Progress, State


def free_call(state: State, kind: CallKind, purpose: str) -> Ask:
    """A call that asks no model and costs nothing."""
    number = state.numbers.get(purpose, 0) + 1
    return Ask(Call(id=f"{purpose}-{number}", kind=kind, number=number), Amount())


def paid_call(
    state: State,
    kind: CallKind,
    purpose: str,
    material: Contract,
    *,
    tier: Tier | None = None,
    progress: Progress | None = None,
    role: RoleCard | None = None,
    keep: bool = True,
) -> Ask:
    """A call and its reservation. `tier` None: the one that the policy of its kind names."""
    policy = policies.POLICIES[kind]
    number = state.numbers.get(purpose, 0) + 1
    model = state.brief.model(tier or policy.tier)
    max_output = policy.max_output * (2 if progress and progress.doubled else 1)
    tokens = input_tokens(material) + (role.prompt_bytes if role else 0) // policies.BYTES_PER_TOKEN
    price = worst(model, tokens, max_output) or Decimal(0)
    needed = state.needed.get(f"{purpose}/{model.tier}", Amount())
    amount = Amount(max(price, needed.dollars), 1, max(tokens + max_output, needed.tokens))
    call = Call(
        id=f"{purpose}-{number}",
        kind=kind,
        subtask_id=progress.subtask.id if progress else "",
        number=number,
        tier=model.tier,
        model=model,
        role=role.name if role else "",
        max_output=max_output,
        effort=role.effort if role else policy.effort,
        ceiling=amount.dollars,
        token_ceiling=amount.tokens,
        capabilities=state.brief.capabilities,
    )
    return Ask(call, amount, keep)


def input_tokens(material: Contract) -> int:
    """The most tokens a prompt made of this material can have, its inputs' content included."""
    # Without defaults, so that a contract that gains a field reserves what it did before.
    size = len(material.model_dump_json(exclude_defaults=True).encode())
    if isinstance(material, WorkMaterial):
        size += sum(pinned.size for pinned in material.inputs if pinned.kind != "repository")
    return size // policies.BYTES_PER_TOKEN + policies.PROMPT_OVERHEAD_TOKENS


def purpose_of(call_id: str) -> str:
    """`work-t3` of `work-t3-2`: what an activity is for, without its number."""
    return call_id.rpartition("-")[0]


def mended_by(call: Call) -> str:
    """The purpose whose malformed answers a call mends: a repair's are those of the work."""
    return f"{call.kind}-{call.subtask_id}" if call.subtask_id else purpose_of(call.id)
