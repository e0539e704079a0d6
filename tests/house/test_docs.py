"""What the pages for people say exists: links, commands, targets, tests, and examples that load."""

from __future__ import annotations

import importlib.util
import re
import shlex
from collections.abc import Iterator
from pathlib import Path

import pytest
import typer

from examples import rows_of_playbooks
from holdfast.cli.main import program
from holdfast.deployment.settings import HOME, Settings
from pages import FIGURE, snippets
from pictures import PICTURES

PAGES = sorted([*HOME.glob("*.md"), *HOME.glob("docs/*.md")])
WITH_EXAMPLES = ("code-review", *(p.parent.name for p in sorted(HOME.glob("playbooks/*/examples"))))
"""Playbooks; the code review's example is the demo's."""
README = (HOME / "README.md").read_text(encoding="utf-8")
REPAIR = (HOME / "docs" / "repair.md").read_text(encoding="utf-8")
LINK = re.compile(r"\]\(([^)\s]+)\)")
FIGURES = (HOME / "docs" / "figures.md").read_text(encoding="utf-8")
SPAN = re.compile(r"`([^`\n]+)`")
OPTION = re.compile(r"(?<![\w-])--[a-z][a-z-]*")
REPEATED = re.compile(r"<!-- figures of: ([^\n]+) -->\n(.*?)(?:\n\n|\Z)", re.DOTALL)
SAMPLES = {"COMMAND": "list", "TIER": "sonnet", "SHELL": "bash"}
"""What a placeholder stands for where not anything would do."""
FOLDERS = "activities|bench|docs|holdfast|playbooks|prompts|roles|simulator|tests|workflows"
ADDED = {name for page in PAGES for each in snippets(page) if (name := each.name)}
"""Files that a page has its reader write."""
COMMANDS = getattr(typer.main.get_command(program()), "commands")  # noqa: B009
HEADING = re.compile(r"^#+ (.+)$", re.MULTILINE)


def spans(page: Path) -> Iterator[tuple[int, str]]:
    """What stands in backticks outside of fences, with its line."""
    fenced = False
    for number, line in enumerate(page.read_text(encoding="utf-8").splitlines(), 1):
        if line.strip().startswith("```"):
            fenced = not fenced
        elif not fenced:
            yield from ((number, span) for span in SPAN.findall(line))


def test_there_are_pages() -> None:
    names = {page.name for page in PAGES}
    assert {"README.md", "CONTRIBUTING.md", "CHANGELOG.md", "repair.md", "commands.md"} <= names


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_every_relative_link_leads_somewhere(page: Path) -> None:
    for link in LINK.findall(page.read_text(encoding="utf-8")):
        if re.match(r"[a-z]+:", link):
            continue
        path, _, anchor = link.partition("#")
        target = page.parent / path if path else page
        assert target.exists(), f"{page.name}: {link}"
        if anchor:
            titles = HEADING.findall(target.read_text(encoding="utf-8"))
            assert anchor in {
                re.sub(r"[^\w -]", "", each.lower()).replace(" ", "-") for each in titles
            }


def test_every_picture_is_shown_and_small() -> None:
    shown = {Path(link).name for page in PAGES for link in LINK.findall(page.read_text("utf-8"))}
    for picture in (HOME / "docs" / "images").iterdir():
        assert picture.name in shown
        assert picture.stat().st_size <= 200_000, f"{picture.name} slows the page down"


@pytest.mark.parametrize("name", WITH_EXAMPLES)
def test_each_playbook_has_a_page_with_example_picture_and_where_it_fails_and_a_row(
    name: str,
) -> None:
    page = (HOME / "docs" / f"{name}.md").read_text("utf-8")
    assert {"An example", "Where it fails"} <= {*HEADING.findall(page)}
    assert "](images/" in page
    given, comes, expected, scripted, fails = rows_of_playbooks()[name]
    assert given and comes and fails and "$" in expected and " calls" in scripted


