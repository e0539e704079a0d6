"""Decide how much of a repository a run wants."""

from __future__ import annotations

from collections.abc import Container, Iterable
from dataclasses import dataclass
from typing import Self

from holdfast.contracts import GoalInput
from holdfast.contracts.errors import BadGoal
from holdfast.rules.leaving import ALL, BASE, CHANGED, SCOPE


@dataclass(frozen=True)
class Wanted:
    """What differs from `base`, if there is one; else what `scope` says, `changed` or `all`. An
    empty scope is a run without such a choice, which takes the whole tree.
    """

    base: str = ""
    scope: str = ""
    for_models: bool = False
    """True if models will read it, who want to know what older commits did and why."""

    @classmethod
    def of(cls, inputs: Iterable[GoalInput], declared: Container[str]) -> Self:
        """Return what the inputs of a goal say, where its playbook has `declared` ones. Raise
        BadGoal for two that exclude each other.
        """
        given = {each.name: each.value for each in inputs if each.kind == "text"}
        base = given.get(BASE, "")
        scope = given.get(SCOPE, CHANGED) if SCOPE in declared else ""
        if base and scope == ALL:
            raise BadGoal(
                f"{SCOPE}={ALL} takes the whole tree and {BASE}={base[:80]!r} what differs from it;"
                " give one of them"
            )
        return cls(base, scope)
