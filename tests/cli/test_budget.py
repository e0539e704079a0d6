"""`budget` and `doctor`: what was spent today, and a cap that is changed for the next call."""

from __future__ import annotations

import json
from decimal import Decimal

import pytest

from conftest import Runs
from holdfast.activities.asking.purses import Purses
from holdfast.cli.commands.care import budget
from holdfast.cli.commands.care.doctor import check_spent
from holdfast.cli.screen.exits import Exit
from holdfast.contracts.treasury import Caps
from holdfast.deployment.settings import Settings
from holdfast.intake.connection import Connection
from holdfast.temporal.connection import Target
from holdfast.temporal.treasury import Treasurer

pytestmark = pytest.mark.anyio


async def test_an_operator_sees_what_is_spent_and_changes_the_caps(
    runs: Runs, capsys: pytest.CaptureFixture[str]
) -> None:
    target = Target("", task_queue=runs.queue, store_url=runs.store.root.as_uri(), embedded=False)
    connection = Connection(Settings(_env_file=None), target, runs.client)
    async with runs.worker(treasurer=True):
        with pytest.raises(Exit, match="nothing is counted: set HOLDFAST_MOST_DOLLARS_DAY"):
            await budget.run(connection, {}, "", as_json=False)
        assert await check_spent(runs.client, target) == []
        purses = Purses(Treasurer(lambda: runs.client, runs.queue, Caps(day=Decimal(5))))
        await purses.take("a", Decimal(3), "anna")
        purses.give("a", Decimal("2.5"))
        await purses.close()
        assert await budget.run(connection, {"day": Decimal(3)}, "anna", as_json=False) == 0
        said = capsys.readouterr().out
        assert "today (UTC):  $2.50 of $5" in said and "  anna: $2.50 of $3" in said
        changes = {"day": Decimal(2), "month": Decimal(90)}
        assert await budget.run(connection, changes, "", as_json=True) == 0
        found = json.loads(capsys.readouterr().out)
        assert found["caps"] == {"day": "2", "month": "90", "each": {"anna": "3"}}
        (check,) = await check_spent(runs.client, target)
        assert check.mark == "note" and "$2.50 of $2" in check.detail, "it is full"
        await budget.run(connection, {"day": None}, "anna", as_json=True)
        assert json.loads(capsys.readouterr().out)["caps"]["each"] == {}


@pytest.mark.parametrize("more", [{"requester": "anna"}, {"requester": "anna", "month": "5"}])
def test_a_cap_of_one_requester_is_one_a_day(more: dict[str, str]) -> None:
    with pytest.raises(Exit, match="--for anna --day 5"):
        budget.command(**{"day": "", **more})  # type: ignore[arg-type]


@pytest.mark.parametrize("wrong", ["-1", "x", "0", "nan"])
def test_what_is_no_amount_is_refused_before_anything_is_asked(wrong: str) -> None:
    with pytest.raises(Exit, match="--month"):
        budget.command(month=wrong)
