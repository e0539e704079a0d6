"""A run's story, a line for each thing that a person would want to read in a log. Pure.

A workflow tells it as it goes, by a logger that is silent on replay; what a line says follows from
the event and from the state before and after it alone.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

from holdfast.agent import state as agent
from holdfast.calls.rows import RowsDone, Submitted
from holdfast.contracts import Bill
from holdfast.history.judging import judge
from holdfast.maps import state as rows
from holdfast.rules.repair import STRENGTH
from holdfast.rules.reporting import status_of
from holdfast.state.events import (
    AgentEnded,
    Answered,
    CutAsked,
    Event,
    Started,
    TeamEnded,
    Unanswered,
)
from holdfast.state.moves import (
    Ask,
    AskPerson,
    AskRaise,
    Cut,
    Examine,
    Move,
    Notify,
    PassOver,
    Prepare,
    StartAgent,
    StartTeam,
    Stop,
)
from holdfast.state.parts import Progress
from holdfast.state.run import State
from holdfast.text import group_lines, one_line

LETTERS = 300
"""The most of a reason that is logged: a model may have written it, at any length."""
Value = str | int | tuple[str, ...]


@dataclass(frozen=True)
class Line:
    """One line: what happened, and to what."""

    what: str
    fields: dict[str, Value] = field(default_factory=dict)

    def with_facts(self) -> dict[str, Value]:
        """Return its fields, less the empty ones."""
        return {name: value for name, value in self.fields.items() if value not in ("", ())}


def tell_event(before: State, event: Event, after: State) -> Iterator[Line]:
    """Yield the lines that an event is worth in the log of a run."""
    if isinstance(event, Started):
        yield from _started(before, event.move)
    elif (found := judge(before, event, after)) is not None:
        subtask, bill = _whose(event), _bill(event)
        said = {"verdict": found.verdict, "why": _why(found.why)}
        yield Line("result", {"call": found.flight, "subtask": subtask, **bill, **said})
        yield from _follows(before, after, subtask)
    yield from _planned(before, after)
    for key in after.work.asking:
        if after.work[key].undecided and not before.work[key].undecided:
            why = _why(after.work[key].why)
            yield Line("person", {"subtask": key, "asks": "what becomes of it", "why": why})
    for given in after.orders[len(before.orders) :]:
        about = {"command": given.command, "subtask": given.order.subtask_id}
        yield Line("person", {**about, "by": given.order.by, "why": _why(given.refused)})
    if after.phase != before.phase and after.phase == "approval":
        yield Line("person", {"asks": "whether the plan is good"})
    written = after.finishing.synthesis
    if written is not None and written is not before.finishing.synthesis:
        agent = "its only agent" if after.single else "the agent that was chosen"
        by = "template" if written.by_template else agent if written.finding else "model"
        yield Line("synthesis", {"by": by, "why": _why(after.finishing.unwritten)})
    if after.phase == "closed" != before.phase:
        why = _why(after.stop.why) if after.stop else ""
        spent = f"{after.ledger.paid.dollars}"
        yield Line("closed", {"status": status_of(after), "dollars": spent, "why": why})


def _started(before: State, move: Move) -> Iterator[Line]:
    match move:
        case Ask():
            call = move.call
            asked: dict[str, Value] = {"role": call.role}
            if call.model is not None:
                asked |= {"tier": call.tier, "reserved": str(call.ceiling)}
            yield _dispatch(before, move, asked)
        case StartTeam():
            yield _dispatch(before, move, {"reserved": str(move.amount.dollars)})
        case StartAgent():
            tier = move.goal.model.tier
            asked = {"role": move.goal.role.name, "tier": tier}
            yield _dispatch(before, move, {**asked, "reserved": str(move.amount.dollars)})
        case Prepare() | Examine():
            yield _dispatch(before, move, {})
        case AskPerson():
            yield Line("person", {"subtask": move.subtask_id, "asks": _why(move.question)})
        case AskRaise():
            yield Line("person", {"asks": f"for a higher cap: {_why(move.why)}"})
        case PassOver():
            yield Line("handover", {"subtask": move.subtask_id, "why": _why(move.why)})
        case Stop():
            yield Line("stop", {"reason": move.reason, "why": _why(move.why)})
        case Cut():
            yield Line("cut", {"calls": move.ids})
        case Notify():
            yield Line("notice", {"type": move.notice.type, "number": move.notice.number})


def _dispatch(
    before: State, move: Prepare | Ask | Examine | StartTeam | StartAgent, asked: dict[str, Value]
) -> Line:
    about: dict[str, Value] = {"call": move.id, "subtask": move.subtask_id}
    progress = before.work.get(move.subtask_id)
    if progress is not None and progress.tries:
        about["try_number"] = len(progress.tries) + 1
    return Line("dispatch", {**about, **asked})


def _follows(before: State, after: State, subtask: str) -> Iterator[Line]:
    """Yield what became of a subtask whose work came back."""
    if subtask not in after.work or subtask not in before.work:
        return
    was, now = before.work[subtask], after.work[subtask]
    if now.finding is not None and was.finding is None:
        settled = {"status": now.finding.status, "dollars": _dollars(now.paid)}
        yield Line("settled", {"subtask": subtask, **settled, "why": _why(now.finding.why)})
    elif len(now.tries) > len(was.tries):
        yield from _again(subtask, was, now)


def _again(subtask: str, was: Progress, now: Progress) -> Iterator[Line]:
    last, again = now.tries[-1], len(now.tries) + 1
    facts: dict[str, Value] = {"subtask": subtask, "try_number": again, "why": _why(last.why)}
    if now.subtask.role != was.subtask.role:
        yield Line("handover", {**facts, "role": now.subtask.role})
    elif now.stage in ("person", "decision"):
        return
    elif STRENGTH.index(now.tier) > STRENGTH.index(last.tier):
        yield Line("climb", {**facts, "of": last.tier, "tier": now.tier})
    else:
        yield Line("retry", {**facts, "tier": now.tier})


def _planned(before: State, after: State) -> Iterator[Line]:
    if after.plan_errors != before.plan_errors and after.plan_errors:
        yield Line("plan", {"verdict": "invalid", "why": _why(group_lines(after.plan_errors))})
    if after.plan is not None and before.plan is None:
        expected = after.estimate.expected if after.estimate else None
        price = "" if expected is None else str(expected)
        ids = tuple(each.id for each in after.plan.subtasks)
        yield Line("plan", {"verdict": "accepted", "subtasks": ids, "expected": price})
    yield from _chosen(before, after)
    for each in after.replanning.revisions[len(before.replanning.revisions) :]:
        changed = {"added": each.added, "replaced": each.replaced, "dropped": each.dropped}
        yield Line("replan", {**changed, "why": _why(each.why)})


def _chosen(before: State, after: State) -> Iterator[Line]:
    """Yield the role of each new subtask of a plan and the planner's reason, where it gave one."""
    if after.plan is None or after.plan is before.plan:
        return
    known = before.plan.subtasks if before.plan else ()
    for each in after.plan.subtasks:
        if (each.secondary or each.why) and each not in known:
            roles = {"role": _why(each.role), "secondary": _why(each.secondary)}
            yield Line("planned", {"subtask": each.id, **roles, "why": _why(each.why)})


