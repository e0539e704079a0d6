"""What the citations of an answer rest on, in one order wherever it is read."""

from __future__ import annotations

import re

from holdfast.cli.screen.plain import as_text
from holdfast.client.documents import as_markdown
from holdfast.contracts import Finding, PinnedInput, Plan, Report, Subtask
from holdfast.rendering import markdown
from holdfast.rendering.blocks import listed
from holdfast.rendering.html.page import as_html
from holdfast.rendering.html.pictured import Pictured
from holdfast.rendering.sources import FEW, MOST_HOPS, cited_in, footnotes, items
from paged import shown

PAGE = 'rates.pdf, page 3: "The rate rose to 4.2 % in May."'
CELL = "prices.xlsx, sheet 2026, cell B7"


def report(answer: str, inputs: tuple[str, ...] = (), **sources: tuple[str, ...]) -> Report:
    """A run with a finding for each id, each subtask built on the one before."""
    ids = list(sources)
    planned = tuple(
        Subtask(
            id=id,
            title=f"About {id}",
            instruction="i",
            role="analyst",
            depends_on=tuple(ids[n - 1 : n]) if n else (),
        )
        for n, id in enumerate(ids)
    )
    found = tuple(
        Finding(subtask_id=id, status="complete", content="c", sources=each)
        for id, each in sources.items()
    )
    return Report(
        status="complete",
        run_id="r",
        goal="g",
        plan=Plan(goal="g", subtasks=planned),
        findings=found,
        answer=answer,
        inputs=tuple(PinnedInput(name=each, kind="text", size=1) for each in inputs),
    )


def read(report: Report, *, whole: bool = True) -> list[str]:
    """The footnotes, as a pipe has them."""
    return as_text(markdown.write(listed(items(report, whole=whole)))).split("\n")


def test_footnotes_have_the_order_of_the_answer_and_then_of_the_plan() -> None:
    made = report("B [t3], A [T1, t3].", t1=(PAGE,), t2=(CELL,), t3=("notes.md, line 9",))
    assert [(each.subtask_id, each.cited) for each in footnotes(made)] == [
        ("t3", True),
        ("t1", True),
        ("t2", False),
    ]
    assert read(made) == [
        "- [t3] About t3: notes.md, line 9",
        f"- [t1] About t1: {PAGE}",
        f"- [t2] About t2 (not cited in the answer): {CELL}",
    ]


def test_of_an_answer_that_cites_nothing_no_source_is_called_uncited() -> None:
    assert [each.cited for each in footnotes(report("A.", t1=(PAGE,), t2=()))] == [True]


def test_a_source_that_is_a_finding_is_told_by_that_findings_own_sources() -> None:
    made = report("A [t3].", t1=(PAGE,), t2=("[t1]", CELL), t3=("subtask t2",))
    (note, *_) = footnotes(made)
    assert [(each.text, each.via) for each in note.sources] == [
        (PAGE, ("t2", "t1")),
        (CELL, ("t2",)),
    ]
    assert read(made)[1:3] == [f"  - {PAGE} (by way of [t2], [t1])", f"  - {CELL} (by way of [t2])"]


def test_findings_that_name_each_other_end_and_a_long_chain_is_cut() -> None:
    (note, *_) = footnotes(report("A.", t1=("t2",), t2=("t1",)))
    assert [each.text for each in note.sources] == ["[t2]"]
    chain = {f"t{n}": (f"t{n - 1}",) for n in range(1, 500)}
    (note, *_) = footnotes(report("A [t499].", t0=(PAGE,), **chain))
    assert [len(each.via) for each in note.sources] == [MOST_HOPS]
    assert note.sources[0].text == f"[t{499 - MOST_HOPS - 1}]"


def test_an_input_that_is_called_like_a_finding_stays_an_input() -> None:
    (note, *_) = footnotes(report("A [b].", ("a",), a=(PAGE,), b=("a",)))
    assert [each.text for each in note.sources] == ["a"]


def test_a_cited_finding_without_a_source_says_so_and_what_it_was_given() -> None:
    made = report("A [t2].", t1=(), t2=())
    assert read(made)[0] == "- [t2] About t2: names no source; it was given [t1]"
    page = as_html(Pictured(made, lambda command, run: f"{command} {run}"))
    assert "names no source; it was given" in page


def test_the_short_form_names_findings_without_a_source_in_one_line() -> None:
    made = report("A [t3], B [t1, t2].", t1=(PAGE,), t2=(), t3=(), t4=(CELL,))
    assert read(made, whole=False) == [
        f"- [t1] About t1: {PAGE}",
        "- [t3], [t2] name no source",
        "- and the sources of 1 finding that the answer does not cite",
    ]


def test_only_what_stands_in_brackets_and_is_known_is_cited() -> None:
    ids = {"t1": 0, "t2": 0}
    assert cited_in("t2 [see T2; t9] and [t1](https://example.org)", ids) == ("t2",)


def test_the_short_form_names_few_sources_of_a_finding_and_says_how_many_more() -> None:
    many = tuple(f"book.pdf, page {n}" for n in range(1, FEW + 4))
    made = report("A [t1].", t1=many, t2=(CELL,))
    short, whole = (as_text(as_markdown(made, whole=each)) for each in (False, True))
    note = short.partition("\nSources\n")[2]
    assert f"page {FEW}\n" in note and f"page {FEW + 1}" not in note and "  - and 3 more" in note
    assert "- and the sources of 1 finding that the answer does not cite" in note
    assert CELL in whole and CELL not in short
    assert f"page {FEW + 3}" in whole.partition("\nSources\n")[2].partition("\nFindings\n")[0]


def test_page_and_markdown_and_terminal_have_one_order() -> None:
    run = shown(9, orders=())
    said = ("What is missing", "Notes", "Plan", "Time", "Money", "Sources", "Findings")
    whole = as_markdown(run.report)
    assert re.findall(rf"^## ({'|'.join(said)})$", whole, re.MULTILINE) == [*said]
    page = as_html(run)
    anchors = ("answer", "missing", "notes", "plan", "money", "sources", "findings")
    places = [
        page.index(f'<section class="card{" warnings" * (each == "missing")}" id="{each}"')
        for each in anchors
    ]
    assert places == sorted(places)
    shown_ids = re.findall(r'<li id="source-\d+"><strong>\[<a[^>]*>(t\d+)', page)
    listed = re.findall(r"^- \*\*\\\[(t\d+)", whole.partition("## Sources")[2], re.MULTILINE)
    assert shown_ids == listed == [each.subtask_id for each in run.footnotes]
    assert shown_ids[:3] == ["t1", "t2", "t3"]


def test_a_short_report_ends_with_its_sources_and_what_to_type() -> None:
    text = as_text(as_markdown(shown(3).report, whole=False))
    heads = re.findall(r"^(.+)\n-+$", text, re.MULTILINE)
    assert heads[-2:] == ["Sources", "To go on"]
