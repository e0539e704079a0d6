"""A finished run as a page of Markdown, for whoever reads it: the answer, what is missing, what was
done and at which price.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from decimal import Decimal

from holdfast.contracts import Finding, Report
from holdfast.rendering import files, findings, orders, sources
from holdfast.rendering.amounts import calls, money, seconds
from holdfast.rules.speechless import WHERE
from holdfast.rules.unread import subtasks_to_redo
from holdfast.text import PLAIN_ID, code_span, inline, sentence
from holdfast.text.harmless import sanitize
from holdfast.text.marks import LOOK_FIRST, count_unsupported, mark_unsupported

ToType = Callable[[str, str], str]
"""(command, run id) -> what the reader types for it."""
STATUS = {
    "complete": "Complete",
    "complete_with_gaps": "Complete, with gaps",
    "budget_stopped": "Stopped at the budget; the answer covers what was finished",
    "deadline_partial": "Stopped at the deadline; the answer covers what was finished",
    "declined": "Declined",
    "cancelled": "Cancelled",
    "failed": "Failed",
}
ORDER = (
    "answer", "files", "missing", "notes", "plan", "times", "money", "orders", "inputs", "sources",
    "findings", "supervisor",
)  # fmt: skip
"""Of the chapters of a finished run, on its page, in Markdown and on a terminal."""
_COMMAND = re.compile(r"`starter\.py (fork|show) ID(?=[ `])")
MOST_VALUE = 80
"""Bytes of a text that is told as it is; of a longer one its size."""
NOTHING_FINISHED = "Stopped at the budget, before anything was finished"


def as_markdown(
    report: Report, to_type: ToType, *, subtasks: bool = True, whole: bool = True, where: str = ""
) -> str:
    """The report, honest parts included. `subtasks` False leaves out their table, for a terminal
    that has just shown it; `whole` False the findings one by one, which `show ID SUBTASK` has.
    `where`: the address of the folder that the agents' files are in.
    """
    chapters = {
        "answer": _answer(report, to_type),
        "files": _listed("Files", files.lines(report, where)),
        "missing": _missing(report),
        "notes": _listed("Notes", map(inline, report.notes)),
        "plan": _plan(report, subtasks=subtasks, tries=not whole),
        "money": ["## Price and time", *_price_and_time(report)],
        "orders": _listed("Orders of people", orders.lines(report.orders)),
        "inputs": _listed("Inputs", inputs(report)),
        "sources": _listed(sources.TITLE, sources.lines(report, whole=whole)),
        "findings": _findings(report, to_type, whole=whole),
    }
    parts = [f"# {inline(report.title or report.goal)}", _summary(report)]
    parts += [each for name in ORDER for each in chapters.get(name, [])]
    parts += _goes_on(report, to_type)
    return "\n\n".join(parts) + "\n"


def _answer(report: Report, to_type: ToType) -> list[str]:
    """Return the answer, below what of it no finding supports."""
    text = sanitize(answer_of(report, to_type).strip()) if report.answer.strip() else ""
    return [*_listed(LOOK_FIRST, map(inline, report.flags)), *([text] if text else [])]


def _missing(report: Report) -> list[str]:
    not_run = (f"**{inline(each.what)}**: {inline(each.why)}" for each in report.not_run)
    return [
        *_listed("Gaps", _gaps(report)),
        *_listed("Conflicts", map(inline, report.conflicts)),
        *_listed("Not run", not_run),
    ]


def _plan(report: Report, *, subtasks: bool, tries: bool) -> list[str]:
    shown = subtasks and (report.findings or report.plan)
    return [
        *(["## Subtasks", _table(report)] if shown else []),
        *(_listed("Tries", _tries(report)) if tries else []),
        *_listed("Changes of the plan", _revisions(report)),
    ]


def _findings(report: Report, to_type: ToType, *, whole: bool) -> list[str]:
    """Return each finding, or the commands that show them."""
    sections = [*findings.sections(report)]
    if whole or not sections:
        return ["## Findings", *sections] if sections else []
    shown = to_type("show", report.run_id)
    one, every = code_span(f"{shown} SUBTASK"), code_span(f"{shown} --all")
    return [f"One finding with all it says: {one}; all of them: {every}"]


def answer_of(report: Report, to_type: ToType) -> str:
    """The answer, with what no finding supports marked in it, and with the commands on its run that
    code wrote into it as they are typed here.
    """
    answer = mark_unsupported(report.answer, report.doubtful)
    if not PLAIN_ID.fullmatch(report.run_id):
        return answer
    return _COMMAND.sub(lambda found: f"`{to_type(found[1], report.run_id)}", answer)


def _summary(report: Report) -> str:
    complete = [each for each in report.findings if each.status == "complete"]
    nothing = report.status == "budget_stopped" and not complete
    parts = [f"**{NOTHING_FINISHED if nothing else STATUS[report.status]}**"]
    parts += [f"⚠ {count_unsupported(report.flags)}"] if report.flags else []
    if report.confidence is not None:
        parts.append(f"confidence {report.confidence} of 100")
    parts.append(_how_many(report, len(complete)))
    parts.append(seconds(report.timings.makespan))
    if report.started:
        parts.append(f"{report.started:%Y-%m-%d %H:%M} UTC")
    parts.append(f"run {code_span(report.run_id)}")
    return " · ".join(parts)


def _how_many(report: Report, complete: int) -> str:
    """Of the planned subtasks; a plan that nobody approved has no finding."""
    if report.findings:
        return f"{complete} of {len(report.findings)} subtasks"
    planned = len(report.plan.subtasks) if report.plan else 0
    return f"none of {planned} subtask{'s' * (planned != 1)} was run" if planned else "no plan"


def inputs(report: Report) -> Iterator[str]:
    """What the run read: every input, a repository with its commit, base and what is not in it."""
    for each in report.inputs:
        parts = [f"**{inline(each.name)}**, {each.kind}"]
        if each.path:
            parts.append(code_span(each.path))
        if each.kind == "text" and len(each.preview.encode()) == each.size <= MOST_VALUE:
            parts.append(code_span(" ".join(each.preview.split())))
        elif each.kind != "repository":
            parts.append(f"{each.size:,} bytes{' of files' * each.is_folder}")
        elif each.commit:
            parts.append(f"commit {code_span(each.commit)}")
            parts.append(_uncommitted(each.changed))
        else:
            parts.append("nothing committed yet")
        if each.scope:
            parts.append(f"taken: {inline(each.scope)}")
        elif each.base:
            named = each.base_name not in ("", each.base)
            name = f"{code_span(each.base_name)}, " if named else ""
            parts.append(f"compared with {name}{code_span(each.base)}")
        yield ", ".join(parts)


def _uncommitted(changed: int | None) -> str:
    match changed:
        case None:
            return "whether all files are as committed is not known"
        case 0:
            return "all files as committed"
        case _:
            return f"{changed} file{'s' * (changed != 1)} not as committed"


def _gaps(report: Report) -> Iterator[str]:
    for gap in report.gaps:
        which = f" ({inline(gap.subtask_id)})" if gap.subtask_id else ""
        line = f"**{inline(gap.title)}**{which} {gap.status}: {inline(gap.why)}"
        if gap.took_down:
            line = (
                f"{sentence(line)} Skipped because of it: {', '.join(map(inline, gap.took_down))}"
            )
        yield line


def _table(report: Report) -> str:
    """The subtasks; columns that say nothing of this run are left out."""
    rows = [_cells(report, finding) for finding in report.findings] or [
        (inline(each.id), inline(each.title), inline(each.role), "", "", "not run", "", "")
        for each in (report.plan.subtasks if report.plan else ())
    ]
    said = [any(row[place] for row in rows) for place in range(len(COLUMNS))]
    kept = [place for place, wanted in enumerate(said) if wanted]
    lines = [
        "| " + " | ".join(COLUMNS[place][0] for place in kept) + " |",
        "|" + "|".join(COLUMNS[place][1] for place in kept) + "|",
    ]
    for row in rows:
        cells = (row[place].replace("|", "\\|") for place in kept)
        lines.append("| " + " | ".join(cells) + " |")
    return "\n".join(lines)


COLUMNS = (
    ("", "---"), ("subtask", "---"), ("role", "---"), ("model", "---"), ("tries", "---:"),
    ("status", "---"), ("seconds", "---:"), ("price", "---:"),
)  # fmt: skip
"""Of the table of subtasks: head and alignment."""


def _cells(report: Report, finding: Finding) -> tuple[str, ...]:
    subtask = findings.subtask_of(report, finding.subtask_id)
    reused = bool(finding.reused_from)
    return (
        inline(finding.subtask_id),
        inline(subtask.title),
        inline(findings.who(finding, subtask)),
        inline(finding.model),
        "" if reused else findings.tried(finding),
        "reused" if reused else finding.status,
        "" if reused else f"{findings.duration(finding):.1f}",
        findings.price(finding),
    )


def _tries(report: Report) -> Iterator[str]:
    """Of the subtasks that took more than one, or a call without an answer: as in its finding."""
    for finding in report.findings:
        told = [*findings.tries(finding)]
        if (len(told) > 1 or finding.unanswered) and not finding.reused_from:
            yield f"**{inline(finding.subtask_id)}**: {'; '.join(told)}"


def _revisions(report: Report) -> Iterator[str]:
    for revision in report.revisions:
        changed = (
            ("added", revision.added),
            ("replaced", revision.replaced),
            ("dropped", revision.dropped),
        )
        told = "; ".join(f"{what} {', '.join(map(inline, ids))}" for what, ids in changed if ids)
        yield f"**{revision.number}**, {inline(revision.why)}: {told or 'nothing changed'}"


def _price_and_time(report: Report) -> Iterator[str]:
    usage = report.usage
    unpaid = report.unpaid_calls
    if report.model_calls:
        more = f" Besides, {calls(unpaid)} brought no answer and cost nothing." if unpaid else ""
        yield (
            f"{money(report.dollars)} for {calls(report.model_calls)}"
            f"{_assumed(report)}{_of_the_run(report)}:"
            f" {usage.input_tokens:,} tokens in, {usage.output_tokens:,} out,"
            f" {usage.cache_read_tokens:,} read from cache,"
            f" {usage.cache_write_tokens:,} written to it.{_against_estimate(report)}{more}"
        )
    elif unpaid:
        were = "was" if unpaid == 1 else "were"
        yield (
            f"No model answered: {calls(unpaid)} {were} refused or did not get through, and nothing"
            " was paid."
        )
    else:
        yield f"No model was asked, so nothing was paid.{_against_estimate(report)}"
    times = report.timings
    waited = ""
    if times.waited:
        waited = f", {seconds(times.waited)} of it waiting for a person, the endpoint or a worker"
    chain = ""
    if times.critical_path:
        chain = f" The longest chain of subtasks took {seconds(times.critical_path)}"
        chain += ", that waiting not counted." if times.waited else "."
    yield f"{seconds(times.makespan)} from start to end{waited}.{chain}"


def _assumed(report: Report) -> str:
    """What to say of a price that is partly assumed; empty when all of it is known."""
    if report.dollars is None or not report.assumed:
        return ""
    return (
        f", of which {money(report.assumed)} is assumed"
        " (the worst case of calls whose answers were lost)"
    )


def _of_the_run(report: Report) -> str:
    """What of the price no subtask has: the plan, the answer, and whoever read it."""
    own = [each for each in report.findings if not each.reused_from]
    if report.dollars is None or not own or any(each.dollars is None for each in own):
        return ""
    rest = report.dollars - sum((each.dollars or Decimal(0) for each in own), Decimal(0))
    return f"; {money(rest)} of it went into plan and answer themselves" if rest > 0 else ""


def _goes_on(report: Report, to_type: ToType) -> list[str]:
    """The command that finishes what is missing, as the last line; nothing where nothing is."""
    said, typed = to_go_on(report, to_type)
    return ["## To go on", said, *([f"    {typed}"] if typed else [])] if said else []


def to_go_on(report: Report, to_type: ToType) -> tuple[str, str]:
    """What a reader can do about what is missing, and the command for it; empty: nothing is
    missing, or there is no command.
    """
    if report.status in ("complete", "declined"):
        return "", ""
    if report.stopped == "no json":
        return f"Another run would ask the same endpoint: first read {WHERE}.", ""
    if report.plan is None:
        none = "There is no plan yet that a fork could take up"
        return f"{none}: start the run anew, by another id.", ""
    done = len(report.plan.subtasks) - len(subtasks_to_redo(report.plan, report.findings))
    kept = f", and takes over {done} of {len(report.plan.subtasks)} unpaid" if done else ""
    more = "".join(f" --limits {each}" for each in report.more)
    twice = ", with twice the limit that ran out" if more else ""
    said = f"This does what is missing{kept}{twice}; the run's limits count anew:"
    return said, f"{to_type('fork', report.run_id)}{more}"


def _against_estimate(report: Report) -> str:
    """What the plan was expected to cost, against what the run did; a share only of what is known:
    a worst case is measured against no estimate.
    """
    estimated, paid = report.dollars_estimated, report.dollars
    if not estimated or paid is None:
        return ""
    plan = f" The plan was estimated at {money(estimated)}"
    if not report.findings:
        return f"{plan}; none of it was run."
    if report.assumed:
        return f"{plan}; because of what is assumed, nobody can say what share of that it took."
    return f"{plan}: it took {paid / estimated:.0%} of that."


def _listed(title: str, items: Iterator[str] | map[str]) -> list[str]:
    lines = [f"- {item}" for item in items]
    return [f"## {title}", "\n".join(lines)] if lines else []
