"""`${NAME}` and `${NAME:-else}` in the file of MCP servers: variables of the environment."""

from __future__ import annotations

import re
from collections.abc import Mapping

from holdfast.deployment.settings import Settings
from holdfast.untrusted.folders import Unreadable, read_named

FILE_BYTES = 1024 * 1024
"""The largest file of MCP servers."""
_VARIABLE = re.compile(r"\$\{([A-Za-z_][A-Za-z0-9_]*)(?::-([^}]*))?\}")


def fill(text: str, environment: Mapping[str, str]) -> str:
    """Return a text with its variables filled in. KeyError names one that is not set."""
    return _VARIABLE.sub(lambda found: _value(found, environment), text)


def _value(found: re.Match[str], environment: Mapping[str, str]) -> str:
    value = environment.get(found[1]) or found[2]
    if value is None:
        raise KeyError(found[1])
    return value


def servers_here(settings: Settings, environment: Mapping[str, str]) -> str:
    """Return the file of MCP servers with this environment's variables filled in. Only for
    comparing two environments: it may hold secrets.
    """
    try:
        text = read_named(settings.mcp_file, FILE_BYTES)
    except Unreadable:
        return ""
    names = sorted({found[1] for found in _VARIABLE.finditer(text)})
    return "\0".join((text, *(f"{name}={environment.get(name, '')}" for name in names)))
