"""Options that several commands share, each written once."""

from __future__ import annotations

import errno
import os
import re
import stat
from collections.abc import Mapping
from decimal import Decimal, InvalidOperation
from pathlib import Path
from typing import Annotated, Any

import typer

from holdfast.cli.screen.exits import Code, Exit
from holdfast.cli.shared import completion
from holdfast.cli.shared.pipeline import FAILING, Pipeline
from holdfast.contracts.base import Urgency
from holdfast.contracts.plans import Lane
from holdfast.storage.files import write_whole
from holdfast.text import PLAIN_ID, for_terminal

_WEB = re.compile(r"https?://[\w.:\-]+(/[\w.~%\-]+)*/?")

GoalText = Annotated[str, typer.Argument(metavar="GOAL", help="What you want, in your own words.")]


def _typed(context: typer.Context, parameter: typer.CallbackParam) -> bool:
    """True if a value was typed, not a default. False while a shell completes it."""
    source = context.get_parameter_source(str(parameter.name))
    typed = source is not None and source.name == "COMMANDLINE"
    return typed and not context.resilient_parsing


def not_empty(context: typer.Context, parameter: typer.CallbackParam, value: str) -> str:
    """Return the typed value. Exit if it is empty, as from an unset variable: it would count as
    left out.
    """
    if _typed(context, parameter) and not value:
        option = parameter.opts[0]
        raise Exit(f"{option} is empty; name one, or leave the option out")
    return value


Playbook = Annotated[
    str,
    typer.Option(
        "--playbook",
        metavar="NAME",
        help="A ready variant for one domain; see playbooks/.",
        autocompletion=completion.playbooks,
        callback=not_empty,
    ),
]
Like = Annotated[
    str,
    typer.Option(
        "--like",
        metavar="PLAYBOOK",
        help="Copy this playbook with its roles, to change it.",
        autocompletion=completion.playbooks,
        callback=not_empty,
    ),
]
RoleName = Annotated[
    str,
    typer.Option(
        "--role",
        metavar="NAME",
        help="The role that is to do it.",
        autocompletion=completion.roles,
        callback=not_empty,
    ),
]
Inputs = Annotated[
    list[str] | None,
    typer.Option(
        "--input",
        metavar="NAME=VALUE",
        help="A file or folder by its path, or text:... for literal text. Repeatable.",
    ),
]
GoalFile = Annotated[
    Path | None,
    typer.Option(
        "--goal", metavar="FILE", help="All that is asked, as JSON; `schema goal` prints its shape."
    ),
]
PlanFile = Annotated[
    Path | None,
    typer.Option("--plan", metavar="FILE", help="A ready plan, JSON or YAML; nothing is planned."),
]
NotifyUrls = Annotated[
    list[str] | None,
    typer.Option(
        "--notify", metavar="URL", help="A signed web hook tells it of the run. Repeatable."
    ),
]
NotifyOn = Annotated[
    str,
    typer.Option(
        "--on",
        metavar="WHAT",
        help="With --notify: waits, ended, budget, with commas; else all of them.",
        callback=not_empty,
    ),
]
NoTemplate = Annotated[
    bool, typer.Option("--no-template", help="Plan anew, whatever the plan library has.")
]
MapLane = Annotated[
    Lane | None,
    typer.Option(
        "--lane",
        help="The lane of all maps: `batch` is half the price, within a day; `auto` is as much of"
        " that as the deadline allows.",
    ),
]
Urgent = Annotated[
    bool, typer.Option("--urgent", help="Go before the work of other runs, wherever it waits.")
]
Bulk = Annotated[bool, typer.Option("--bulk", help="Go behind the work of other runs.")]
ReuseRun = Annotated[
    str,
    typer.Option(
        "--reuse",
        metavar="RUN",
        callback=not_empty,
        help="Take over the rows of this run's maps where nothing has changed.",
    ),
]
Single = Annotated[
    bool,
    typer.Option(
        "--single", help="One agent has the whole goal; nothing is planned or written anew."
    ),
]
SingleRole = Annotated[
    str,
    typer.Option(
        "--role",
        metavar="NAME",
        help="With --single: the agent's role; else analyst.",
        autocompletion=completion.roles,
        callback=not_empty,
    ),
]
Roles = Annotated[
    list[str] | None,
    typer.Option(
        "--roles",
        metavar="NAME",
        help="A role that the planner may assign; of several no others. Repeatable.",
        autocompletion=completion.roles,
    ),
]
LimitPairs = Annotated[
    list[str] | None,
    typer.Option(
        "--limits",
        metavar="NAME=VALUE",
        help="What the run may spend, for example dollars=0.5 or deadline_seconds=300. Repeatable.",
        autocompletion=completion.limits,
    ),
]
RaisedLimits = Annotated[
    list[str],
    typer.Option(
        "--limits",
        metavar="NAME=VALUE",
        help="The new cap: dollars=5, model_calls=100 or tokens=9000000. Repeatable.",
        autocompletion=completion.caps,
    ),
]
GivenId = Annotated[
    str,
    typer.Option(
        "--id",
        metavar="ID",
        help="A run id of your own. The same id and goal again attach to that run.",
        callback=not_empty,
    ),
]
Models = Annotated[
    bool,
    typer.Option(
        "--models", help="Let models be asked by a playbook that works without them, too."
    ),
]
Unpriced = Annotated[
    bool,
    typer.Option(
        "--unpriced", help="Accept a model without a known price; calls and tokens still bound it."
    ),
]
Embedded = Annotated[
    bool,
    typer.Option(
        "--embedded", help="Use the embedded server, whatever other server is configured or found."
    ),
]
AsJson = Annotated[
    bool, typer.Option("--json", help="Print JSON on stdout, and nothing else there.")
]
OutFile = Annotated[
    Path | None,
    typer.Option(
        "--out",
        metavar="FILE",
        help="Write the report there too, .md, .json or .html.",
    ),
]


