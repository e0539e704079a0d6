"""A role that is a team: its subtask is a run of its own, with a slice of the money. Pure."""

from __future__ import annotations

from collections.abc import Iterator
from decimal import ROUND_DOWN

from holdfast.calling import gathering, outages
from holdfast.contracts import (
    MICRODOLLAR,
    Bill,
    Draft,
    Escalation,
    EscalationReason,
    FindingStatus,
    Goal,
    GoalInput,
    Limits,
    Report,
    ReportStatus,
    Standstill,
)
from holdfast.contracts.made_files import collect_team_files
from holdfast.contracts.replacing import replace
from holdfast.ledger.ledger import Amount
from holdfast.rules import keeping, speechless
from holdfast.rules.repair import give_up, judge_work
from holdfast.state import graph, paying
from holdfast.state.edits import add_bill, record_try, update
from holdfast.state.events import TeamEnded
from holdfast.state.moves import StartTeam, TellAbove
from holdfast.state.parts import Progress, partial_of, passes_on
from holdfast.state.run import State
from holdfast.state.settling import end_for_person, settle, without_setback

MOST_ADMITTED = 20
"""Notes of a team that stand in the report above it."""
CUT: tuple[ReportStatus, ...] = ("cancelled", "deadline_partial")
"""How a team ends that had too little time; with nothing in hand it ends `failed`."""
LEAST = Amount(calls=2 * keeping.FEWEST_TEAM_CALLS)
"""Least free calls to start a team: it gets half of them."""


def start(state: State, progress: Progress) -> StartTeam | None:
    """Start a team with half of what is free; None if that is not enough for one."""
    amount = slice_of(state)
    if amount.calls < keeping.FEWEST_TEAM_CALLS or not state.ledger.fits(amount):
        return None
    subtask = progress.subtask
    number = state.next_number(f"team-{subtask.id}")
    limits: dict[str, object] = {
        "dollars": amount.dollars,
        "model_calls": amount.calls,
        "tokens": amount.tokens,
        # What is left of this run's working time, without what is kept for its own synthesis.
        "deadline_seconds": max(int(state.seconds_left), 1),
    }
    goal = Goal(
        text=subtask.instruction,
        inputs=tuple(
            GoalInput(name=f"finding-of-{each.subtask_id}", kind="text", value=partial_of(each))
            for each in gathering.needed_findings(state, subtask)
            if passes_on(each)
        ),
        limits=Limits.model_validate(state.goal.limits.model_dump() | limits),
        project=state.goal.project,
        requester=state.goal.requester,
        depth=state.goal.depth + 1,
        use_models=True,
        unpriced=state.goal.unpriced,
        pinned=tuple(each for each in state.brief.inputs if each.name in subtask.inputs),
        search_attributes=state.goal.search_attributes,
        heard=state.heard,
        heard_json=state.heard_json,
        roles_of=state.goal.playbook or state.goal.roles_of,
        asked=_all_planned(state),
        today=state.brief.today,
        path=(*state.goal.path, subtask.role),
    )
    brief = state.brief.model_copy(update={"playbook": None, "inputs": goal.pinned})
    if keeping.short_of(goal, brief):
        return None
    return StartTeam(subtask.id, number, goal, amount)


def _all_planned(state: State) -> tuple[str, ...]:
    """Return fingerprints of everything that this run and those above it have planned."""
    own = (graph.fingerprint(each.subtask) for each in state.work.values())
    return tuple(dict.fromkeys((*state.goal.asked, *own)))


