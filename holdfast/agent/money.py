"""Price an agent's turns: at worst, as expected, and as paid by its segment. Pure."""

from __future__ import annotations

from dataclasses import dataclass
from decimal import Decimal

from holdfast.agent.state import AgentState, TakeTurn
from holdfast.calling.reserving import input_tokens, reservation
from holdfast.calls.turn import TAKE_TURN, WEB_FETCH, WEB_SEARCH, AgentGoal, AgentReport, Resume
from holdfast.calls.work import WORK
from holdfast.contracts import Bill, ModelCard, Usage, policies
from holdfast.contracts.replacing import replace
from holdfast.ledger.ledger import Amount
from holdfast.ledger.pricing import price, read_again, worst
from holdfast.state.events import Trouble
from holdfast.state.paying import bill_of_loss, complete_bill, no_answer

BESIDE_A_RESULT = 200
"""Bytes, and so tokens at most, of the marks around what a tool returned."""
BESIDE_A_MESSAGE = 1_000


def room_of(goal: AgentGoal, resume: Resume) -> int:
    """Return the tokens that one message of the model may have: the plan's limit, else its own,
    else the most.
    """
    room = goal.work.subtask.max_output or goal.room or TAKE_TURN.policy.max_output
    return 2 * room if resume.roomier else room


def worst_turn(goal: AgentGoal, resume: Resume) -> Amount:
    """Return the worst case of the next turn: the conversation as the endpoint counted it, a token
    for each byte added since, and the longest answer.
    """
    if resume.tokens:
        added = sum(each.size + BESIDE_A_RESULT for each in resume.results)
        tokens = resume.tokens + added + len(resume.said.encode()) + BESIDE_A_MESSAGE
    else:
        tokens = input_tokens(WORK, goal.work) + goal.role.prompt_bytes
    searches, rounds = of_endpoint(goal)
    most = read_again(max(tokens, resume.needed), rounds)
    return reservation(goal.model, most, room_of(goal, resume), searches)


def of_endpoint(goal: AgentGoal) -> tuple[int, int]:
    """Return how many searches an endpoint with web tools may make in one turn of this agent, and
    how often all its tools may have it reread the prompt.
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
    """Settle a turn without an answer: at its known usage, else at its reservation."""
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
    """Complete a report with where the agent stands, and what the segment has cost and done."""
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
            "repeated": state.repeated,
            "finished": state.now,
        }
    )


@dataclass(frozen=True)
class Talk:
    """One predicted try of an agent. Dollars; None where the model has no price."""

    low: Decimal | None
    expected: Decimal | None
    high: Decimal | None
    """All its turns at their longest, each with a whole result: the cap may be less."""
    slice: Decimal
    """Amount that is reserved for an agent at a time."""
    turns: int
    seconds: float


def predict_talk(goal: AgentGoal, tokens: int, slice_turns: int) -> Talk:
    """Predict the conversation of an agent whose first prompt has about so many tokens. Each turn
    reads all of it again, mostly from the cache.
    """
    model, most = goal.model, goal.turns
    few, usual = (min(most, policies.AGENT_TURNS[each]) for each in ("low", "expected"))
    results, answer = policies.RESULT_TOKENS, policies.OUTPUT_TOKENS["expected"]
    least = answer
    if files := sum(each.change.files for each in goal.work.inputs if each.change is not None):
        # The diff stands in its prompt, so it may answer at once; else it reads what is around.
        few, least = 1, policies.NO_REMARK_TOKENS
        usual = min(most, usual + files // policies.FILES_A_TURN)
        read = min(files, policies.MOST_FILES_READ) * policies.RESULT_TOKENS
        results = max(results, read // max(usual - 1, 1))
    first = worst_turn(goal, Resume())
    each = policies.TURN_TOKENS / policies.OUTPUT_TOKENS_PER_SECOND + policies.TOOL_SECONDS
    return Talk(
        low=_usual(model, tokens, few, results, least),
        expected=_usual(model, tokens, usual, results, answer),
        high=_longest(goal) if model.prices else None,
        slice=first.dollars * min(slice_turns, most),
        turns=most,
        seconds=(usual - 1) * each + answer / policies.OUTPUT_TOKENS_PER_SECOND,
    )


def _usual(model: ModelCard, tokens: int, turns: int, results: int, answer: int) -> Decimal | None:
    """Price turns that write to the cache what is new, and read the rest from it. Tokens of the
    first prompt, of the results of a turn, of the answer.
    """
    added = policies.TURN_TOKENS + results
    first = Usage(cache_write_tokens=tokens, output_tokens=answer)
    later = [
        Usage(
            cache_read_tokens=tokens + before * added,
            cache_write_tokens=added,
            output_tokens=policies.TURN_TOKENS,
        )
        for before in range(turns - 1)
    ]
    prices = [price(model, usage) for usage in (first, *later)]
    known = [each for each in prices if each is not None]
    return sum(known, Decimal(0)) if len(known) == len(prices) else None


def _longest(goal: AgentGoal) -> Decimal:
    """Price turns that read nothing from the cache, write all they may, and get a whole result."""
    room = room_of(goal, Resume())
    first = worst_turn(goal, Resume())
    prompt = first.tokens - room
    added = room + policies.RESULT_BYTES
    turns = range(goal.turns)
    searches, rounds = of_endpoint(goal)
    return sum(
        (
            worst(goal.model, prompt + (rounds + 1) * turn * added, room, searches) or Decimal(0)
            for turn in turns
        ),
        Decimal(0),
    )
