"""The command line as a whole: its commands, and the one place where errors become messages."""

from __future__ import annotations

import errno
import importlib
import os
import re
import sys
import traceback
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Annotated

import typer
from pydantic import ValidationError

from holdfast import __version__
from holdfast.cli.screen import looks
from holdfast.cli.screen.exits import Code, Exit, exit_of
from holdfast.cli.screen.streams import put, say
from holdfast.cli.shared import completion
from holdfast.contracts.errors import BlobLost
from holdfast.deployment import project
from holdfast.deployment.invocation import OPTION, PROGRAM, STARTER, taken_out
from holdfast.deployment.settings import NAME, Settings
from holdfast.errors import HoldfastError
from holdfast.storage.payloads import PayloadLost
from holdfast.text import for_terminal
from holdfast.text.mistakes import as_rest

_CONTROL = re.compile(r"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f]")
"""All but tabs and line ends."""
DEBUG = "HOLDFAST_DEBUG"
FULL = (errno.ENOSPC, errno.EDQUOT)

PANELS: Mapping[str, Mapping[str, str]] = {
    "Runs": {
        "demo": "runs.demo",
        "run": "runs.run",
        "start": "runs.start",
        "watch": "runs.watch",
        "show": "runs.show",
        "trace": "runs.trace",
        "logs": "runs.logs",
        "report": "runs.report",
        "compare": "runs.compare",
        "list": "runs.list",
        "fork": "runs.fork",
        "what-if": "runs.what_if",
        "inbox": "runs.inbox",
        "baseline": "runs.baseline",
        "eval": "runs.eval",
        "template": "runs.template",
    },
    "Steering": {
        "edit": "steering.edit",
        "raise": "steering.raising",
        "cancel": "steering.cancel",
        "reset": "steering.reset",
    },
    "Server": {"up": "server.up", "down": "server.down", "deploy": "server.deploy"},
    "Doors": {
        "serve": "doors.serve",
        "token": "doors.token",
        "mcp": "doors.mcp",
        "slack": "doors.slack",
        "codec-server": "doors.codec_server",
        "schedule": "doors.schedule",
        "github": "doors.github",
    },
    "Care": {
        "init": "care.init",
        "doctor": "care.doctor",
        "budget": "care.budget",
        "clean": "care.clean",
        "export": "care.export",
        "receipt": "care.receipt",
        "verify": "care.verify",
        "countersign": "care.countersign",
        "replay": "care.replay",
        "certify": "care.certify",
        "completion": "care.completion",
        "schema": "care.schema",
    },
}
"""panel -> command -> its module: a command loads its own, and not what the others need. Most
steering commands are rows of one module, `rows`.
"""
STEERING = "Steering"


def program(only: str = "") -> typer.Typer:
    """Return the program with this command alone, or with all, as its help and a mistyped name need
    them.
    """
    app = typer.Typer(
        name=PROGRAM,
        help=(
            "Give it a goal, see the plan and the price, kill anything, get an honest answer.\n\n"
            "Exit codes: 0 complete, 1 failed, 2 refused input, 3 partial answer, 4 declined,"
            " 5 server or worker not reachable, 6 cancelled, 7 remarks that --fail-on stops at,"
            " 130 left while the run goes on."
        ),
        add_completion=False,
        pretty_exceptions_enable=False,
        context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
    )
    app.callback()(_program)
    for panel, name, command in _commands(only):
        app.command(name, rich_help_panel=panel)(command)
    return app


def _commands(only: str) -> Iterator[tuple[str, str, Callable[..., int]]]:
    """Yield panel, name and function of this command; of all where there is none of that name."""
    for panel, commands in PANELS.items():
        if only in commands:
            yield panel, only, _load(commands[only])
            return
    from holdfast.cli.commands.steering import rows

    steering = {row.__name__: rows.command_of(row) for row in rows.ROWS}
    if only in steering:
        yield STEERING, only, steering[only]
        return
    for panel, commands in PANELS.items():
        loaded = {name: _load(module) for name, module in commands.items()}
        every = {**steering, **loaded} if panel == STEERING else loaded
        yield from ((panel, name, command) for name, command in every.items())


def _load(module: str) -> Callable[..., int]:
    command: Callable[..., int] = importlib.import_module(f"holdfast.cli.commands.{module}").command
    return command


