"""Decide by its arguments whether a person can be asked about a call: nobody approves for nothing,
and nobody is shown a secret of the deployment or asked to approve what is not shown.
"""

from __future__ import annotations

import asyncio
import json
import logging
import re
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any

from holdfast.activities.toolset.child import in_child
from holdfast.activities.toolset.servers import Server
from holdfast.activities.toolset.tool import Tool, describe_misfits
from holdfast.deployment.address import withheld_of
from holdfast.text import exact_json
from holdfast.untrusted.known_secrets import KnownSecrets

logger = logging.getLogger(__name__)

ARGUMENTS = Path(__file__).resolve().parent / "mcp_arguments.py"
SECONDS = 5.0
"""Time limit of one call, with its child's start."""
SECRET = (
    "This call was not made: a person must approve it, and its arguments hold a secret of this"
    " deployment, which no person is shown. Make it without."
)
_NAMED = re.compile(
    r"(?i)(?:key|token|secret|password|passwd|passphrase|credentials?|authorization|cookie)\Z"
)
"""Names of variables and fields whose values are secrets."""
_FILE = re.compile(r"(?:/[\w.@+-]+){2,}/?\Z")


def collect_secrets(
    values: Iterable[str], environment: Mapping[str, str], servers: Mapping[str, Server]
) -> KnownSecrets:
    """Return the values that this deployment knows to be secret: those given, variables that are
    named like one, what MCP servers are given under such a name or in a header, and what addresses
    carry.
    """
    named = [environment, *(each.environment for each in servers.values())]
    pairs = [(name, value) for given in named for name, value in given.items()]
    found = [*values, *(value for name, value in pairs if _NAMED.search(name))]
    found += [value for each in servers.values() for value in each.headers.values()]
    written = [value for _, value in pairs] + [each.url for each in servers.values()]
    written += [value for each in servers.values() for value in each.command]
    found += [kept for value in written if "://" in value for kept in withheld_of(value)]
    # Where a key is kept is no key.
    return KnownSecrets(value for value in found if not _FILE.match(value))


async def find_unfit(
    tools: Mapping[str, Tool],
    known: Callable[[], KnownSecrets],
    spec: Mapping[str, Any],
    arguments: Mapping[str, Any],
) -> str:
    """Return why no person is asked about a call: its arguments hold a secret, or do not fit what
    the model was told of the tool. Empty if one is asked, also when that could not be found out;
    whatever runs the call looks again.
    """
    written = exact_json(dict(arguments))
    if known().blot(written) != written:
        return SECRET
    own = tools.get(spec["name"])
    if own is not None:
        return own.find_misfits(arguments)
    asked = json.dumps({"schema": spec["input_schema"], "arguments": arguments}).encode()
    try:
        async with asyncio.timeout(SECONDS):
            wrong = json.loads(await in_child(ARGUMENTS, asked, seconds=SECONDS))
    except Exception:
        logger.warning("arguments for %s could not be checked", spec["name"], exc_info=True)
        return ""
    return describe_misfits(f"arguments{each}" for each in wrong)
