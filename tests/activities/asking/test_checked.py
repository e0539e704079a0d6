"""Every figure and every citation of an answer, held against the findings that its lines cite."""

from __future__ import annotations

import pytest

from holdfast.activities.asking.provenance import flag_unsupported
from holdfast.calls.synthesize import SynthesisMaterial
from holdfast.contracts import Finding, Subtask, Synthesis

FOUND = {
    "t1": "Vendor A costs 1,200 a year, in 2 sizes; see https://a.example/price.",
    "t2": "Vendor B has sold 412 thousand.",
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


@pytest.mark.parametrize(
    ("answer", "counts"),
    [
        ("A costs 1200 a year [t1].", (1, 1)),
        ("1. In 2026 A has 2 sizes [t1].\n2. B sold 412,000 [t2].", (3, 2)),
        ("B sold 412 thousand, A costs 1,200 [t1, t2].", (2, 2)),
        ("A costs 1,200 [t1], see https://a.example/price", (1, 1)),
        ("# Prices\n\nA is the dear one.\n\n| A | 1,200 | [t1] |", (1, 1)),
        # In another finding than the one that is cited, or in none.
        ("A costs 1,200 [t2].", None),
        ("A costs 1,200.\n\nSo it is [t1].", None),
        ("A costs 1,300 [t1].", None),
        ("A has 3 sizes [t1].", None),
        ("A costs 1,200 [t1], which is 2400 for two years.", None),
        ("A costs 1,200 [t1], and nothing is known of C [t3].", None),
        ("A costs 1,200 [t1] [t9].", None),
        ("A costs 1,200 [t1], see https://b.example/price", None),
        # Nothing that code could check.
        ("A is dearer [t1].", None),
        ("In 2026 A is dearer.", None),
    ],
)
def test_an_answer_is_checked_if_each_line_s_figures_stand_in_what_it_cites(
    answer: str, counts: tuple[int, int] | None
) -> None:
    checked = flag_unsupported(Synthesis(answer=answer), MATERIAL).checked
    assert (checked and (checked.figures, checked.citations)) == counts


def test_nothing_is_counted_for_a_plan_that_always_has_a_critic() -> None:
    always = MATERIAL.model_copy(update={"counted": False})
    written = flag_unsupported(Synthesis(answer="A costs 1,200 [t1]."), always)
    assert written.checked is None and "checked" not in written.model_dump()
