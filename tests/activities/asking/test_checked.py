"""Every figure and every citation of an answer, held against the findings that its lines cite."""

from __future__ import annotations

import pytest
from pydantic import JsonValue

from holdfast.activities.asking.provenance import flag_unsupported
from holdfast.calls.synthesize import SynthesisMaterial
from holdfast.contracts import Finding, Subtask, Synthesis
from holdfast.contracts.data import as_text

FOUND = {
    "t1": "Vendor A costs 1,200 a year, in 2 sizes; see https://a.example/price.",
    "t2": "Vendor B has sold 412 thousand. It lost 40 million, 12 % more; see order 2026-03-04.",
    "t3": "",
}
MATERIAL = SynthesisMaterial(
    goal="Which is cheaper in 2026?",
    subtasks=tuple(Subtask(id=each, title=each, instruction="", role="r") for each in FOUND),
    findings=tuple(
        Finding(subtask_id=each, status="complete" if text else "failed", content=text)
        for each, text in FOUND.items()
    ),
    citable=("t1", "t2"),
    counted=True,
)
UNCHECKED = (
    "EUR999|€999|999€|999k|$12M|300%|300pct|v2.999.1|2.0|.2|½|&half;|２|٢|2²|2e9|`999`|9\u200b2|Ⅸ|2k"
    "|2/3|2 k|2 thousand|twelve hundred|two million|half of it|a dozen|twice as much|seven|doubled"
    "|zweitausend|Milliarden|die Hälfte|zwanzig|euros"
)
"""Figures, in digits or words, that stand in no finding as they are."""


@pytest.mark.parametrize(
    ("answer", "counts"),
    [
        ("A costs 1200 a year [t1].", (1, 1)),
        ("1. In 2026 A has 2 sizes [t1].\n2. B sold **412 thousand** [t2].", (3, 2)),
        ("B sold 412 thousand, A costs 1,200 [t1, t2].", (2, 2)),
        ("A costs 1,200 [t1], see https://a.example/price", (1, 1)),
        ("# Prices\n\n| Vendor | A year |\n|---|--:|\n| A | 1,200 | [t1] |", (1, 1)),
        ("B lost 40 million (12 %), by an order of 2026-03-04 [t2].", (3, 1)),
        # In another finding than the one that is cited, or in none.
        ("A costs 1,200 [t2].", None),
        ("A costs 1,200.\n\nSo it is [t1].", None),
        ("A costs 1,300 [t1].", None),
        ("A has 3 sizes [t1].", None),
        ("A costs 1,200 [t1], which is 2400 for two years.", None),
        ("A costs 1,200 [t1], and nothing is known of C [t3].", None),
        ("A costs 1,200 [t1] [t9].", None),
        ("A costs 1,200 [t1], see https://b.example/price", None),
        # A line that states something and cites nothing.
        ("# Prices\n\nA is the dear one.\n\n| A | 1,200 | [t1] |", None),
        ("A is dear in 2026 [t1].\n\nC committed fraud.", None),
        ("C committed fraud\n---\nA has 2 sizes [t1].", None),
        # Another number than is found, or another way to write it.
        ("B sold 412,000 [t2].", None),
        ("A costs 1.200 a year [t1].", None),
        ("A costs 1200 a year, and 1,2 is no price [t1].", None),
        ("A costs 1 200 a year [t1].", None),
        ("A costs 1'200 a year, in 2 sizes [t1].", None),
        ("A has -2 sizes [t1].", None),
        ("A has − 2 sizes [t1].", None),
        ("A has ~~2~~ sizes in 2026 [t1].", None),
        ("A has <b>2</b>9 sizes in 2026 [t1].", None),
        ("A has 2[t1]9 sizes [t1].", None),
        ("B ordered on 2026-04-03 [t2].", None),
        ("B ordered on 2026-12-12 [t2].", None),
        ("Of 2026, A has 2–12 sizes [t1, t2].", None),
        # Another unit, another scale, or one that is put in or left out.
        ("B sold 412 dollars [t2].", None),
        ("B sold 412 [t2].", None),
        ("B sold 412 million [t2].", None),
        ("B sold 412 Tausend [t2].", None),
        ("B lost 40 billion [t2].", None),
        ("B lost 40 million euros [t2].", None),
        ("B lost 12 euros [t2].", None),
        ("B lost 40 % [t2].", None),
        ("B lost 12 [t2].", None),
        ("In € 2026 A has 2 sizes [t1].", None),
        ("A costs 1,200 (euros) [t1].", None),
        ("A costs **1,200** [t1] million a year.", None),
        *((f"In 2026 A costs {figure} [t1].", None) for figure in UNCHECKED.split("|")),
        # Brackets in which more stands than ids, and numbers of lists that do not count up.
        ("In 2026 A has sizes [t1 999].", None),
        ("In 2026 A has sizes [t1, 999 euros].", None),
        ("In 2026 A has sizes [t1] [999].", None),
        ("In 2026 A has sizes [t1, says t2].", None),
        ("999. A is best in 2026 [t1].", None),
        ("A of 2026 has [t1]\n999. It is best [t1].", None),
        ("1. A has 2 sizes [t1].\n3. It is best [t1].", None),
        # Nothing that code could check.
        ("A is dearer [t1].", None),
        ("In 2026 A is dearer.", None),
    ],
)
def test_an_answer_is_checked_if_each_line_s_figures_stand_as_they_are_in_what_it_cites(
    answer: str, counts: tuple[int, int] | None
) -> None:
    checked = flag_unsupported(Synthesis(answer=answer), MATERIAL).checked
    assert (checked and (checked.figures, checked.citations)) == counts