def test_each_row_of_playbooks_is_of_one_and_the_readme_leads_there() -> None:
    assert {*rows_of_playbooks()} == {*WITH_EXAMPLES}
    assert "](docs/playbooks.md)" in README


def test_each_picture_that_is_made_anew_is_there() -> None:
    for name in PICTURES:
        assert (HOME / "docs" / "images" / f"{name}.png").is_file(), f"tests/pictures.py {name}"


def test_every_make_target_of_the_readme_exists() -> None:
    targets = set(re.findall(r"^([a-z-]+):", (HOME / "Makefile").read_text(), re.MULTILINE))
    named = set(re.findall(r"(?:`|^)make ([a-z-]+)", README, re.MULTILINE))
    assert {"demo", "test"} <= named <= targets


def test_every_command_that_a_page_names_is_one_that_the_starter_takes() -> None:
    parsed = 0
    for page in PAGES:
        for line, span in spans(page):
            words = shlex.split(span.partition("starter.py ")[2].partition(" | ")[0])
            if words:
                parsed += 1
                wrong = refusal([SAMPLES.get(word, word) for word in words if word != "…"])
                assert not wrong, f"{page.name} line {line}: `{span}`: {wrong}"
    assert parsed > 20


def test_a_row_of_the_readme_may_leave_out_the_program() -> None:
    rows = README.partition("## Steering")[2].partition("\n## ")[0]
    named = [
        (row, span) for row in rows.splitlines() for span in SPAN.findall(row) if row[0:1] == "|"
    ]
    assert len(named) > 10
    for row, span in named:
        words = shlex.split(span.removeprefix("starter.py "))
        wrong = refusal([SAMPLES.get(word, word) for word in words])
        assert not wrong, f"README.md: {row}: `{span}`: {wrong}"


def refusal(words: list[str]) -> str:
    """Why the starter refuses a command line; empty if it would run it. A bare name is a name."""
    command = COMMANDS.get(words[0])
    if command is None:
        return f"no such command: {words[0]}"
    if words[1:]:
        try:
            command.make_context(words[0], words[1:])
        except typer.TyperException as error:
            return error.format_message()
    return ""


def test_the_page_of_commands_names_no_option_that_its_command_does_not_take() -> None:
    text = (HOME / "docs" / "commands.md").read_text(encoding="utf-8")
    sections = re.findall(r"^## (`[^\n]+`)$(.*?)(?=^##? |\Z)", text, re.MULTILINE | re.DOTALL)
    assert len(sections) > 10
    for heading, section in sections:
        names = re.findall(r"`(\w+)", heading)
        assert set(names) <= set(COMMANDS), heading
        options = {each for name in names for item in COMMANDS[name].params for each in item.opts}
        told = {span for each in SPAN.findall(section) for span in OPTION.findall(each)}
        assert told <= options, f"{heading}: {sorted(told - options)} is no option of it"


def test_every_variable_that_a_page_names_is_read() -> None:
    known = {Settings.variable(name) for name in Settings.model_fields} | {"HOLDFAST_DEBUG"}
    known |= set(re.findall(r"HOLDFAST_\w+", (HOME / "docker-compose.yml").read_text("utf-8")))
    for page in PAGES:
        named = set(re.findall(r"\bHOLDFAST_[A-Z_]*[A-Z]\b", page.read_text(encoding="utf-8")))
        assert named <= known, f"{page.name}: {sorted(named - known)}"


def test_every_file_and_module_that_a_page_names_exists() -> None:
    for page in PAGES:
        for line, span in spans(page):
            for path in re.findall(rf"(?:^|\s)((?:{FOLDERS})/[\w./*-]*)(?:$|\s)", span):
                shown = path in ADDED or re.search(r"[A-Z]{3}", path)
                assert shown or list(HOME.glob(path.rstrip("/"))), (
                    f"{page.name} line {line}: {path}"
                )
            for module in re.findall(r"python -m ([\w.]+)", span):
                found = importlib.util.find_spec(module)
                assert found is not None, f"{page.name} line {line}: {module}"


