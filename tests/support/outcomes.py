"""What can come back from an activity, by name: what tests of the pure core choose from."""

from __future__ import annotations

import math
from decimal import Decimal
from typing import Any

from driving import Drive, bill_of, subtask
from holdfast.calls.choose import ChosenGroups
from holdfast.calls.critique import Critique, Issue
from holdfast.calls.digest import Digest
from holdfast.calls.judge import Judgement
from holdfast.calls.match import Matched
from holdfast.calls.ping import Pinged
from holdfast.calls.reach import Reached
from holdfast.calls.refine import Refined
from holdfast.calls.review import Review
from holdfast.calls.turn import AgentReport, ToolUse
from holdfast.contracts import (
    Bill,
    Draft,
    Escalation,
    Limits,
    Plan,
    Problem,
    Reply,
    Subtask,
    Synthesis,
    Unreached,
    Usage,
    dollars,
)
from holdfast.contracts.errors import TroubleKind
from holdfast.state.events import AgentEnded, Answered, Examined, Trouble, Unanswered
from holdfast.state.moves import Ask, Examine, StartAgent


def draft(flight_id: str, **fields: Any) -> Draft:
    return Draft(content=f"found by {flight_id}", confidence=90, **fields)


def escalation(reason: str, partial: str) -> Draft:
    given_back = Escalation.model_validate({"reason": reason, "why": "cannot", "partial": partial})
    return Draft(
        status="escalated",
        content=partial,
        why="cannot",
        escalation=given_back,
    )


DRAFTS = {
    "complete": lambda id: draft(id),
    "at length": lambda id: Draft(content=f"found by {id} " + "at length " * 60, confidence=90),
    "failed": lambda id: Draft(status="failed", why="the agent could not"),
    "out of scope": lambda id: escalation("out_of_scope", ""),
    "with a partial": lambda id: escalation("ambiguous_input", f"found by {id}"),
    "too slow": lambda id: escalation("timeout", f"found by {id}"),
    "in doubt": lambda id: escalation("confidence_too_low", f"found by {id}"),
    "unsure": lambda id: draft(id).model_copy(update={"confidence": 10}),
    "fails a check": lambda id: draft(id, verdicts=("too short",)),
}
PROBLEMS = ("refusal", "malformed", "truncated", "invalid")
LOST: dict[str, TroubleKind] = {"closed on": "possibly_billed", "faulted": "not_billed"}
"""What becomes of calls at an endpoint that can be reached; the first may have been paid."""
TROUBLES = (
    "not_billed", "possibly_billed", "over_reservation", "refused", "stopping", "allowance", *LOST
)  # fmt: skip
WORK_OUTCOMES = ("complete", "complete", "complete", *DRAFTS, *PROBLEMS, *TROUBLES)


def comes_back(ask: Ask, outcome: str, share: Decimal, value: Any) -> Answered | Unanswered:
    """The event that ends a model call; a call costs at most what was reserved for it."""
    if outcome in TROUBLES:
        return Unanswered(ask, trouble(ask, outcome))
    if outcome == "cut":
        return Unanswered(ask, Trouble("cancelled", "cut before it was sent"))
    if outcome == "cut after it left":
        return Unanswered(ask, Trouble("cancelled", "cut", bill_of(ask, share)))
    bill = bill_of(ask, share)
    if outcome in PROBLEMS:
        problem = Problem.model_validate({"kind": outcome, "why": f"{outcome} answer"})
        return Answered(ask, Reply(problem=problem, bill=bill))
    return Answered(ask, Reply(value=value, bill=bill))


SEGMENT_ENDS = (
    "more", "more", "complete", *DRAFTS, "refusal", "malformed", "unreachable", "stopped", "cut",
    "closed on",
    "lost", "endpoint", "lost without a trace", "never began",
    "asks", "asks", "asks",
)  # fmt: skip


def pending(move: StartAgent) -> tuple[ToolUse, ...]:
    """Two calls that a person is to approve."""
    return tuple(ToolUse(id=f"{move.id}-{each}", name="write", shown="{}") for each in "ab")


