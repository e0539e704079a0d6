"""Whether a call's arguments fit, seen before a person is asked: nobody approves for nothing."""

from __future__ import annotations

import asyncio
import json
import logging
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from activities.toolset.child import in_child
from activities.toolset.tool import Tool, misfits

logger = logging.getLogger(__name__)

ARGUMENTS = Path(__file__).resolve().parent / "mcp_arguments.py"
SECONDS = 5.0
"""For one call, its child's start included."""


async def unfit(
    tools: Mapping[str, Tool], spec: Mapping[str, Any], arguments: Mapping[str, Any]
) -> str:
    """What is wrong with the arguments of a call, by what the model was told of the tool; empty:
    nothing, or it could not be found out. Whatever runs the call looks again.
    """
    own = tools.get(spec["name"])
    if own is not None:
        return own.unfit(arguments)
    asked = json.dumps({"schema": spec["input_schema"], "arguments": arguments}).encode()
    try:
        async with asyncio.timeout(SECONDS):
            wrong = json.loads(await in_child(ARGUMENTS, asked, seconds=SECONDS))
    except Exception:
        logger.warning("arguments for %s could not be checked", spec["name"], exc_info=True)
        return ""
    return misfits(f"arguments{each}" for each in wrong)
