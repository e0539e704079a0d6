"""The Report and the RunView of a state: pure, and the only places that judge how a run went."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from decimal import ROUND_UP, Decimal
from typing import Any

from temporalio.common import SearchAttributeKey, SearchAttributeUpdate

from orchestrator import policies
from orchestrator.contracts import (
    Gap,
    Report,
    ReportStatus,
    RoleTier,
    Timings,
)
from orchestrator.events import Ask, Prepare, StopReason
from orchestrator.money import keeping
from orchestrator.rules import graph, noted, outages, verifying
from orchestrator.rules.state import Progress, State
from orchestrator.text import sentence
from orchestrator.titles import title_of
from orchestrator.view import Question, Row, RunView

STATUS = SearchAttributeKey.for_keyword("HoldfastStatus")
PLAYBOOK = SearchAttributeKey.for_keyword("HoldfastPlaybook")
DOLLARS = SearchAttributeKey.for_float("HoldfastDollars")
WAITING = SearchAttributeKey.for_bool("HoldfastWaiting")
MOST_WHY = 500
"""Characters of the message of a workflow that failed."""
MEMO_STATUS, MEMO_DOLLARS, MEMO_ASSUMED, MEMO_WHY = "status", "dollars", "assumed", "why"
_WORDS: Mapping[StopReason, str] = {
    "budget": "cap",
    "deadline": "deadline",
    "endpoint": "endpoint",
    "refused": "goal refused",
    "small cap": "cap too small",
    "unprepared": "not prepared",
}
"""What stopped a run that failed, as a list has room for it."""
UNPRICED = "unpriced"
REQUESTER = SearchAttributeKey.for_keyword("HoldfastRequester")


def status_of(state: State) -> ReportStatus:
    """How a run went; never better than it was."""
    if state.stop and state.stop.reason == "cancelled":
        return "cancelled"
    if state.stopped_by("declined"):
        return "declined"
    complete = [finding for finding in state.findings if finding.status == "complete"]
    whole = len(complete) == len(state.work) and not unwritten(state)
    if state.stopped_by("allowance") and not (complete and whole):
        # Also with nothing complete: the run did nothing wrong, and another day it would go on.
        return "budget_stopped"
    if not complete:
        return "failed"
    if state.stop and state.stop.reason == "budget":
        return "budget_stopped"
    if state.stop and state.stop.reason == "deadline":
        return "deadline_partial"
    return "complete" if whole else "complete_with_gaps"


def unwritten(state: State) -> str:
    """Why the answer is not what it was to be: a template's where a model was to write it, or none
    at all. Empty: it is.
    """
    synthesis = state.finishing.synthesis
    if synthesis is None or not synthesis.by_template:
        return ""
    if state.finishing.unwritten:
        return f"the synthesis failed: {state.finishing.unwritten}"
    if verifying.wanted(state):
        left = len(state.finishing.to_verify) - len(verifying.verified(state))
        return f"remarks that no model could verify: {left}" if left else ""
    if not state.goal.use_models:
        return ""
    # Why it was stopped is a note of its own.
    return "work was stopped" if state.stop else "the rest of the budget does not cover a synthesis"


def confidence(state: State) -> int | None:
    """What whoever wrote the answer says of it; None where nobody judged it, as when a template
    pasted what a model was to write.
    """
    synthesis = state.finishing.synthesis
    return None if synthesis is None or unwritten(state) else synthesis.confidence


def report(state: State) -> Report:
    """The run's final answer, as far as it got."""
    synthesis = state.finishing.synthesis
    brief = state.briefing
    ledger = state.ledger
    spent = ledger.paid.dollars + ledger.held.dollars if ledger.all_priced else None
    return Report(
        status=status_of(state),
        run_id=state.run_id,
        goal=state.goal.text,
        title=title(state),
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
        confidence=confidence(state),
        usage=ledger.all_usage,
        model_calls=ledger.paid.calls + ledger.held.calls,
        unpaid_calls=state.unpaid_calls,
        dollars_estimated=state.estimate.expected if state.estimate else Decimal(0),
        dollars=spent,
        assumed=ledger.all_assumed + ledger.held.dollars,
        timings=timings(state),
        orders=state.orders,
        started=state.started,
        finished=state.finished,
        version=brief.version if brief else "",
    )


def why_failed(state: State) -> str:
    """In a line: what whoever sees only the failure of the workflow is told."""
    missing = "; ".join(f"{gap.subtask_id}: {gap.why}" for gap in gaps(state) if gap.subtask_id)
    why = " ".join((state.stop.why if state.stop else missing).split())[:MOST_WHY]
    return f"no subtask was completed: {why}" if why else "no subtask was completed"


def title(state: State) -> str:
    """What the run is about, in a line."""
    playbook = state.briefing.playbook if state.briefing else None
    if playbook is None:
        return state.goal.text
    own = playbook.plan.goal if playbook.plan else playbook.description
    return title_of(state.goal.text, own, playbook.title, state.brief.inputs)


