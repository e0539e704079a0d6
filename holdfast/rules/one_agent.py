"""One agent or a team: what a plan says of that, as a person is told. Pure.

The numbers are rules of thumb of those who run such teams; docs/when-a-team.md has them all.
"""

from __future__ import annotations

from holdfast.calling import context, gathering
from holdfast.contracts import Plan, policies
from holdfast.contracts.replacing import replace
from holdfast.state import graph
from holdfast.state.parts import Progress
from holdfast.state.run import State
from holdfast.state.work import Work
from holdfast.text import pluralize, sentence

SINGLE = "One subtask: its finding is the answer"
LITTLE = 50_000
"""Tokens of material below which one agent without tools often does as well as several."""
FEW_KINDS = 3
"""Kinds of work from which on several agents are worth it whatever the material."""
MANY_AGENTS = 5
"""Agents of one supervisor beyond which the overhead outweighs what more of them find."""


def say_single(state: State) -> str:
    """Return that nobody writes the answer anew, with the planner's reason for one subtask; empty
    if somebody does.
    """
    if state.single is None:
        return ""
    why = f" Why one: {sentence(state.single.why)}" if state.single.why else ""
    return f"{sentence(SINGLE)}{why}"


def with_one_agent(state: State) -> State | None:
    """Return the state as it were if one agent had the whole goal; None if no common role could, or
    the plan has no team of agents to compare it with.
    """
    role = next((card for card in state.brief.roles if card.name == policies.FALLBACK_ROLE), None)
    if role is None or role.tier == "none" or len(_asked(state)) < 2 or _maps(state):
        return None
    if all(each.enclosed for each in state.brief.inputs):
        # It has everything in its prompt: one call will do.
        size = role.prompt_bytes - sum(each.size for each in role.reads)
        role = role.model_copy(update={"tools": (), "prompt_bytes": size})
    plan = Plan.single(state.goal.text, role.name, (each.name for each in state.brief.inputs))
    (whole,) = plan.subtasks
    brief = state.brief.model_copy(update={"roles": (role,)})
    work = Work({whole.id: Progress(whole, tier=role.tier)})
    return replace(state, briefing=brief, plan=plan, work=work)


def say_overstaffed(state: State) -> str:
    """Return why a plan seems to have more agents than work; empty if it does not."""
    asked = _asked(state)
    assert state.plan is not None
    if len(asked) < 2 or state.plan.strategy == "select" or _maps(state):
        return ""
    kinds = {each.subtask.role for each in asked}
    if len(kinds) == 1 and _is_chain(state, asked):
        return _advise(f"{len(asked)} agents of one role work one after the other")
    if any(_needs_tools(state, each) for each in asked):
        return ""
    size = len(state.goal.text.encode()) + sum(each.size for each in state.brief.inputs)
    tokens = size // context.EXPECTED_BYTES_PER_TOKEN
    if tokens >= LITTLE or (len(kinds) >= FEW_KINDS and len(asked) <= MANY_AGENTS):
        return ""
    return _advise(
        f"{len(asked)} agents, {pluralize(len(kinds), 'role')}, no tools that look anything up, and"
        f" about {pluralize(tokens, 'token')} of material"
    )


def _advise(why: str) -> str:
    return f"More agents than work? {why}: one agent often does as well for less (--single)."


def _asked(state: State) -> list[Progress]:
    """Return the subtasks that models are still to do."""
    return [each for each in state.work.values() if each.tier != "none" and not each.finding]


def _maps(state: State) -> bool:
    """True if a subtask is done for each of many items, which no one agent could read."""
    return any(each.subtask.map for each in state.work.values())


def _is_chain(state: State, asked: list[Progress]) -> bool:
    """True if each of these needs the one before it, so that none runs beside another."""
    subtasks = [each.subtask for each in state.work.values()]
    chain = graph.longest_chain(subtasks, {each.subtask.id: 1.0 for each in asked})
    return all(each.subtask.id in chain for each in asked)


def _needs_tools(state: State, progress: Progress) -> bool:
    """True if a subtask's agent does more with tools than compute: it reads what stands in no
    prompt, or its tools reach out, change something or are not shipped.
    """
    brief, role = state.brief, gathering.role_of(state, progress.subtask)
    if role.team or not all(each.enclosed for each in gathering.inputs_of(state, progress.subtask)):
        return True
    reach = any(outlet.serves(role.tools) for outlet in brief.outlets)
    changes = not {*role.tools}.isdisjoint(role.effects)
    return reach or changes or any(name in brief.tool_sources for name in role.tools)
