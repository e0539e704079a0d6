"""What is the same in two runs is said once, and what differs is shown."""

from __future__ import annotations

import html
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from typing import Any

import pytest

from holdfast.contracts import Finding, Plan, Remark, Report, Subtask, Timings
from holdfast.rendering import compared
from holdfast.rendering.comparing import MOST_SHOWN, compare

START = datetime(2026, 1, 1, tzinfo=UTC)


def subtask(id: str, title: str = "", **fields: Any) -> Subtask:
    base = {"id": id, "title": title or f"Part {id}", "instruction": "do it", "role": "analyst"}
    return Subtask.model_validate({**base, **fields})


def finding(id: str, content: str = "found", **fields: Any) -> Finding:
    base = {
        "subtask_id": id,
        "status": "complete",
        "content": content,
        "model": "haiku",
        "confidence": 80,
        "dollars": Decimal("0.01"),
        "started": START,
        "finished": START + timedelta(seconds=4),
    }
    return Finding.model_validate({**base, **fields})


def run(id: str = "run-a", **fields: object) -> Report:
    base = {
        "status": "complete",
        "run_id": id,
        "goal": "Compare engines",
        "answer": "A wins.",
        "plan": Plan(goal="g", subtasks=(subtask("t1"), subtask("t2"))),
        "findings": (finding("t1"), finding("t2")),
        "model_calls": 3,
        "dollars": "0.02",
        "timings": Timings(makespan=5),
    }
    return Report.model_validate({**base, **fields})


def shown(a: Report, b: Report) -> str:
    return compared.as_markdown(compare(a, b), lambda command, run_id: f"{command} {run_id}")


def read(a: Report, b: Report) -> str:
    """What is shown, as a reader of Markdown has it."""
    return html.unescape(shown(a, b)).replace("\\$", "$")


def remark(file: str, fingerprint: str = "", **fields: object) -> Remark:
    base = {
        "severity": "warning",
        "file": file,
        "line": 3,
        "message": f"odd in {file}",
        "confidence": 90,
        "lens": "security",
        "rule": "B1",
        "fingerprint": fingerprint,
    }
    return Remark.model_validate({**base, **fields})


def review(id: str, *remarks: Remark, lens: str = "complete") -> Report:
    told = [each.model_dump(mode="json") for each in remarks]
    found = finding("security", status=lens, why="" if lens == "complete" else "timed out")
    plan = Plan(goal="g", subtasks=(subtask("security"),))
    return run(id, plan=plan, findings=(found,), data={"remarks": told})


def test_of_two_runs_that_are_alike_each_thing_is_said_once() -> None:
    page = read(run("run-a"), run("run-b"))
    assert "| A | B |" not in page
    assert "The same in both: status: Complete; price: $0.02; calls: 3 model calls;" in page
    assert "The same in both: t1, t2." in page
    assert page.endswith("## Answer\n\nThe same in both.\n")
    assert page.count("Compare engines") == 1


def test_status_price_calls_and_time_that_differ_stand_beside_each_other() -> None:
    other = run(
        "run-b",
        status="complete_with_gaps",
        dollars="0.05",
        model_calls=9,
        goal="Compare boats",
        timings=Timings(makespan=70),
    )
    page = read(run(), other)
    for row in (
        "| About | Compare engines | Compare boats |",
        "| Status | Complete | Complete, with gaps |",
        "| Price | $0.02 | $0.05 |",
        "| Calls | 3 model calls | 9 model calls |",
        "| Time | 5.0 s | 1 min 10 s |",
    ):
        assert row in page


def test_subtasks_are_paired_by_what_they_are_about_and_not_by_their_number() -> None:
    plan = Plan(goal="g", subtasks=(subtask("t1", "Weather"), subtask("t2", "Part t1")))
    made = compare(run(), run("run-b", plan=plan))
    assert [each.title for each in made.only_a] == ["Part t2"]
    assert [each.title for each in made.only_b] == ["Weather"]
    (pair,) = made.both
    assert (pair.a.id, pair.b.id, pair.differs) == ("t1", "t2", ())
    assert "Only in A: **t2 Part t2**: complete, analyst, haiku, $0.01, 4.0 s" in shown(
        run(), run("run-b", plan=plan)
    )


