"""What a map's finding says of its rows."""

from __future__ import annotations

import pytest

from driving import model
from holdfast.calls.rows import EMPTY
from holdfast.rules.map_findings import count_values
from holdfast.rules.maps import usual_author


@pytest.mark.parametrize(
    ("values", "said"),
    [
        ({EMPTY: 5}, f"{EMPTY} ×5"),
        ({"lid": 6, EMPTY: 5}, f"lid ×6; {EMPTY} ×5"),
        ({"lid": 6, "rust": 1}, "lid ×6, rust ×1"),
        (
            {str(n): 1 for n in range(12)} | {"x": 1, EMPTY: 2},
            f"11 ×1 and 1 more values; {EMPTY} ×2",
        ),
    ],
)
def test_values_of_a_field_are_counted_and_what_is_empty_comes_last(
    values: dict[str, int], said: str
) -> None:
    assert count_values(values).endswith(said)
    assert not count_values(values).startswith(";")


def test_a_map_is_the_work_of_the_model_of_most_answers_and_not_of_the_last() -> None:
    models = model("haiku", 1), model("sonnet", 2)
    assert usual_author(models, {"haiku": 11, "sonnet": 1}) == models[0].id
    assert usual_author(models, {"haiku": 1, "sonnet": 2}) == models[1].id
    assert usual_author(models, {}) == ""
