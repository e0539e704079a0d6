"""What is kept of a cap for the synthesis, and the least cap that a run can do with. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from datetime import UTC, datetime
from decimal import ROUND_DOWN, ROUND_UP, Decimal

from holdfast.calling import gathering, verifying
from holdfast.calling.reserving import (
    input_tokens,
    least_call,
    reservation,
    rooms,
    tiers,
    usual_model,
)
from holdfast.calls.kind import AnyKind
from holdfast.calls.plan import PLAN
from holdfast.calls.replan import REPLAN
from holdfast.calls.synthesize import SYNTHESIZE
from holdfast.calls.work import WORK, most_written
from holdfast.contracts import Bill, Briefing, Call, Goal, Limits, Plan, Subtask, Tier, policies
from holdfast.contracts.replacing import replace
from holdfast.ledger.ledger import Amount, Ledger
from holdfast.ledger.ranges import format_price
from holdfast.plans import composing
from holdfast.rules import agents, maps
from holdfast.state.moves import Ask
from holdfast.state.parts import Progress
from holdfast.state.run import State, first_state
from holdfast.state.work import Work
from holdfast.text import group_lines, sentence

USUAL_SHARE = Decimal("0.15")
"""What a call usually takes of its worst case, and an answer of its room."""
WORDS = {"id", "title", "instruction", "depends_on", "acceptance_criteria", "why"}
"""Among subtasks that differ in nothing else, the one with the most words is the dearest."""
FEWEST_TEAM_CALLS = 4
"""A plan, a subtask, a synthesis and a critique: with fewer a team cannot answer."""


def kept_amount(limits: Limits, brief: Briefing) -> Amount:
    """Return what only the synthesis may use: the worst case of the largest one within a share of
    the cap, else of the smallest. When its time comes, it takes all that is left, and so is usually
    larger.
    """
    most = Amount(
        limits.dollars * policies.KEPT_SHARE,
        limits.model_calls,
        int(limits.tokens * policies.KEPT_SHARE),
    )
    offered = [*_syntheses(limits, brief)]
    return next((each for each in offered if each <= most), offered[-1])


def _syntheses(limits: Limits, brief: Briefing) -> Iterator[Amount]:
    """Yield full-context syntheses with less and less room, then by cheaper models."""
    policy = SYNTHESIZE.policy
    tokens = limits.supervisor_context_tokens + policies.PROMPT_OVERHEAD_TOKENS
    for tier in tiers(brief, policy.tier):
        for room in rooms(policy.max_output):
            yield reservation(brief.model(tier), tokens, room)


def grow_kept(ledger: Ledger, limits: Limits, brief: Briefing) -> Ledger:
    """Keep more under a higher cap, if what was spent leaves room for it."""
    more = replace(ledger, kept=kept_amount(limits, brief))
    return more if more.fits(Amount()) else ledger


def keep_for_answer(state: State) -> State:
    """Keep money for a synthesis as the plan stands: none where a finding is the answer."""
    if not state.goal.use_models or verifying.is_wanted(state):
        return state
    if state.single:
        return replace(state, ledger=replace(state.ledger, kept=Amount()))
    return replace(state, ledger=grow_kept(state.ledger, state.goal.limits, state.brief))


def limits_short_of(ledger: Ledger, needed: Amount) -> tuple[str, ...]:
    """Return the limits whose rest, without what is kept, does not cover the next call; dollars
    where each alone would, as for a team, which gets only a part of the rest.
    """
    free = ledger.cap - ledger.paid - ledger.held - ledger.kept
    pairs = {
        "dollars": needed.dollars > free.dollars,
        "model_calls": needed.calls > free.calls,
        "tokens": needed.tokens > free.tokens,
    }
    return tuple(name for name, short in pairs.items() if short) or ("dollars",)


def cap_for(ledger: Ledger, needed: Amount) -> Decimal:
    """Return the least cap in dollars under which so much can still be reserved, beside what is
    kept of it for the answer.
    """
    whole = ledger.paid.dollars + ledger.held.dollars + needed.dollars
    if not ledger.kept.dollars:
        return whole
    return max(whole / (1 - policies.KEPT_SHARE), whole + ledger.kept.dollars)


def describe_shortage(ledger: Ledger, what: str, short_of: tuple[str, ...]) -> str:
    """Return which limit does not cover something any more, and the money left."""
    if "dollars" in short_of:
        return f"the rest of the budget does not cover {what}"
    limits = {
        "model_calls": f"{ledger.cap.calls:,} model calls",
        "tokens": f"{ledger.cap.tokens:,} tokens",
    }
    named = " and ".join(limits[name] for name in short_of)
    left = ledger.cap.dollars - ledger.paid.dollars - ledger.held.dollars
    rounded = left.quantize(Decimal("0.01"), rounding=ROUND_DOWN)
    money = f", though ${rounded:,} is left" if ledger.all_priced else ""
    return f"the limit of {named} does not cover {what}{money}"


def note_cheaper_call(state: State, ask: Ask) -> State:
    """Note that the cap allowed only a cheaper model for a subtask, the plan or the answer."""
    if ask.call.kind == "work":
        return note_cheaper(state, ask.call.subtask_id, ask.call.tier)
    noted: dict[str, tuple[str, AnyKind]]
    noted = {PLAN.name: ("The plan", PLAN), SYNTHESIZE.name: ("The answer", SYNTHESIZE)}
    if ask.call.kind not in noted or ask.call.model is None:
        return state
    what, kind = noted[ask.call.kind]
    tier, usual = ask.call.tier, usual_model(state.brief, kind).tier
    note = f"{what} was asked of {tier} instead of {usual}: the cap left no more."
    # A stronger one was not asked for want of money.
    if tier in (usual, policies.STRONGEST) or note in state.notes:
        return state
    return replace(state, notes=(*state.notes, note))


CLIMBED: Mapping[AnyKind, str] = {
    PLAN: "The plan was asked of {}, because {} gave none that could be used",
    REPLAN: "A change of the plan was asked of {}, because {} gave none that could be used",
}
"""What the strongest model is asked for, and why."""


def note_climb(state: State, call: Call, bill: Bill) -> State:
    """Note with its price and the reason that the strongest model answered for a weaker one."""
    kind = next((each for each in CLIMBED if each.name == call.kind), None)
    usual = usual_model(state.brief, kind).tier if kind else ""
    if kind is None or call.tier != policies.STRONGEST or call.tier == usual:
        return state
    errors: dict[AnyKind, tuple[str, ...]] = {
        PLAN: state.plan_errors,
        REPLAN: state.replanning.errors,
    }
    wrong = group_lines(errors.get(kind, ()))
    note = f"{CLIMBED[kind].format(call.tier, usual)}: {format_price(bill.dollars)}."
    return replace(state, notes=(*state.notes, f"{note} {sentence(wrong)}" if wrong else note))


def note_cheaper(state: State, subtask_id: str, tier: Tier) -> State:
    """Note that a subtask is worked on by a cheaper tier than was due, if it is."""
    due = state.work[subtask_id].tier
    if tier == due:
        return state
    which = f"{tier} instead of {due}"
    known = dict.fromkeys((*state.cheaper.get(which, ()), subtask_id))
    return replace(state, cheaper={**state.cheaper, which: tuple(known)})


def cheaper_lines(state: State) -> Iterator[str]:
    """Yield a line for each pair of tiers, with the subtasks that were done by the cheaper one."""
    for which, ids in state.cheaper.items():
        were = "was" if len(ids) == 1 else "were"
        yield f"{', '.join(ids)} {were} asked of {which}: the cap left no more."


# ---------------------------------------------------------------- the least cap


def least(goal: Goal, brief: Briefing, *, whole: bool = False) -> Amount:
    """Return the smallest cap under which a run can answer: its plan, where none is ready; the
    dearest of its subtasks at its cheapest; its synthesis. `whole`: under which it usually gets
    through all subtasks of a ready plan.
    """
    # Nothing here depends on when it is.
    some_time = datetime(2000, 1, 1, tzinfo=UTC)
    state = replace(first_state("", goal, some_time, ""), briefing=brief)
    ready = gathering.ready_plan(state)
    needed = Amount()
    if ready is None:
        plan = input_tokens(PLAN, gathering.for_plan(state))
        needed = least_call(brief, PLAN, plan) + _whole_goal(state)
    else:
        state = replace(state, briefing=composing.brief_for_plan(brief, ready), plan=ready)
        taken = [each.subtask_id for each in goal.fork.findings] if goal.fork else []
        due = [each for each in ready.subtasks if each.id not in taken]
        due = due if whole else _dearest(due)
        works = [_least_of_subtask(state, each) for each in due]
        needed = _in_turn(works) if whole else _most(works)
        work = {each.id: Progress(each, tier="none") for each in ready.subtasks}
        state = replace(state, work=Work(work))
    if verifying.is_wanted(state) or state.single:
        # Code writes the answer, and what cannot be verified stands as it is; or an agent does.
        return needed
    smallest = [*_syntheses(goal.limits, brief)][-1]
    # Under a cap of this size the kept synthesis takes its share, or is the smallest.
    share = 1 - policies.KEPT_SHARE
    shared = Amount(needed.dollars / share, needed.calls + 1, int(needed.tokens / share) + 1)
    return _most([needed + smallest, shared])


def short_of(goal: Goal, brief: Briefing) -> str:
    """Return why the cap of a goal is too small, and what would do; empty if it is not."""
    allowed = goal.model_copy(update={"limits": brief.within(goal.limits)})
    cap = Ledger.under(allowed.limits).cap
    return "" if least(allowed, brief) <= cap else why_short(allowed, brief, cap)


def why_short(goal: Goal, brief: Briefing, cap: Amount) -> str:
    """Return what is too small, and what would do, within what the deployment allows."""
    most, whole = brief.most_dollars, _usual_cap(goal, brief)
    if most is None:
        return say_too_little(whole, cap)
    if is_hopeless(goal, brief):
        needed = _exactly(least(goal, brief).dollars)
        return (
            f"this deployment allows ${most.normalize():f} a run ({policies.MOST_RUN}), which does"
            f" not cover the least that this run must ask for: ${needed}"
        )
    return say_too_little(whole, cap)


def _usual_cap(goal: Goal, brief: Briefing) -> Amount:
    """Return the cap under which a run usually gets through, within what the deployment allows."""
    whole, most = least(goal, brief, whole=True), brief.most_dollars
    return whole if most is None else replace(whole, dollars=min(whole.dollars, most))


def usual_cap(goal: Goal, brief: Briefing) -> Decimal:
    """Return the dollars that `why_short` names."""
    return round_up(_usual_cap(goal, brief).dollars)


def is_hopeless(goal: Goal, brief: Briefing) -> bool:
    """True if the least that a run needs is above what its deployment allows: no raise helps."""
    return brief.most_dollars is not None and least(goal, brief).dollars > brief.most_dollars


def say_lowered(asked: Limits, allowed: Limits) -> str:
    """Return the note that a run may spend less than its goal says."""
    return (
        f"The goal allows ${asked.dollars.normalize():f};"
        f" this deployment allows ${allowed.dollars.normalize():f} a run ({policies.MOST_RUN})."
    )


def say_too_little(needed: Amount, cap: Amount) -> str:
    """Return the sentence that names what is too small, and the limits that would do."""
    small, enough = [], []
    if needed.dollars > cap.dollars:
        small.append(f"${cap.dollars.normalize():f}")
        enough.append(f"dollars={_exactly(needed.dollars)}")
    if needed.calls > cap.calls:
        small.append(f"{cap.calls} model calls")
        enough.append(f"model_calls={needed.calls}")
    if needed.tokens > cap.tokens:
        small.append(f"{cap.tokens} tokens")
        enough.append(f"tokens={needed.tokens}")
    if not small:
        return "what is left of the cap does not cover a plan, a subtask and the synthesis"
    return (
        f"a cap of {' and '.join(small)} does not cover the least that this run must ask for;"
        f" this would do: --limits {' --limits '.join(enough)}"
    )


def _exactly(dollars: Decimal) -> str:
    """Format dollars with two decimals, or three where a tenth of a cent counts; rounded up."""
    up = round_up(dollars)
    return f"{up:.2f}" if up == up.quantize(Decimal("0.01")) else f"{up}"


def round_up(dollars: Decimal) -> Decimal:
    """Round dollars up to a tenth of a cent."""
    return dollars.quantize(Decimal("0.001"), rounding=ROUND_UP)


def _whole_goal(state: State) -> Amount:
    """Return the worst case of one subtask that carries the whole goal with all its inputs."""
    role = max(state.brief.roles, key=lambda card: card.prompt_bytes, default=None)
    if role is None:
        return Amount()
    names = (each.name for each in state.brief.inputs)
    (whole,) = Plan.single(state.goal.text, role.name, names).subtasks
    *_, cheapest = tiers(state.brief, "sonnet")
    return _least_of_try(state, whole, cheapest)


def _least_of_subtask(state: State, subtask: Subtask) -> Amount:
    role = state.brief.role(subtask.role)
    if role.tier == "none":
        return Amount()
    if role.team:
        # A team gets half of what is free.
        inputs = tuple(each for each in state.brief.inputs if each.name in subtask.inputs)
        goal = Goal(text=subtask.instruction, limits=state.goal.limits, use_models=True)
        brief = state.brief.model_copy(update={"playbook": None, "inputs": inputs})
        one = least(goal, brief)
        return replace(one, calls=max(one.calls, FEWEST_TEAM_CALLS)) * 2
    wanted: Tier = subtask.tier or role.tier
    *_, cheapest = [role.tier] if role.fixed_tier else tiers(state.brief, wanted)
    return _least_of_try(state, subtask, cheapest)


def least_below(state: State, subtask_id: str) -> Amount:
    """Return the least that everything needs which waits for a subtask."""
    waiting = (state.work[each] for each in state.work.below(subtask_id))
    due = [each.subtask for each in waiting if each.finding is None and each.subtask.map is None]
    return sum((_least_of_subtask(state, each) for each in due), Amount())


def _dearest(subtasks: list[Subtask]) -> list[Subtask]:
    """Return the dearest of the subtasks that differ only in words: few of a thousand are left."""
    found: dict[str, tuple[int, Subtask]] = {}
    for each in subtasks:
        kind = each.model_dump_json(exclude=WORDS)
        # What its dependencies will say is not known yet.
        said = each.model_dump_json(exclude={"depends_on"}, exclude_defaults=True)
        size = len(said.encode())
        if size > found.get(kind, (-1, each))[0]:
            found[kind] = (size, each)
    return [each for _, each in found.values()]


def _least_of_try(state: State, subtask: Subtask, tier: Tier) -> Amount:
    """Return the least that one try is reserved at, without its dependencies' findings."""
    alone = subtask.model_copy(update={"depends_on": ()})
    progress = Progress(alone, tier=tier)
    state = replace(state, work=Work({alone.id: progress}))
    if alone.map is not None:
        return maps.least(state, replace(progress, tier=tier))
    if agents.uses_tools(state, progress):
        return agents.least_turn(state, alone.id, tier)
    role = gathering.role_of(state, alone)
    tokens = input_tokens(WORK, gathering.for_work(state, progress)) + role.prompt_bytes
    *_, room = rooms(most_written(subtask))
    return reservation(state.brief.model(tier, role.name), tokens, room)


def _in_turn(works: list[Amount]) -> Amount:
    """Add the worst case of the dearest to what the others usually take, a share of theirs."""
    dearest = _most(works)
    dollars = sum((each.dollars for each in works), Decimal(0)) - dearest.dollars
    tokens = sum(each.tokens for each in works) - dearest.tokens
    others = Amount(dollars * USUAL_SHARE, 0, int(tokens * USUAL_SHARE))
    calls = sum(each.calls for each in works) - dearest.calls
    return dearest + replace(others, calls=calls)


def _most(amounts: list[Amount]) -> Amount:
    return Amount(
        max((each.dollars for each in amounts), default=Decimal(0)),
        max((each.calls for each in amounts), default=0),
        max((each.tokens for each in amounts), default=0),
    )
