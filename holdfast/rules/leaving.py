"""What a run sends to models and tools from where it stands, as a person is shown. Pure."""

from __future__ import annotations

from holdfast.calling import fixing, gathering, proving, verifying
from holdfast.calls.changes import size_of_change
from holdfast.contracts import Omission, PinnedInput
from holdfast.rules import agents
from holdfast.state.graph import named_inputs
from holdfast.state.run import State

BASE = "base"
"""The input that names the revision which a repository is compared with."""
SCOPE = "scope"
"""The input of a playbook that says how much of a repository is taken."""
CHANGED, ALL = "changed", "all"
"""Values of the scope: what differs from the main line (the default), or everything."""


def list_sent(state: State) -> tuple[str, ...]:
    """Return what is sent to models: goal, named inputs, findings, and code around remarks."""
    asking = [each for each in state.work.values() if each.tier != "none" and not each.finding]
    named = {name: None for progress in asking for name in named_inputs(progress.subtask)}
    inputs = [_describe_input(each) for each in state.brief.inputs if each.name in named]
    first = ("the goal",) if state.single else ("the goal", "the findings")
    if verifying.is_wanted(state):
        code = verifying.repository(state)
        assert code is not None, "remarks of a repository are verified"
        first = (*(("the findings",) if asking else ()), f"the code around remarks on {code.name}")
    return (*first, *inputs)


def _describe_input(pinned: PinnedInput) -> str:
    """Describe an input that is sent whole, or what an agent reads of it."""
    more = f", and {pinned.around:,} around them" if pinned.around else ""
    size = f"{pinned.name} ({pinned.size:,} bytes{more})"
    if told := size_of_change(pinned):
        return f"diff and messages of {pinned.name} ({told:,} bytes), what agents read of {size}"
    return size if pinned.enclosed else f"what agents read of {size}"


def list_outlets(state: State) -> tuple[str, ...]:
    """Return where tools of the plan's agents send words, and which agents may."""
    due = [each for each in state.work.values() if each.finding is None]
    teams = [each.subtask.id for each in due if state.brief.role(each.subtask.role).team]
    lines = []
    for outlet in state.brief.outlets:
        who: dict[str, list[str]] = {}
        for each in due:
            role = gathering.role_of(state, each.subtask)
            if agents.uses_tools(state, each) and outlet.serves(role.tools):
                who.setdefault(role.name, []).append(each.subtask.id)
        told = [f"{name} ({', '.join(ids)})" for name, ids in who.items()]
        # What a team plans is not known yet.
        told += [f"agents of the team {id}" for id in teams]
        if told:
            lines.append(f"{outlet.what}: words of {', '.join(told)}")
    return tuple(lines)


def list_scopes(state: State) -> tuple[str, ...]:
    """Return how much of each repository is read, where there was a choice."""
    return tuple(f"{each.name}: {each.scope}" for each in state.brief.inputs if each.scope)


def unused_inputs(state: State) -> tuple[Omission, ...]:
    if state.plan is None:
        return ()
    used = {name for each in state.work.values() for name in named_inputs(each.subtask)}
    if any(each.kind == "repository" for each in state.brief.inputs):
        # By these the repository is taken when it is pinned.
        used |= {BASE, SCOPE}
    if fixing.is_wanted(state):
        used.add(fixing.FIX_INPUT)
    # Whoever prepared the run has read it.
    used.add(proving.PROVE_INPUT)
    return tuple(
        Omission(what=f"input {each.name}", why="no subtask of the plan uses it")
        for each in state.brief.inputs
        if each.name not in used
    )
