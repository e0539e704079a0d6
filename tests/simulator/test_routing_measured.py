"""The measurement of routing finds the scripted planner's intended mistakes, and no others."""

from __future__ import annotations

from collections import Counter

import pytest
from pydantic import SecretStr

from bench import routing
from holdfast.activities.catalogue.catalogue import Catalogue
from holdfast.deployment.settings import Settings
from holdfast.simulator.script import Script
from holdfast.simulator.server import Simulator

pytestmark = pytest.mark.anyio
CASES = routing.labelled()


def test_all_cases_are_labelled_with_roles_of_the_playbook_and_a_few_are_to_go_wrong() -> None:
    roles = {card.name for card in Catalogue.load().roles_for(routing.PLAYBOOK)}
    assert len(CASES) == len({each.id for each in CASES}) == 48
    assert len({each.text for each in CASES}) == 48
    for case in CASES:
        assert {case.role, case.secondary} <= roles & {*routing.ROLES}
        assert case.role != case.secondary and case.scripted in {"", *routing.ROLES} - {case.role}
    count = Counter(case.role for case in CASES)
    assert min(count[name] for name in routing.ROLES) >= 7
    assert sum(bool(case.scripted) for case in CASES) == 5


@pytest.mark.long
async def test_the_matrix_has_each_intended_mistake_where_it_was_made() -> None:
    async with Simulator(Script.model_validate(routing.script_of(CASES))) as simulator:
        settings = Settings(
            _env_file=None,
            anthropic_base_url=simulator.url,
            anthropic_api_key=SecretStr("scripted"),
        )
        choices, most = await routing.measured(settings, CASES, "sonnet")
    wrong = {each.case.id: each.role for each in choices if each.role != each.case.role}
    assert wrong == {case.id: case.scripted for case in CASES if case.scripted}
    figures, matrix = routing.tables("scripted, no model", choices)
    assert "43 of 48 (90%)" in figures
    assert "| troubleshooter | 13 | 1 | 0 | 1 | 0 | 0 |" in matrix
    assert sum(each.dollars for each in choices) <= most


async def test_a_planner_that_gives_no_valid_plan_is_counted_as_such() -> None:
    nobody = {"rules": [{"call": "plan", "plan": [{"role": "nobody"}]}]}
    async with Simulator(Script.model_validate(nobody)) as simulator:
        settings = Settings(
            _env_file=None,
            anthropic_base_url=simulator.url,
            anthropic_api_key=SecretStr("scripted"),
        )
        choices, _ = await routing.measured(settings, CASES[:2], "haiku")
    assert [each.role for each in choices] == ["no plan", "no plan"]
