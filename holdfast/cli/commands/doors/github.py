"""`github`: review what an event of GitHub names, and tell it there; from any CI by token.

Nothing of the pull request decides how: no project, no `.env` and no settings file of the folder
in which the command is typed is read, and no code under review is run.
"""

from __future__ import annotations

import asyncio
import os
import secrets
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from decimal import Decimal
from pathlib import Path
from typing import Annotated

import typer

from holdfast.cli.screen.exits import Code, Exit, code_of
from holdfast.cli.screen.streams import say
from holdfast.cli.shared.connection import connect_command
from holdfast.cli.shared.options import FailOn, Models, dollars_of, pipeline_of
from holdfast.cli.shared.pipeline import Pipeline
from holdfast.client.holdfast import Holdfast
from holdfast.contracts import Report, Severity
from holdfast.deployment import project
from holdfast.deployment.settings import Settings
from holdfast.doors.github import pulls, threads
from holdfast.doors.github.api import PUBLIC, Api, ApiFailed, UnknownToken
from holdfast.doors.github.checks import Conclusion
from holdfast.doors.github.event import Asked, read_event, repository_of
from holdfast.doors.github.reviewing import range_of, review
from holdfast.doors.github.telling import Judged, Teller
from holdfast.rendering.verdict import failing
from holdfast.text import pluralize

TOKENS = ("GITHUB_TOKEN", "GH_TOKEN")
NO_SECRETS = "agents: a pull request from a fork has no secrets, and so no key of a model"
CONCLUSIONS: dict[Code, Conclusion] = {
    Code.COMPLETE: "success",
    Code.PARTIAL: "neutral",
    Code.DECLINED: "neutral",
    Code.CANCELLED: "cancelled",
}
Pull = Annotated[
    int | None,
    typer.Option("--pull", metavar="NUMBER", min=1, help="The pull request. Default: the event's."),
]
RepositoryName = Annotated[
    str,
    typer.Option(
        "--repository", metavar="OWNER/NAME", help="Of --pull. Default: $GITHUB_REPOSITORY."
    ),
]
Dollars = Annotated[
    str | None,
    typer.Option("--dollars", metavar="DOLLARS", help="With --models: the cap of a review."),
]


@dataclass(frozen=True)
class Options:
    """What was typed, and what the workflow's environment says."""

    pipeline: Pipeline
    models: bool
    dollars: Decimal | None
    pull: int | None
    repository: str
    checkout: Path
    token: str


def command(
    fail_on: FailOn = "",
    models: Models = False,
    dollars: Dollars = None,
    pull: Pull = None,
    repository: RepositoryName = "",
) -> int:
    """Review an event of GitHub, or a pull request, and tell it there.

    Type it in a whole clone with the head checked out. GITHUB_TOKEN has the token.
    """
    pipeline = pipeline_of(fail_on, None, None, "")
    if dollars is not None and not models:
        raise Exit("--dollars: nothing is spent without --models")
    amount = dollars_of("--dollars", dollars) or None
    if repository:
        repository_of(repository)
    if repository and pull is None:
        raise Exit("--repository: say with --pull which pull request")
    checkout = Path.cwd().resolve()
    options = Options(pipeline, models, amount, pull, repository, checkout, _take_token())
    settings = _settings(checkout)
    with _unheard() as heard, tempfile.TemporaryDirectory(prefix="holdfast-") as empty:
        # Of what is started from here nothing looks into the pull request for its own code.
        os.chdir(empty)
        code, commands = asyncio.run(_done(settings, options))
        os.chdir("/")
    if heard:
        for line in commands:
            say(line)
    return code


def _take_token() -> str:
    """Return the token, and leave none to the processes that this one starts."""
    found = [os.environ.pop(name, "").strip() for name in TOKENS]
    token = next(filter(None, found), "")
    if not token:
        raise Exit("GITHUB_TOKEN is not set; in Actions: env: GITHUB_TOKEN: ${{ github.token }}")
    if not token.isascii() or not token.isprintable() or " " in token:
        raise Exit("GITHUB_TOKEN is no token: it holds spaces or other characters of no header")
    return token


