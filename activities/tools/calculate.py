"""Arithmetic for models, which cannot be trusted to carry a one."""

from __future__ import annotations

import json
from typing import Annotated

from pydantic import Field

from holdfast.activities.toolset.child import in_child
from holdfast.activities.toolset.tool import Here, ToolError, tool
from holdfast.deployment import extras

SECONDS = 10.0


@tool(seconds=15, reads=())
async def calculate(
    here: Here,
    expression: Annotated[
        str, Field(min_length=1, max_length=2_000, description="Such as (1200.50 - 7%3) * 1.19")
    ],
    unit: Annotated[
        str, Field(max_length=200, description="Unit of the result, such as km/hour; empty: as is")
    ] = "",
) -> str:
    """Calculate exactly, in decimal numbers of 50 digits: + - * / // % (remainder) ** and the
    functions abs, min, max, sum, round, sqrt, exp, ln, log10; pi, tau and e. Numbers may have
    units: 3 km / 20 min, 20 degC. There are no currencies, and 15 % is written 0.15. A value that
    had to be rounded says so.
    """
    del here
    without = extras.lacking("units")
    asked = json.dumps({"expression": expression, "unit": unit, "without": without}).encode()
    answer = json.loads(await in_child("calculate.py", asked, seconds=SECONDS))
    if "error" in answer:
        raise ToolError(answer["error"])
    return str(answer["said"])
