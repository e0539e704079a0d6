"""`init`: a folder of one's own, for roles, playbooks, tools and settings."""

from __future__ import annotations

import json
import shlex
import shutil
import textwrap
from collections.abc import Iterator
from decimal import Decimal
from pathlib import Path
from typing import Annotated, get_args

import typer
from pydantic.fields import FieldInfo

from holdfast.cli.screen.exits import Code, Exit
from holdfast.cli.screen.streams import put, say
from holdfast.cli.shared.options import Like
from holdfast.deployment import project
from holdfast.deployment.invocation import OPTION, STARTER
from holdfast.deployment.settings import Settings
from holdfast.text.mistakes import suggest

COLUMN = 100
HEAD = (
    "Settings of this project, each with its default or an example; take away the # before one to"
    " set it. Variables of the environment come first, then .env beside this file. Keys belong"
    " there, never here. Relative paths start at this folder."
)
TOOL = '''\
"""A tool of your own. Each function with `@tool()` in a file of this folder is one; a role has it
by naming it in `tools:`. It runs in the worker's process, with all that you may do.
"""

from typing import Annotated

from pydantic import Field

from holdfast import Here, tool


@tool()
async def count_words(
    here: Here, text: Annotated[str, Field(description="The text, as it is.")]
) -> str:
    """Count the words of a text."""
    return f"{len(text.split())} words"
'''
SUITE = """\
# `holdfast eval example` runs it: a tool asks no model, so it is free. docs/evals.md says more.
description: A suite of your own, which passes as it is.
"""
CASES = """\
- name: three-words
  tool: count_words
  arguments: {text: one two three}
  must:
    - says: 3 words

# A run, and what must hold of its answer:
# - name: dearer
#   goal: Which of these two offers is dearer, and by how much?
#   inputs: {mill: mill.md, harbour: harbour.md}
#   limits: {dollars: 0.50}
#   must:
#     - says: [Harbour, "1,050"]
#     - cites: 1
#     - judge: It says what both offers include.
"""
FILES = {
    "tools/count_words.py": TOOL,
    "evals/example/suite.yaml": SUITE,
    "evals/example/cases.yaml": CASES,
    ".mcp.json": '{\n  "mcpServers": {}\n}\n',
    ".gitignore": ".env\n__pycache__/\n",
}
USED = (
    project.FILE,
    ".env",
    ".mcp.json",
    project.PRICES,
    "tools/*.py",
    "tools/*/__init__.py",
    "roles/*.md",
    "playbooks/*/playbook.yaml",
    "playbooks/*/roles/*.md",
    "evals/*/suite.yaml",
)
"""Files of a project that commands and workers use, by pattern."""


def command(
    named: Annotated[
        str, typer.Argument(metavar="FOLDER", help="Where; the current folder if left out.")
    ] = ".",
    like: Like = "",
) -> int:
    """Make a folder for roles, playbooks, tools and settings of your own; overwrites nothing."""
    if not named:
        raise Exit("'' names no folder; leave it out for the current one")
    folder = Path(named)
    if folder.absolute() == Path(folder.anchor or "/").absolute():
        raise Exit(f"{str(folder)!r} would make every folder of this machine part of it; name one")
    template = _playbook(like) if like else None
    place = _make(folder)
    found = _find_own(place) if not project.is_trusted(place) else []
    # What is read as a file later would be kept here as if it were one.
    if (place / project.FILE).exists() and not (place / project.FILE).is_file():
        raise Exit(f"{str(place / project.FILE)!r} is not a regular file; move it away")
    made: list[str] = []
    kept: list[str] = []
    for name in project.FOLDERS:
        _make(place / name)
    _make(place / "evals" / "example")
    files = {project.FILE: settings_file(place.name), **FILES}
    for name, text in files.items():
        (made if _write(place / name, text) else kept).append(name)
    if template is not None:
        name = f"playbooks/{template.name}"
        fresh = not (place / name).exists()
        (made if fresh else kept).append(f"{name}/")
        if fresh:
            shutil.copytree(template, place / name)
    project.trust(place)
    put(str(place))
    folders = ", ".join(f"{name}/" for name in (*project.FOLDERS, "evals"))
    say(f"Made: {', '.join(made) or 'nothing'}, beside {folders}")
    if kept:
        say(f"Kept as they were: {', '.join(kept)}")
    if found:
        say(f"Was here already, and is used from now on: {', '.join(found)}", "magenta")
    if any(name.endswith(".py") for name in found):
        say("Commands and workers run those Python files, with all that you may do.", "magenta")
    there = "" if place == Path.cwd() else f" {OPTION} {shlex.quote(str(place))}"
    program = STARTER.partition(f" {OPTION} ")[0]
    say(f"For coding agents: {program} mcp --print-config{there}; {program} mcp --skill", "dim")
    say(f"Next: {program} doctor{there}", "bold")
    return Code.COMPLETE


def _find_own(place: Path) -> list[str]:
    """Return what a folder that nobody has called a project yet holds of one already."""
    found = [path for each in USED for path in sorted(place.glob(each)) if not path.is_dir()]
    return [str(path.relative_to(place)) for path in found]


def _make(folder: Path) -> Path:
    """Return the folder's full path, created if it was missing. Exit if it cannot be."""
    try:
        place = folder.expanduser()
        place.mkdir(parents=True, exist_ok=True)
        return place.resolve()
    except (OSError, RuntimeError) as error:
        why = getattr(error, "strerror", "") or "there is no such user"
        raise Exit(f"{str(folder)!r} is not a folder and cannot be made one: {why}") from None


def _write(path: Path, text: str) -> bool:
    """Write a file; False if it was there already."""
    try:
        with path.open("x", encoding="utf-8") as file:
            file.write(text)
    except FileExistsError:
        return False
    return True


def _playbook(name: str) -> Path:
    """Return the folder of a playbook that ships or that a package brings."""
    from holdfast.activities.catalogue.sources import sources_for

    files = [path for source in sources_for(None) for path in source.playbook_files()]
    known = {path.parent.name: path.parent for path in reversed(files)}
    if name not in known:
        listed = ", ".join(sorted(known))
        raise Exit(f"--like {name!r}: unknown playbook{suggest(name, known)}; known: {listed}")
    return known[name]


def settings_file(name: str) -> str:
    """Return `holdfast.toml` for a new project: each setting explained, none set but the queue, so
    that two projects on one server do not take each other's runs.
    """
    return "\n\n".join(_parts(name)) + "\n"


def _parts(name: str) -> Iterator[str]:
    yield _comment(HEAD)
    for key, field in Settings.model_fields.items():
        if not project.can_stand(key, field):
            continue
        line = f"# {key} = {_value(field)}"
        if key == "task_queue":
            queue = "".join(each if each.isalnum() else "-" for each in name.lower()).strip("-")
            line = f"task_queue = {json.dumps(f'holdfast-{queue}')}"
        yield f"{_comment(field.description or '')}\n{line}"


def _value(field: FieldInfo) -> str:
    """Return an example, else the default; empty where the default depends on the machine."""
    given = field.examples[0] if field.examples else None
    default = "" if field.default_factory or field.default is None else field.default
    value = default if given is None else given
    if isinstance(default, tuple):
        return "[]"
    kinds = {field.annotation, *get_args(field.annotation)}
    if kinds & {bool, int, Decimal}:
        return str(value).lower() or "0"
    return json.dumps(str(value))


def _comment(text: str) -> str:
    return "\n".join(f"# {line}" for line in textwrap.wrap(text, COLUMN - 2))
