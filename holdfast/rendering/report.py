"""The report of a run, in blocks: its chapters, when it is over or as far as it has come."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping

from holdfast.contracts import Finding, MadeFile, Report, Subtask
from holdfast.contracts.made_files import place_files
from holdfast.contracts.remarks import read_review
from holdfast.contracts.view import Preview, Row
from holdfast.rendering import findings, markdown, orders, prices, sources
from holdfast.rendering.amounts import at_most, money, seconds
from holdfast.rendering.blocks import (
    Block,
    Code,
    Column,
    Fact,
    Facts,
    Heading,
    Line,
    Marked,
    Paragraph,
    Prose,
    Table,
    listed,
    table,
)
from holdfast.rendering.remarks import fold_unlisted
from holdfast.rendering.status import verdict
from holdfast.rules.speechless import WHERE
from holdfast.rules.unread import subtasks_to_redo
from holdfast.text import PLAIN_ID, code_span, inline, pluralize, sentence
from holdfast.text.marks import LOOK_FIRST, mark_unsupported

ToType = Callable[[str, str], str]
"""(command, run id) -> what the reader types for it."""
CHAPTERS = {
    "steering": "Steering",
    "answer": "Answer",
    "files": "Files",
    "missing": "What is missing",
    "notes": "Notes",
    "plan": "Plan",
    "times": "Time",
    "money": "Money",
    "orders": "Orders of people",
    "inputs": "Inputs",
    "sources": "Sources",
    "findings": "Findings",
    "supervisor": "What the supervisor asked",
}
"""The chapters in their order; Markdown and terminals have neither pictures nor exchanges."""
_COMMAND = re.compile(r"`starter\.py (fork|show) ID(?=[ `])")
MOST_VALUE = 80
"""Bytes of a text that is told as it is; of a longer one its size."""


def as_markdown(
    report: Report, to_type: ToType, *, subtasks: bool = True, whole: bool = True, where: str = ""
) -> str:
    """Return the report as Markdown. `subtasks` False leaves out their table, for a terminal that
    has just shown it; `whole` False the findings one by one, which `show ID SUBTASK` has, and of a
    review how the run went. `where`: the address of the folder that the agents' files are in.
    """
    chapters: dict[str, list[Block]] = {
        "files": listed(files(report, where)),
        "missing": missing(report),
        "notes": listed(report.notes),
        "plan": _plan(report, subtasks=subtasks, tries=not whole),
        "times": [Paragraph(took(report))],
        "money": prices.blocks(report, whole=whole),
        "orders": listed(orders.lines(report.orders)),
        "inputs": listed(inputs(report)),
        "sources": listed(sources.items(report, whole=whole)),
        "findings": findings.sections(report) if whole else [],
    }
    review = read_review(report)
    if review and not whole:
        for name in ("plan", "times", "inputs", *([] if prices.count_asked(report) else ["money"])):
            del chapters[name]
    first, answer = _first(report, answer_of(report, to_type).strip())
    blocks: list[Block] = [Heading(report.title or report.goal, 1), *first]
    blocks += listed(report.flags, LOOK_FIRST)
    blocks += [Prose(answer)] if answer else []
    blocks += fold_unlisted(review) if review and whole else []
    for name, title in CHAPTERS.items():
        if inside := chapters.get(name):
            blocks += [Heading(title), *inside]
    if report.findings and not whole:
        blocks.append(_one_by_one(report, to_type))
    said, typed = to_go_on(report, to_type)
    if said:
        blocks += [Heading("To go on"), Paragraph(said), *([Code(typed)] if typed else [])]
    return markdown.write(blocks) + "\n"


def _first(report: Report, answer: str) -> tuple[list[Block], str]:
    """Return what a report begins with, and the rest of the answer: of a review its verdict, with
    which its answer begins, and the run's facts below.
    """
    place = f" of project {code_span(report.project)}" if report.project else ""
    run = f" · run {code_span(report.run_id)}{place}"
    told = facts(report)
    if not read_review(report):
        return [Paragraph(Marked(f"**{verdict(report)}**{run}")), told], answer
    counts, _, rest = answer.partition("\n\n")
    grey = Marked(f"*{inline(f'{verdict(report)} · {told.line}')}{run}*")
    return [Prose(counts), Paragraph(grey)], rest


def answer_of(report: Report, to_type: ToType) -> str:
    """Return the answer, with what no finding supports marked in it, and with the commands on its
    run that code wrote into it as they are typed here.
    """
    answer = mark_unsupported(report.answer, report.doubtful)
    if not PLAIN_ID.fullmatch(report.run_id):
        return answer
    return _COMMAND.sub(lambda found: f"`{to_type(found[1], report.run_id)}", answer)


def facts(
    report: Report, *, over: bool = True, whole: float | None = None, waited: float | None = None
) -> Facts:
    """Return how sure, how complete, how dear and how long it is. `whole` and `waited`: seconds so
    far, of a run that goes on.
    """
    waited = report.timings.waited if waited is None else waited
    found = []
    if report.confidence is not None:
        found.append(Fact("Confidence", f"{report.confidence} of 100"))
    planned = {each.id for each in report.plan.subtasks} if report.plan else set()
    if count := len(planned | {each.subtask_id for each in report.findings}):
        complete = sum(each.status == "complete" for each in report.findings)
        found.append(Fact("Subtasks", f"{complete} of {count} complete"))
    left_out = [Fact("Not run", each.what, each.why) for each in report.not_run if each.agents]
    found += left_out
    awaited = bool(report.shares) and not over
    nobody = "" if left_out else "no answer yet" if awaited else "no model was asked"
    asked = prices.count_asked(report) or nobody
    found.append(Fact("Price", at_most(report.dollars, report.assumed), asked))
    more = ("" if over else "so far", f"{seconds(waited)} waiting" if waited else "")
    spent = seconds(report.timings.makespan if whole is None else whole)
    found.append(Fact("Time", spent, ", ".join(filter(None, more))))
    if report.started:
        found.append(Fact("Began", f"{report.started:%Y-%m-%d}", f"{report.started:%H:%M} UTC"))
    return Facts(tuple(found))


def _one_by_one(report: Report, to_type: ToType) -> Paragraph:
    shown = to_type("show", report.run_id)
    one, every = code_span(f"{shown} SUBTASK"), code_span(f"{shown} --all")
    return Paragraph(Marked(f"One finding with all it says: {one}; all of them: {every}"))


def files(report: Report, where: str) -> Iterator[str]:
    """Yield a line for each file that agents made. `where`: the address of the folder that they are
    in; empty where nobody has written them.
    """
    for finding, file, path in place_files(report):
        # Nothing in such a path means anything to Markdown or to an address.
        linked = path and where and not file.missing
        name = f"[{path}]({where}/{path})" if linked else code_span(path or file.name[:100])
        facts = f"{file.size:,} bytes, SHA-256 {code_span(file.digest)}"
        yield Marked(f"{name}, {facts}, by {inline(finding.subtask_id)}{inline(_gone(file))}")


def _gone(file: MadeFile) -> str:
    return f"; not here: {file.missing}" if file.missing else ""


# ---------------------------------------------------------------- what is missing


def missing(report: Report) -> list[Block]:
    """Return gaps, contradictions and what was not run; agents that were not wanted are a fact."""
    not_run = (
        Marked(f"**{inline(each.what)}**: {inline(each.why)}")
        for each in report.not_run
        if not each.agents
    )
    return [
        *listed(_gaps(report)),
        *listed(report.conflicts, "Contradictions", 3),
        *listed(not_run, "Not run", 3),
    ]


def _gaps(report: Report) -> Iterator[str]:
    for gap in report.gaps:
        which = f" {cite(gap.subtask_id)}" if gap.subtask_id else ""
        line = f"**{inline(gap.title)}**{which} {gap.status}: {inline(gap.why)}"
        if gap.took_down:
            line = f"{sentence(line)} Skipped because of it: {cite(*gap.took_down)}"
        yield Marked(line)


def cite(*ids: str) -> str:
    """Return ids in brackets, as answers cite them: on a page each is a link."""
    return inline(", ".join(f"[{each}]" for each in ids))


def to_go_on(report: Report, to_type: ToType) -> tuple[str, str]:
    """Return what a reader can do about what is missing, and the command for it; empty: nothing is
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