def segment_ends(move: StartAgent, outcome: str, share: Decimal) -> AgentEnded:
    """How a segment of an agent closes, having spent this share of its slice."""
    if outcome in ("lost without a trace", "never began"):
        return AgentEnded(move, None, "it closed", unpaid=outcome == "never began")
    amount, before = move.amount, move.goal.resume
    if outcome in ("more", "asks"):
        # A slice always pays for one turn; and the turns of an agent are counted.
        share, outcome = max(share, Decimal("0.5")), "stopped" if before.turns > 8 else outcome
    calls = math.ceil(amount.calls * share)
    paid = dollars(amount.dollars * share)
    # Of a turn that was lost no usage tells: the segment counts at more than its bill has.
    tokens = int(amount.tokens * share)
    usage = Usage(input_tokens=tokens // 2)
    bill = Bill(model="m", calls=calls, dollars=paid, usage=usage) if calls else Bill()
    resume = before.model_copy(
        update={
            "transcript": f"transcript of {move.id}" if calls else before.transcript,
            "turns": before.turns + calls,
            "tokens": before.tokens + usage.total,
            "text": f"found by {move.id}" if calls else before.text,
            "results": (),
            "pending": pending(move) if outcome == "asks" else (),
        }
    )
    known = {"resume": resume, "bill": bill, "tokens": tokens if calls else 0}
    unreached = Unreached(address="http://a", why="refused") if outcome == "unreachable" else None
    if outcome == "closed on":
        known["resume"] = resume.model_copy(update={"losses": resume.losses + 1})
        unreached, outcome = Unreached(address="http://a", why="502", lost=True), "unreachable"
    same = outcome in ("more", "asks", "unreachable", "stopped", "cut", "lost")
    ends: dict[str, Any] = {"outcome": outcome if same else "answered", "unreached": unreached}
    if outcome == "endpoint":
        ends |= {"outcome": "lost", "stopping": "endpoint"}
    if outcome in DRAFTS:
        ends["draft"] = DRAFTS[outcome](move.id)
    if outcome in PROBLEMS:
        ends["problem"] = {"kind": outcome, "why": f"{outcome} answer"}
    if ends["outcome"] in ("stopped", "cut", "lost", "unreachable"):
        ends["why"] = f"it was {outcome}"
    return AgentEnded(move, AgentReport.model_validate(ends | known))


def value_of(ask: Ask, outcome: str, plan: Plan) -> Any:
    """What a complete answer holds; "failed": what makes more work, where the call can say it."""
    failed = outcome == "failed"
    match ask.call.kind:
        case "choose":
            return ChosenGroups(groups=("common",))
        case "match":
            return Matched(fits=not failed)
        case "plan":
            return plan
        case "review":
            return Review(passed=not failed, why="thin" if failed else "")
        case "refine":
            return Refined(instruction="" if failed else f"Better instruction {ask.call.id}")
        case "judge":
            return Judgement(winner="")
        case "digest":
            return Digest(text=ask.call.id)
        case "reach":
            return Reached(waited_seconds=1.0, missed=failed)
        case "ping":
            return Pinged()
        case "critique":
            issue = Issue(severity="critical", problem="wrong")
            return Critique(issues=(issue,) if failed else ())
        case "synthesize":
            conflicts = ("one says so, another does not",) if failed else ()
            return Synthesis(
                answer="the answer",
                confidence=80,
                conflicts=conflicts,
                by_template=ask.call.model is None,
            )
        case _:
            return DRAFTS[outcome](ask.call.id)


def trouble(ask: Ask, kind: str) -> Trouble:
    bill = Bill()
    if kind in LOST:
        paid = Bill(model="m", calls=1, dollars=None) if kind == "closed on" else bill
        unreached = Unreached(address="http://a", why="502", lost=True)
        return Trouble(LOST[kind], f"it was {kind}", paid, unreached=unreached)
    if kind == "possibly_billed":
        bill = Bill(model="m", calls=1, dollars=None)
    if kind == "over_reservation":
        room = ask.call.max_output
        usage = Usage(input_tokens=ask.amount.tokens - room + 100, output_tokens=room)
        bill = Bill(model="m", dollars=ask.amount.dollars * 2, usage=usage)
    return Trouble(kind, f"it was {kind}", bill)  # type: ignore[arg-type]


PLANNED = Plan(
    goal="Compare",
    subtasks=(subtask("a"), subtask("b", role="researcher"), subtask("c", "a", "b")),
)


# ---------------------------------------------------------------- one step after the other

AMPLE = Limits(
    dollars=Decimal(10_000),
    model_calls=2_000,
    tokens=10**9,
    concurrency=4,
    deadline_seconds=7 * 86_400,
    replans=0,
)


def begun(*subtasks: Subtask, **limits: object) -> Drive:
    plan = Plan(goal="Compare", subtasks=subtasks)
    return Drive(plan, AMPLE.model_copy(update=limits))


def end(run: Drive, flight_id: str, outcome: str = "complete", value: object = None) -> None:
    """The activity comes back with this outcome, having cost all that was reserved."""
    (move,) = (each for each in (*run.in_flight, *run.late) if _id(each) == flight_id)
    if isinstance(move, Examine):
        draft = value if isinstance(value, Draft) else DRAFTS[outcome](flight_id)
        run.put(Examined(move, draft))
    else:
        if value is None and outcome in DRAFTS:
            value = value_of(move, outcome, run.plan or PLANNED)
        run.put(comes_back(move, outcome, Decimal(1), value))


def wait_until_cut(run: Drive) -> None:
    deadline = run.state.work_deadline
    assert deadline is not None
    run.wait((deadline - run.now).total_seconds())


def in_flight(run: Drive) -> list[str]:
    return [_id(move) for move in run.in_flight]


def _id(move: Ask | Examine) -> str:
    return move.call.id if isinstance(move, Ask) else move.id
