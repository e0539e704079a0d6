"""Which roles a run may use on this worker, why not the others, and what it goes without. Pure."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field

from orchestrator.calls.turn import READS_ON
from orchestrator.contracts import Omission, Plan, RoleCard


@dataclass(frozen=True)
class RolesHere:
    """The roles within reach of a goal, as this worker can serve them."""

    roles: tuple[RoleCard, ...]
    missing: Mapping[str, str]
    """Name -> why it cannot be served."""
    unset: Mapping[str, str]
    """Of the missing, those that want nothing but a setting."""
    without: tuple[tuple[str, str, str], ...] = field(default=())
    """(role, tool, settings) of each tool that a role goes on without."""

    def omissions(self, ready: Plan | None) -> tuple[Omission, ...]:
        """The tools that the roles of a plan go on without; None: those of all roles."""
        planned = None if ready is None else {each.role for each in ready.subtasks}
        found: dict[tuple[str, str], list[str]] = {}
        for role, tool, settings in self.without:
            if planned is None or role in planned:
                found.setdefault((tool, settings), []).append(role)
        return tuple(
            Omission(
                what=f"tool {tool}",
                why=f"it needs {settings}, which is not set here;"
                f" {' and '.join(roles)} go{'es' * (len(roles) == 1)} on without",
            )
            for (tool, settings), roles in found.items()
        )


def serve(
    cards: Iterable[RoleCard],
    lenses: Collection[str],
    tools: Collection[str],
    lacking: Mapping[str, str],
    *,
    use_models: bool,
) -> RolesHere:
    """The roles that can be served with these lenses and tools. `lacking` names tools that are here
    and the settings without which they do nothing; a role that has others goes on without them.
    """
    served: list[RoleCard] = []
    missing, unset = {}, {}
    without: list[tuple[str, str, str]] = []
    for card in cards:
        here = lenses if card.tier == "none" else tools
        absent = [name for name in card.tools if name not in here]
        useless = [name for name in card.tools if name in lacking]
        left = tuple(name for name in card.tools if name not in useless)
        if card.tier != "none" and not use_models:
            missing[card.name] = "needs a model, and this run uses none"
        elif absent:
            missing[card.name] = f"needs {', '.join(absent)}, which this worker does not have"
        elif useless and {*left} <= {READS_ON}:
            needs = "; ".join(f"{name} needs {lacking[name]}" for name in useless)
            missing[card.name] = unset[card.name] = f"{needs}, which is not set here"
        else:
            served.append(card.model_copy(update={"tools": left}) if useless else card)
            without += [(card.name, name, lacking[name]) for name in useless]
    return RolesHere(tuple(served), missing, unset, tuple(without))
