"""Where to what an agent gives its tools leaves this deployment, for whoever approves a run."""

from __future__ import annotations

from collections.abc import Mapping

from activities.tools import run_python, web_search
from activities.toolset.mcp import PART, PREFIX
from activities.toolset.servers import Server
from deployment.address import address_of
from deployment.settings import Settings
from orchestrator.calls.turn import WEB_FETCH, WEB_SEARCH
from orchestrator.contracts import Reach


def reaches(
    settings: Settings, servers: Mapping[str, Server], *, endpoint_web: bool = False
) -> tuple[Reach, ...]:
    """The tools that send words out, with these settings; all others ask nobody."""
    found = {"web_fetch": "the public web"}
    provider, _, key = settings.key(web_search.SETTING).partition(":")
    if provider:
        found["web_search"] = address_of(key) if provider == "searxng" else provider
    if endpoint_web:
        found |= dict.fromkeys((WEB_SEARCH, WEB_FETCH), "the endpoint, which asks the web itself")
    if settings.key(run_python.SANDBOX):
        found["run_python"] = f"the sandbox at {address_of(settings.key(run_python.SANDBOX))}"
    for name in servers:
        found[f"{PREFIX}{PART}{name}{PART}"] = f"the MCP server {name}"
    return tuple(Reach(tool=tool, where=where) for tool, where in found.items())
