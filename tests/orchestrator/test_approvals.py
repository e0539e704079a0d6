"""Calls of tools that a person must approve: as an agent's rules and a run's see them."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import timedelta

import pytest
from test_agent_rules import WRITER, Loop, goal, result

from driving import BRIEFING, Drive, subtask
from holdfast.agent.approvals import NOBODY, TOO_LONG, UNKNOWN
from holdfast.agent.state import TakeTurn, ToolEnded, TurnEnded, UseTool
from holdfast.calls.turn import AgentGoal, AgentReport, Decision, Resume, ToolUse, Turn
from holdfast.contracts import Bill, Order, Plan, Reply, policies
from holdfast.contracts.view import Question
from holdfast.rendering.orders import lines
from holdfast.rendering.running import waiting
from holdfast.rules import steering
from holdfast.rules.reporting import report
from holdfast.state.events import AgentEnded, Steered
from holdfast.state.moves import StartAgent
from outcomes import AMPLE

READ = ToolUse(id="u1", name="read_file")
WRITE = ToolUse(id="u2", name="write", shown='{"text": "40"}')
WRITE_MORE = ToolUse(id="u3", name="write", shown='{"text": "41"}')


def asked(*uses: ToolUse, people: bool = True) -> Loop:
    """A segment whose first message makes these calls."""
    fields = {"role": WRITER, "ask_people": people}
    loop = Loop(goal().model_copy(update=fields))
    (move,) = moves(loop)
    assert isinstance(move, TakeTurn)
    value = Turn(transcript="one", uses=uses, tokens=100)
    loop.uses = uses
    loop.put(TurnEnded(move, Reply(value=value, bill=Bill(model="m", calls=1, dollars=0))))
    return loop


def moves(loop: Loop) -> list[TakeTurn | UseTool]:
    return [each.move for each in loop.state.flights.values()]


def next_segment(resume: Resume, *decisions: Decision) -> Loop:
    fields = {"role": WRITER, "ask_people": True, "decisions": decisions}
    wanted: AgentGoal = goal(resume=resume).model_copy(update=fields)
    return Loop(wanted)


def decision(use: ToolUse, verdict: str, why: str = "", by: str = "") -> Decision:
    return Decision(use_id=use.id, verdict=verdict, why=why, by=by)


def told(loop: Loop) -> list[str]:
    """The results that the model is told of, by their text or digest."""
    (move,) = moves(loop)
    assert isinstance(move, TakeTurn)
    return [each.text or each.digest for each in move.material.results]


# ---------------------------------------------------------------- the agent


def test_what_needs_no_approval_is_done_first_and_then_the_segment_asks() -> None:
    loop = asked(READ, WRITE)
    (reads,) = moves(loop)
    assert isinstance(reads, UseTool) and reads.use == READ
    loop.put(ToolEnded(reads, result(READ)))
    assert loop.report is not None and loop.report.outcome == "asks"
    resume = loop.report.resume
    assert resume.pending == (READ, WRITE) and [each.use_id for each in resume.results] == ["u1"]
    assert loop.report.bill.calls == 1


def test_the_next_segment_makes_what_was_approved_and_tells_of_what_was_declined() -> None:
    before = asked(WRITE, WRITE_MORE)
    assert before.report is not None and before.begun == ["turn-1"]
    declined = decision(WRITE_MORE, "declined", "41 is wrong")
    loop = next_segment(before.report.resume, decision(WRITE, "approved"), declined)
    (writes,) = moves(loop)
    assert isinstance(writes, UseTool) and (writes.use, writes.approved) == (WRITE, True)
    assert writes.id == "tool-1-1", "its place in the run is that of the message"
    loop.uses = (WRITE, WRITE_MORE)
    loop.put(ToolEnded(writes, result(WRITE)))
    assert told(loop) == ["of u2", "A person declined this call: 41 is wrong"]


def test_a_message_of_which_all_is_declined_is_answered_without_running_anything() -> None:
    before = asked(WRITE)
    assert before.report is not None
    loop = next_segment(before.report.resume, decision(WRITE, "declined"))
    assert told(loop) == ["A person declined this call."]


def test_what_was_approved_and_lost_is_not_run_again_and_the_model_is_told() -> None:
    before = asked(WRITE)
    assert before.report is not None
    assert told(next_segment(before.report.resume, decision(WRITE, "unknown"))) == [UNKNOWN]


def test_where_nobody_can_be_asked_such_a_call_is_not_made_and_the_others_are() -> None:
    loop = asked(READ, WRITE, people=False)
    (reads,) = moves(loop)
    assert isinstance(reads, UseTool) and reads.use == READ
    loop.put(ToolEnded(reads, result(READ)))
    assert told(loop) == ["of u1", NOBODY]
    assert told(asked(WRITE, people=False)) == [NOBODY]


def test_a_call_that_is_too_long_to_be_read_is_not_asked_about() -> None:
    assert told(asked(WRITE.model_copy(update={"shown": ""}))) == [TOO_LONG]


def test_nobody_is_asked_about_the_calls_of_a_last_turn() -> None:
    loop = Loop(goal(turns=1).model_copy(update={"role": WRITER, "ask_people": True}))
    (move,) = moves(loop)
    assert isinstance(move, TakeTurn)
    bill = Bill(model="m", calls=1, dollars=0)
    loop.put(TurnEnded(move, Reply(value=Turn(transcript="one", uses=(WRITE,)), bill=bill)))
    assert loop.report is not None and loop.report.outcome == "stopped"


# ---------------------------------------------------------------- the run


def run(count: int = 1) -> Drive:
    """A run whose agents may write, once a person has approved it."""
    subtasks = tuple(subtask(f"t{each}", role="reader") for each in range(1, count + 1))
    cards = tuple(WRITER if each.name == "reader" else each for each in BRIEFING.roles)
    briefing = BRIEFING.model_copy(update={"roles": cards})
    plan = Plan(goal="Compare", subtasks=subtasks)
    return Drive(plan, AMPLE, briefing, people=True)


def asks(drive: Drive, uses: Sequence[ToolUse] = (WRITE, WRITE_MORE)) -> StartAgent:
    """Its first agent ends its segment with these calls."""
    move = drive.teams[0]
    assert isinstance(move, StartAgent)
    resume = Resume(transcript="one", turns=1, tool_calls=2, pending=tuple(uses), text="So far.")
    drive.resumes[move.subtask_id] = resume
    bill = Bill(model="m", calls=1, dollars=move.amount.dollars / 10)
    drive.put(AgentEnded(move, AgentReport(outcome="asks", resume=resume, bill=bill)))
    return move


def order(drive: Drive, command: str, **fields: object) -> None:
    given = Order.model_validate({"by": "ann", **fields})
    drive.put(Steered(len(drive.state.orders) + 1, command, given))


def test_who_waits_for_a_person_holds_no_money_and_no_place_and_costs_no_time() -> None:
    drive = run()
    asks(drive)
    assert not drive.state.flights and not drive.state.ledger.reserved
    assert waiting(drive.state) == (
        Question(kind="call", subtask_id="t1", text='write {"text": "40"}', call=1),
        Question(kind="call", subtask_id="t1", text='write {"text": "41"}', call=2),
    )
    assert drive.state.deadline is None, "the clock stands still"


def test_the_agent_goes_on_once_each_of_its_calls_is_decided_on() -> None:
    drive = run()
    asks(drive)
    order(drive, "approve", call=2)
    assert not drive.teams and [each.call for each in waiting(drive.state)] == [1]
    order(drive, "decline", call=1, text="not now")
    (following,) = drive.teams
    assert isinstance(following, StartAgent)
    assert following.goal.decisions == (
        decision(WRITE, "declined", "not now", "ann"),
        decision(WRITE_MORE, "approved", by="ann"),
    )
    assert waiting(drive.state) == ()


def test_the_report_says_who_decided_on_what() -> None:
    drive = run()
    asks(drive)
    order(drive, "approve", call=1)
    order(drive, "decline", call=2, text="not now")
    approved, declined = lines(report(drive.state).orders)
    assert '**ann** approved call 1: t1: write {"text": "40"}' in approved
    assert '**ann** declined call 2: t1: write {"text": "41"}; “not now”' in declined


@pytest.mark.parametrize(
    ("command", "call", "why"),
    [
        ("approve", 3, "no call 3 waits for approval; what waits: calls 1, 2"),
        ("decline", 0, "no call waits for approval; what waits: calls 1, 2"),
        ("approve", 0, "no plan waits for approval; what waits: calls 1, 2"),
        ("reject", 1, "no plan waits for approval"),
    ],
)
def test_what_does_not_wait_is_refused_with_what_does(command: str, call: int, why: str) -> None:
    drive = run()
    asks(drive)
    assert steering.refusal(drive.state, command, Order(call=call)) == why


def test_a_number_is_never_another_calls() -> None:
    drive = run(2)
    asks(drive)
    asks(drive)
    assert [each.call for each in waiting(drive.state)] == [1, 2, 3, 4]
    for number in (1, 2):
        order(drive, "approve", call=number)
    asks(drive, (WRITE,))
    assert [each.call for each in waiting(drive.state)] == [5, 3, 4]
    assert "no call 1" in steering.refusal(drive.state, "approve", Order(call=1))


def test_when_nobody_comes_in_time_the_call_is_not_made_and_the_report_says_so() -> None:
    drive = run()
    asks(drive)
    order(drive, "approve", call=1)
    drive.wait((policies.PERSON_PATIENCE + timedelta(seconds=1)).total_seconds())
    (following,) = drive.teams
    assert isinstance(following, StartAgent)
    assert [each.verdict for each in following.goal.decisions] == ["approved", "declined"]
    assert any("Nobody decided on call 2 of t1 (write)" in each for each in drive.state.notes)


@pytest.mark.parametrize("command", ["skip", "cancel_subtask"])
def test_a_subtask_that_waits_can_be_ended_and_hands_up_what_it_has(command: str) -> None:
    drive = run()
    asks(drive)
    order(drive, command, subtask_id="t1")
    finding = drive.finding("t1")
    assert (finding.status, finding.content) == ("cancelled", "So far.")
    assert waiting(drive.state) == () and not drive.teams


def test_a_paused_run_takes_decisions_and_goes_on_when_it_is_resumed() -> None:
    drive = run()
    asks(drive)
    order(drive, "pause")
    for number in (1, 2):
        order(drive, "approve", call=number)
    assert not drive.teams
    order(drive, "resume")
    assert len(drive.teams) == 1


def test_a_cancelled_run_waits_for_nobody() -> None:
    drive = run()
    asks(drive)
    drive.cancel()
    assert drive.closed and drive.finding("t1").content == "So far."


def test_a_segment_that_was_lost_after_an_approval_leaves_nothing_to_be_made_twice() -> None:
    drive = run()
    asks(drive)
    order(drive, "approve", call=1)
    order(drive, "decline", call=2)
    (following,) = drive.teams
    assert isinstance(following, StartAgent)
    drive.put(AgentEnded(following, None, "it was terminated"))
    (again,) = drive.teams
    assert isinstance(again, StartAgent)
    assert [each.verdict for each in again.goal.decisions] == ["unknown", "declined"]


def test_what_was_decided_is_told_to_one_segment_alone() -> None:
    drive = run()
    asks(drive)
    for number in (1, 2):
        order(drive, "approve", call=number)
    (following,) = drive.teams
    assert isinstance(following, StartAgent) and len(following.goal.decisions) == 2
    resume = Resume(transcript="two", turns=2)
    drive.resumes["t1"] = resume
    drive.put(AgentEnded(following, AgentReport(outcome="more", resume=resume)))
    (later,) = drive.teams
    assert isinstance(later, StartAgent) and later.goal.decisions == ()
