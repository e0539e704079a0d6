"""Check what a plan says of its maps. Pure."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping

from holdfast.calls.items import named_fields, stray_brace
from holdfast.calls.turn import OF_SERVERS, WEB_FETCH, WEB_SEARCH
from holdfast.contracts import ItemsFound, PinnedInput, Plan, RoleCard, Subtask, policies
from holdfast.contracts.plans import Lane, MapSpec
from holdfast.text.mistakes import suggest

BROKEN_REMEDY = "mend them, raise its `tolerate`, or decide about them with --ask"
"""What can be done where too many items cannot be asked."""


def problems(
    subtask: Subtask, roles: Mapping[str, RoleCard], inputs: Collection[str]
) -> Iterator[str]:
    """Yield what is wrong with a map: what it goes over, who does it, and how."""
    spec, role = subtask.map, roles.get(subtask.role)
    if spec is None:
        return
    if spec.over not in inputs:
        named = ", ".join(sorted(inputs)) or "none"
        yield (
            f"map.over: unknown input {spec.over!r}{suggest(spec.over, inputs)};"
            f" the goal's inputs: {named}"
        )
    if stray := stray_brace(subtask.instruction):
        yield (
            f"instruction: the brace in {stray!r} has no other half; for a brace as it is write it"
            " twice"
        )
    if subtask.secondary:
        yield "secondary: no effect, because rows of a map climb tiers and keep their role"
    if role is None:
        return
    if role.tier == "none" or role.team:
        kind = "is a team" if role.team else "has no model"
        yield f"map: role {role.name!r} {kind}; each row is one answer of a model"
    if needed := _needed_tools(role):
        yield (
            f"map: role {role.name!r} works with {', '.join(needed)}, and a row has no tools;"
            " name a role that answers from the row alone"
        )
    if spec.reduce and (spec.result or role.result):
        yield "map.reduce: it merges texts, and each row's result is data; leave one out"


def _needed_tools(role: RoleCard) -> tuple[str, ...]:
    """Return the tools that a role cannot do its work without: those that reach out of the run.
    What reads inputs, or only reckons, is left away.
    """
    outside = (*role.effects, *role.approval, WEB_SEARCH, WEB_FETCH)
    return tuple(each for each in role.tools if each in outside or each.startswith(OF_SERVERS))


def field_problems(subtask: Subtask, inputs: Collection[PinnedInput]) -> Iterator[str]:
    """Yield the names in braces that no item of its input has, where its items are known."""
    spec = subtask.map
    found = next((each.items for each in inputs if spec and each.name == spec.over), None)
    if spec is None or found is None or not found.fields:
        return
    for name in named_fields(subtask.instruction):
        if name not in found.fields:
            yield (
                f"instruction: {{{name}}} is no field of {spec.over!r}"
                f"{suggest(name, found.fields)}; known: {', '.join(found.fields)}"
            )
    if spec.id and spec.id not in found.fields:
        yield (
            f"map.id: {spec.id!r} is no field of {spec.over!r}{suggest(spec.id, found.fields)};"
            f" known: {', '.join(found.fields)}"
        )


def broken_problem(subtask: Subtask, found: ItemsFound, mended: int) -> str:
    """Return that more items of a map cannot be asked than may fail; empty if they are not more.
    `mended`: those that a person has given a result.
    """
    spec, broken = subtask.map, found.broken - mended
    if spec is None or not found.whole or not exceeds(spec, broken, found.count):
        return ""
    many = f"{broken:,} of {found.count:,} {found.by}"
    return (
        f"{many} cannot be asked, more than the {spec.tolerate:g} % of {subtask.id} that may fail"
    )


def exceeds(spec: MapSpec, failed: int, items: int) -> bool:
    """True if more items have failed than a map tolerates: a share, but no less than one of several
    items, unless it is 0.
    """
    one = 1 if spec.tolerate and items > 1 else 0
    return failed > one and failed * 100 > spec.tolerate * items


def time_problems(plan: Plan, lane: Lane | None, seconds: int) -> Iterator[str]:
    """Yield the maps that must go by batches and have no time for it. `lane`: the whole run's;
    `seconds`: its deadline.
    """
    if seconds >= policies.BATCH_SECONDS:
        return
    for each in plan.subtasks:
        if each.map is not None and _lane(each.map, lane) == "batch":
            yield (
                f"subtask {each.id!r}: lane: batch: a batch may take a day, and the deadline is"
                f" {seconds:,} s; say --limits deadline_seconds={policies.BATCH_SECONDS}, or lane:"
                " auto"
            )


def _lane(spec: MapSpec, lane: Lane | None) -> Lane:
    return lane or spec.lane
