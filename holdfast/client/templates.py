"""The plan library, as its owner sees it: made of runs, listed with how their runs went."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from temporalio.service import RPCError

from holdfast.activities.catalogue.catalogue import Catalogue
from holdfast.activities.library import shelves
from holdfast.activities.library.digests import find_stale
from holdfast.activities.library.drafting import Drafted, Ran, check_name, draft, name_for
from holdfast.activities.library.outcomes import find_retired, read_outcomes
from holdfast.activities.library.shelves import Kept, Shelves, shelves_for
from holdfast.client.ended import Ended, read_end
from holdfast.client.reading import Reader
from holdfast.contracts.search import PLAN, RUNS, STATUS
from holdfast.deployment.invocation import OPTION, to_type
from holdfast.deployment.settings import Settings
from holdfast.embedded import StateDir
from holdfast.errors import Refused
from holdfast.intake.connection import Connection
from holdfast.rules.templates import WELL, source_of_plan, used_template
from holdfast.text.mistakes import suggest

FEWEST_RUNS = 3
"""Good runs of one shape after which a template is proposed."""


@dataclass(frozen=True)
class Standing:
    """A template, and whether it is used."""

    kept: Kept
    went: tuple[str, ...] = ()
    """How its latest runs went, newest first."""
    why_not: str = ""
    """Why it is not used; empty: it is."""

    @property
    def well(self) -> int:
        return sum(each == WELL for each in self.went)


def library_of(settings: Settings) -> Shelves:
    """Return the shelves of these settings, the nearest first."""
    return Shelves(shelves_for(settings.project, StateDir.of(settings).path))


def find_kept(settings: Settings, name: str) -> Kept:
    """Return the template of a name, usable or not. Refused if there is none."""
    library = library_of(settings)
    kept = library.find(name)
    if kept is None:
        known = library.names()
        named = ", ".join(known[:20]) or "none"
        raise Refused(f"there is no template {name!r:.70}{suggest(name, known)}; known: {named}")
    return kept


async def save_template(
    connection: Connection, run_id: str, name: str, given: Mapping[str, str]
) -> tuple[Drafted, Path]:
    """Make a template of a finished run and keep it; return it with its place. Refused says why
    that cannot be.
    """
    settings = connection.settings
    ran = await _read_run(connection, run_id)
    drafted = draft(ran, Catalogue.of(settings.project), given)
    library = library_of(settings)
    name = check_name(name) if name else name_for(ran.goal.text, library.names())
    return drafted, shelves.save(library.shelves[0], name, drafted.template)


async def _read_run(connection: Connection, run_id: str) -> Ran:
    look = await Reader(connection, run_id).look()
    if not look.closed:
        raise Refused(f"run {run_id} is not over; a template is made of a plan that has worked")
    ended, state = read_end(run_id, look), look.state
    if ended.report is None or state is None or state.plan is None or state.briefing is None:
        raise Refused(f"run {run_id} has no plan; {ended.reason or 'save another run'}")
    goal, playbook = state.goal, state.briefing.playbook
    if goal.project not in ("", connection.settings.name):
        raise Refused(f"run {run_id} is of the project {goal.project!r}; add {OPTION} FOLDER of it")
    if ended.report.status != "complete":
        status = ended.report.status.replace("_", " ")
        raise Refused(f"run {run_id} is {status}; a template is made of a complete run")
    if state.replanning.revisions:
        raise Refused(f"run {run_id}: its plan was changed while it ran; save one that held")
    if used := used_template(state):
        raise Refused(f"run {run_id}: its plan is from template {used.name} already")
    if (playbook and playbook.plan) or not goal.use_models:
        raise Refused(f"run {run_id}: its playbook brings the plan, so there is nothing to save")
    return Ran(run_id, goal, state.briefing, state.plan)


async def list_standing(connection: Connection) -> AsyncIterator[Standing]:
    """Yield all templates with whether they are used, and why not."""
    settings = connection.settings
    catalogue = Catalogue.of(settings.project)
    for kept in library_of(settings).kept():
        if kept.template is None:
            yield Standing(kept, why_not=f"unusable: {kept.flaw}")
            continue
        went = tuple(await read_outcomes(connection.client, kept.version))
        stale, retired = find_stale(kept.template, catalogue), find_retired(went)
        why_not = f"stale: {stale}" if stale else f"retired: {retired}" if retired else ""
        yield Standing(kept, went, why_not)


async def propose(connection: Connection, ended: Ended) -> str:
    """Return a line that proposes to make a template of a run, if enough runs of its shape were
    complete and none is kept yet; else empty.
    """
    state, report = ended.look.state, ended.report
    if state is None or report is None or report.status != "complete":
        return ""
    source = source_of_plan(state)
    shape = source.removeprefix("shape ")
    if shape == source or PLAN.name not in state.goal.search_attributes:
        return ""
    if state.goal.plan is not None:
        # Whoever gave the plan asks no planner for it.
        return ""
    if not state.goal.use_models or (state.brief.playbook and state.brief.playbook.plan):
        return ""
    query = f"{RUNS} AND {PLAN.name} = '{source}' AND {STATUS.name} = 'complete'"
    try:
        count = (await connection.client.count_workflows(query)).count
    except RPCError:
        return ""
    if count < FEWEST_RUNS or library_of(connection.settings).mentions(shape):
        return ""
    command = to_type("template save", state.run_id)
    return (
        f"{count} good runs had a plan of this shape. To plan the next ones for nothing: {command}"
    )