@pytest.mark.parametrize(
    ("theirs", "planned", "differs", "said"),
    [
        (
            {"status": "failed", "why": "no answer"},
            {},
            "status",
            "A complete, B failed (no answer)",
        ),
        ({"model": "sonnet"}, {}, "model", "model haiku in A, sonnet in B"),
        ({"confidence": 55}, {}, "confidence", "confidence 80 in A, 55 in B"),
        ({"content": "other"}, {}, "text", "says something else"),
        ({}, {"instruction": "do that"}, "plan", "planned in another way"),
        ({}, {"depends_on": ("t1",)}, "plan", "planned in another way"),
        ({}, {"role": "writer"}, "role", "role analyst in A, writer in B"),
        ({"dollars": Decimal(9)}, {}, "", ""),
    ],
)
def test_of_a_subtask_in_both_only_what_differs_is_told(
    theirs: dict[str, Any], planned: dict[str, Any], differs: str, said: str
) -> None:
    plan = Plan(goal="g", subtasks=(subtask("t1"), subtask("t2", **planned)))
    other = run("run-b", plan=plan, findings=(finding("t1"), finding("t2", **theirs)))
    pair = next(each for each in compare(run(), other).both if each.a.id == "t2")
    assert (differs in pair.differs) if differs else pair.differs == ()
    assert said in shown(run(), other)


def test_edges_to_a_subtask_of_another_number_are_the_same_edges() -> None:
    ours = Plan(
        goal="g", subtasks=(subtask("t1", "First"), subtask("t2", "Then", depends_on=("t1",)))
    )
    theirs = Plan(
        goal="g", subtasks=(subtask("x", "First"), subtask("y", "Then", depends_on=("x",)))
    )
    one, other = run(plan=ours), run("run-b", plan=theirs, findings=(finding("x"), finding("y")))
    assert [each.differs for each in compare(one, other).both] == [(), ()]


def test_remarks_are_new_gone_or_kept_by_fingerprint_also_where_lines_moved() -> None:
    moved = remark("b.py", "2", line=90)
    made = compare(
        review("a", remark("a.py", "1"), remark("b.py", "2")),
        review("b", moved, remark("c.py", "3")),
    ).remarks
    assert made is not None
    assert ([each.file for each in made.new], [each.file for each in made.gone], made.kept) == (
        ["c.py"],
        ["a.py"],
        1,
    )
    page = shown(review("a", remark("a.py", "1")), review("b"))
    assert "0 new in B, 1 gone, 0 kept." in page and "`a.py:3` odd in a.py" in page
    assert "## Answer" not in page, "the answer of a review is made of its remarks"
    assert "The same in both: 1 remark." in shown(review("a", moved), review("b", moved))


def test_a_remark_whose_lens_failed_in_the_other_run_is_not_called_gone() -> None:
    made = compare(review("a", remark("a.py", "1")), review("b", lens="failed")).remarks
    assert made is not None and made.gone == ()
    assert [each.file for each in made.not_looked_for] == ["a.py"]


def test_the_words_of_a_lens_are_not_compared_as_its_remarks_are() -> None:
    other = review("b")
    (found,) = other.findings
    data = {"remarks": [], "files_read": 9}
    ours = review("a").model_copy(
        update={"findings": (found.model_copy(update={"content": "4 files", "data": data}),)}
    )
    theirs = other.model_copy(
        update={"findings": (found.model_copy(update={"content": "9 files", "data": data}),)}
    )
    assert [each.differs for each in compare(ours, theirs).both] == [()]


def test_a_remark_that_is_not_listed_is_neither_new_nor_gone() -> None:
    hidden = remark("a.py", "1", hidden="known")
    made = compare(review("a"), review("b", hidden)).remarks
    assert made is not None and (made.new, made.gone, made.kept) == ((), (), 0)


def test_the_difference_of_answers_is_bounded_and_counts_what_is_left_out() -> None:
    long = "\n".join(f"line {number}" for number in range(100))
    made = compare(run(answer="A wins.\nBoth are old."), run("b", answer="B wins.\nBoth are old."))
    assert made.answer == ("-A wins.", "+B wins.")
    made = compare(run(answer=""), run("b", answer=long))
    assert (len(made.answer), made.answer_left_out) == (MOST_SHOWN, 100 - MOST_SHOWN)
    assert "And 60 lines more that differ." in shown(run(answer=""), run("b", answer=long))
    assert len(compare(run(answer="x" * 9_000), run("b")).answer[0]) < 500


def test_what_models_wrote_stays_text() -> None:
    plan = Plan(goal="g", subtasks=(subtask("t9", "<b>[x](http://a.b)| \x1b[31m"),))
    page = shown(run(goal="*bold*\x1b"), run("b", goal="`c`|d", plan=plan, answer="```\n\x1b[2J"))
    assert "\x1b" not in page and "<b>" not in page and "[x](" not in page
    assert "    +```" in page