# ---------------------------------------------------------------- the plan


COLUMNS = (
    Column("", "ids"),
    Column("subtask"),
    Column("role"),
    Column("needs", "ids", essential=False),
    Column("model", essential=False),
    Column("tries"),
    Column("status", "status"),
    Column("time", "number"),
    Column("expected", "number", essential=False),
    Column("price", "number"),
)


def _plan(report: Report, *, subtasks: bool, tries: bool) -> list[Block]:
    shown = subtasks and (report.findings or report.plan)
    return [
        *([subtask_table(report)] if shown else []),
        *(listed(_tries(report), "Tries", 3) if tries else []),
        *listed(revisions(report), "Changes of the plan", 3),
    ]


def subtask_table(
    report: Report, rows: Mapping[str, Row] | None = None, preview: Preview | None = None
) -> Table:
    """Return the subtasks with what became of each. `rows`: where those stand that have not ended;
    None where nothing goes on. `preview`: what each was expected to cost, if that is known.
    """
    expected = {each.id: money(each.expected) for each in preview.subtasks} if preview else {}
    planned = {each.id: each for each in report.plan.subtasks} if report.plan else {}
    found = {each.subtask_id: each for each in report.findings}
    ids = dict.fromkeys((*planned, *found))
    return table(
        COLUMNS,
        (
            _ended(findings.subtask_of(report, id), found[id], expected.get(id, ""))
            if id in found
            else _open(planned[id], rows, expected.get(id, ""))
            for id in ids
        ),
    )


