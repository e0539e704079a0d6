"""What the Web UI shows of an agent with tools: its board, and a line for what it does. Pure."""

from __future__ import annotations

from holdfast.agent.state import AgentState, UseTool
from holdfast.calls.turn import AgentGoal
from holdfast.ledger.ranges import format_price
from holdfast.rendering.amounts import hands
from holdfast.text import for_markdown, visible

TITLE_LETTERS = 80
TEXT_LETTERS = 600


def agent_board(state: AgentState) -> str:
    """The turn it is at, what it does now, what it has spent, and what it said last. Its words, and
    the names of tools that it called, are a model's.
    """
    resume, goal = state.resume, state.goal
    doing = [flight.move for flight in state.flights.values()]
    used = [
        f"{each.use.name} {each.use.says}".strip() for each in doing if isinstance(each, UseTool)
    ]
    now = f"using {'; '.join(used)}" if used else "asking the model" if doing else "ending"
    turn = min(resume.turns + 1, goal.turns)
    lines = [f"**turn {turn} of at most {goal.turns}** · {for_markdown(now[:TEXT_LETTERS])}"]
    so_far = hands(resume.turns, resume.tool_calls, resume.failed_calls)
    spent = f"\\{format_price(state.ledger.paid.dollars)} in this segment"
    lines += ["", " · ".join(filter(None, (f"so far {so_far}" if so_far else "", spent)))]
    if resume.text.strip():
        lines += ["", f"Said last: {for_markdown(resume.text.strip()[:TEXT_LETTERS])}"]
    return "\n".join(lines)


def agent_summary(goal: AgentGoal) -> str:
    """The line of an agent's workflow in lists: `t3 researcher · sonnet · from turn 4 · title`."""
    subtask = goal.work.subtask
    going_on = f"from turn {goal.resume.turns + 1}" if goal.resume.turns else ""
    title = visible(" ".join(subtask.title.split()))[:TITLE_LETTERS]
    parts = (f"{subtask.id} {goal.role.name}", goal.model.tier, going_on, title)
    return " · ".join(filter(None, parts))
