"""The RunView of a state: what its readers are shown while it runs, and when it is over. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from decimal import Decimal

from pydantic import JsonValue

from holdfast.calling import outages
from holdfast.contracts import RoleTier, policies
from holdfast.contracts.remarks import summarize
from holdfast.contracts.view import Question, Row, RunView
from holdfast.rules import agents, approvals, early, steering
from holdfast.rules.keeping import round_up
from holdfast.rules.reporting import notes, status_of
from holdfast.state.moves import Ask, Prepare
from holdfast.state.parts import Progress
from holdfast.state.run import State
from holdfast.state.settling import status_words


def run_view(state: State) -> RunView:
    ledger = state.ledger
    closed = state.phase == "closed"
    written = state.finishing.synthesis if closed else None
    return RunView(
        run_id=state.run_id,
        goal=state.goal.text,
        title=state.title,
        project=state.goal.project,
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
        waiting_since=None if closed else state.waiting_since,
        outage=outage(state),
        tiers=tiers_in_flight(state),
        waiting=waiting(state),
        preview=state.estimate,
        notes=(*_standstill(state), *_anew(state), *notes(state)),
        answer=state.answer if closed else "",
        verdict=_verdict(written.data) if written else "",
        flags=written.flags if written else (),
        doubtful=written.doubtful if written else (),
    )


def _verdict(data: Mapping[str, JsonValue]) -> str:
    """Return the verdict in a review's data, which is not read as a whole at each look."""
    said = data.get("verdict")
    return said if isinstance(said, str) else ""


def _standstill(state: State) -> Iterator[str]:
    """Yield that the run, or a team of it, waits for something that is no person's order to it."""
    if away := outage(state):
        yield f"waiting: {away}"
    for key, word in state.waiting_teams.items():
        yield f"waiting: the team of {state.flights[key].move.subtask_id}: {word.why}"


def _anew(state: State) -> Iterator[str]:
    """Yield why there is no plan yet although one has come."""
    if state.phase == "planning" and state.plan_errors:
        yield f"the plan is made anew, as one could not be used: {early.quote_errors(state)}"


def outage(state: State) -> str:
    """Return that the endpoint is away, since when and what is tried next; empty: it is there."""
    if state.outage is None or not state.out_of_reach or state.phase == "closed":
        return ""
    tried = outages.describe_next_look(state)
    return f"{outages.describe(state.outage)}; {tried}; the run goes on when it answers"


def tiers_in_flight(state: State) -> tuple[str, ...]:
    """Return the tiers that what is in flight is asked of, each once."""
    moves = [flight.move for flight in state.flights.values()]
    asks = [move.call.tier for move in moves if isinstance(move, Ask) and move.call.model]
    prepared = state.goal.use_models and any(isinstance(move, Prepare) for move in moves)
    return tuple(dict.fromkeys([*asks, *([policies.PREPARE_TIER] if prepared else [])]))


def waits(state: State) -> bool:
    """Return True if a person is asked anything."""
    return bool(state.work.asking or state.phase == "approval" or state.short or state.paused)


def waiting(state: State) -> tuple[Question, ...]:
    asked = [
        Question(
            kind="subtask",
            subtask_id=key,
            text=state.work[key].why,
            rows=state.work[key].subtask.map is not None,
        )
        for key in state.work.asking
        if state.work[key].stage == "person"
    ]
    asked += [
        Question(
            kind="decision",
            subtask_id=progress.subtask.id,
            text=_outcome(progress),
            roles=steering.hand_choices(state, progress),
        )
        for progress in (state.work[key] for key in state.work.asking)
        if progress.undecided
    ]
    asked += [
        Question(
            kind="call", subtask_id=progress.subtask.id, text=call.text.strip(), call=call.number
        )
        for progress, call in approvals.waiting_calls(state)
    ]
    if state.phase == "approval":
        asked.append(Question(kind="plan"))
    if state.short:
        asked.append(Question(kind="budget", text=state.short, least=_least_cap(state)))
    if state.paused:
        asked.append(Question(kind="paused"))
    return tuple(asked)


def _least_cap(state: State) -> Decimal | None:
    """Return the least cap in dollars under which a run that waits for a higher one goes on."""
    return None if state.short_least is None else round_up(state.short_least)


MOST_CASE = 2_000
"""Characters shown of a case that is handed to a person."""


def _outcome(progress: Progress) -> str:
    """Return how a subtask ends unless a person decides otherwise, as the rest of a sentence."""
    if progress.outcome == "complete":
        case = progress.last.content[:MOST_CASE] if progress.last else ""
        return f"hands a case over to a person: {case}"
    return f"{status_words(progress.outcome)}: {progress.why}"


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
        turns=progress.turns,
        tool_calls=progress.tool_calls,
        failed_calls=progress.failed_calls,
        doing=_stands(progress, state),
        why=subtask.why,
        planned_role=progress.former[0] if progress.former else "",
    )


def _stands(progress: Progress, state: State) -> str:
    """Return at which of its turns an agent waits: for a person, for money, or for the end of a
    pause.
    """
    resume = progress.resume
    if progress.flight or progress.finding or not resume.turns:
        return ""
    turn = resume.turns if resume.pending else resume.turns + 1
    return f"stands at turn {turn} of {agents.most_turns(state, progress)}"


def _asked_tier(progress: Progress) -> RoleTier:
    """Return the tier that does or did the work, a cheaper one than planned where the cap left no
    more; of what waits, the one that is due.
    """
    finding = progress.finding
    if finding is not None and finding.reused_from and finding.tries:
        return finding.tries[-1].tier
    begun = progress.flight or finding
    return progress.called if begun and progress.called != "none" else progress.tier


def _note(progress: Progress) -> str:
    finding = progress.finding
    if finding is None:
        return progress.why
    unread = f"opened nothing of {', '.join(finding.unread)}" if finding.unread else ""
    return summarize(finding) or finding.why or unread
