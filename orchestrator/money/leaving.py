"""What a run sends to the models from where it stands, so that a person knows before. Pure."""

from __future__ import annotations

from orchestrator.contracts import PinnedInput
from orchestrator.rules.agents import uses_tools
from orchestrator.rules.answering import verifying
from orchestrator.rules.state import State


def leaves(state: State) -> tuple[str, ...]:
    """What is sent: the goal, named inputs, and the findings, of tools and of earlier runs too."""
    asking = [each for each in state.work.values() if each.tier != "none" and not each.finding]
    named = {name: None for progress in asking for name in progress.subtask.inputs}
    if verifying.wanted(state):
        code = verifying.repository(state)
        assert code is not None, "remarks of a repository are verified"
        return (f"the code around remarks on {code.name}",)
    inputs = [each for each in state.brief.inputs if each.name in named]
    return ("the goal", "the findings", *map(_sent, inputs))


def goes_elsewhere(state: State) -> tuple[str, ...]:
    """What agents give to tools that send it out, and where to, as far as the plan has any."""
    asking = [each for each in state.work.values() if uses_tools(state, each) and not each.finding]
    tools = {name for each in asking for name in state.brief.role(each.subtask.role).tools}
    return tuple(
        f"what agents give {reach.tool.rstrip('_')}, to {reach.where}"
        for reach in state.brief.reaches
        if any(map(reach.includes, tools))
    )


def _sent(pinned: PinnedInput) -> str:
    """An input, whole, or what an agent reads of it."""
    size = f"{pinned.name} ({pinned.size} bytes)"
    return size if pinned.enclosed else f"what agents read of {size}"
