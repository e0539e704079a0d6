"""The pages for people are followed to the letter: each snippet is run, written or compared as it
stands, in order, in a copy of the project.

`python tests/scratch.py PAGE` prints what each snippet of a page prints now.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from holdfast.deployment.settings import HOME
from pages import Snippet, difference, shape, snippets
from scratch import Scratch, followed, scratch

PAGES = ("README.md", "CONTRIBUTING.md", *sorted(f"docs/{p.name}" for p in HOME.glob("docs/*.md")))
WITH_SNIPPETS = tuple(page for page in PAGES if snippets(HOME / page))
FILES = {"markdown", "yaml", "json", "python", "toml"}
# One reader follows all pages, in order.
pytestmark = pytest.mark.long


@pytest.fixture(scope="module")
def reader() -> Iterator[Scratch]:
    with scratch() as made:
        yield made


@pytest.mark.timeout(900)
@pytest.mark.parametrize("page", WITH_SNIPPETS)
def test_a_page_does_what_it_says(page: str, reader: Scratch) -> None:
    wrong = []
    for ran in followed(reader, HOME / page):
        wrong += [ran.wrong] if ran.wrong else []
    assert not wrong, "\n\n".join(wrong) + f"\n\nall of it: python tests/scratch.py {page}"


def test_nearly_everything_is_run_and_each_exception_has_a_reason() -> None:
    every = [each for page in PAGES for each in snippets(HOME / page)]
    left = [reason for each in every if (reason := each.note("not run:")) is not None]
    assert all(left)
    assert len(left) * 6 < len(every), "a page is for doing what it says"


def test_each_exemption_has_its_reason() -> None:
    for page in PAGES:
        for each in snippets(HOME / page):
            reason = each.note("not run:")
            assert reason is None or len(reason.split()) >= 2, f"{each.place}: why is it not run?"


def test_each_fence_says_what_it_holds() -> None:
    for page in PAGES:
        commands = False
        for each in snippets(HOME / page):
            assert each.language in {"sh", "text", *FILES}, f"{each.place}: {each.language!r}"
            if each.language == "sh":
                commands = True
            elif each.language == "text" and not each.note("paths of"):
                assert commands or each.note("not run:"), f"{each.place}: printed by what?"


# ---------------------------------------------------------------- the comparison itself


def said(text: str, *notes: str) -> Snippet:
    return Snippet(HOME / "README.md", 10, "text", text, notes=notes)


def test_other_ids_times_and_figures_are_the_same_text() -> None:
    page = "Run: code-review-1122-dxb05\n   0.4 s  working, 1,200 files\n"
    assert difference(said(page), "Run: goal-0101-aaaaa\n 1 min 2 s  working, 9 files\n") == ""


@pytest.mark.parametrize(
    ("page", "printed", "fault"),
    [
        ("one\ntwo\n", "one\nthree\n", "line 11: says 'two'"),
        ("one\n", "one\ntwo\n", "line 10: more was printed"),
        ("two\n", "one\ntwo\n", "line 10: says 'two'"),
        ("…\none\n…\ntwo\n…\n", "two\none\n", "line 13: says 'two'"),
        ("…\none\ntwo\n…\n", "one\n\nmore\ntwo\n", "line 12: says 'two'"),
        ("took 3 s\n", "took 3\n", "line 10: says 'took 3 s'"),
        ("…\none\n", "one\ntwo\n", "line 11: more was printed"),
    ],
)
def test_what_was_not_printed_in_that_order_is_named_by_its_line(
    page: str, printed: str, fault: str
) -> None:
    assert fault in difference(said(page), printed)


def test_what_is_left_out_may_be_anything() -> None:
    printed = "first\nnoise\n\none 7\ntwo, and so on\nnoise\nlast\n"
    assert difference(said("first\n…\none 3\ntwo…\n…\nlast\n"), printed) == ""
    assert difference(said("…\ntwo…\n…\n"), printed) == ""


def test_figures_are_compared_where_the_page_says_so() -> None:
    assert difference(said("$0.25\n"), "$0.35\n") == ""
    assert "says '$0.25'" in difference(said("$0.25\n", "figures: exact"), "$0.35\n")
    assert shape("after 3 s: 5", exact=True).fullmatch("after 9.5 s: 5")


def test_a_file_has_the_name_in_the_line_above_and_comments_are_seen(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    page.write_text(
        "A role, `roles/a.md` and more:\n\n```markdown\na\n```\n\n1. So:\n\n"
        "   <!-- not run: no -->\n   ```sh\n   x\n     y\n   ```\n"
    )
    first, second = snippets(page)
    assert (first.name, first.text, first.line) == ("roles/a.md", "a\n", 4)
    assert (second.note("not run:"), second.text, second.line) == ("no", "x\n  y\n", 11)
    page.write_text("```sh\nx\n")
    with pytest.raises(ValueError, match=r"page\.md line 1"):
        snippets(page)
