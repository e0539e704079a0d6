"""How a run ended, read from a closed run, and told to a person or a program."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from holdfast.cli.screen import report as pages
from holdfast.cli.screen.exits import Code, code_of, exit_of
from holdfast.cli.screen.streams import say
from holdfast.cli.shared.connection import say_where
from holdfast.cli.shared.delivery import deliver, files_of, in_plain, place, with_files
from holdfast.cli.shared.pipeline import Pipeline
from holdfast.client.doing import Turns
from holdfast.client.ended import Ended, is_damaged, read_end
from holdfast.client.templates import propose
from holdfast.contracts import ReviewData
from holdfast.contracts.remarks import read_review, stands
from holdfast.deployment.invocation import STARTER, to_type
from holdfast.embedded import StateDir
from holdfast.intake.connection import Connection
from holdfast.rendering.foremost import first_in_line
from holdfast.rendering.status import SEVERITY_SIGNS
from holdfast.rendering.verdict import Verdict, counted, judge


def exit_code(ended: Ended) -> Code:
    """Return the exit code of a command that has followed a run to this end."""
    if ended.failure:
        return exit_of(ended.failure).code
    assert ended.report is not None
    return code_of(ended.report.status)


async def print_outcome(
    connection: Connection,
    run_id: str,
    ended: Ended,
    *,
    as_json: bool,
    out: Path | None,
    subtasks: bool,
    announced: bool = False,
    whole: bool = False,
    pipeline: Pipeline = Pipeline(),  # noqa: B008
) -> Code:
    """Print the report on stdout and, on stderr, the Web UI (unless `announced`), how to come back,
    its files and its page; return the exit code.
    """
    turns = await Turns(connection, run_id).of(ended.look.steps)
    ended = read_end(run_id, replace(ended.look, turns=turns)) if turns else ended
    code, made, reports = exit_code(ended), ended.report, StateDir.of(connection.settings).reports
    if made is None:
        say(ended.reason, "bold red")
        before = place(run_id, reports, ".md")
        if is_damaged(ended.look) and before.exists():
            say(f"Its report, as it was written before: {before}")
    else:
        made = await with_files(made, connection.store, files_of(run_id, reports))
        pages.show(made, as_json=as_json, subtasks=subtasks, whole=whole)
    if not announced:
        await say_where(connection, run_id)
    if made is not None and (review := read_review(made)):
        _say_verdict(judge(review, made.status), review)
    say(f"Come back with: {to_type('show', run_id)} (all runs: {STARTER} list)", "dim")
    if made is not None and (proposed := await propose(connection, ended)):
        say(proposed, "dim")
    if made is not None:
        code = pipeline.pass_on(made, code)
        deliver(made, reports, out, ended.look, in_plain(connection.target))
    return code


def _say_verdict(verdict: Verdict, review: ReviewData) -> None:
    """Say last what stands first, which the terminal has scrolled away: the counts, and what to do
    first.
    """
    sign = f"{SEVERITY_SIGNS[verdict.worst]} " if verdict.worst else ""
    if verdict.worst:
        style = "bold red" if verdict.worst == "critical" else "bold magenta"
    else:
        style = "bold green" if verdict.known and not verdict.beside else "bold"
    say(f"{sign}{verdict.line}", style)
    if first := first_in_line([each for each in counted(review) if stands(each)]):
        say(f"First: {first}")
