"""A figure that two figures of the findings give is no invention, and one that none give is one."""

from __future__ import annotations

from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from holdfast.activities.asking.computed import MOST_FIGURES, derive
from holdfast.activities.asking.provenance import flag_unsupported
from holdfast.calls.synthesize import SynthesisMaterial
from holdfast.contracts import Finding, Synthesis
from holdfast.text.marks import NUMBER

FIGURES = st.decimals(0, 10**9, places=2).map(lambda each: f"{each.normalize():f}")


@pytest.mark.parametrize(
    ("number", "how"),
    [
        ("256,000", "256,000 = 1,256,000 - 1,000,000"),
        ("25.6", "25.6 = 100 × (1,256,000 - 1,000,000) / 1,000,000"),
        ("79.62", "79.62 ≈ 100 × 1,000,000 / 1,256,000"),
        ("1.256", "1.256 = 1,256,000 / 1,000,000"),
        ("79.63", ""),
        ("257,000", ""),
    ],
)
def test_a_sum_a_difference_and_a_share_are_known_for_what_they_are(number: str, how: str) -> None:
    said = f"computed from two: {how}" if how else ""
    assert derive(number, {"1256000", "1000000"}) == said


@pytest.mark.parametrize(
    ("number", "how"),
    [
        ("184,000", "rounded: 184,000 ≈ 183,853"),
        ("2.4", "rounded: 2.4 ≈ 2.38"),
        ("185,000", ""),
        ("200,000", ""),
        ("183,854", ""),
    ],
)
def test_a_figure_that_rounds_one_that_was_found_is_known_for_that(number: str, how: str) -> None:
    assert derive(number, {"183853", "2.38"}) == how


def test_of_few_digits_or_very_many_figures_nothing_follows() -> None:
    assert derive("42", {"40", "2"}) == "", "something gives it by chance"
    assert derive("420", {str(each) for each in range(MOST_FIGURES + 1)}) == ""


@pytest.mark.parametrize(
    ("answer", "flags"),
    [
        ("It costs EUR 382 by night, 72 more than by day (310).", 0),
        ("It rose from 412,000 to 436,000, by 24,000.", 0),
        ("It costs 382 by night and 310 by day. That is 72 more.", 1),
        ("It costs EUR 382 by night, 73 more than by day (310).", 1),
    ],
)
def test_a_short_figure_that_two_of_its_own_sentence_give_is_no_invention(
    answer: str, flags: int
) -> None:
    said = "By night 382, by day 310; 412,000 in 2024, 436,000 in 2025."
    found = Finding(subtask_id="t1", status="complete", content=said, confidence=90)
    material = SynthesisMaterial(goal="g", findings=(found,), subtasks=())
    assert len(flag_unsupported(Synthesis(answer=answer), material).flags) == flags


@given(st.lists(FIGURES, min_size=1, max_size=8), st.data())
def test_each_sum_of_two_figures_is_found_and_nothing_breaks_it(
    figures: list[str], data: st.DataObject
) -> None:
    one, other = (Decimal(data.draw(st.sampled_from(figures))) for _ in range(2))
    number = f"{one + other:,f}"
    digits = number.replace(",", "").replace(".", "").strip("0")
    assert bool(derive(number, figures)) or len(digits) < 3
    for each in NUMBER.findall(data.draw(st.text("0123456789.,", max_size=60))):
        derive(each, {*figures, "0"})


def test_an_answer_with_a_sum_has_a_note_and_one_with_an_invention_a_flag() -> None:
    found = Finding(
        subtask_id="t1", status="complete", content="1,256,000 in 2025, 1,000,000 in 2024"
    )
    material = SynthesisMaterial(goal="Compare", instruction="", findings=(found,))
    answer = "Revenue grew by 256,000 to 1,256,000; 777,123 is invented."
    told = flag_unsupported(Synthesis(answer=answer), material)
    assert told.doubtful == ("777,123",)
    assert told.notes == ("In no finding, and computed from two: 256,000 = 1,256,000 - 1,000,000.",)


def test_a_figure_with_a_comma_before_its_decimals_is_the_same_with_fewer_of_them() -> None:
    finding = Finding(subtask_id="t1", status="complete", content="46,00 Euro, dann 1240,5 Euro")
    material = SynthesisMaterial(goal="Was kostet es?", instruction="", findings=(finding,))
    answer = "46 Euro, dann 1240,50 Euro, nicht 47 Euro."
    assert flag_unsupported(Synthesis(answer=answer), material).doubtful == ("47",)


def test_thousand_and_million_are_what_they_are_in_figures() -> None:
    finding = Finding(
        subtask_id="t1", status="complete", content="412,000 guests, 3.5 million euros"
    )
    material = SynthesisMaterial(goal="How many?", instruction="", findings=(finding,))
    answer = "412 thousand guests paid 3,500,000 euros, not 413 thousand or 47 million."
    assert flag_unsupported(Synthesis(answer=answer), material).doubtful == ("413", "47")


@pytest.mark.parametrize(
    ("found", "answer", "flags"),
    [
        ("It costs EUR 1.88 a day.", "It costs EUR 188 a day.", 1),
        ("Es kostet 1,88 Euro am Tag.", "It costs EUR 188 a day.", 1),
        ("Es kostet 1,88 Euro am Tag.", "It costs EUR 1.88 a day.", 0),
        ("Es kostet 18.690 Euro.", "It costs EUR 18,690.", 0),
        ("It costs 12,34,567 rupees.", "It costs 1,234,567 rupees.", 0),
    ],
)
def test_a_lost_point_is_no_other_way_of_writing_a_figure(
    found: str, answer: str, flags: int
) -> None:
    finding = Finding(subtask_id="t1", status="complete", content=found, confidence=90)
    material = SynthesisMaterial(goal="g", findings=(finding,), subtasks=())
    assert len(flag_unsupported(Synthesis(answer=answer), material).flags) == flags