def _version(asked: bool) -> None:
    if asked:
        put(f"{NAME} {__version__}")
        raise typer.Exit


def _program(
    _project: Annotated[
        str,
        typer.Option(
            OPTION,
            metavar="FOLDER",
            help="Your project's folder, also behind the command. Default: the first with a"
            " holdfast.toml, from the current folder upwards.",
        ),
    ] = "",
    version: Annotated[
        bool,
        typer.Option(
            "--version", "-V", is_eager=True, callback=_version, help="Print the version."
        ),
    ] = False,
) -> None:
    pass


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command; its exit code. Nothing that goes wrong reaches the user as a traceback."""
    looks.prepare(os.environ)
    given = sys.argv[1:] if arguments is None else [*arguments]
    if not given or {"-h", "--help"} & {*given}:
        looks.prepare_help()
    try:
        completion.prepare()
        check_texts(given)
        wanted = with_project(given)
        return int(
            program(next(iter(completion.words() or wanted), ""))(
                args=wanted or ["--help"],
                prog_name=PROGRAM,
                complete_var=completion.VARIABLE,
                standalone_mode=False,
            )
            or 0
        )
    except KeyboardInterrupt:
        return Code.LEFT
    except SystemExit as ended:
        # How rich leaves when nobody reads its output any more, as in `list | head -1`.
        return int(ended.code or 0)
    except Exception as error:
        if os.environ.get(DEBUG):
            traceback.print_exc()
        message, code = explain(error)
        say(message, "red")
        return code


def with_project(given: Sequence[str]) -> Sequence[str]:
    """The arguments without `--project FOLDER`; that project is named to this process and to those
    that it starts. Exit where no folder follows.
    """
    folder, rest = taken_out(given)
    if folder == "":
        raise Exit(f"{OPTION} needs a folder; leave it out to use the nearest one upwards")
    if taken_out(rest)[0] is not None:
        raise Exit(
            f"{OPTION} is given twice, and a command is for one project; for a worker that serves"
            f" several set {project.SEVERAL}=FOLDER{os.pathsep}FOLDER"
        )
    if folder is not None:
        place = project.resolve_named(Path(folder))
        project.trust(place)
        os.environ[project.VARIABLE] = str(place)
    return rest


def check_texts(given: Sequence[str]) -> None:
    """Exit for a value that is not text: nothing that a run, a file or a screen could carry."""
    for value in given:
        shown = for_terminal(value[:60])
        if any("\ud800" <= letter <= "\udfff" for letter in value):
            raise Exit(f"'{shown}' is not UTF-8 text; write it in UTF-8")
        if _CONTROL.search(value):
            raise Exit(f"'{shown}' holds a control character; leave it out")


def explain(error: Exception) -> tuple[str, Code]:
    """Return an error in words for a person, and the exit code of the command."""
    match error:
        case Exit():
            return str(error), error.code
        case HoldfastError():
            return explain(exit_of(error))
        case typer.TyperException():
            return _usage(error), Code.REFUSED
        case ValidationError() if error.title == Settings.__name__:
            return _settings(error), Code.REFUSED
        case PayloadLost() | BlobLost():
            return str(error), Code.FAILED
        case OSError():
            remedy = "; free some space there" if error.errno in FULL else ""
            return f"{error.filename or 'system'}: {error.strerror or error}{remedy}", Code.FAILED
        case _:
            kind = type(error).__name__
            return f"a mistake of ours: {kind}: {error} ({DEBUG}=1 shows where)", Code.FAILED


def _usage(error: typer.TyperException) -> str:
    message = " ".join(error.format_message().split())
    path = getattr(getattr(error, "ctx", None), "command_path", PROGRAM)
    command = f"{STARTER}{path.removeprefix(PROGRAM)}"
    return f"{message.rstrip('.')}; see: {command} --help"


def _settings(error: ValidationError) -> str:
    wrong = []
    for mistake in error.errors(include_input=False):
        name = str(mistake["loc"][0])
        variable = Settings.variable(name) if name in Settings.model_fields else name
        wrong.append(f"{variable}: {as_rest(mistake['msg'].removeprefix('Value error, '))}")
    return f"settings: {'; '.join(wrong)}; correct the environment or .env"
