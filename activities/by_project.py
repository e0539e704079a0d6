"""A worker of several projects: each activity is done with what its run's project has."""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping
from typing import Any

from holdfast.activities import activities_of
from holdfast.activities.asking.heartbeat import Past
from holdfast.activities.asking.replies import lost_call
from holdfast.calls.turn import UseMaterial
from holdfast.contracts import Call, Goal
from holdfast.contracts.errors import BadGoal, CallRefused, RunStopping


def activities_by_project(holders: Mapping[str, object]) -> list[Callable[..., Any]]:
    """Return the activities of these objects, one for each type: it is that of the object whose
    project its first argument names. A project that is not among them is refused.
    """
    return [_chosen(each.__name__, holders) for each in activities_of(holders[""])]


def _chosen(name: str, holders: Mapping[str, object]) -> Callable[..., Any]:
    methods = {project: getattr(holder, name) for project, holder in holders.items()}

    @functools.wraps(methods[""])
    async def chosen(told: Goal | Call | UseMaterial, *more: Any) -> Any:
        method = methods.get(told.project)
        if method is None:
            raise _unserved(told, [*filter(None, methods)])
        return await method(told, *more)

    return chosen


def _unserved(told: Goal | Call | UseMaterial, served: list[str]) -> Exception:
    why = (
        f"this worker does not serve the project {told.project!r:.100}; it serves:"
        f" {', '.join(served) or 'none'}; start it with that project's folder (--project,"
        " HOLDFAST_PROJECTS), or set project_name in both to the same"
    )
    match told:
        case Goal():
            return BadGoal(why)
        case UseMaterial():
            return CallRefused(why)
        case Call() if Past.read().sent:
            return lost_call(told, f"it was sent, and then: {why}")
        case Call():
            return RunStopping(why)