def notes(state: State) -> tuple[str, ...]:
    """What a reader must know of how the answer came about."""
    found = [*_counted(state.notes), *keeping.cheaper_lines(state), *noted.lines(state)]
    reused = [each.subtask_id for each in state.findings if each.reused_from]
    if reused and state.goal.fork:
        found.append(f"{', '.join(reused)}: taken over from run {state.goal.fork.run_id}, unpaid.")
    if state.stop:
        found.append(f"Work was stopped: {sentence(state.stop.why)}")
    done = state.finishing
    if done.synthesis:
        found += done.synthesis.notes
        # What a template names as missing is the report's gaps.
        found += () if done.synthesis.by_template else done.synthesis.gaps
    if done.cut:
        found.append(_cut(state))
    if not done.revised:
        found += [f"Not mended: {issue.problem}" for issue in done.issues or ()]
    return (*found, *_resets(state), *_assumed(state))


def _counted(lines: tuple[str, ...]) -> Iterator[str]:
    """Each line once, with how often it was said."""
    for line, times in Counter(lines).items():
        yield line if times == 1 else f"{line.rstrip('.')} ({times} times)"


def _cut(state: State) -> str:
    """Which findings the models that wrote, judged or checked the answer did not see whole."""
    whose = ", ".join(each for each in state.finishing.cut if each in state.work)
    tokens = state.goal.limits.supervisor_context_tokens
    return (
        f"Only the beginning of {whose or 'some digests'} was read for the answer:"
        f" supervisor_context_tokens is {tokens}."
    )


def _resets(state: State) -> Iterator[str]:
    """That the run was reset, by whom, and what that cost."""
    for undone in state.resets:
        by = f" by {undone.by}" if undone.by else ""
        yield f"The run was reset{by} at {undone.at:%Y-%m-%d %H:%M} UTC, to free it."
    lost = state.ledger.lost
    if lost:
        dollars = sum((each.bill.dollars or Decimal(0) for each in lost), Decimal(0))
        ids = ", ".join(dict.fromkeys(each.id for each in lost))
        yield (
            f"{_exact(dollars)} of the price was paid before the run was reset, for answers that it"
            f" does not have any more ({ids})."
        )


def _assumed(state: State) -> Iterator[str]:
    """That a price is partly no fact, and whose it is."""
    if not state.ledger.all_assumed:
        return
    whose = [key for key, each in state.work.items() if each.paid.assumed]
    where = f" ({', '.join(whose)})" if whose else ""
    yield (
        f"{_exact(state.ledger.all_assumed)} of the price is assumed: the worst case of calls whose"
        f" answers were lost{where}."
    )


def _exact(dollars: Decimal) -> str:
    return f"${dollars.quantize(Decimal('0.0001'), rounding=ROUND_UP)}"


def _conflicts(state: State) -> tuple[str, ...]:
    """Contradictions, each with its verdict where a judge was asked; both sides otherwise."""
    done = state.finishing
    listed = done.synthesis.conflicts if done.synthesis else ()
    judged = done.conflicts
    open_ones = [each for each in listed if not any(ruled.startswith(each) for ruled in judged)]
    return (*judged, *open_ones)


def gaps(state: State) -> tuple[Gap, ...]:
    """Every planned subtask without a complete finding, and what it took down with it; and the
    answer, if it is not what it was to be.
    """
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
                why=finding.why,
                took_down=taken if finding.status != "skipped" else (),
            )
        )
    why = unwritten(state) if any(each.status == "complete" for each in state.findings) else ""
    if why:
        missing.append(Gap(title="The answer", status="failed", why=_of_the_answer(state, why)))
    return tuple(missing)


def _of_the_answer(state: State, why: str) -> str:
    synthesis = state.finishing.synthesis
    merged = synthesis is not None and synthesis.answer
    how = "a template merged the findings" if merged else "there is none"
    # A team's answer is asked again by forking the run above it.
    cure = "" if state.goal.depth else f"; to have it written: starter.py fork {state.run_id}"
    return f"{how}, because {why.rstrip('.')}{cure}"


def _was_skipped(state: State, subtask_id: str) -> bool:
    finding = state.work[subtask_id].finding
    return finding is not None and finding.status == "skipped"


def timings(state: State) -> Timings:
    """Measured from the state's own timestamps: seconds."""
    end = state.finished or state.now
    makespan = round((end - state.started).total_seconds(), 3)
    waited = round(state.waited_until(end), 3)
    own = [finding for finding in state.findings if not finding.reused_from]
    spans = [
        (finding.started, finding.finished)
        for finding in own
        if finding.started and finding.finished
    ]
    if not spans or state.plan is None:
        return Timings(makespan=makespan, waited=waited)
    seconds = {finding.subtask_id: finding.seconds for finding in own}
    work = (max(end for _, end in spans) - min(start for start, _ in spans)).total_seconds()
    return Timings(
        makespan=makespan,
        waited=waited,
        work=round(work, 3),
        critical_path=round(graph.critical_path(state.plan.subtasks, seconds), 3),
    )


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
    if state.phase == "closed" and state.ledger.all_priced:
        values.append(DOLLARS.value_set(float(state.ledger.paid.dollars)))
    return values


