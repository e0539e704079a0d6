"""What CONTRIBUTING says of adding things is true: one of each is added to a copy of the project,
to no files but those that its row names, works there, and is found by what walks over all there is.
"""

from __future__ import annotations

import hashlib
import os
import re
import shutil
import subprocess
import sys
import xml.etree.ElementTree as Xml
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import pytest

from additions import ADDITIONS, Addition
from holdfast.deployment.settings import HOME

WALKING: Mapping[str, tuple[str, ...]] = {
    "activities/code_review/test_analysers.py": (
        "test_every_lens_is_found_under_its_own_name",
        "test_each_analyser_has_a_table_of_its_grades_to_print",
    ),
    "activities/toolset/test_shelf.py": (
        "test_the_table_of_tools_has_a_row_for_each_with_its_seconds_and_needs",
    ),
    "activities/test_catalogue.py": (),
    "activities/test_preparation.py": (
        "test_a_run_without_a_model_gets_no_models_and_only_the_roles_it_can_serve",
    ),
    "activities/test_prompts.py": (),
    "cli/test_cli.py": ("test_every_command_is_there_and_says_what_it_does",),
    "cli/test_steering_cli.py": ("test_every_update_has_a_command",),
    "deployment/test_identity.py": (),
    "house/test_docs.py": (),
    "house/test_packaging.py": (
        "test_the_example_environment_is_what_the_settings_print_and_sets_none",
    ),
    "orchestrator/test_answers.py": (),
    "orchestrator/test_checks.py": (
        "test_a_planner_is_told_every_kind_of_check_with_its_argument",
    ),
    "orchestrator/test_fields.py": (),
}
"""The tests that walk over all roles, lenses, checks, calls or settings. No name: all."""
KEPT = ("__pycache__", ".pytest_cache", ".hypothesis")
PYTHON = (sys.executable, "-m")
SECONDS = 500
"""For the tests of the copy, which take a fifth of that where nothing else runs."""
pytestmark = [pytest.mark.long, pytest.mark.timeout(600)]


@dataclass(frozen=True)
class Copy:
    """The copy, after all was added and its tests have run."""

    written: Mapping[str, frozenset[str]]
    """Row -> the files that its addition changed."""
    changed: frozenset[str]
    """All files that are other than here."""
    passed: frozenset[str]
    """Names of tests."""
    failed: str


@pytest.fixture(scope="module")
def copy(tmp_path_factory: pytest.TempPathFactory) -> Copy:
    home = tmp_path_factory.mktemp("copy")
    listed = ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"]
    names = subprocess.run(listed, cwd=HOME, check=True, capture_output=True).stdout.decode()
    for name in filter(None, names.split("\0")):
        if (HOME / name).is_file() or (HOME / name).is_symlink():
            (home / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(HOME / name, home / name, follow_symlinks=False)
    before = earlier = files_of(home)
    written = {}
    for addition in ADDITIONS:
        add(home, addition)
        now = files_of(home)
        written[addition.row] = differing(earlier, now)
        earlier = now
    print_anew(home)
    outcome, said = outcome_of(home)
    passed = {case.get("name", "") for case in outcome.iter("testcase") if len(case) == 0}
    failed = said if any(len(case) for case in outcome.iter("testcase")) else ""
    return Copy(written, differing(before, files_of(home)), frozenset(passed), failed)


def add(home: Path, addition: Addition) -> None:
    for name, text in addition.new.items():
        assert not (home / name).exists(), f"{name} is there already"
        (home / name).parent.mkdir(parents=True, exist_ok=True)
        (home / name).write_text(text, encoding="utf-8")
    for name, pairs in addition.more.items():
        text = (home / name).read_text(encoding="utf-8")
        for before, lines in pairs:
            assert text.count(before) == 1, (
                f"{name}: {before!r} stands there {text.count(before)} times"
            )
            text = text.replace(before, lines + before)
        (home / name).write_text(text, encoding="utf-8")


def print_anew(home: Path) -> None:
    """What the rows say that commands print; the saved prompts are printed by their test."""
    (home / ".env.example").write_text(ran(home, "holdfast.deployment.example"), encoding="utf-8")


def outcome_of(home: Path) -> tuple[Xml.Element, str]:
    """What became of the tests of the copy, and what pytest said."""
    report = home.parent / f"{home.name}.xml"
    chosen = [
        f"tests/{file}" + (f"::{name}" if name else "")
        for file, names in WALKING.items()
        for name in names or ("",)
    ]
    options = ("-p", "no:cacheprovider", "-p", "no:xdist", f"--junitxml={report}")
    said = ran(home, "pytest", *options, "tests/support/added.py", *chosen)
    return Xml.parse(report).getroot(), said


def ran(home: Path, *module: str) -> str:
    """What a module prints in the copy."""
    kept = {name: os.environ[name] for name in ("PATH", "HOME", "LANG") if name in os.environ}
    done = subprocess.run(
        [*PYTHON, *module],
        cwd=home,
        env={**kept, "RENEW_PROMPTS": "1"},
        capture_output=True,
        text=True,
        check=False,
        timeout=SECONDS,
    )
    assert done.stdout, done.stderr
    return done.stdout


def files_of(home: Path) -> dict[str, str]:
    """name -> a mark of the content."""
    return {
        str(path.relative_to(home)): hashlib.sha256(path.read_bytes()).hexdigest()
        for path in home.rglob("*")
        if path.is_file() and not any(part in KEPT for part in path.parts)
    }


def differing(before: Mapping[str, str], after: Mapping[str, str]) -> frozenset[str]:
    names = before.keys() | after.keys()
    return frozenset(name for name in names if before.get(name) != after.get(name))


# ---------------------------------------------------------------- what the table says


def row_of(addition: Addition) -> tuple[list[str], list[str]]:
    """The places that a row names: those to write, and those that are printed."""
    text = (HOME / "CONTRIBUTING.md").read_text(encoding="utf-8")
    (cell,) = re.findall(rf"^\| {re.escape(addition.row)} \| (.*) \|$", text, re.M)
    by_hand, _, printed = cell.partition("; print ")
    return re.findall(r"`([^`]+)`", by_hand), re.findall(r"`([^`]+)`", printed)


def place_of(name: str, places: list[str]) -> str:
    """The place where a row lets a file be written: itself, or a playbook's folder; empty: none."""
    for place in places:
        # What is written in capitals, NAME or PLAYBOOK, is whatever one likes.
        found = re.match(re.sub(r"[A-Z]{4,}", r"[\\w-]+", re.escape(place)), name)
        if found and "/" in place and (place.endswith("/") or found[0] == name):
            return found[0] if place.endswith("NAME/") else name
    return ""


@pytest.mark.parametrize("addition", ADDITIONS, ids=lambda each: each.row)
def test_what_the_table_names_is_all_that_is_touched_and_it_works(
    addition: Addition, copy: Copy
) -> None:
    by_hand, printed = row_of(addition)
    places = {name: place_of(name, by_hand) for name in copy.written[addition.row]}
    assert all(places.values()), (
        f"not in the table: {[each for each in places if not places[each]]}"
    )
    assert len(set(places.values())) == addition.places
    assert not addition.printed or addition.printed in printed
    assert addition.shown_by in copy.passed, copy.failed


def test_with_all_of_it_the_house_still_stands(copy: Copy) -> None:
    assert not copy.failed, copy.failed
    assert len(copy.passed) > 100


def test_nothing_else_has_changed(copy: Copy) -> None:
    wanted = frozenset().union(*copy.written.values(), (each.printed for each in ADDITIONS))
    assert copy.changed == wanted - {""}
