"""The goal of a case: what stands in its file becomes what a worker reads."""

from __future__ import annotations

from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

from holdfast.contracts import Goal
from holdfast.contracts.evals import Case
from holdfast.deployment.settings import Settings
from holdfast.intake.cases import goal_of_case
from holdfast.intake.connection import Connection
from holdfast.temporal.connection import Target
from shipped import shipped_catalogue

pytestmark = pytest.mark.anyio


async def goal_of(state: Path, **fields: Any) -> Goal:
    settings = Settings(state_dir=state, allowed_roots=(state,))
    # Nothing is asked of a server.
    target = Target("", embedded="tool" in fields)
    connection = Connection(settings, target, None)  # type: ignore[arg-type]
    return await goal_of_case(Case(name="c", **fields), shipped_catalogue(), connection)


async def test_a_text_becomes_the_file_that_a_playbook_declares(bare_environment: Path) -> None:
    request = {"playbook": "tech-support", "inputs": {"ticket": {"text": "It hums"}}}
    made = await goal_of(bare_environment, request=request)
    [ticket] = made.inputs
    assert (ticket.kind, Path(ticket.value).read_text()) == ("file", "It hums")


async def test_two_states_become_a_repository_whose_branch_is_the_change(
    bare_environment: Path,
) -> None:
    states = {"before": {"a.py": "x = 1\n"}, "after": {"a.py": "x = 2\n"}}
    request = {"playbook": "code-review", "inputs": {"repo": states}}
    made = await goal_of(bare_environment, request=request)
    place = Path(made.inputs[0].value)
    assert (place / "a.py").read_text() == "x = 2\n"
    assert (place / ".git" / "HEAD").read_text() != "ref: refs/heads/main\n"
    assert (await goal_of(bare_environment, request=request)).inputs == made.inputs


async def test_a_single_call_asks_a_model_under_half_a_dollar_and_a_tool_asks_none(
    bare_environment: Path,
) -> None:
    call = await goal_of(bare_environment, call="judge")
    assert (call.use_models, call.limits.dollars) == (True, Decimal("0.5"))
    assert not (await goal_of(bare_environment, tool="calculate")).use_models
