"""Reading a long finding by pieces."""

from __future__ import annotations

import pytest

from hands import Bench
from holdfast.activities.tools.read_finding import read_finding

pytestmark = pytest.mark.anyio


async def test_a_long_finding_is_read_piece_by_piece_to_its_end() -> None:
    whole = "é" * 20_000 + "end"
    here = Bench(findings={"t1": whole})
    first = await here.told(read_finding, subtask="t1")
    assert first.endswith("[Up to character 8,000 of 20,003; from_character=8000 reads on.]")
    last = await here.told(read_finding, subtask="t1", from_character=19_999)
    assert last == "éend\n\n[This is the end of it.]"


async def test_what_is_not_there_is_an_error_that_the_model_can_act_on() -> None:
    here = Bench(findings={"t1": "short"})
    beyond = await here.use(read_finding, subtask="t1", from_character=5)
    assert beyond.is_error and "that finding has 5 characters" in beyond.text
    other = await here.use(read_finding, subtask="t9")
    assert other.is_error and "t9" in other.text