@pytest.mark.parametrize("folder", ["holdfast", "activities"])
def test_contributing_says_of_each_room_where_it_is(folder: str) -> None:
    made = (path.parent for path in (HOME / folder).glob("*/__init__.py"))
    rooms = {f"{room.relative_to(HOME)}/" for room in made if not room.is_symlink()}
    page = (HOME / "CONTRIBUTING.md").read_text(encoding="utf-8")
    said = set(re.findall(rf"^({folder}/\w+/) +\w", page, re.MULTILINE))
    assert said == rooms


def test_every_name_that_a_page_places_in_a_file_is_there() -> None:
    """As in "`COMMANDS` in `holdfast/rules/steering.py`"."""
    seen = 0
    for page in PAGES:
        text = page.read_text(encoding="utf-8")
        for name, path in re.findall(r"`(\w+)`\s+(?:of|in)\s+`([\w/-]+\.(?:py|yaml))`", text):
            file = HOME / path
            assert file.exists(), f"{page.name}: {path}"
            found = re.search(rf"\b{name}\b", file.read_text(encoding="utf-8"))
            assert found, f"{page.name}: {path} has no {name}"
            seen += 1
    assert seen > 5


# ---------------------------------------------------------------- figures


def test_each_section_of_figures_has_its_command_and_tables_that_it_prints() -> None:
    kept = sections_of(FIGURES)
    for title, section in kept.items():
        modules = re.findall(r"`python -m (bench\.\w+)", section)
        assert modules, f"docs/figures.md, {title}: which command prints this?"
        printed = [
            columns for module in modules for columns in importlib.import_module(module).COLUMNS
        ]
        shown = [tuple(cells(head)) for head in re.findall(r"^(\|.*)\n\|[-:|]+$", section, re.M)]
        assert shown and set(shown) <= set(printed), f"docs/figures.md, {title}"


def test_a_figure_that_is_said_twice_is_the_same() -> None:
    """`<!-- figures of: TITLE -->` stands above a paragraph or a table whose figures are there."""
    seen = 0
    for page in PAGES:
        for title, after in REPEATED.findall(page.read_text(encoding="utf-8")):
            source = set(re.findall(FIGURE, sections_of(FIGURES)[title]))
            here = set(re.findall(FIGURE, SPAN.sub("", after)))
            wrong = sorted(here - source)
            assert here and not wrong, f"{page.name}: not in docs/figures.md, {title}: {wrong}"
            seen += 1
    assert seen >= 2


def sections_of(text: str) -> dict[str, str]:
    """title -> text of the sections of a page."""
    section = re.compile(r"^## ([^\n]+)\n(.*?)(?=^## |\Z)", re.MULTILINE | re.DOTALL)
    return dict(section.findall(text))


def cells(line: str) -> list[str]:
    return [each.strip() for each in line.strip().strip("|").split("|")]


def test_every_test_that_repair_names_exists_and_each_row_names_one() -> None:
    named = re.findall(r"`(test_\w+)`", REPAIR)
    modules = HOME.glob("tests/**/test_*.py")
    known = {
        name for each in modules for name in re.findall(r"def (test_\w+)", each.read_text("utf-8"))
    }
    assert set(named) <= known, f"unknown: {sorted(set(named) - known)}"
    rows = [
        line
        for line in REPAIR.splitlines()
        if line.startswith("|") and not line.startswith(("|-", "| what happened"))
    ]
    assert len(rows) == len(named) > 40, "every row is shown by one test"


def test_every_behaviour_of_repair_has_its_row() -> None:
    text = (HOME / "tests" / "workflows" / "test_repair.py").read_text(encoding="utf-8")
    shown = {name for name in re.findall(r"^async def (test_\w+)", text, re.MULTILINE)}
    assert sorted(shown - set(re.findall(r"`(test_\w+)`", REPAIR))) == []
