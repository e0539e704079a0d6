"""`mcp`: be an MCP server for coding agents."""

from __future__ import annotations

import asyncio
from typing import Annotated

import typer

from holdfast.cli.screen.exits import Code, Exit
from holdfast.cli.screen.streams import put, say
from holdfast.cli.shared.options import Embedded, dollars_of
from holdfast.deployment import extras
from holdfast.deployment.invocation import STARTER
from holdfast.deployment.settings import Settings

NEW_TOKEN = f"one of: {STARTER} token new NAME --scope start:DOLLARS"
MaySpend = Annotated[
    str | None,
    typer.Option(
        metavar="DOLLARS",
        help="The highest cap of a run that the host's model starts. Default: it spends nothing.",
    ),
]
MaySpendDay = Annotated[
    str | None,
    typer.Option(
        metavar="DOLLARS",
        help="What all runs of a day (UTC) may cost that were started through such doors."
        " Default: ten times --may-spend.",
    ),
]
MayDecide = Annotated[
    bool,
    typer.Option(
        "--may-decide", help="Let the host's model approve, answer and raise caps for you."
    ),
]
OverHttp = Annotated[
    bool, typer.Option("--http", help="Listen on 127.0.0.1 with a token, instead of stdio.")
]
Port = Annotated[int, typer.Option(min=1, max=65_535, help="The port of --http.")]
PrintConfig = Annotated[
    bool, typer.Option("--print-config", help="Print the entry for a host's .mcp.json, and end.")
]
Skill = Annotated[
    bool, typer.Option("--skill", help="Print a SKILL.md for coding agents, and end.")
]


def command(
    may_spend: MaySpend = None,
    may_spend_day: MaySpendDay = None,
    may_decide: MayDecide = False,
    http: OverHttp = False,
    port: Port = 8701,
    print_config: PrintConfig = False,
    skill: Skill = False,
    embedded: Embedded = False,
) -> int:
    """Let coding agents preview, run and review, as an MCP server; the host starts it."""
    if lacking := extras.lacking("mcp"):
        raise Exit(f"mcp {lacking}")
    per_run = dollars_of("--may-spend", may_spend)
    per_day = dollars_of("--may-spend-day", may_spend_day)
    if may_spend is None and may_spend_day is not None:
        raise Exit("--may-spend-day: say with --may-spend what one run may cost, too")
    from holdfast.doors.mcp import serving
    from holdfast.doors.mcp.leash import DAYS_WORTH, Leash
    from holdfast.doors.mcp.opening import Opening
    from holdfast.doors.tokens import Tokens

    if skill:
        put(serving.SKILL.read_text(encoding="utf-8").rstrip())
        return Code.COMPLETE
    day = per_day or per_run * DAYS_WORTH
    if print_config:
        options = _typed(may_spend, may_spend_day, may_decide=may_decide, embedded=embedded)
        program = serving.split_program(STARTER)
        put(serving.print_config(program, options, http=http, port=port))
        if http:
            say(f"The host's environment needs {serving.TOKEN_VARIABLE}: {NEW_TOKEN}", "dim")
        return Code.COMPLETE
    settings = Settings()
    leash = Leash(per_run, day, may_decide)
    server = serving.server_of(Opening.of(settings, embedded=embedded), leash)
    if http:
        tokens = Tokens(settings)
        if not tokens.all():
            raise Exit(f"--http: there is no token yet; make {NEW_TOKEN}")
        listening = serving.listen(port)
        say(f"MCP at http://{serving.HOST}:{port}{serving.PATH}")
        asyncio.run(serving.serve_http(server, listening, tokens))
    else:
        asyncio.run(serving.serve_stdio(server))
    return Code.COMPLETE


def _typed(
    may_spend: str | None, may_spend_day: str | None, *, may_decide: bool, embedded: bool
) -> list[str]:
    """Return the options as a host passes them on."""
    options = ["--may-spend", may_spend] if may_spend else []
    options += ["--may-spend-day", may_spend_day] if may_spend_day else []
    options += ["--may-decide"] if may_decide else []
    return options + (["--embedded"] if embedded else [])