def _ended(subtask: Subtask, finding: Finding, expected: str) -> Line:
    reused = bool(finding.reused_from)
    who = findings.who(finding, subtask)
    cells = (
        # A lens is called as its subtask is.
        "" if who == subtask.id else who,
        ", ".join(subtask.depends_on),
        finding.model,
        "" if reused else findings.tried(finding),
        "taken over" if reused else finding.status,
        "" if reused else seconds(findings.duration(finding)),
        expected,
        findings.price(finding),
    )
    return Line((subtask.id, subtask.title, *cells), finding.status, subtask.why)


def _open(subtask: Subtask, rows: Mapping[str, Row] | None, expected: str) -> Line:
    row = rows.get(subtask.id) if rows else None
    status = row.status if row else "waiting"
    cells = (
        row.who if row else subtask.role,
        ", ".join(subtask.depends_on),
        "",
        "",
        "not run" if rows is None else status,
        seconds(row.seconds) if row and row.seconds else "",
        expected,
        at_most(row.dollars, row.assumed) if row and row.dollars != 0 else "",
    )
    far = row.doing if row and subtask.map else ""
    return Line((subtask.id, subtask.title, *cells), status, far or subtask.why)


def _tries(report: Report) -> Iterator[str]:
    """Yield those of each subtask that took several, or a call without an answer."""
    for finding in report.findings:
        told = [*findings.tries(finding)]
        if (len(told) > 1 or finding.unanswered) and not finding.reused_from:
            yield Marked(f"**{inline(finding.subtask_id)}**: {'; '.join(told)}")


def revisions(report: Report) -> Iterator[str]:
    """Yield each change of the plan with its reason."""
    for revision in report.revisions:
        changed = (
            ("added", revision.added),
            ("replaced", revision.replaced),
            ("dropped", revision.dropped),
        )
        told = "; ".join(f"{what} {cite(*ids)}" for what, ids in changed if ids)
        yield Marked(f"**{revision.number}**, {inline(revision.why)}: {told or 'nothing changed'}")


# ---------------------------------------------------------------- time


def took(
    report: Report, *, over: bool = True, whole: float | None = None, waited: float | None = None
) -> str:
    """Return how long it took. `whole` and `waited`: seconds so far, of a run that goes on."""
    times = report.timings
    whole = times.makespan if whole is None else whole
    waited = times.waited if waited is None else waited
    said = f"{seconds(whole)} {'from start to end' if over else 'so far'}"
    if waited:
        said += f", {seconds(waited)} of it waiting for a person, the endpoint or a worker"
    chain = ""
    if times.critical_path:
        chain = f" The longest chain of subtasks took {seconds(times.critical_path)}"
        chain += ", that waiting not counted." if times.waited else "."
    early = ""
    if times.early and report.plan:
        count = pluralize(len(report.plan.subtasks), "subtask")
        early = f" {times.early} of {count} began while the plan was being written."
    return f"{said}.{chain}{early}"


# ---------------------------------------------------------------- what it read


def inputs(report: Report) -> Iterator[str]:
    """Yield every input; a repository with its commit, base and what is not in it."""
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
        yield Marked(", ".join(parts))


def _uncommitted(changed: int | None) -> str:
    match changed:
        case None:
            return "whether all files are as committed is not known"
        case 0:
            return "all files as committed"
        case _:
            return f"{pluralize(changed, 'file')} not as committed"
