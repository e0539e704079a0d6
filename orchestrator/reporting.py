"""The Report and the RunView of a state: pure, and the only places that judge how a run went."""

from __future__ import annotations

from datetime import datetime
from decimal import Decimal
from typing import Any

from temporalio.common import SearchAttributeKey, SearchAttributeUpdate

from orchestrator import graph
from orchestrator.contracts import (
    Finding,
    Gap,
    Report,
    ReportStatus,
    Timings,
)
from orchestrator.events import Ask
from orchestrator.state import Progress, State
from orchestrator.view import Row, RunView

STATUS = SearchAttributeKey.for_keyword("HoldfastStatus")
PLAYBOOK = SearchAttributeKey.for_keyword("HoldfastPlaybook")
DOLLARS = SearchAttributeKey.for_float("HoldfastDollars")
WAITING = SearchAttributeKey.for_bool("HoldfastWaiting")
REQUESTER = SearchAttributeKey.for_keyword("HoldfastRequester")


def status_of(state: State) -> ReportStatus:
    """How a run went; never better than it was."""
    if state.stop and state.stop.reason == "cancelled":
        return "cancelled"
    if state.stopped_by("declined"):
        return "declined"
    complete = [finding for finding in state.findings if finding.status == "complete"]
    if not complete:
        return "failed"
    if state.stop and state.stop.reason == "budget":
        return "budget_stopped"
    if state.stop and state.stop.reason == "deadline":
        return "deadline_partial"
    return "complete" if len(complete) == len(state.work) else "complete_with_gaps"


def report(state: State, now: datetime) -> Report:
    """The run's final answer, as far as it got."""
    synthesis = state.finishing.synthesis
    brief = state.briefing
    ledger = state.ledger
    spent = None if ledger.unpriced else ledger.spent.dollars + ledger.held.dollars
    return Report(
        status=status_of(state),
        run_id=state.run_id,
        goal=state.goal.text,
        plan=state.plan,
        revisions=state.replanning.revisions,
        findings=state.findings,
        answer=synthesis.answer if synthesis else "",
        data=synthesis.data if synthesis else {},
        gaps=gaps(state),
        not_run=brief.not_run if brief else (),
        inputs=brief.inputs if brief else (),
        conflicts=_conflicts(state),
        flags=synthesis.flags if synthesis else (),
        notes=notes(state),
        confidence=synthesis.confidence if synthesis else 0,
        usage=ledger.usage,
        model_calls=ledger.spent.calls + ledger.held.calls,
        dollars_estimated=state.estimate.expected if state.estimate else Decimal(0),
        dollars=spent,
        timings=timings(state, now),
        version=brief.version if brief else "",
    )


def notes(state: State) -> tuple[str, ...]:
    """What a reader must know of how the answer came about."""
    found = list(state.notes)
    reused = [each.subtask_id for each in state.findings if each.reused_from]
    if reused and state.goal.fork:
        found.append(f"{', '.join(reused)}: taken over from run {state.goal.fork.run_id}, unpaid.")
    if state.stop:
        found.append(f"Work was stopped: {state.stop.why}.")
    finishing = state.finishing
    if finishing.synthesis:
        found += finishing.synthesis.notes
        if finishing.synthesis.by_template:
            found.append("The answer was merged by a template, without a model.")
        found += finishing.synthesis.gaps
    if not finishing.revised:
        found += [f"Not mended: {issue.problem}" for issue in finishing.issues or ()]
    return tuple(found)


def _conflicts(state: State) -> tuple[str, ...]:
    """Contradictions, each with its verdict where a judge was asked; both sides otherwise."""
    finishing = state.finishing
    listed = finishing.synthesis.conflicts if finishing.synthesis else ()
    judged = finishing.conflicts
    open_ones = [each for each in listed if not any(ruled.startswith(each) for ruled in judged)]
    return (*judged, *open_ones)


def gaps(state: State) -> tuple[Gap, ...]:
    """Every planned subtask without a complete finding, and what it took down with it."""
    if state.plan is None:
        return ()
    missing = []
    for finding in state.findings:
        if finding.status == "complete":
            continue
        below = graph.dependents(state.plan.subtasks, finding.subtask_id)
        taken = tuple(each for each in below if _was_skipped(state, each))
        subtask = state.work[finding.subtask_id].subtask
        missing.append(
            Gap(
                subtask_id=finding.subtask_id,
                title=subtask.title,
                status=finding.status,
                why=finding.reason,
                took_down=taken if finding.status != "skipped" else (),
            )
        )
    return tuple(missing)


def _was_skipped(state: State, subtask_id: str) -> bool:
    finding = state.work[subtask_id].finding
    return finding is not None and finding.status == "skipped"


