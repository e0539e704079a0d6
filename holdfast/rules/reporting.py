"""The Report of a state. Pure, and the only place that judges how a run went."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator
from decimal import Decimal

from pydantic import ValidationError

from holdfast.calling import finishing, gathering, verifying
from holdfast.calls.critique import CRITIQUE
from holdfast.contracts import Finding, Gap, Limits, Report, ReportStatus, Timings
from holdfast.ledger.ranges import format_price
from holdfast.plans.composing import describe_composed
from holdfast.rules import early, keeping, leaving
from holdfast.rules.notices import failure_notes
from holdfast.rules.one_agent import say_single
from holdfast.rules.prices import list_sources, shares_of
from holdfast.rules.templates import say_template
from holdfast.rules.unread import find_unread
from holdfast.state import graph
from holdfast.state.paying import TAKEN_BACK, bill_notes
from holdfast.state.run import State
from holdfast.text import pluralize, sentence

OWN_CALLS = {
    "plan": "plan",
    "replan": "plan",
    "synthesize": "answer",
    "critique": "critic",
    TAKEN_BACK: "what was taken back",
}
"""What no subtask has of a price, by the kinds of its calls, where that is often lost."""
MOST_WHY = 500
"""Characters of the message of a workflow that failed."""


FAILED_SHOWN, FAILED_LETTERS = 5, 160
"""Failed rows of a map that a gap names, and the letters of each."""

SAID_OF_ANY = (
    "a an and are because by did finding findings for gave has have is it its missing no none not"
    " of result so subtask that the there this to was were"
)
"""Words that say nothing of a gap but that there is one."""


def status_of(state: State) -> ReportStatus:
    """Return how a run went; never better than it was."""
    if state.stop and state.stop.reason == "cancelled":
        return "cancelled"
    if state.stopped_by("declined"):
        return "declined"
    complete = [finding for finding in state.findings if finding.status == "complete"]
    whole = len(complete) == len(state.work) and not (unwritten(state) or misfit(state))
    whole = whole and not (state.briefing and state.briefing.unreached)
    whole = whole and not unread_inputs(state)
    if state.stopped_by("allowance") and not (complete and whole):
        # Also with nothing complete: the run did nothing wrong, and another day it would go on.
        return "budget_stopped"
    if not complete and not _has_rows(state):
        return "failed"
    if state.stop and state.stop.reason == "budget":
        return "budget_stopped"
    if state.stop and state.stop.reason == "deadline":
        return "deadline_partial"
    return "complete" if whole else "complete_with_gaps"


def _has_rows(state: State) -> bool:
    """True if a map has results, though not of all its rows."""
    tables = (each.mapped.table for each in state.work.values())
    return any(each is not None and each.counts.complete for each in tables)


def unwritten(state: State) -> str:
    """Return why no model wrote the answer though one was to; empty if one did."""
    synthesis = state.finishing.synthesis
    if synthesis is None or not synthesis.by_template:
        return ""
    if state.finishing.unwritten:
        return f"the synthesis failed: {state.finishing.unwritten}"
    if not state.goal.use_models or verifying.is_wanted(state):
        return ""
    # Why it was stopped is a note of its own.
    return "work was stopped" if state.stop else "the rest of the budget does not cover a synthesis"


def unread_inputs(state: State) -> dict[str, tuple[str, ...]]:
    """Return inputs that nobody opened, with the subtasks that answered all the same."""
    return find_unread((each.subtask for each in state.work.values()), state.findings)


def misfit(state: State) -> str:
    """Return why the answer is not in the form that was asked for; empty if it is, or none was."""
    synthesis = state.finishing.synthesis
    if synthesis is None or not state.form.is_data or synthesis.document is not None:
        return ""
    asked = "a table" if state.form.kind == "table" else "JSON by a schema"
    where = synthesis.misfit or "a template merged the findings"
    return f"{asked} was asked for, and the answer is text: {where}"


def confidence(state: State) -> int | None:
    """Return the confidence of the answer's author; None where nobody judged it, as when a template
    wrote what a model was to write.
    """
    synthesis = state.finishing.synthesis
    return None if synthesis is None or unwritten(state) else synthesis.confidence


def report(state: State) -> Report:
    synthesis = state.finishing.synthesis
    brief = state.briefing
    ledger = state.ledger
    spent = ledger.paid.dollars + ledger.held.dollars if ledger.all_priced else None
    return Report(
        status=status_of(state),
        run_id=state.run_id,
        stopped=state.stop.reason if state.stop else "",
        more=_more(state),
        goal=state.goal.text,
        title=state.title,
        project=state.goal.project,
        plan=state.plan,
        revisions=state.replanning.revisions,
        findings=state.findings,
        answer=state.answer,
        form=state.form,
        document=synthesis.document if synthesis else None,
        data=synthesis.data if synthesis else {},
        gaps=gaps(state),
        not_run=(*state.not_run, *leaving.unused_inputs(state)) if brief else (),
        inputs=brief.inputs if brief else (),
        conflicts=_conflicts(state),
        flags=synthesis.flags if synthesis else (),
        doubtful=synthesis.doubtful if synthesis else (),
        notes=notes(state),
        confidence=confidence(state),
        usage=ledger.all_usage,
        model_calls=ledger.paid.calls + ledger.held.calls,
        unpaid_calls=state.unpaid_calls,
        dollars_estimated=state.estimate.expected if state.estimate else Decimal(0),
        dollars=spent,
        assumed=ledger.all_assumed + ledger.held.dollars,
        prices=list_sources(state) if ledger.paid.calls else (),
        shares=shares_of(state),
        timings=timings(state),
        orders=state.orders,
        started=state.started,
        finished=state.finished,
        version=brief.version if brief else "",
    )


def _more(state: State) -> tuple[str, ...]:
    """Return the limits that ended the work, for a fork: doubled, and no fewer dollars than it
    needed.
    """
    stop, limits = state.stop, state.goal.limits
    if stop is None:
        return ()
    names = ("deadline_seconds",) if stop.reason == "deadline" else stop.short_of
    most = state.briefing.most_dollars if state.briefing else None
    doubled = {name: 2 * getattr(limits, name) for name in names}
    if "dollars" in doubled and stop.least is not None:
        doubled["dollars"] = max(doubled["dollars"], keeping.round_up(stop.least))
    if most is not None and doubled.get("dollars", 0) > most:
        del doubled["dollars"]
    try:
        allowed = Limits.model_validate(doubled)
    except ValidationError:
        return ()
    return tuple(f"{name}={_in_full(getattr(allowed, name))}" for name in doubled)


def _in_full(limit: Decimal | int) -> str:
    return f"{limit.normalize():f}" if isinstance(limit, Decimal) else str(limit)


def why_failed(state: State) -> str:
    """Return a line for whoever sees only the failure of the workflow."""
    missing = "; ".join(f"{gap.subtask_id}: {gap.why}" for gap in gaps(state) if gap.subtask_id)
    why = " ".join((state.stop.why if state.stop else missing).split())[:MOST_WHY]
    return f"no subtask was completed: {why}" if why else "no subtask was completed"


def notes(state: State) -> tuple[str, ...]:
    composed = describe_composed(state.brief, state.plan) if state.plan else ()
    found = [
        *map(sentence, composed),
        *_count_lines(state.notes),
        *keeping.cheaper_lines(state),
        *bill_notes(state),
        *early.notes(state.early),
    ]
    if state.choice:
        found.append(state.choice)
    if state.plan and (template := say_template(state)):
        found.append(template)
    if state.estimate and state.estimate.overstaffed:
        found.append(state.estimate.overstaffed)
    reused = [each.subtask_id for each in state.findings if each.reused_from]
    if reused and state.goal.fork:
        found.append(f"{', '.join(reused)}: taken over from run {state.goal.fork.run_id}, unpaid.")
    if state.stop:
        found.append(f"Work was stopped: {sentence(state.stop.why)}")
    done = state.finishing
    if done.synthesis:
        found += [say_single(state)] if done.synthesis.finding and state.single else []
        found += done.synthesis.notes
        # What a template names as missing is the report's gaps.
        found += () if done.synthesis.by_template else _own_gaps(state)
        written = not (done.synthesis.by_template or done.synthesis.finding)
        found += _digest_notes(state) if written else ()
    if done.cut:
        found.append(_cut_note(state))
    found += _shortened_notes(state)
    if state.phase == "closed":
        found += _critic_notes(state)
    return (*found, *_reset_notes(state), *_assumed_notes(state), *failure_notes(state))


def _shortened_notes(state: State) -> Iterator[str]:
    """Yield which findings were too long to be given whole to the subtasks that depend on them."""
    readers: dict[tuple[str, str], list[str]] = {}
    for key, each in state.work.items():
        team = state.brief.role(each.subtask.role).team
        if each.started is None or each.tier == "none" or team:
            continue
        for finding in gathering.long_findings(state, each.subtask):
            what = "its digest" if finding.digest else "only its beginning"
            readers.setdefault((finding.subtask_id, what), []).append(key)
    for (long, what), keys in readers.items():
        yield f"{long} is long: {', '.join(keys)} had {what}, and could read the whole."


def _digest_notes(state: State) -> Iterator[str]:
    """Yield which findings nobody read whole who wrote or checked the answer."""
    if long := [each.subtask_id for each in state.findings if each.digest]:
        yield f"{', '.join(long)}: the answer was written from a digest of what was found."


def _own_gaps(state: State) -> Iterator[str]:
    """Yield the author's gaps, but those that say no more than the report's own."""
    assert state.finishing.synthesis is not None
    missing = gaps(state)
    known = [name for gap in missing for name in (gap.subtask_id, gap.title) if name]
    told = _words(" ".join((SAID_OF_ANY, *(gap.model_dump_json() for gap in missing))))
    for said in state.finishing.synthesis.gaps:
        named = any(re.search(rf"(?<!\w){re.escape(name)}(?!\w)", said) for name in known)
        if not (named and _words(said) <= told):
            yield said


def _words(text: str) -> set[str]:
    return set(re.findall(r"\w+", text.casefold()))


def _critic_notes(state: State) -> Iterator[str]:
    """Yield what a critic found in the answer, and what became of it; or why none was asked."""
    done = state.finishing
    sure = done.synthesis.checked if done.synthesis else None
    if sure and finishing.is_checked(state) and CRITIQUE.name not in done.given_up:
        counts = f"{pluralize(sure.figures, 'figure')}, {pluralize(sure.citations, 'citation')}"
        yield f"Checked by code: {counts}; no critic read its words, as the plan says."
    issues = done.issues or ()
    if not done.revised:
        yield from (f"Not mended: {issue.problem}" for issue in issues)
        return
    serious = [issue.problem for issue in issues if issue.severity != "info"]
    if serious:
        yield (
            f"A critic found {pluralize(len(serious), 'fault')} in the answer, and it was written"
            f" anew: {sentence('; '.join(each.rstrip('.') for each in serious))}"
        )
    else:
        yield "The answer was written anew by what a judge said of its contradictions."
    for issue in issues:
        if issue.severity == "info":
            yield f"A remark of the critic that was not passed on: {sentence(issue.problem)}"


def _count_lines(lines: tuple[str, ...]) -> Iterator[str]:
    for line, times in Counter(lines).items():
        yield line if times == 1 else f"{line.rstrip('.')} ({times} times)"


def _cut_note(state: State) -> str:
    """Return which findings were not read whole for the answer."""
    whose = ", ".join(each for each in state.finishing.cut if each in state.work)
    tokens = state.goal.limits.supervisor_context_tokens
    return (
        f"Only the beginning of {whose or 'some digests'} was read for the answer:"
        f" supervisor_context_tokens is {tokens}."
    )


def _reset_notes(state: State) -> Iterator[str]:
    """Yield that the run was reset, by whom, and at what cost."""
    for undone in state.resets:
        by = f" by {undone.by}" if undone.by else ""
        yield f"The run was reset{by} at {undone.at:%Y-%m-%d %H:%M} UTC, to free it."
    lost = state.ledger.lost
    if lost:
        dollars = sum((each.bill.dollars or Decimal(0) for each in lost), Decimal(0))
        ids = ", ".join(dict.fromkeys(each.id for each in lost))
        yield (
            f"{format_price(dollars)} of the price was paid before the run was reset, for answers"
            f" that it does not have any more ({ids})."
        )


def _assumed_notes(state: State) -> Iterator[str]:
    """Yield how much of the price is assumed, and for which calls of the run and subtasks."""
    if not state.ledger.all_assumed:
        return
    own = [each for each in state.shares.values() if each.assumed and each.kind in OWN_CALLS]
    whose = [*dict.fromkeys(OWN_CALLS[each.kind] for each in own)]
    whose += [key for key, each in state.work.items() if each.paid.assumed]
    where = f" ({', '.join(whose)})" if whose else ""
    yield (
        f"{format_price(state.ledger.all_assumed)} of the price is assumed: the worst case of calls"
        f" whose answers were lost{where}."
    )


def _conflicts(state: State) -> tuple[str, ...]:
    """Return the contradictions, with a verdict where a judge was asked."""
    done = state.finishing
    listed = done.synthesis.conflicts if done.synthesis else ()
    judged = done.conflicts
    open_ones = [each for each in listed if not any(ruled.startswith(each) for ruled in judged)]
    return (*judged, *open_ones)


def gaps(state: State) -> tuple[Gap, ...]:
    """Return every planned subtask without a complete finding, with what it took down; and the
    answer, if it is not what it was to be.
    """
    if state.plan is None:
        return ()
    missing = []
    for finding in state.findings:
        if finding.status == "complete":
            continue
        below = state.work.below(finding.subtask_id)
        taken = tuple(each for each in below if _was_skipped(state, each))
        subtask = state.work[finding.subtask_id].subtask
        missing.append(
            Gap(
                subtask_id=finding.subtask_id,
                title=subtask.title,
                status=finding.status,
                why=_why_missing(state, finding),
                took_down=taken if finding.status != "skipped" else (),
            )
        )
    if not any(each.status == "complete" for each in state.findings):
        return tuple(missing)
    missing += (
        Gap(title=each.what, status="failed", why=each.why) for each in state.brief.unreached
    )
    if why := unwritten(state):
        missing.append(Gap(title="The answer", status="failed", why=_answer_gap(state, why)))
    if why := misfit(state):
        missing.append(Gap(title="The form of the answer", status="failed", why=why))
    for name, ids in unread_inputs(state).items():
        missing.append(Gap(title=f"Reading {name}", status="skipped", why=_unopened_why(ids)))
    return tuple(missing)


def _why_missing(state: State, finding: Finding) -> str:
    """Return why a finding is not complete; of a map with the first of its rows that failed."""
    table = state.work[finding.subtask_id].mapped.table
    if table is None or not table.failures:
        return finding.why
    shown = "; ".join(each[:FAILED_LETTERS] for each in table.failures[:FAILED_SHOWN])
    which = "failed" if table.counts.failed <= FAILED_SHOWN else "failed, among others"
    typed = f"show {state.run_id} {finding.subtask_id} --rows failed"
    return f"{sentence(finding.why)} These rows {which}: {sentence(shown)} All: {typed}"


def _unopened_why(ids: tuple[str, ...]) -> str:
    were = "was" if len(ids) == 1 else "were"
    return (
        f"{', '.join(ids)} {were} to read it with tools, and answered without opening anything of"
        " it; what is said of it rests on nothing in it"
    )


def _answer_gap(state: State, why: str) -> str:
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
    """Return the measured times, from the state's own moments."""
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
        early=state.early.kept,
    )
