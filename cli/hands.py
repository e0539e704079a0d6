"""The tools of agents for `doctor`: what each needs, and which roles have it."""

from __future__ import annotations

from collections.abc import Mapping

from activities.catalogue import Catalogue
from activities.tools.run_python import run_python
from activities.toolset.shelf import shipped
from activities.toolset.tool import Tool
from cli.diagnosis import Checkup, Mark
from deployment.address import address_of
from deployment.settings import Settings
from orchestrator.calls.turn import WEB_FETCH, WEB_SEARCH


def hands(
    catalogue: Catalogue, settings: Settings, tools: Mapping[str, Tool] | None = None
) -> list[Checkup]:
    """A line for each tool; a note where a role has one whose key is not set."""
    owners: dict[str, list[str]] = {}
    for role in catalogue.roles.values():
        for name in role.card.tools if role.card.tier != "none" else ():
            owners.setdefault(name, []).append(role.card.name)
    shelf = shipped() if tools is None else tools
    return [_line(each, owners.get(each.name, []), settings) for each in shelf.values()]


def _line(tool: Tool, owners: list[str], settings: Settings) -> Checkup:
    needs = [Settings.variable(each) for each in tool.needs]
    own = settings.endpoint_web and tool.name in (WEB_SEARCH, WEB_FETCH)
    unset = [Settings.variable(each) for each in tool.needs if not settings.key(each) and not own]
    told = (
        f"of {', '.join(owners)}" if owners else "no role has it",
        "changes things outside" if tool.effects else "",
        "a person approves each call" if tool.approval else "",
        f"needs {', '.join(needs)}" if needs and not own else "",
        "the endpoint's own (HOLDFAST_ENDPOINT_WEB)" if own else "",
        _elsewhere(tool, settings),
        f"{', '.join(unset)} not set: roles go on without it" if unset else "",
    )
    mark: Mark = "note" if unset and owners else "ok"
    return Checkup("agents", tool.name, mark, "; ".join(filter(None, told)))


def _elsewhere(tool: Tool, settings: Settings) -> str:
    """Where what an agent gives to a tool of this machine goes all the same."""
    if tool is run_python and settings.python_sandbox:
        key = "a key" if settings.python_sandbox_key else "no key"
        return f"its code is sent to {address_of(settings.python_sandbox)}, with {key}"
    return ""