def _whose(event: Event) -> str:
    move = getattr(event, "move", None)
    return str(move.subtask_id) if move is not None else ""


def _bill(event: Event) -> dict[str, Value]:
    """Return what the call cost that came back with an event."""
    match event:
        case Answered(reply=reply):
            bill = reply.bill
        case Unanswered(trouble=trouble):
            bill = trouble.bill
        case TeamEnded(report=report) if report is not None:
            return {"dollars": "" if report.dollars is None else str(report.dollars)}
        case AgentEnded(report=report) if report is not None:
            bill = report.bill
        case _:
            return {}
    return {"dollars": _dollars(bill)} if bill.calls else {}


def _dollars(bill: Bill) -> str:
    return "unknown" if bill.dollars is None else str(bill.dollars)


def _why(text: str) -> str:
    return one_line(text)[:LETTERS]


# ---------------------------------------------------------------- an agent's


def tell_agent_event(event: agent.Event, subtask: str) -> Iterator[Line]:
    """Yield the lines that an event is worth in the log of an agent with tools."""
    match event:
        case agent.TurnEnded(move=move, reply=reply):
            uses = tuple(each.name for each in reply.value.uses) if reply.value else ()
            problem = reply.problem
            verdict = problem.kind if problem else "uses tools" if uses else "accepted"
            said: dict[str, Value] = {"verdict": verdict, "tools": uses}
            why = _why(problem.why) if problem else ""
            paid = {"dollars": _dollars(reply.bill), "why": why}
            yield Line("result", {"call": move.id, "subtask": subtask, **said, **paid})
        case agent.TurnLost(move=move, trouble=trouble):
            said = {"verdict": trouble.kind, "why": _why(trouble.why)}
            yield Line("result", {"call": move.id, "subtask": subtask, **said})
        case agent.ToolEnded(move=move, result=result):
            said = {"tool": move.use.name, "verdict": "error" if result.is_error else "ok"}
            why = _why(result.text) if result.is_error else ""
            yield Line("result", {"call": move.id, "subtask": subtask, **said, "why": why})
        case agent.ToolLost(move=move, why=why):
            said = {"tool": move.use.name, "verdict": "lost", "why": _why(why)}
            yield Line("result", {"call": move.id, "subtask": subtask, **said})
        case CutAsked(why=why):
            yield Line("stop", {"subtask": subtask, "why": _why(why)})


