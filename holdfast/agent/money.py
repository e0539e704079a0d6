"""What an agent's turns cost at worst, and what its segment has paid. Pure."""

from __future__ import annotations

from decimal import Decimal

from holdfast.agent.state import AgentState, TakeTurn
from holdfast.calling.reserving import input_tokens, reservation
from holdfast.calls.turn import TAKE_TURN, WEB_FETCH, WEB_SEARCH, AgentGoal, AgentReport, Resume
from holdfast.calls.work import WORK
from holdfast.contracts import Bill, policies
from holdfast.contracts.replacing import replace
from holdfast.ledger.ledger import Amount
from holdfast.ledger.pricing import read_again
from holdfast.state.events import Trouble
from holdfast.state.paying import bill_of_loss, complete_bill, no_answer

BESIDE_A_RESULT = 200
"""Bytes, and so tokens at most, of the marks around what a tool returned."""
BESIDE_A_MESSAGE = 1_000


def amount_of(state: AgentState) -> Amount:
    """The worst case of the next turn."""
    return worst_turn(state.goal, state.resume)


def room_of(goal: AgentGoal) -> int:
    """The tokens that one message of the model may have: what the plan says, else the most."""
    return goal.work.subtask.max_output or TAKE_TURN.policy.max_output


def worst_turn(goal: AgentGoal, resume: Resume) -> Amount:
    """The worst case of the turn that comes after this point: what the endpoint has counted of the
    conversation so far, each byte that was added since as a token, and the longest answer.
    """
    if resume.tokens:
        added = sum(each.size + BESIDE_A_RESULT for each in resume.results)
        tokens = resume.tokens + added + len(resume.said.encode()) + BESIDE_A_MESSAGE
    else:
        tokens = input_tokens(WORK, goal.work) + goal.role.prompt_bytes
    searches, rounds = of_endpoint(goal)
    most = read_again(max(tokens, resume.needed), rounds)
    return reservation(goal.model, most, room_of(goal), searches)


def of_endpoint(goal: AgentGoal) -> tuple[int, int]:
    """How many searches an endpoint with web tools of its own may make in one turn of this agent,
    and how often all its tools together may have it read the prompt again.
    """
    if not goal.capabilities.web:
        return 0, 0
    searches = policies.WEB_SEARCHES * (WEB_SEARCH in goal.role.tools)
    return searches, searches + policies.WEB_FETCHES * (WEB_FETCH in goal.role.tools)


def settle_turn(state: AgentState, move: TakeTurn, bill: Bill) -> AgentState:
    """Settle a turn that was paid, or may have been."""
    model, reserved = state.goal.model, state.ledger.reserved[move.id]
    ledger = state.ledger.settle(move.id, complete_bill(model, bill, reserved))
    noted = (bill.note,) if bill.note and bill.note not in state.notes else ()
    anew = state.anew or (bill.calls > 0 and not bill.earlier)
    return replace(state, ledger=ledger, anew=anew, notes=(*state.notes, *noted))


def settle_lost_turn(state: AgentState, move: TakeTurn, trouble: Trouble) -> AgentState:
    """Settle a turn that brought no answer: at the usage that is known, else at its reservation."""
    ledger = state.ledger
    if trouble.kind == "over_reservation":
        needed = trouble.bill.usage.total - move.call.max_output
        resume = state.resume.model_copy(update={"needed": needed})
        return replace(state, ledger=ledger.release(move.id), resume=resume)
    if (bill := bill_of_loss(trouble)) is not None:
        state = settle_turn(state, move, bill)
    else:
        unpaid = state.unpaid_calls + 1
        state = replace(state, ledger=ledger.release(move.id), unpaid_calls=unpaid)
    lost = no_answer(move.call, trouble.why, ledger, state.ledger)
    return replace(state, unanswered=(*state.unanswered, lost))


def bill_report(state: AgentState, report: AgentReport) -> AgentReport:
    """The report with where the agent stands, and what the segment has really cost and done."""
    ledger = state.ledger
    bill = Bill(
        model=(state.served or state.goal.model.id) if ledger.spent.calls else "",
        calls=ledger.spent.calls,
        usage=ledger.usage,
        dollars=None if ledger.unpriced else ledger.spent.dollars,
        assumed=min(ledger.assumed, ledger.spent.dollars) if not ledger.unpriced else Decimal(0),
        earlier=ledger.spent.calls > 0 and not state.anew,
        note="; ".join(state.notes),
    )
    return report.model_copy(
        update={
            "resume": state.resume,
            "bill": bill,
            "tokens": ledger.spent.tokens,
            "unpaid_calls": state.unpaid_calls,
            "may_have_run": state.may_have_run,
            "unanswered": state.unanswered,
            "unasked": state.unasked,
            "finished": state.now,
        }
    )