def _known_form(context: typer.Context, parameter: typer.CallbackParam, value: str) -> str:
    """Return an id as typed. Exit before anything starts if it cannot be one."""
    if _typed(context, parameter) and not PLAIN_ID.fullmatch(value):
        what = "a subtask" if parameter.name == "subtask" else "a run"
        shown = for_terminal(value[:80])
        raise Exit(
            f"{shown!r} is not an id of {what}; `list` shows the runs, `show ID` their subtasks"
        )
    return value


RunId = Annotated[
    str,
    typer.Argument(
        metavar="ID",
        help="The run's id, as `list` shows it.",
        autocompletion=completion.run_ids,
        callback=_known_form,
    ),
]


def finished_run(metavar: str) -> Any:
    """Return the argument of a command that takes more than one run."""
    return typer.Argument(
        metavar=metavar,
        help="A finished run's id, as `list` shows it.",
        autocompletion=completion.run_ids,
        callback=_known_form,
    )


OpenRunId = Annotated[
    str,
    typer.Argument(
        metavar="ID",
        help="The run's id, as `list` and `inbox` show it.",
        autocompletion=completion.open_run_ids,
        callback=_known_form,
    ),
]
SubtaskId = Annotated[
    str,
    typer.Argument(
        metavar="SUBTASK",
        help="The subtask's id, as `show` has it.",
        autocompletion=completion.subtask_ids,
        callback=_known_form,
    ),
]
Why = Annotated[str, typer.Option("--why", metavar="TEXT", help="The reason, for the report.")]
Approve = Annotated[
    str,
    typer.Option(
        "--approval",
        metavar="WHEN",
        help="When the plan waits for your approval: auto (never), always, or a number:"
        " above that many dollars.",
        autocompletion=completion.approvals,
    ),
]
AskPeople = Annotated[
    bool,
    typer.Option(
        "--ask",
        help="Wait for you where an input is ambiguous, before calls of tools that ask, and where"
        " a subtask does not succeed or hands a case over.",
    ),
]
WaitForRaise = Annotated[
    bool,
    typer.Option(
        "--wait-for-raise", help="Out of budget, wait for a higher cap; else stop and sum up."
    ),
]
Whole = Annotated[
    bool, typer.Option("--all", help="In a report, also show what each subtask found.")
]
DryRun = Annotated[
    bool, typer.Option("--dry-run", help="Show the plan with its price, and run none of it.")
]
Full = Annotated[
    bool,
    typer.Option(
        "--full",
        help="In a plan, also show what each subtask is told: instruction, inputs, checks.",
    ),
]
Yes = Annotated[
    bool,
    typer.Option("--yes", help="Do not ask, whatever the plan is expected to cost."),
]


AnswerAs = Annotated[
    str,
    typer.Option(
        "--answer",
        metavar="FORM",
        help="How the answer is to look: markdown, json (with --schema) or table.",
        callback=not_empty,
    ),
]
SchemaFile = Annotated[
    Path | None,
    typer.Option("--schema", metavar="FILE", help="The JSON schema of the answer as json."),
]
Columns = Annotated[
    str | None,
    typer.Option("--columns", metavar="A,B", help="The columns of the answer as a table."),
]
FailOn = Annotated[
    str,
    typer.Option(
        "--fail-on",
        metavar="SEVERITY",
        help="End with exit code 7 if a review's remarks are that severe: critical, or warning for"
        " both.",
        callback=not_empty,
    ),
]
SarifFile = Annotated[
    Path | None,
    typer.Option("--sarif", metavar="FILE", help="Write a review's remarks there, as SARIF 2.1.0."),
]
FixFile = Annotated[
    Path | None,
    typer.Option(
        "--fix",
        metavar="FILE",
        help="With --models: patches for confirmed remarks, for `git apply`, there.",
    ),
]
CommentFile = Annotated[
    Path | None,
    typer.Option(
        "--comment", metavar="FILE", help="Write a review there as a pull request's comment."
    ),
]
Links = Annotated[
    str,
    typer.Option(
        "--links",
        metavar="URL",
        help="The address of the files at the reviewed commit, for the links of the comment.",
    ),
]


