"""What a playbook's run goes without here, as far as a starter can tell: said before it begins."""

from __future__ import annotations

from collections.abc import Iterator

from activities.catalogue import Catalogue
from cli.invocation import STARTER
from cli.screen.streams import say_all
from deployment.settings import Settings
from orchestrator.contracts import Goal
from orchestrator.text import one_line


def say_without(goal: Goal, catalogue: Catalogue, settings: Settings, *, embedded: bool) -> None:
    """Say which of its roles and tools a run of a playbook lacks. `embedded`: the worker will have
    these settings and files; of another worker nobody here knows.
    """
    if goal.playbook and goal.use_models and embedded:
        lines = [*_roles(goal, catalogue), *_tools(goal, catalogue, settings)]
        say_all(f"Goes without {one_line(each)}" for each in lines)


def _roles(goal: Goal, catalogue: Catalogue) -> Iterator[str]:
    for each in catalogue.unusable_roles:
        if each.playbook == goal.playbook:
            yield f"role {each.name}: {each.why}"


def _tools(goal: Goal, catalogue: Catalogue, settings: Settings) -> Iterator[str]:
    # All tools and what speaks with servers: commands that start nothing do not wait for them.
    from activities.toolset.shelf import shipped
    from cli.hands import unset_for

    own = [role.card for role in catalogue.roles.values() if role.playbook == goal.playbook]
    for name, tool in shipped().items():
        lack = [card.name for card in own if card.tier != "none" and name in card.tools]
        if lack and (unset := unset_for(tool, settings)):
            why = f"{', '.join(unset)} is not set here; see: {STARTER} doctor"
            yield f"tool {name}, of {', '.join(lack)}: {why}"
