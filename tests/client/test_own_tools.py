"""Plain functions of a program as tools of its worker's agents."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

import pytest
from pydantic import BaseModel, Field

from holdfast import ToolError
from holdfast.deployment.settings import Settings
from holdfast.errors import Refused
from holdfast.serving.own_tools import Own, as_tools
from holdfast.serving.worker import worker

pytestmark = pytest.mark.anyio

ROLE = """---
name: rates
description: Knows rates
model: haiku
tools: rate_of
---
Say what the rate was.
"""


class Rate(BaseModel):
    day: int
    percent: float


@dataclass
class Nobody:
    """Surroundings that a plain function does not ask for."""

    def setting(self, _name: str) -> str:
        return ""


def rate_of(day: Annotated[int, Field(ge=1, le=30, description="Day of November")]) -> Rate:
    """Return the base rate on a day."""
    return Rate(day=day, percent=2.5)


async def spoken(day: int = 1) -> str:
    """Say the rate of a day."""
    return f"2.5 on {day}"


async def test_a_plain_function_is_a_tool_with_its_own_words_types_and_bounds() -> None:
    tools = as_tools([rate_of, spoken])
    tool = tools["rate_of"]
    assert tool.description == "Return the base rate on a day."
    assert tool.schema["properties"] == {
        "day": {"description": "Day of November", "maximum": 30, "minimum": 1, "type": "integer"}
    }
    here: Any = Nobody()
    found = await tool.run(here, {"day": 3})
    assert (found.text, found.data) == ('{"day": 3, "percent": 2.5}', {"day": 3, "percent": 2.5})
    assert (await tools["spoken"].run(here, {})).text == "2.5 on 1"
    with pytest.raises(ToolError, match="these arguments do not fit"):
        await tool.run(here, {"day": 31})


def test_roles_of_a_folder_may_name_them(bare_environment: Path, tmp_path: Path) -> None:
    (tmp_path / "roles").mkdir()
    (tmp_path / "roles" / "rates.md").write_text(ROLE)
    own = Own.of([rate_of], tmp_path / "roles", Settings(state_dir=bare_environment))
    assert own.catalogue is not None and own.tools is not None
    card = own.catalogue.roles["rates"].card
    assert "rate_of" in card.tools and "read_file" in own.tools
    assert own.catalogue.unusable_roles == ()


def test_a_worker_of_ones_own_needs_a_server_of_ones_own(bare_environment: Path) -> None:
    with pytest.raises(Refused, match="the embedded server has a worker of its own"):
        worker(tools=[rate_of])
    assert not bare_environment.exists()