def urgency_of(*, urgent: bool, bulk: bool) -> Urgency:
    """Return what was typed. Exit for both."""
    if urgent and bulk:
        raise Exit("give either --urgent or --bulk")
    return "urgent" if urgent else "bulk" if bulk else "normal"


def dollars_of(option: str, text: str | None) -> Decimal:
    """Return an amount, 0 if none was typed. Exit if it is none."""
    if text is None:
        return Decimal(0)
    try:
        amount = Decimal(text.removeprefix("$"))
    except InvalidOperation:
        amount = Decimal(-1)
    if not text.isascii() or not amount.is_finite() or not 0 < amount <= 10_000:
        raise Exit(f"{option} {text!r}: say dollars, more than 0 and up to 10000, as in 2.50")
    return amount


def pipeline_of(
    fail_on: str,
    sarif: Path | None,
    comment: Path | None,
    links: str,
    out: Path | None = None,
    fix: Path | None = None,
) -> Pipeline:
    """Return what a review writes beside its report in `out`. Exit for options that do not fit."""
    if fail_on and fail_on not in FAILING:
        raise Exit(f"--fail-on {fail_on!r}: it takes {' or '.join(FAILING)}")
    if links and not _WEB.fullmatch(links):
        raise Exit(
            f"--links {links!r}: an address is wanted, as https://HOST/OWNER/NAME/blob/COMMIT"
        )
    if links and comment is None:
        raise Exit("--links is for the places of a comment; name its file with --comment")
    sarif_file, comment_file = check_file(sarif, "--sarif"), check_file(comment, "--comment")
    fix_file = check_file(fix, "--fix")
    _check_apart(
        {
            "--sarif": sarif_file,
            "--comment": comment_file,
            "--fix": fix_file,
            "--out": check_out(out),
        }
    )
    return Pipeline(fail_on, sarif_file, comment_file, links.rstrip("/"), fix_file)


def _check_apart(files: Mapping[str, Path | None]) -> None:
    """Exit if two options name one file, of which only the last would remain."""
    options = dict[str, str]()
    for option, file in files.items():
        if file is None:
            continue
        other = options.setdefault(os.path.realpath(file), option)
        if other != option:
            raise Exit(f"{other} and {option} name the same file, {str(file)!r}; name two")


REPORT_ENDINGS = ("", ".md", ".markdown", ".txt", ".json", ".html")
"""Endings of the files that a report is written to."""


def check_out(out: Path | None) -> Path | None:
    """Return the absolute path to write a report to. Exit if its suffix is not that of a report, or
    its folder cannot take it.
    """
    if out is not None and out.suffix.lower() not in REPORT_ENDINGS:
        raise Exit(
            f"--out {str(out)!r}: a report is written as Markdown, JSON or HTML; name a file that"
            " ends in .md, .json or .html"
        )
    return check_file(out)


def _kind(path: Path) -> int:
    """Return the mode of what is at a path (that of the link if it leads nowhere); 0 if nothing is.
    OSError if nothing can be.
    """
    for look in (path.stat, path.lstat):
        try:
            return look().st_mode
        except OSError as error:
            if error.errno not in (errno.ENOENT, errno.ELOOP):
                raise
    return 0


def write_file(path: Path, content: bytes) -> None:
    """Write a whole file, for its owner alone. Exit if that fails."""
    try:
        write_whole(path, content)
    except OSError as error:
        raise Exit(f"{path} could not be written: {error.strerror}", Code.FAILED) from error


def check_file(out: Path | None, option: str = "--out") -> Path | None:
    """Return the absolute path to write. Exit if its folder cannot take a file."""
    if out is None:
        return None
    try:
        path = out.expanduser().absolute()
        kind = _kind(path)
    except (OSError, RuntimeError, ValueError) as error:
        why = getattr(error, "strerror", None) or error
        raise Exit(f"{option} {str(out)[:60]!r} cannot be written: {why}; name another") from error
    if stat.S_ISDIR(kind):
        raise Exit(f"{option} {str(out)!r} is a folder; name a file in it")
    if stat.S_ISLNK(kind):
        raise Exit(f"{option} {str(out)!r} is a link that leads nowhere; name another file")
    if kind and not stat.S_ISREG(kind):
        raise Exit(f"{option} {str(out)!r} is not a regular file; name one, or a new one")
    if not path.parent.is_dir():
        raise Exit(f"{option}: there is no folder {str(path.parent)!r}; create it first")
    if not os.access(path.parent, os.W_OK):
        raise Exit(f"{option}: the folder {str(path.parent)!r} is not writable; choose another")
    return path
