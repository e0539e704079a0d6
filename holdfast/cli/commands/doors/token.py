"""`token`: who may do what over HTTP."""

from __future__ import annotations

import json
from typing import Annotated, Literal

import typer

from holdfast.cli.screen.exits import Code, Exit
from holdfast.cli.screen.streams import put, put_json, say
from holdfast.deployment.settings import Settings
from holdfast.doors.tokens import Tokens, scopes_of


def command(
    what: Annotated[
        Literal["new", "list", "revoke"], typer.Argument(metavar="new|list|revoke", help="")
    ],
    name: Annotated[
        str, typer.Argument(metavar="HOLDER", help="Whose it is: who decided, in a run's history.")
    ] = "",
    scope: Annotated[
        list[str] | None,
        typer.Option(
            "--scope",
            metavar="SCOPE",
            help="read, decide, schedule, or start:DOLLARS, the most a run may cost; repeatable.",
        ),
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="List as JSON.")] = False,
) -> int:
    """Make, list or revoke the tokens of `serve` and of `mcp --http`."""
    tokens = Tokens(Settings())
    if what == "list":
        return list_all(tokens, as_json=as_json)
    if not name:
        raise Exit(f"token {what} HOLDER: the name is missing")
    if what == "revoke":
        schedules = tokens.revoke(name).scopes.schedule
        say(f"Token {name} is revoked, from the next request on")
        if schedules:
            say("Schedules that it added go on; `schedule list` shows all")
        return Code.COMPLETE
    scopes = scopes_of(scope or [])
    secret = tokens.add(name, scopes)
    say(f"Token {name} may {scopes}. It is shown this once, and kept only as its hash:")
    put(secret)
    return Code.COMPLETE


def list_all(tokens: Tokens, *, as_json: bool) -> int:
    """Print the tokens, without what they are."""
    rows = [
        {"name": each.name, "scopes": str(each.scopes), "made": f"{each.made:%Y-%m-%d %H:%M}"}
        for each in tokens.all()
    ]
    if as_json:
        put_json(json.dumps(rows, indent=2))
        return Code.COMPLETE
    if not rows:
        say("There is no token; make one with: token new NAME")
    widest = max((len(each["name"]) for each in rows), default=0)
    for each in rows:
        put(f"{each['name']:{widest}}  {each['made']}  {each['scopes']}")
    return Code.COMPLETE