def memo(state: State) -> dict[str, str]:
    """How a run went, for lists, which read no history. Dollars as decimal numbers; `dollars` is
    empty for a run that asked no model, and "unpriced" where no price is known; `why` says in a
    word or two what stopped a run that failed.
    """
    ledger = state.ledger
    asked = ledger.paid.calls + ledger.held.calls > 0
    dollars = str(ledger.paid.dollars + ledger.held.dollars) if ledger.all_priced else UNPRICED
    return {
        MEMO_STATUS: status_of(state),
        MEMO_DOLLARS: dollars if asked else "",
        MEMO_ASSUMED: str(ledger.all_assumed + ledger.held.dollars),
        MEMO_WHY: _in_a_word(state),
    }


def _in_a_word(state: State) -> str:
    """What stopped a run that failed; empty: it did not fail, or nothing stopped it."""
    if state.stop is None or status_of(state) != "failed":
        return ""
    if state.stopped_by("budget") and not state.ledger.paid.calls:
        return "cap too small"
    return _WORDS.get(state.stop.reason, "")


# ---------------------------------------------------------------- for readers while it runs


def run_view(state: State) -> RunView:
    """The state of a run, for the board, the terminal and the report page."""
    ledger = state.ledger
    closed = state.phase == "closed"
    return RunView(
        run_id=state.run_id,
        goal=state.goal.text,
        title=title(state),
        phase=state.phase,
        status=status_of(state) if closed else None,
        rows=tuple(_row(progress, state) for progress in state.work.values()),
        dollars_spent=ledger.paid.dollars if ledger.all_priced else None,
        assumed=ledger.all_assumed,
        dollars_reserved=ledger.held.dollars,
        dollars_cap=ledger.cap.dollars,
        use_models=state.goal.use_models,
        model_calls=ledger.paid.calls,
        model_calls_cap=ledger.cap.calls,
        tokens_cap=ledger.cap.tokens,
        started=state.started,
        now=state.finished or state.now,
        tiers=tiers_in_flight(state),
        waiting=waiting(state),
        preview=state.estimate,
        notes=(*_standstill(state), *notes(state)),
        answer=state.finishing.synthesis.answer if closed and state.finishing.synthesis else "",
    )


def _standstill(state: State) -> Iterator[str]:
    """That the run, or a team of it, waits for something that is not a person's order to it."""
    if state.outage is not None and state.out_of_reach:
        yield f"waiting: {outages.said(state.outage)}; the run goes on when it answers"
    for key, word in state.waiting_teams.items():
        yield f"waiting: the team of {state.flights[key].move.subtask_id}: {word.why}"


def tiers_in_flight(state: State) -> tuple[str, ...]:
    """The tiers whose queues hold what is in flight, each once."""
    moves = [flight.move for flight in state.flights.values()]
    asks = [move.call.tier for move in moves if isinstance(move, Ask) and move.call.model]
    prepared = state.goal.use_models and any(isinstance(move, Prepare) for move in moves)
    return tuple(dict.fromkeys([*asks, *([policies.PREPARE_TIER] if prepared else [])]))


def waiting(state: State) -> tuple[Question, ...]:
    """What a person is asked."""
    asked = [
        Question(kind="subtask", subtask_id=key, text=each.why)
        for key, each in state.work.items()
        if each.stage == "person" and each.finding is None
    ]
    if state.phase == "approval":
        asked.append(Question(kind="plan"))
    if state.short:
        asked.append(Question(kind="budget", text=state.short))
    if state.paused:
        asked.append(Question(kind="paused"))
    return tuple(asked)


def _row(progress: Progress, state: State) -> Row:
    subtask, finding = progress.subtask, progress.finding
    tried = len(progress.tries) + (1 if progress.flight else 0)
    seconds = finding.seconds if finding else 0.0
    if progress.started and finding is None:
        waited = state.waited_until(state.now) - progress.waited_at_start
        seconds = (state.now - progress.started).total_seconds() - waited
    return Row(
        id=subtask.id,
        title=subtask.title,
        role=subtask.role,
        tier=_asked_tier(progress),
        status=finding.status if finding else "running" if progress.flight else "waiting",
        try_number=tried,
        seconds=round(seconds, 1),
        dollars=progress.paid.dollars,
        assumed=progress.paid.assumed,
        depends_on=subtask.depends_on,
        note=_note(progress),
        planned_role=progress.former[0] if progress.former else "",
    )


def _asked_tier(progress: Progress) -> RoleTier:
    """The tier that does or did the work, a cheaper one than planned where the cap left no more; of
    what waits, the one that is due.
    """
    begun = progress.flight or progress.finding
    return progress.called if begun and progress.called != "none" else progress.tier


def _note(progress: Progress) -> str:
    finding = progress.finding
    if finding is None:
        return progress.why
    if nothing := finding.data.get("nothing_to_look_at"):
        return f"nothing to look at: {nothing}"
    remarks = finding.data.get("remarks")
    if finding.status == "complete" and isinstance(remarks, list):
        return f"{len(remarks)} remark{'' if len(remarks) == 1 else 's'}"
    return finding.why
