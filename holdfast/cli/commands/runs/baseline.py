"""`baseline`: what a review of a whole repository finds today counts as known from now on."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Annotated

import typer

from holdfast.activities.catalogue.catalogue import Catalogue
from holdfast.activities.review.scope import baseline
from holdfast.cli.screen.exits import Code, Exit
from holdfast.cli.screen.streams import say
from holdfast.cli.shared.follow import display, watch
from holdfast.cli.shared.options import Embedded, Inputs
from holdfast.cli.shared.starting import start_run, with_span
from holdfast.client.connecting import configured_target
from holdfast.client.ended import read_end
from holdfast.contracts import Goal, Report
from holdfast.deployment.invocation import to_type
from holdfast.deployment.settings import Settings
from holdfast.embedded import StateDir
from holdfast.embedded.private import make_folder
from holdfast.intake.connection import Connection
from holdfast.intake.goals import Wish, goal_of
from holdfast.rules.leaving import ALL, BASE, SCOPE
from holdfast.storage.files import write_whole
from holdfast.telemetry.otel.commands import CommandSpan
from holdfast.text import pluralize

PLAYBOOK = "code-review"


def command(
    inputs: Inputs = None,
    in_repo: Annotated[
        bool,
        typer.Option(
            "--in-repo", help=f"Write {baseline.NAME} into the repository, for everybody."
        ),
    ] = False,
    embedded: Embedded = False,
) -> int:
    """Review the whole tree, and count what is found as known: later reviews list what is new."""
    settings = Settings()
    given = tuple(inputs or ())
    for name in (BASE, SCOPE):
        if any(each.startswith(f"{name}=") for each in given):
            raise Exit(f"--input {name}: a baseline is of the whole tree; leave it out")
    wish = Wish(playbook=PLAYBOOK, inputs=(*given, f"{SCOPE}={ALL}"))
    ours = embedded or not settings.uses_own_server
    if not ours:
        configured_target(settings)
    goal = asyncio.run(goal_of(wish, Catalogue.of(settings.project), settings, embedded=ours))
    return with_span(
        "baseline",
        settings,
        embedded,
        lambda connection, span: run(connection, goal, in_repo=in_repo, span=span),
    )


async def run(
    connection: Connection, goal: Goal, *, in_repo: bool, span: CommandSpan | None = None
) -> int:
    """Review, and write down what is then known. Return 0; Exit if a lens could not look."""
    run_id = await start_run(connection, goal, "", span=span)
    with display() as shown:
        look = await watch(connection, run_id, shown, lambda _: False)
    ended = read_end(run_id, look)
    if ended.report is None or ended.report.status != "complete":
        why = ended.reason or "not every lens had its say"
        raise Exit(
            f"no baseline is written: {why}; `{to_type('show', run_id)}` says more",
            Code.FAILED,
        )
    repository = next(each for each in goal.inputs if each.kind == "repository")
    path, known = _write(connection, ended.report, Path(repository.value), in_repo=in_repo)
    say(f"Baseline: {path}", "bold")
    say(f"{pluralize(known, 'remark')} known: reviews count these, and list what is new.")
    if in_repo:
        say("Commit it: a review of a branch goes by the baseline of its main line.")
    elif not connection.target.embedded:
        say("Workers that have another state directory do not read it; --in-repo is for all.")
    return Code.COMPLETE


def _write(
    connection: Connection, report: Report, repository: Path, *, in_repo: bool
) -> tuple[Path, int]:
    commit = next((each.commit for each in report.inputs if each.kind == "repository"), "")
    content, known = baseline.write_baseline(report.findings, commit)
    folder = StateDir.of(connection.settings).baselines
    path = repository / baseline.NAME if in_repo else baseline.path_of(folder, repository)
    try:
        if not in_repo:
            make_folder(folder)
        write_whole(path, content)
    except OSError as error:
        raise Exit(f"{path} could not be written: {error.strerror}", Code.FAILED) from error
    return path, known
