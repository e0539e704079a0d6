"""`eval`: run the cases of suites, mark what came of them, and say what held."""

from __future__ import annotations

from dataclasses import dataclass
from decimal import Decimal
from functools import partial
from pathlib import Path
from typing import Annotated

import typer
from pydantic import ValidationError

from holdfast.cli.screen.exits import Code, Exit
from holdfast.cli.screen.report import show_markdown
from holdfast.cli.screen.streams import agrees, at_terminal, put_json, say, say_all
from holdfast.cli.shared.connection import tell, with_connection
from holdfast.cli.shared.options import (
    AsJson,
    Bulk,
    Embedded,
    GivenId,
    Urgent,
    Yes,
    check_file,
    dollars_of,
    urgency_of,
    write_file,
)
from holdfast.cli.shared.starting import ASK_ABOVE
from holdfast.client.evaluating import follow_eval, is_known, prices_of, start_eval, trials_of
from holdfast.contracts import Tier
from holdfast.contracts.base import Urgency
from holdfast.contracts.evals import EvalGoal, EvalReport, Suite
from holdfast.deployment.invocation import to_type
from holdfast.deployment.settings import Settings
from holdfast.evals.tally import Baseline, Result, SuiteTally, compare, tally_suites
from holdfast.intake.connection import Connection
from holdfast.intake.files import read_text
from holdfast.intake.launch import check_id, new_id
from holdfast.intake.suites import list_suites, read_suite
from holdfast.rendering import evals, markdown
from holdfast.rendering.amounts import money
from holdfast.text import pluralize
from holdfast.text.mistakes import suggest

DOLLARS = Decimal(5)
"""The cap of an eval, unless --dollars says another."""


@dataclass(frozen=True)
class EvalOptions:
    """The options of `eval` beside the suites."""

    eval_id: str = ""
    runs: int = 1
    tier: Tier | None = None
    dollars: Decimal = DOLLARS
    dry: bool = False
    urgency: Urgency = "normal"
    yes: bool = False
    as_json: bool = False
    page: Path | None = None
    save: Path | None = None
    before: tuple[SuiteTally, ...] | None = None


def command(
    names: Annotated[
        list[str] | None,
        typer.Argument(metavar="SUITE", help="Folders in evals/; all of the project if left out."),
    ] = None,
    every: Annotated[
        bool, typer.Option("--all", help="All suites: the project's, and those that ship.")
    ] = False,
    tier: Annotated[
        Tier | None,
        typer.Option("--tier", metavar="TIER", help="Ask this tier's model in place of every one."),
    ] = None,
    runs: Annotated[
        int, typer.Option("--runs", metavar="N", min=1, max=100, help="Trials of each case.")
    ] = 1,
    dollars: Annotated[
        str | None,
        typer.Option("--dollars", metavar="DOLLARS", help="The most for all of it. Default: 5."),
    ] = None,
    dry: Annotated[
        bool, typer.Option("--dry-run", help="Only say what it would cost: nothing is paid.")
    ] = False,
    urgent: Urgent = False,
    bulk: Bulk = False,
    yes: Yes = False,
    eval_id: GivenId = "",
    baseline: Annotated[
        Path | None,
        typer.Option("--baseline", metavar="FILE", help="Compare with what --save wrote there."),
    ] = None,
    save: Annotated[
        Path | None, typer.Option("--save", metavar="FILE", help="Write a baseline there.")
    ] = None,
    page: Annotated[
        Path | None, typer.Option("--page", metavar="FILE", help="Write the result as Markdown.")
    ] = None,
    as_json: AsJson = False,
    embedded: Embedded = False,
) -> int:
    """Run the cases of suites, priced first and under one cap; say what held and how sure that is.

    Exit code 1 if fewer trials of a suite pass than must, or a rate has surely fallen below the
    baseline. The same --id again goes on where it was; what has run is not paid again.
    """
    settings = Settings()
    for name, given in (("--save", save), ("--page", page)):
        if dry and given:
            raise Exit(f"--dry-run has no result for {name}; leave one out")
    options = EvalOptions(
        eval_id=check_id(eval_id),
        runs=runs,
        tier=tier,
        dollars=dollars_of("--dollars", dollars) or DOLLARS,
        dry=dry,
        urgency=urgency_of(urgent=urgent, bulk=bulk),
        yes=yes,
        as_json=as_json,
        page=check_file(page, "--page"),
        save=check_file(save, "--save"),
        before=_read_baseline(baseline),
    )
    suites = read_suites(names or [], settings, every=every)
    return with_connection(settings, embedded, lambda connection: run(connection, suites, options))


