"""`certify`: a playbook's runs killed at every event and failed in every way, on scripted answers,
and a page of what held.
"""

from __future__ import annotations

import asyncio
import signal
from collections.abc import Coroutine, Mapping
from pathlib import Path
from typing import Annotated, Any, TypeVar

import typer
import yaml

from holdfast.activities.catalogue.catalogue import Catalogue
from holdfast.activities.catalogue.sources import sources_for
from holdfast.cli.screen.exits import Code, Exit
from holdfast.cli.screen.streams import put, say
from holdfast.cli.shared.options import (
    AskPeople,
    Inputs,
    LimitPairs,
    Models,
    check_file,
    write_file,
)
from holdfast.deployment import extras
from holdfast.deployment.settings import Settings
from holdfast.intake.files import read_text
from holdfast.intake.goals import Wish
from holdfast.replaying.cassette import CassetteError

EXAMPLES = "examples"
SCRIPT = "script.yaml"
Made = TypeVar("Made")
LOOKS: Mapping[str, Any] = {"looks": True}
"""The script without one: every call succeeds, and agents look into their files."""


def command(
    playbook: Annotated[
        str, typer.Argument(metavar="PLAYBOOK", help="Of your project, a package, or shipped.")
    ],
    inputs: Inputs = None,
    script: Annotated[
        Path | None,
        typer.Option(
            "--script",
            metavar="FILE",
            help="What models answer, as the simulator takes it. Default: examples/script.yaml of"
            " the playbook, if it has one.",
        ),
    ] = None,
    cassette: Annotated[
        Path | None,
        typer.Option(
            "--cassette", metavar="FILE", help="What models once answered, from `export`."
        ),
    ] = None,
    limits: LimitPairs = None,
    models: Models = False,
    ask_people: AskPeople = False,
    points: Annotated[
        int, typer.Option("--points", min=1, help="Events at which a run is killed, at most.")
    ] = 24,
    every: Annotated[
        bool, typer.Option("--all", help="Each event, and each failure at each kind of call.")
    ] = False,
    effects: Annotated[
        bool,
        typer.Option(
            "--run-effects",
            help="Run tools with effects for real, many times; else their calls are only recorded.",
        ),
    ] = False,
    out: Annotated[
        Path | None,
        typer.Option("--out", "-o", metavar="FILE", help="Write the page there, as Markdown."),
    ] = None,
) -> int:
    """Kill and fail a playbook in every way, on scripted answers, and say what held.

    Exit code 1 if an answer is paid twice, an effect is declared by nobody or happens twice where
    that is not declared harmless, a cap does not hold, an answer differs, or an end is not honest.
    """
    from holdfast.certifying import page
    from holdfast.certifying.certify import Wanted, certify

    file = check_file(out)
    if lacking := extras.lacking("testing"):
        raise Exit(f"certify {lacking}")
    if not playbook.strip():
        raise Exit(
            "PLAYBOOK: name one; playbooks of yours, of packages and shipped ones have names"
        )
    settings = Settings()
    folder = _find_examples(playbook, settings)
    given = tuple(inputs or ()) or tuple(_list_inputs(playbook, folder, settings))
    source, rules = _answers(script, cassette, folder)
    wish = Wish(
        playbook=playbook,
        inputs=given,
        limits=tuple(limits or ()),
        models=models,
        ask_people=ask_people,
    )
    wanted = Wanted(
        wish=wish,
        answers=source,
        project=settings.project,
        script=rules,
        cassette=cassette.absolute() if cassette else None,
        most=None if every else points,
        every_call=every,
        effects=effects,
    )
    try:
        made = asyncio.run(_told_to_end(certify(wanted, lambda line: say(line, "dim"))))
    except asyncio.CancelledError as error:
        raise KeyboardInterrupt from error
    except CassetteError as error:
        raise Exit(f"--cassette: {error}") from error
    told = page.render_page(made)
    if file is None:
        put(told)
    else:
        write_file(file, told.encode())
        say(f"{page.summarise(made)}. Page: {file}", "bold")
    return Code.FAILED if made.wrong else Code.COMPLETE


async def _told_to_end(made: Coroutine[Any, Any, Made]) -> Made:
    """Await it; SIGTERM ends it as Ctrl-C does."""
    task = asyncio.current_task()
    assert task is not None
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, task.cancel)
    return await made


def _find_examples(playbook: str, settings: Settings) -> Path | None:
    """Return the folder of the playbook's own examples; None if it has none."""
    files = (each for source in sources_for(settings.project) for each in source.playbook_files())
    nearest = next((each.parent for each in files if each.parent.name == playbook), None)
    found = nearest / EXAMPLES if nearest else None
    return found if found and found.is_dir() else None


def _list_inputs(playbook: str, folder: Path | None, settings: Settings) -> list[str]:
    """Return the inputs that the examples have: a file or folder by the name of each."""
    known = Catalogue.of(settings.project).playbooks.get(playbook)
    if known is None or folder is None:
        return []
    there = sorted(each for each in folder.iterdir() if each.name != SCRIPT)
    return [f"{each.stem}={each}" for each in there if each.stem in known.inputs]


def _answers(
    script: Path | None, cassette: Path | None, folder: Path | None
) -> tuple[str, Mapping[str, Any]]:
    """Return where answers come from, in words, and the script."""
    if script and cassette:
        raise Exit("--script and --cassette: answers come from one of them; leave one out")
    if cassette:
        return f"played from the cassette {cassette}", {}
    own = folder / SCRIPT if folder else None
    path = script or (own if own and own.is_file() else None)
    if path is None:
        return "scripted", LOOKS
    text = read_text(path, f"--script {str(path)!r}")
    try:
        read = yaml.safe_load(text) or {}
    except yaml.YAMLError as error:
        why = str(error).splitlines()[0]
        raise Exit(f"--script {str(path)!r} is no YAML: {why}; correct it") from error
    if not isinstance(read, dict):
        raise Exit(f"--script {str(path)!r} is no script; docs/models.md says what one is")
    # A certificate is for others: where this machine has the playbook is nothing to them.
    return f"scripted by {SCRIPT if path == own else path}", read