def timings(state: State, now: datetime) -> Timings:
    """Measured from the state's own timestamps: seconds."""
    makespan = ((state.finished or now) - state.started).total_seconds()
    own = [finding for finding in state.findings if not finding.reused_from]
    spans = [
        (finding.started, finding.finished)
        for finding in own
        if finding.started and finding.finished
    ]
    if not spans or state.plan is None:
        return Timings(makespan=round(makespan, 3))
    seconds = {finding.subtask_id: _seconds(finding) for finding in own}
    work = (max(end for _, end in spans) - min(start for start, _ in spans)).total_seconds()
    total = sum(seconds.values())
    return Timings(
        makespan=round(makespan, 3),
        work=round(work, 3),
        critical_path=round(graph.critical_path(state.plan.subtasks, seconds), 3),
        subtasks=round(total, 3),
        speed_up=round(total / work, 2) if work > 0 else 0.0,
    )


def _seconds(finding: Finding) -> float:
    if finding.started is None or finding.finished is None:
        return 0.0
    return (finding.finished - finding.started).total_seconds()


def search_attributes(state: State) -> list[SearchAttributeUpdate[Any]]:
    """By what a run can be found at the server: where it is, what it cost, whom it waits for."""
    values: list[SearchAttributeUpdate[Any]] = [
        STATUS.value_set(status_of(state) if state.phase == "closed" else state.phase),
        WAITING.value_set(bool(waiting(state))),
    ]
    if state.goal.playbook:
        values.append(PLAYBOOK.value_set(state.goal.playbook))
    if state.goal.requester:
        values.append(REQUESTER.value_set(state.goal.requester))
    if state.phase == "closed" and not state.ledger.unpriced:
        values.append(DOLLARS.value_set(float(state.ledger.spent.dollars)))
    return values


# ---------------------------------------------------------------- for readers while it runs


def run_view(state: State, now: datetime) -> RunView:
    """The state of a run, for the board, the terminal and the report page."""
    ledger = state.ledger
    closed = state.phase == "closed"
    return RunView(
        run_id=state.run_id,
        goal=state.goal.text,
        phase=state.phase,
        status=status_of(state) if closed else None,
        rows=tuple(_row(progress, now) for progress in state.work.values()),
        dollars_spent=None if ledger.unpriced else ledger.spent.dollars,
        dollars_reserved=ledger.held.dollars,
        dollars_cap=ledger.cap.dollars,
        model_calls=ledger.spent.calls,
        model_calls_cap=ledger.cap.calls,
        tokens_cap=ledger.cap.tokens,
        started=state.started,
        now=state.finished or now,
        deadline=state.work_deadline,
        tiers=tiers_in_flight(state),
        waiting=waiting(state),
        preview=state.estimate if state.phase == "approval" else None,
        notes=notes(state),
        answer=state.finishing.synthesis.answer if closed and state.finishing.synthesis else "",
    )


def tiers_in_flight(state: State) -> tuple[str, ...]:
    """The tiers of the model calls in flight, each once."""
    asks = (flight.move for flight in state.flights.values() if isinstance(flight.move, Ask))
    return tuple(dict.fromkeys(ask.call.tier for ask in asks if ask.call.model))


def waiting(state: State) -> tuple[str, ...]:
    """What a person is asked, one `what: question` each."""
    asked = [
        f"{key}: {each.reason}"
        for key, each in state.work.items()
        if each.stage == "person" and each.finding is None
    ]
    if state.phase == "approval":
        asked.append("plan: approve, edit or reject it")
    if state.short:
        asked.append(f"budget: {state.short}; raise the cap")
    return (*asked, "paused: resume it") if state.paused else tuple(asked)


def _row(progress: Progress, now: datetime) -> Row:
    subtask, finding = progress.subtask, progress.finding
    tried = len(progress.tries) + (1 if progress.flight else 0)
    seconds = 0.0
    if progress.started:
        end = finding.finished if finding and finding.finished else now
        seconds = round((end - progress.started).total_seconds(), 1)
    return Row(
        id=subtask.id,
        title=subtask.title,
        role=subtask.role,
        tier=progress.tier,
        status=finding.status if finding else "running" if progress.flight else "waiting",
        try_number=tried,
        seconds=seconds,
        dollars=progress.paid.dollars,
        depends_on=subtask.depends_on,
        note=_note(progress),
    )


def _note(progress: Progress) -> str:
    finding = progress.finding
    if finding is None:
        return progress.reason
    remarks = finding.data.get("remarks")
    if finding.status == "complete" and isinstance(remarks, list):
        return f"{len(remarks)} remark{'' if len(remarks) == 1 else 's'}"
    return finding.reason