def tell_dispatch(move: agent.Flying, subtask: str) -> Iterator[Line]:
    """Yield the line for a turn of an agent, or for its call of a tool."""
    if isinstance(move, agent.TakeTurn):
        asked: dict[str, Value] = {"tier": move.call.tier, "reserved": str(move.call.ceiling)}
    else:
        asked = {"tool": move.use.name}
    yield Line("dispatch", {"call": move.id, "subtask": subtask, **asked})


def tell_map_event(event: rows.Event, subtask: str) -> Iterator[Line]:
    """Yield the line for an event of a map."""
    match event:
        case rows.Ended(move=move, result=RowsDone() as done):
            counts: dict[str, Value] = {
                "complete": done.complete,
                "failed": len(done.failed) + len(done.declined) + done.hopeless,
                "lost": len(done.lost),
                "left": len(done.left),
            }
            paid = {"dollars": _dollars(done.bill), "why": _why(done.why)}
            yield Line("result", {"call": move.id, "subtask": subtask, **counts, **paid})
        case rows.Ended(move=move, result=Submitted() as made):
            said = {"batch": made.batch, "why": _why(made.why)}
            yield Line("result", {"call": move.id, "subtask": subtask, **said})
        case rows.Ended(move=move):
            yield Line("result", {"call": move.id, "subtask": subtask})
        case rows.Lost(move=move, trouble=trouble):
            lost = {"verdict": trouble.kind, "why": _why(trouble.why)}
            yield Line("result", {"call": move.id, "subtask": subtask, **lost})
        case CutAsked(why=why):
            yield Line("stop", {"subtask": subtask, "why": _why(why)})


def tell_rows(move: rows.Flying, subtask: str) -> Iterator[Line]:
    """Yield the line for an activity of a map."""
    asked: dict[str, Value] = {}
    if isinstance(move, rows.OfRows):
        call = move.material.call
        asked = {"tier": call.tier, "reserved": str(call.ceiling)}
    yield Line("dispatch", {"call": move.id, "subtask": subtask, **asked})