def _settings(checkout: Path) -> Settings:
    """Return the deployment's settings, of which none comes from what is reviewed."""
    os.environ.setdefault(project.VARIABLE, "")
    settings = Settings()
    inside = [each for each in settings.folders if each.resolve().is_relative_to(checkout)]
    if inside:
        raise Exit(
            f"the project {str(inside[0])!r} is part of what is reviewed, and its code would be"
            f" run; set {project.VARIABLE}= to go on without it"
        )
    return settings


@contextmanager
def _unheard() -> Iterator[bool]:
    """Keep a runner of Actions from taking what is printed for commands: names of files are
    strangers'. Yield True where there is a runner.
    """
    if os.environ.get("GITHUB_ACTIONS") != "true":
        yield False
        return
    word = secrets.token_hex(16)
    say(f"::stop-commands::{word}")
    try:
        yield True
    finally:
        say(f"::{word}::")


async def _done(settings: Settings, options: Options) -> tuple[int, Sequence[str]]:
    """Review and tell; return the exit code, and the commands for a runner that is left."""
    api = Api(options.token, os.environ.get("GITHUB_API_URL") or PUBLIC, _note)
    async with api:
        asked = await _asked(api, options)
        fork = asked.pull is not None and asked.pull.fork
        models = options.models and (settings.has_endpoint or not fork)
        since = await _read_before(api, asked) if models and asked.pull else ""
        span = await range_of(options.checkout, asked, since)
        what = f"#{asked.pull.number}" if asked.pull else f" {asked.ref}"
        say(f"Reviewing {asked.repository}{what} at {asked.head[:12]}", "bold")
        async with connect_command(settings, embedded=True) as connection:
            hf = Holdfast.on(connection)
            found = await review(hf, options.checkout, asked, span, options.dollars, models)
        teller = Teller(
            api=api,
            asked=asked,
            repository=options.checkout,
            say=_note,
            gate=lambda report, standing: _judge(options.pipeline, report, standing),
            server=os.environ.get("GITHUB_SERVER_URL") or "https://github.com",
            fail_on=options.pipeline.fail_on,
            left_out=[NO_SECRETS] if options.models and not models else [],
        )
        judged, page = await teller.tell(found)
    for each in teller.left_out:
        say(f"Left out: {each}", "magenta")
    _write_page(page)
    return judged.code, teller.annotations


async def _asked(api: Api, options: Options) -> Asked:
    if options.pull is None:
        return read_event(os.environ)
    name = repository_of(options.repository or os.environ.get("GITHUB_REPOSITORY", ""))
    return await pulls.find_pull(api, name, options.pull)


async def _read_before(api: Api, asked: Asked) -> str:
    """Return the commit up to which agents have read the pull request; empty: none is known."""
    try:
        return threads.read_up_to((await pulls.read_pull(api, asked)).said)
    except UnknownToken:
        raise
    except ApiFailed as error:
        say(f"What was read before is not known, so agents read all of it: {error}", "magenta")
        return ""


def _judge(pipeline: Pipeline, report: Report, standing: Sequence[Severity]) -> Judged:
    code = pipeline.pass_on(report, code_of(report.status))
    stopped = sum(each in failing(pipeline.fail_on) for each in standing)
    if stopped and code in (Code.COMPLETE, Code.PARTIAL):
        earlier = pluralize(stopped, "earlier remark")
        say(f"--fail-on {pipeline.fail_on}: {earlier} of agents still open", "bold red")
        code = Code.REMARKS
    conclusion = CONCLUSIONS.get(code, "failure")
    # What could not be looked at does not open a gate.
    closed = code is Code.PARTIAL and pipeline.fail_on
    return Judged("failure" if closed else conclusion, code)


def _note(line: str) -> None:
    say(line, "dim")


def _write_page(page: str) -> None:
    """Write the page of the workflow's run, where there is one."""
    place = os.environ.get("GITHUB_STEP_SUMMARY")
    if not place:
        return
    try:
        with Path(place).open("a", encoding="utf-8", errors="backslashreplace") as file:
            file.write(f"{page}\n")
    except OSError as error:
        say(f"GITHUB_STEP_SUMMARY could not be written: {error.strerror}", "magenta")
