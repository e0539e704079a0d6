"""Choices of a plan: subtasks that attempt one question, of which the best is used. Pure."""

from __future__ import annotations

from collections.abc import Iterator

from holdfast.contracts import Plan

Choice = tuple[str, ...]
"""Ids of subtasks that attempt the same question, two or more."""


def choices_of(plan: Plan) -> tuple[Choice, ...]:
    """Return the choices of a plan, beside the one that the strategy select makes of all of it. One
    that a revision left with a single attempt is a choice no more.
    """
    ids = [each.id for each in plan.subtasks]
    kept = (tuple(each for each in group if each in ids) for group in plan.choices)
    return tuple(group for group in kept if len(group) > 1)


def problems(plan: Plan) -> Iterator[str]:
    """Yield everything that is wrong with the choices of a plan."""
    if plan.strategy == "select" and plan.choices:
        yield "choices: no effect, because select makes all subtasks one choice"
        return
    needs = {each.id: each.depends_on for each in plan.subtasks}
    seen: dict[str, int] = {}
    for place, group in enumerate(plan.choices):
        where = f"choices[{place}]"
        if len({*group}) < 2:
            yield f"{where}: needs two attempts or more; name their ids, or leave it out"
        for each in group:
            if each not in needs:
                yield f"{where}: unknown subtask {each!r}"
            elif seen.setdefault(each, place) != place:
                yield f"{where}: {each!r} is in choices[{seen[each]}] already"
            elif any(edge in group for edge in needs[each]):
                yield f"{where}: {each!r} depends on another attempt at the same question"
        for dependent, edges in needs.items():
            if dependent in group:
                continue
            missing = [each for each in group if each not in edges]
            if missing and any(each in edges for each in group):
                all_or_none = f"{dependent!r} must depend on all attempts or on none"
                yield f"{where}: {all_or_none}; it lacks {missing[0]!r}"
