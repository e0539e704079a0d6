"""A finished run: its Report as Markdown, on screen, and in files."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator
from pathlib import Path

from rich.markdown import Markdown

from cli.amounts import calls, money, seconds
from cli.screen import OUT, Safe, put, say
from orchestrator.contracts import Finding, Report
from orchestrator.text import for_markdown, for_terminal

_STATUS = {
    "complete": "Complete",
    "complete_with_gaps": "Complete, with gaps",
    "budget_stopped": "Stopped at the budget; the answer covers what was finished",
    "deadline_partial": "Stopped at the deadline; the answer covers what was finished",
    "declined": "Declined",
    "cancelled": "Cancelled",
    "failed": "Failed",
}


def as_markdown(report: Report, *, subtasks: bool = True) -> str:
    """The whole report, honest parts included. `subtasks` False leaves out their table, for a
    terminal that has just shown it.
    """
    parts = [f"# {_inline(report.goal)}", _summary(report)]
    if report.answer.strip():
        parts.append(for_terminal(report.answer.strip(), lines=True))
    parts += _listed("Gaps", _gaps(report))
    parts += _listed("Conflicts", map(_inline, report.conflicts))
    parts += _listed("Not supported by any finding", map(_inline, report.flags))
    not_run = (f"**{_inline(each.what)}**: {_inline(each.why)}" for each in report.not_run)
    parts += _listed("Not run", not_run)
    parts += _listed("Notes", map(_inline, report.notes))
    if subtasks and report.findings:
        parts += ["## Subtasks", _table(report)]
    parts += _listed("Tries", _tries(report))
    parts += _listed("Changes of the plan", _revisions(report))
    parts += ["## Price and time", *_price_and_time(report)]
    return "\n\n".join(parts) + "\n"


def _summary(report: Report) -> str:
    parts = [f"**{_STATUS[report.status]}**"]
    if report.confidence:
        parts.append(f"confidence {report.confidence} of 100")
    parts.append(f"{len(report.findings) - len(report.gaps)} of {len(report.findings)} subtasks")
    parts.append(seconds(report.timings.makespan))
    parts.append(f"run `{report.run_id}`")
    return " · ".join(parts)


def _gaps(report: Report) -> Iterator[str]:
    for gap in report.gaps:
        line = f"**{_inline(gap.title)}** ({gap.subtask_id}) {gap.status}: {_inline(gap.why)}"
        if gap.took_down:
            line += f". Skipped because of it: {', '.join(gap.took_down)}"
        yield line


def _table(report: Report) -> str:
    titles = {each.id: each for each in report.plan.subtasks} if report.plan else {}
    lines = ["| | subtask | role | status | seconds | price |", "|---|---|---|---|---:|---:|"]
    for finding in report.findings:
        subtask = titles.get(finding.subtask_id)
        reused = bool(finding.reused_from)
        free = reused or (not finding.model and finding.dollars == 0)
        cells = (
            finding.subtask_id,
            _inline(subtask.title) if subtask else "",
            _inline(subtask.role) if subtask else "",
            "reused" if reused else finding.status,
            "" if reused else f"{_seconds_of(finding):.1f}",
            "" if free else money(finding.dollars),
        )
        lines.append("| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |")
    return "\n".join(lines)


def _tries(report: Report) -> Iterator[str]:
    """Of the subtasks that took more than one: each with its verdict and the reason."""
    for finding in report.findings:
        if len(finding.tries) < 2 or finding.reused_from:
            continue
        told = []
        for each in finding.tries:
            why = f" ({_inline(each.why)})" if each.why else ""
            tier = "" if each.tier == "none" else f" on {each.tier}"
            told.append(f"try {each.number}{tier} {each.verdict.replace('_', ' ')}{why}")
        yield f"**{finding.subtask_id}**: {'; '.join(told)}"


def _revisions(report: Report) -> Iterator[str]:
    for revision in report.revisions:
        changed = (
            ("added", revision.added), ("replaced", revision.replaced),
            ("dropped", revision.dropped),
        )  # fmt: skip
        told = "; ".join(f"{what} {', '.join(ids)}" for what, ids in changed if ids)
        yield f"**{revision.number}**, {_inline(revision.why)}: {told or 'nothing changed'}"


def _seconds_of(finding: Finding) -> float:
    if finding.started is None or finding.finished is None:
        return 0.0
    return (finding.finished - finding.started).total_seconds()


def _price_and_time(report: Report) -> Iterator[str]:
    usage = report.usage
    if report.model_calls:
        yield (
            f"{money(report.dollars)} for {calls(report.model_calls)}:"
            f" {usage.input_tokens:,} tokens in, {usage.output_tokens:,} out,"
            f" {usage.cache_read_tokens:,} read from cache.{_against_estimate(report)}"
        )
    else:
        yield "No model was asked, so nothing was paid."
    times = report.timings
    if times.subtasks:
        path = f"critical path {seconds(times.critical_path)}."
        together = f"Subtasks: {seconds(times.subtasks)} of work"
        # Not where the run waited for a person meanwhile: that says nothing of the speed.
        if times.speed_up >= 1:
            together = (
                f"Subtasks: {seconds(times.work)} in parallel instead of"
                f" {seconds(times.subtasks)} one after another, a speed-up of {times.speed_up:.1f}"
            )
        yield f"{seconds(times.makespan)} from start to end. {together}; {path}"


def _against_estimate(report: Report) -> str:
    """What the plan was expected to cost, against what the run did; planning counts in the
    latter.
    """
    estimated, paid = report.dollars_estimated, report.dollars
    if not estimated or paid is None or not report.findings:
        return ""
    return f" The plan was estimated at {money(estimated)}: it took {paid / estimated:.0%} of that."


def _listed(title: str, items: Iterator[str] | map[str]) -> list[str]:
    lines = [f"- {item}" for item in items]
    return [f"## {title}", "\n".join(lines)] if lines else []


def _inline(text: str) -> str:
    return for_markdown(" ".join(text.split()))


def show(report: Report, *, as_json: bool, subtasks: bool) -> None:
    """The report on stdout: JSON, or Markdown, which a terminal shows typeset and a pipe gets as
    it is.
    """
    if as_json:
        put(report.model_dump_json(indent=2))
    elif OUT.is_terminal:
        source = as_markdown(report, subtasks=subtasks)
        OUT.print(Safe(Markdown(source, hyperlinks=False)))
        OUT.print()
    else:
        put(as_markdown(report).rstrip("\n"))


def keep(report: Report, folder: Path) -> Path:
    """Write the report as `RUN.md` and `RUN.json` into a private folder; the Markdown's path."""
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    page = folder / f"{report.run_id}.md"
    write(report, page)
    write(report, page.with_suffix(".json"))
    return page


def write(report: Report, path: Path) -> None:
    """Write a report as one file, JSON if its name says so. It appears whole or not at all."""
    as_json = path.suffix.lower() == ".json"
    text = report.model_dump_json(indent=2) + "\n" if as_json else as_markdown(report)
    write_whole(path, text)


def write_whole(path: Path, text: str) -> None:
    """Write a private file, replacing an earlier one in one step. OSError says why it could not."""
    handle, temporary = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
    try:
        with os.fdopen(handle, "w", encoding="utf-8", errors="backslashreplace") as file:
            file.write(text)
        os.replace(temporary, path)
    except BaseException:
        Path(temporary).unlink(missing_ok=True)
        raise


def deliver(report: Report, folder: Path, out: Path | None) -> None:
    """Write the files of a finished run and say where they are; a full disk is said, and costs no
    report.
    """
    try:
        say(f"Report: {keep(report, folder)}")
    except OSError as error:
        say(f"The report could not be kept in {folder}: {error.strerror}", "yellow")
    if out:
        try:
            write(report, out)
            say(f"Report: {out}")
        except OSError as error:
            say(f"The report could not be written to {out}: {error.strerror}", "yellow")
