"""No sentence is torn: what a re-wrap or an edit left short in mid-paragraph, in docstrings, in
prompts and on the pages for people.

A docstring is filled to its column and leaves no word or two alone on its last line. In Markdown
one paragraph, or one item of a list, is one line: no column has to be kept.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path

import pytest

from deployment.settings import HOME

COLUMN = 100
CODE = sorted(
    path
    for folder in ("", *(each.name for each in HOME.iterdir() if each.is_dir()))
    if not folder.startswith(".")
    for path in (HOME / folder).glob("**/*.py" if folder else "*.py")
)
PAGES = sorted(
    [
        *HOME.glob("*.md"),
        *(path for each in ("docs", "prompts", "roles") for path in (HOME / each).glob("*.md")),
        *HOME.glob("playbooks/*/roles/*.md"),
    ]
)
ITEM = re.compile(r"([-*]|\d+[.)]) ")
APART = re.compile(r"\||#|<|---|\[[^\]]+\]: |.*\S {3,}\S")
"""Rows and columns, headings, HTML, rules and the targets of links: each a line of its own."""


def docstrings(source: str) -> Iterator[tuple[int, list[str]]]:
    """(line, lines) of every string that stands for itself: of modules, classes, functions and
    names, without its quotes.
    """
    lines = source.split("\n")
    for node in ast.walk(ast.parse(source)):
        if not isinstance(node, ast.Expr) or not isinstance(node.value, ast.Constant):
            continue
        if isinstance(node.value.value, str):
            found = lines[node.lineno - 1 : node.end_lineno]
            indent = " " * node.col_offset
            found[0] = found[0].replace('r"""', "", 1).replace('"""', "", 1)
            found[-1] = found[-1].rstrip().removesuffix('"""')
            # The first line begins behind the quotes, which take their room.
            yield node.lineno, [indent + '"""' + found[0].strip(), *found[1:]]


def paragraphs(lines: list[str]) -> Iterator[list[tuple[int, str]]]:
    """The paragraphs of a docstring, with the numbers of their lines. What is indented further, a
    picture or an example, is none; an item of a list begins one of its own.
    """
    indent = len(lines[0]) - len(lines[0].lstrip())
    part: list[tuple[int, str]] = []
    for number, line in enumerate([*lines, ""]):
        text = line[indent:]
        if not text.strip() or text.startswith(" ") or APART.match(text) or ITEM.match(text):
            if part:
                yield part
            part = []
        if text.strip() and not text.startswith(" ") and not APART.match(text):
            part.append((number, line.rstrip()))
    if part:
        yield part


def torn(lines: list[str]) -> list[str]:
    """Lines of a docstring behind which the first word of the next would have fitted."""
    return [
        line.strip()
        for part in paragraphs(lines)
        for (_, line), (_, after) in pairwise(part)
        if len(line) + 1 + len(after.split()[0]) <= COLUMN
    ]


def widowed(lines: list[str]) -> bool:
    """Whether the last line of a docstring is a word or two that are left over, or only the quotes
    behind a sentence that fills its line.
    """
    written = [number for number, line in enumerate(lines) if line.strip()]
    if len(written) == 1:
        return len(lines) > 1
    *_, last = ([], *paragraphs(lines))
    return len(last) > 1 and last[-1][0] == written[-1] and len(last[-1][1].split()) <= 2


def continued(text: str) -> Iterator[tuple[int, str]]:
    """Lines of a page that go on with the paragraph of the line before them. What stands in a
    fence, or as front matter before the text, is none.
    """
    open_paragraph = False
    fence = "---" if text.startswith("---\n") else ""
    for number, line in enumerate(text.split("\n"), 1):
        bare = line.strip()
        if fence and number > 1:
            fence = "" if bare.startswith(fence) else fence
        elif bare.startswith("```"):
            fence, open_paragraph = "```", False
        elif not bare or APART.match(bare):
            open_paragraph = False
        elif ITEM.match(bare) or not open_paragraph:
            open_paragraph = True
        else:
            yield number, bare


FULL = (
    "This sentence goes on until nothing more fits behind it, because its line is as long as it may"
)
EXAMPLES = {
    f'"""{FULL}\nbe, and longer."""': (),
    '"""Too short,\nand it goes on."""': ("torn",),
    f'"""{FULL}\nbe."""': ("widowed",),
    f'"""{FULL}.\n"""': ("widowed",),
    '"""A picture:\n\n    short\n    lines\n"""': (),
    '"""A list:\n\n- one\n- two\n"""': (),
    '"""Columns:\n\nlock     one at a time\nlease    many\n"""': (),
}


@pytest.mark.parametrize(("source", "wrong"), EXAMPLES.items())
def test_only_what_is_torn_or_left_alone_is_found(source: str, wrong: tuple[str, ...]) -> None:
    ((_, lines),) = docstrings(source)
    found = [("torn", torn(lines)), ("widowed", widowed(lines))]
    assert tuple(name for name, any_of_it in found if any_of_it) == wrong


def test_only_what_goes_on_with_a_paragraph_is_found() -> None:
    page = "---\nname: a\nmodel: b\n---\nOne.\n\n- item\n- item\n\n```sh\na\nb\n```\n| a |\n| b |\n"
    assert [*continued(page)] == []
    assert [*continued(f"{page}- item\n  that goes on\n")] == [(17, "that goes on")]


@pytest.mark.parametrize("path", CODE, ids=lambda path: str(path.relative_to(HOME)))
def test_no_docstring_is_torn_or_leaves_a_word_alone(path: Path) -> None:
    for number, lines in docstrings(path.read_text("utf-8")):
        short = torn(lines)
        assert not short, f"line {number}: more would fit behind: {short}"
        assert not widowed(lines), f"line {number}: shorten it, a word or two stand alone"


@pytest.mark.parametrize("path", PAGES, ids=lambda path: str(path.relative_to(HOME)))
def test_a_paragraph_of_a_page_is_one_line(path: Path) -> None:
    wrapped = [f"{number}: {line}" for number, line in continued(path.read_text("utf-8"))]
    assert not wrapped, "join each of these with the line before it"
