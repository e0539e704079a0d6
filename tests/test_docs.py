"""What the pages for people say exists: links, commands, targets, tests, and examples that load."""

from __future__ import annotations

import importlib.util
import re
import shutil
from pathlib import Path

import pytest

from activities.analysers.lens import Analyser
from activities.catalogue import Catalogue
from cli.main import app
from orchestrator.settings import HOME

PAGES = sorted([*HOME.glob("*.md"), *HOME.glob("docs/*.md")])
README = (HOME / "README.md").read_text(encoding="utf-8")
REPAIR = (HOME / "docs" / "repair.md").read_text(encoding="utf-8")
LINK = re.compile(r"\]\(([^)\s]+)\)")
HEADING = re.compile(r"^#+ (.+)$", re.MULTILINE)
EXAMPLE = re.compile(r"`((?:roles|playbooks|activities)/\S+)`[^\n]*\n\n```\w+\n(.*?)```", re.DOTALL)


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


def test_every_make_target_of_the_readme_exists() -> None:
    targets = set(re.findall(r"^([a-z]+):", (HOME / "Makefile").read_text(), re.MULTILINE))
    named = set(re.findall(r"(?:`|^)make ([a-z]+)", README, re.MULTILINE))
    assert {"demo", "test"} <= named <= targets


def test_every_command_of_the_readme_exists() -> None:
    commands = {each.name for each in app.registered_commands}
    named = set(re.findall(r"starter\.py ([a-z]+)", README))
    # A row of the table may name further commands without repeating the program.
    named |= set(
        re.findall(
            r", `([a-z]+)(?: ID[^`]*)?`", README.partition("## Steering")[2].partition("\n## ")[0]
        )
    )
    assert {"run", "watch", "approve", "skip"} <= named
    assert named <= commands, f"unknown: {sorted(named - commands)}"


def test_every_test_that_repair_names_exists_and_each_row_names_one() -> None:
    named = re.findall(r"`(test_\w+)`", REPAIR)
    modules = [HOME / path for path in re.findall(r"`(tests/test_\w+\.py)`", REPAIR)]
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
    text = (HOME / "tests" / "test_repair.py").read_text(encoding="utf-8")
    shown = {name for name in re.findall(r"^async def (test_\w+)", text, re.MULTILINE)}
    assert sorted(shown - set(re.findall(r"`(test_\w+)`", REPAIR))) == []


def test_the_role_and_the_playbook_of_the_readme_load(tmp_path: Path) -> None:
    for folder in ("roles", "playbooks"):
        shutil.copytree(HOME / folder, tmp_path / folder)
    examples = {path: text for path, text in EXAMPLE.findall(README) if not path.endswith(".py")}
    assert {Path(path).suffix for path in examples} == {".md", ".yaml"}
    for path, text in examples.items():
        assert not (tmp_path / path).exists(), "an example shows how to add something new"
        (tmp_path / path).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / path).write_text(text, encoding="utf-8")
    catalogue, before = Catalogue.load(tmp_path), Catalogue.load()
    assert len(catalogue.roles) == len(before.roles) + 1
    assert len(catalogue.playbooks) == len(before.playbooks) + 1


def test_the_analyser_of_the_readme_is_one(tmp_path: Path) -> None:
    [(path, code)] = [each for each in EXAMPLE.findall(README) if each[0].endswith(".py")]
    file = tmp_path / Path(path).name
    file.write_text(code, encoding="utf-8")
    spec = importlib.util.spec_from_file_location("example", file)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    assert isinstance(module.ANALYSER, Analyser)
    assert module.ANALYSER.name == file.stem