def slice_of(state: State) -> Amount:
    """Return what a team would get now: half of what is neither spent, reserved nor kept."""
    ledger = state.ledger
    taken = ledger.paid + ledger.held + ledger.kept
    half = max((ledger.cap.dollars - taken.dollars) / 2, Amount().dollars)
    return Amount(
        # Rounded down, because as the team's cap an amount is rounded up.
        half.quantize(MICRODOLLAR, rounding=ROUND_DOWN),
        max((ledger.cap.calls - taken.calls) // 2, 0),
        max((ledger.cap.tokens - taken.tokens) // 2, 0),
    )


def note_standstill(state: State, word: Standstill) -> State:
    """Take in that a team waits, or that it goes on."""
    for key, flight in state.flights.items():
        move = flight.move
        if isinstance(move, StartTeam) and move.run_of(state.run_id) == word.team:
            before = state.standing.get(key)
            if before is None or before.number < word.number:
                return replace(state, standing={**state.standing, key: word})
    return state


def tell_above(state: State) -> TellAbove | None:
    """Return the message that this team waits or goes on, if the run above needs it."""
    if not state.goal.depth or state.phase == "closed":
        return None
    before = state.told_above
    waiting = state.waiting_since is not None
    if waiting == (before is not None and bool(before.why)):
        return None
    why = _waits_for(state)[:500] if waiting else ""
    number = before.number + 1 if before else 1
    return TellAbove(Standstill(team=state.run_id, number=number, why=why, at=state.now))


def _waits_for(state: State) -> str:
    if state.outage is not None and state.out_of_reach:
        return outages.describe(state.outage)
    below = [word.why for word in state.waiting_teams.values()]
    return below[0] if below else f"a person is asked; see run {state.run_id}"


def end_team(state: State, event: TeamEnded) -> State:
    """Settle the slice by the team's report; what the team did not use is free again."""
    move, report = event.move, event.report
    if report is None:
        state = paying.settle_lost(state, event)
        ending = state.work[move.subtask_id].ending
        status: FindingStatus = "cancelled" if state.stop or ending else "failed"
        return settle(state, move.subtask_id, status, ending or event.why)
    bill = Bill(
        calls=report.model_calls,
        usage=report.usage,
        dollars=report.dollars,
        assumed=report.assumed,
    )
    unpaid = state.unpaid_calls + report.unpaid_calls
    state = paying.book(state, move.id, bill, paying.shares_of_team(move, report, bill))
    state = replace(state, unpaid_calls=unpaid)
    state = update(state, move.subtask_id, lambda each: add_bill(each, bill))
    files, more = collect_team_files(report)
    if more:
        note = f"{move.subtask_id}: its team made more than {len(files)} files; run {report.run_id}"
        state = replace(state, notes=(*state.notes, f"{note} has {more} that are not listed here."))
    state = update(state, move.subtask_id, lambda each: replace(each, files=files))
    state = replace(state, notes=(*state.notes, *_team_notes(state, move.subtask_id, report)))
    state = speechless.judge_team(state, report)
    state = _judge(state, move.subtask_id, report)
    return end_for_person(state, move.subtask_id)


def _team_notes(state: State, subtask_id: str, report: Report) -> Iterator[str]:
    """Yield a team's notes on its answer, which readers of the answer above must know."""
    known = {(each.what, each.why) for each in state.not_run}
    said = [*report.notes, *(f"not supported by any finding: {each}" for each in report.flags)]
    missed = (each for each in report.not_run if (each.what, each.why) not in known)
    said += [f"not run: {each.what}: {each.why}" for each in missed]
    for line in said[:MOST_ADMITTED]:
        yield f"{subtask_id}, by its team: {line}"
    if len(said) > MOST_ADMITTED:
        more = len(said) - MOST_ADMITTED
        yield f"{subtask_id}, by its team: {more} more notes, which run {report.run_id} has."


def _judge(state: State, subtask_id: str, report: Report) -> State:
    """Judge what a team hands up: the whole answer, or as much of it as there is."""
    source = f"run {report.run_id}"
    if report.status == "complete":
        draft = Draft(content=report.answer, confidence=report.confidence, sources=(source,))
        return judge_work(state, subtask_id, draft, None)
    missing = "; ".join(f"{gap.title}: {gap.why}" for gap in report.gaps)
    why = f"its team ended {report.status}" + (f": {missing}" if missing else "")
    partial = _partial(report)
    cut = report.status in CUT or report.stopped == "deadline"
    reason: EscalationReason = "timeout" if cut else "confidence_too_low"
    draft = Draft(
        status="escalated",
        content=partial,
        confidence=report.confidence,
        sources=(source,) if partial else (),
        why=why,
        escalation=Escalation(reason=reason, why=why, partial=partial),
    )
    state = update(
        state, subtask_id, lambda each: replace(record_try(each, report.status, why), last=draft)
    )
    ending = state.work[subtask_id].ending
    if ending or state.stopped_by("cancelled"):
        return settle(state, subtask_id, "cancelled", ending or why)
    if partial:
        return settle(state, subtask_id, "escalated", why)
    if cut:
        # Its time was what the run had left: neither a fallback nor another plan has any.
        return without_setback(settle(state, subtask_id, "failed", why), subtask_id)
    return give_up(state, subtask_id, why)


def _partial(report: Report) -> str:
    """Return a team's answer; without one, its agents' findings."""
    if report.answer:
        return report.answer
    titles = {each.id: each.title for each in report.plan.subtasks} if report.plan else {}
    found = ((each, partial_of(each)) for each in report.findings)
    return "\n\n".join(
        f"## {titles.get(each.subtask_id) or each.subtask_id}\n\n{text}"
        for each, text in found
        if text
    )
