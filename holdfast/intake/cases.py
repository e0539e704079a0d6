"""The goal of a case of an eval: of a run as anybody asks for it, of a call or tool its inputs."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from holdfast.activities.catalogue.catalogue import Catalogue
from holdfast.activities.toolset.shelf import tools_for
from holdfast.contracts import Approval, Goal
from holdfast.contracts.evals import Case, PlanShape
from holdfast.deployment.settings import Settings
from holdfast.embedded import StateDir
from holdfast.errors import Refused
from holdfast.intake.case_inputs import is_planted
from holdfast.intake.connection import Connection
from holdfast.intake.goals import goal_of, limits_of
from holdfast.intake.inputs import check_inputs, input_of
from holdfast.intake.planted import repository_of
from holdfast.intake.requests import Document, RunRequest, read_request
from holdfast.state.graph import COMPOSED
from holdfast.text.mistakes import suggest

NO_ROLE = "none"
"""What a suite calls it that a subtask has no second role."""
SINGLE_DOLLARS = "0.50"
"""The cap of a single call, where its case says none."""


async def goal_of_case(case: Case, catalogue: Catalogue, connection: Connection) -> Goal:
    """Return the goal. Refused says what is wrong with it."""
    settings, embedded = connection.settings, connection.target.embedded
    given = dict(case.request)
    given["inputs"] = _with_repositories(given.get("inputs", {}), settings)
    if case.form != "run":
        given["goal"] = case.name
    if case.call:
        # Prepared like the least of runs that ask a model: one agent, who is never asked.
        given["single"] = True
        if "dollars" not in {**given, **_limits(given)}:
            given["dollars"] = SINGLE_DOLLARS
    wish = _with_files(read_request(given, case.name), catalogue).wish(settings)
    if case.tool:
        _check_tool(case, settings.project)
        inputs = tuple(input_of(each, None) for each in wish.inputs)
        check_inputs(inputs, None)
        limits = limits_of(wish.limits)
        return Goal(text=case.name, inputs=inputs, project=settings.name, limits=limits)
    goal = await goal_of(wish, catalogue, settings, embedded=embedded)
    _check_roles(case, catalogue)
    return goal.model_copy(update={"approval": Approval(), "templates": False})


def _check_tool(case: Case, project: Path | None) -> None:
    """Refuse a tool that there is not, and arguments that it does not have."""
    tools = tools_for(project)
    if case.tool not in tools:
        raise Refused(f"tool {case.tool!r:.60}: there is no such tool{suggest(case.tool, tools)}")
    known = tools[case.tool].schema.get("properties")
    assert isinstance(known, dict), "arguments are a closed object"
    for name in case.arguments:
        if name not in known:
            raise Refused(
                f"tool {case.tool}: {name!r:.60}: it has no such argument; it has:"
                f" {', '.join(known) or 'none'}{suggest(name, known)}"
            )


def _check_roles(case: Case, catalogue: Catalogue) -> None:
    """Refuse a role that no plan has; one that a planner composes may have any name."""
    known = {*catalogue.roles, NO_ROLE}
    for must in case.must:
        shape = must.plan or PlanShape()
        for name in (*must.route, *shape.roles, *shape.only, *shape.second):
            if name not in known and not name.startswith(COMPOSED):
                raise Refused(f"role {name!r:.60}: there is no such role{suggest(name, known)}")


def _limits(given: Mapping[str, Any]) -> Mapping[str, Any]:
    limits = given.get("limits")
    return limits if isinstance(limits, dict) else {}


def _with_repositories(inputs: Any, settings: Settings) -> dict[str, Any]:
    """Return inputs with the repositories of two states made, where a worker of this machine reads
    them.
    """
    made = dict(inputs)
    for name, given in inputs.items():
        if is_planted(given):
            told = hashlib.sha256(json.dumps(given, sort_keys=True).encode()).hexdigest()[:32]
            states = (_state(given["before"]), _state(given["after"]))
            made[name] = str(repository_of(*states, StateDir.of(settings).inputs / told / name))
    return made


def _state(given: Any) -> Path | Mapping[str, str]:
    return Path(given) if isinstance(given, str) else given


def _with_files(request: RunRequest, catalogue: Catalogue) -> RunRequest:
    """Return the request with texts as files, where its playbook declares a file."""
    playbook = catalogue.playbooks.get(request.playbook)
    declared = playbook.inputs if playbook else {}
    inputs = dict(request.inputs)
    for name, each in request.inputs.items():
        text = getattr(each, "text", None)
        if text is not None and name in declared and declared[name].kind == "file":
            inputs[name] = Document.of(text.encode(), f"{name}.md")
    return request.model_copy(update={"inputs": inputs})
