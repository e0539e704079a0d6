"""What people are told of an agent with tools: the turn that it is at, and what it took."""

from __future__ import annotations

from decimal import Decimal

import pytest

from driving import START, model, subtask
from holdfast.agent.approvals import first_state
from holdfast.agent.state import AgentState, Flight, UseTool
from holdfast.calls.turn import AgentGoal, Resume, Slice, ToolUse
from holdfast.calls.work import WorkMaterial
from holdfast.contracts import Call, Finding, RoleCard
from holdfast.contracts.policies import USE_TOOL
from holdfast.rendering.amounts import hands
from holdfast.rendering.board import agent_board, agent_summary, call_summary
from holdfast.rendering.findings import facts

ROLE = RoleCard(name="researcher", description="finds", tools=("search_files",))


def goal(**resume: object) -> AgentGoal:
    return AgentGoal(
        work=WorkMaterial(subtask=subtask("t3", role="researcher")),
        role=ROLE,
        model=model("sonnet", 3),
        slice=Slice(dollars=Decimal(1), calls=3, tokens=100_000),
        resume=Resume.model_validate(resume),
        turns=10,
    )


def using(state: AgentState, name: str, says: str) -> AgentState:
    move = UseTool(ToolUse(id="u1", name=name, says=says), turn=3, place=1)
    flight = Flight(move, START, USE_TOOL.options(60))
    return AgentState(state.goal, state.now, state.ledger, state.resume, flights={move.id: flight})


def test_the_board_of_an_agent_says_its_turn_its_tools_and_what_it_said_last() -> None:
    state = first_state(goal(turns=2, tool_calls=3, text="So far: 40."), START)
    told = agent_board(using(state, "search_files", '"rate limit"'))
    assert told.startswith("**turn 3 of at most 10** · using search_files ")
    assert "rate limit" in told
    assert "so far 2 turns, 3 tool calls" in told
    assert told.endswith("Said last: So far: 40.")


def test_what_a_model_wrote_stays_text_on_the_board() -> None:
    state = first_state(goal(text="![x](http://evil/p) **bold** <b>"), START)
    told = agent_board(using(state, "[a](http://evil)", "<img src=x> $x$"))
    assert "![x]" not in told and "[a](" not in told and "<img" not in told and "<b>" not in told


def test_the_line_of_an_agents_workflow_says_whose_it_is_and_from_where_it_goes_on() -> None:
    assert agent_summary(goal()) == "t3 researcher · sonnet · Subtask t3"
    assert agent_summary(goal(turns=3)) == "t3 researcher · sonnet · from turn 4 · Subtask t3"


@pytest.mark.parametrize(
    ("purpose", "line"), [("turn", "turn 3 · sonnet"), ("turn-again1", "turn 3 · sonnet · again")]
)
def test_the_timeline_has_a_line_for_each_turn(purpose: str, line: str) -> None:
    call = Call(
        kind="take_turn",
        purpose=purpose,
        number=3,
        tier="sonnet",
        model=model("sonnet", 3),
        subtask_id="t3",
        role="researcher",
    )
    assert call_summary(call) == line


def test_turns_and_tool_calls_stand_beside_the_price_of_a_finding() -> None:
    found = Finding(subtask_id="t3", status="complete", model="a", turns=1, tool_calls=2)
    assert " · 1 turn, 2 tool calls · " in f"{facts(found, subtask('t3'))} · "
    once = Finding(subtask_id="t3", status="complete", model="a")
    assert "turn" not in facts(once, subtask("t3"))
    assert hands(0, 0, 0) == ""


def test_calls_of_tools_that_failed_are_counted_beside_the_others() -> None:
    found = Finding(
        subtask_id="t3", status="failed", model="a", turns=4, tool_calls=10, failed_calls=8
    )
    assert "4 turns, 10 tool calls, 8 of them failed" in facts(found, subtask("t3"))
    assert hands(1, 1, 1) == "1 turn, 1 tool call, which failed"
    state = first_state(goal(turns=2, tool_calls=3, failed_calls=1), START)
    assert "so far 2 turns, 3 tool calls, 1 of them failed" in agent_board(state)