def test_a_figure_of_a_finding_that_was_put_aside_is_not_made_up() -> None:
    answer = Synthesis(answer="A repair costs 1,330 [t1].")
    assert "1,330" in flag_unsupported(answer, MATERIAL).doubtful
    aside = MATERIAL.model_copy(update={"aside": ("A repair costs 1,330 in all.",)})
    assert flag_unsupported(answer, aside).doubtful == ()


def test_nothing_is_counted_for_a_plan_that_always_has_a_critic() -> None:
    always = MATERIAL.model_copy(update={"counted": False})
    written = flag_unsupported(Synthesis(answer="A costs 1,200 [t1]."), always)
    assert written.checked is None and "checked" not in written.model_dump()


@pytest.mark.parametrize(
    ("found", "answer", "same"),
    [
        ("It costs 1,200,500 a year.", "A costs 1200500 a year [t1].", True),
        ("It costs 1200.50 a year.", "A costs 1,200.50 a year [t1].", True),
        ("It costs 1,200 a year, 3,5 a day.", "A costs 1,200 a year [t1].", True),
        ("It costs 1,200 a year, 3,5 a day.", "A costs 1200 a year [t1].", False),
        ("It costs 1,200 a year, 1.500 before.", "A costs 1200 a year [t1].", False),
        ("It costs 12,00 a year.", "A costs 1200 a year [t1].", False),
        ("It costs 0,200 a year.", "A costs 0200 a year [t1].", False),
        ("It costs 1.5 a year.", "A costs 1,500 a year [t1].", False),
        ("12. It has many sizes.", "A has 12 sizes [t1].", False),
    ],
)
def test_a_comma_groups_thousands_only_where_it_can_mean_nothing_else(
    found: str, answer: str, same: bool
) -> None:
    finding = Finding(subtask_id="t1", status="complete", content=found)
    checked = flag_unsupported(
        Synthesis(answer=answer), MATERIAL.model_copy(update={"findings": (finding,)})
    ).checked
    assert bool(checked) is same


def test_figures_of_a_finding_that_is_data_are_found_without_the_quotes_of_json() -> None:
    data: dict[str, JsonValue] = {"price": 1200, "change": "12 %"}
    finding = Finding(subtask_id="t1", status="complete", content=as_text(data), data=data)
    material = MATERIAL.model_copy(update={"findings": (finding,)})
    written = flag_unsupported(Synthesis(answer="A costs 1,200, up 12 % [t1]."), material)
    assert written.checked and written.checked.figures == 2