def read_suites(names: list[str], settings: Settings, *, every: bool = False) -> tuple[Suite, ...]:
    """Return the named suites, with `every` all, else all of the project. Exit for one that there
    is not.
    """
    known = list_suites(settings.project)
    if every and names:
        raise Exit(f"--all and {names[0]}: leave one out")
    for name in names:
        if name not in known:
            listed = ", ".join(known) or "none"
            raise Exit(f"there is no suite {name!r}{suggest(name, known)}; there are: {listed}")
    own = settings.project.resolve() if settings.project else None
    of_project = [n for n, path in known.items() if own and path.is_relative_to(own)]
    chosen = [*known] if every else names or of_project
    if not chosen:
        raise Exit(f"name a suite; there are: {', '.join(known) or 'none'}")
    return tuple(read_suite(known[name]) for name in dict.fromkeys(chosen))


async def run(connection: Connection, suites: tuple[Suite, ...], options: EvalOptions) -> int:
    """Price an eval, run it, and print what came of it; return its exit code."""
    name = suites[0].name if len(suites) == 1 else "several"
    eval_id = options.eval_id or new_id(f"eval-{name}")
    cases = pluralize(sum(len(each.cases) for each in suites), "case")
    say_all([f"{each.name}: {each.description}" for each in suites if each.description], "dim")
    say(f"Prepared and priced first, unpaid: {cases}.", "dim")
    trials = await trials_of(
        connection, suites, eval_id, runs=options.runs, tier=options.tier, tell=tell
    )
    goal = EvalGoal(name=name, trials=trials, dollars=options.dollars)
    if not await _priced(connection, goal, suites, eval_id, options):
        return Code.COMPLETE if options.dry else Code.DECLINED
    await start_eval(connection, eval_id, goal, tell, options.urgency)
    say(f"Eval: {eval_id}", "bold")
    say(f"Leave it with Ctrl-C; {to_type('cancel', eval_id)} ends it.", "dim")
    report = await follow_eval(connection, eval_id, _Standing().tell)
    return finish(report, suites, options)


@dataclass
class _Standing:
    """Says how an eval stands, whenever that has changed."""

    said: str = ""

    def tell(self, report: EvalReport) -> None:
        line = evals.standing(report)
        if line != self.said:
            self.said = line
            say(line, "dim")


async def _priced(
    connection: Connection,
    goal: EvalGoal,
    suites: tuple[Suite, ...],
    eval_id: str,
    options: EvalOptions,
) -> bool:
    """Say what an eval is expected to cost; True if it is to be run."""
    prices = await prices_of(connection, eval_id, goal, suites, tell)
    if options.dry and options.as_json:
        report = EvalReport(name=goal.name, prices=prices, trials=len(goal.trials))
        put_json(report.model_dump_json(indent=2))
        return False
    if options.dry:
        show_markdown(markdown.write(evals.price_blocks(goal, prices)))
        return False
    expected = evals.expected(goal, prices)
    say(evals.say_price(goal, prices))
    say_all(evals.say_unprepared(prices), "magenta")
    if options.eval_id and await is_known(connection, eval_id):
        say(f"{eval_id} goes on: its trials that have run are paid, and not asked again.")
    if expected is not None and expected > goal.dollars:
        raise Exit(
            f"{money(expected)} is expected, and {money(goal.dollars)} is the cap: give more"
            f" with --dollars, or fewer --runs"
        )
    little = expected is not None and expected <= ASK_ABOVE.dollars
    if options.yes or not at_terminal() or little:
        return True
    return await agrees("Run it?")


def finish(report: EvalReport, suites: tuple[Suite, ...], options: EvalOptions) -> int:
    """Print and write what came of an eval; return its exit code."""
    tallies = tally_suites(report.marks, suites)
    changes = None if options.before is None else compare(options.before, tallies)
    opens = partial(to_type, "show")
    shown = markdown.write(evals.blocks(report, tallies, changes, opens))
    if options.as_json:
        result = Result(report=report, suites=tallies, changes=changes)
        put_json(result.model_dump_json(indent=2))
    else:
        show_markdown(shown)
    if options.page:
        _write(options.page, f"# Eval {report.name}\n\n{shown}\n")
    if options.save:
        _write(options.save, Baseline(suites=tallies).model_dump_json(indent=2) + "\n")
    if report.stopped == "cancelled":
        return Code.CANCELLED
    fell = any(each.kind == "regression" for each in changes or ())
    return Code.FAILED if fell or not all(each.held for each in tallies) else Code.COMPLETE


def _read_baseline(path: Path | None) -> tuple[SuiteTally, ...] | None:
    if path is None:
        return None
    try:
        return Baseline.model_validate_json(read_text(path, f"--baseline {path}")).suites
    except ValidationError as error:
        raise Exit(f"--baseline {path}: not what --save writes; write one with it") from error


def _write(path: Path, text: str) -> None:
    write_file(path, text.encode())
    say(f"Written: {path}")
