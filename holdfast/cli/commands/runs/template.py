"""`template`: plans that worked, kept for goals of the same kind."""

from __future__ import annotations

import json
from typing import Annotated, Any, Literal

import typer

from holdfast.cli.screen.exits import Code, Exit
from holdfast.cli.screen.streams import put, put_json, say
from holdfast.cli.shared.connection import with_connection
from holdfast.cli.shared.options import AsJson, Embedded, not_empty
from holdfast.deployment.invocation import STARTER
from holdfast.deployment.settings import Settings
from holdfast.intake.connection import Connection
from holdfast.text import for_terminal, one_line

What = Literal["save", "list", "show", "retire", "delete"]


def command(
    what: Annotated[
        What, typer.Argument(metavar="WHAT", help="save, list, show, retire or delete.")
    ],
    name: Annotated[
        str,
        typer.Argument(metavar="TEMPLATE", help="Its name; of save, the id of a finished run."),
    ] = "",
    own_name: Annotated[
        str,
        typer.Option(
            "--name",
            metavar="TEMPLATE",
            help="With save: the template's name.",
            callback=not_empty,
        ),
    ] = "",
    parameters: Annotated[
        list[str] | None,
        typer.Option(
            "--param",
            metavar="NAME=WORDS",
            help="With save: words of the goal that may be others next time; repeatable.",
        ),
    ] = None,
    as_json: AsJson = False,
    embedded: Embedded = False,
) -> int:
    """Keep the plan of a good run as a template: goals of the same kind then need no planner."""
    if (own_name or parameters) and what != "save":
        raise Exit(f"template {what}: --name and --param are for save; leave them out")
    if what == "list" and name:
        raise Exit("template list: it lists all; for one: template show NAME")
    if what != "list" and not name:
        raise Exit(f"template {what}: {'the id of a run' if what == 'save' else 'NAME'} is missing")
    settings = Settings()
    if what == "save":
        given = _pairs(parameters or [])
        from holdfast.activities.library.drafting import check_name
        from holdfast.intake.launch import check_id

        check_id(name)
        if own_name:
            check_name(own_name)
        return with_connection(
            settings, embedded, lambda connection: save(connection, name, own_name, given)
        )
    if what == "list":
        return with_connection(
            settings, embedded, lambda connection: show_all(connection, as_json=as_json)
        )
    return tend(settings, what, name, as_json=as_json)


def _pairs(typed: list[str]) -> dict[str, str]:
    from holdfast.activities.library.drafting import PARAMETER

    given: dict[str, str] = {}
    for pair in typed:
        name, found, value = pair.partition("=")
        if not found or not name or not value:
            raise Exit(f"--param {pair!r}: write name=WORDS, with words of the goal")
        if not PARAMETER.fullmatch(name):
            raise Exit(f"--param {name!r:.60}: a name is a to z, 0 to 9 and _, a letter first")
        if name in given:
            raise Exit(f"--param {name}: given twice; give each parameter once")
        given[name] = value
    return given


async def save(connection: Connection, run_id: str, name: str, given: dict[str, str]) -> int:
    """Make a template of a run; print its name on stdout, and what may differ in it."""
    from holdfast.client.templates import save_template

    drafted, path = await save_template(connection, run_id, name, given)
    template = drafted.template
    put(path.stem)
    say(f"Template {path.stem}, for goals such as: {one_line(template.goal)}")
    for each, parameter in template.parameters.items():
        say(f"  {{{each}}} is a {parameter.kind}, as {parameter.example!r}")
    if not template.parameters:
        say("  It has no parameter. To make words of the goal one: --param NAME=WORDS")
    for line in drafted.kept:
        say(f"  {line}", "dim")
    say(f"It is yours to edit: {path}", "dim")
    return Code.COMPLETE


async def show_all(connection: Connection, *, as_json: bool) -> int:
    """Print all templates with how their runs went, and why one is not used."""
    from holdfast.client.templates import Standing, list_standing

    rows: list[Standing] = [each async for each in list_standing(connection)]
    if as_json:
        put_json(json.dumps([_row(each) for each in rows], indent=2))
        return Code.COMPLETE
    if not rows:
        say(f"No templates yet. Make one of a good run: {STARTER} template save ID")
    for each in rows:
        used = each.why_not or "used"
        runs = f", {each.well} of its last {len(each.went)} runs went well" if each.went else ""
        goal = f": {one_line(each.kept.template.goal)}" if each.kept.template else ""
        put(for_terminal(f"{each.kept.name} ({used}{runs}){goal}"))
    return Code.COMPLETE


def _row(each: Any) -> dict[str, Any]:
    template, source = each.kept.template, each.kept.shelf.source
    return {
        "name": each.kept.name,
        "used": not each.why_not,
        "why_not": each.why_not,
        "went": [*each.went],
        "goal": template.goal if template else "",
        "playbook": template.playbook if template else "",
        "runs": [*template.runs] if template else [],
        "path": str(each.kept.path),
        "source": source or "yours",
    }


def tend(settings: Settings, what: What, name: str, *, as_json: bool) -> int:
    """Show, retire or delete a template: nothing is asked of a server."""
    from holdfast.activities.library import shelves
    from holdfast.activities.library.template import write_template
    from holdfast.client.templates import find_kept

    kept = find_kept(settings, name)
    if what == "show":
        if kept.template is None:
            raise Exit(f"template {kept.name} cannot be used: {kept.flaw} ({kept.path})")
        if as_json:
            put_json(kept.template.model_dump_json(indent=2, exclude_defaults=True))
        else:
            put(for_terminal(write_template(kept.template).rstrip(), lines=True))
            say(f"Its file: {kept.path}", "dim")
    elif what == "retire":
        place = shelves.retire(kept)
        say(f"Template {kept.name} is used no more. To use it again, move it back: {place}")
    else:
        shelves.delete(kept)
        say(f"Template {kept.name} is deleted")
    return Code.COMPLETE
