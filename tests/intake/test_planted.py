"""Repositories of two states, for reviews whose defects are known."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from holdfast.errors import Refused
from holdfast.intake.planted import repository_of

BEFORE = {"shop/price.py": "def price():\n    return 1\n", "README.md": "A shop\n"}
AFTER = {"shop/price.py": "def price():\n    return 2\n"}


def git(repository: Path, *arguments: str) -> str:
    return subprocess.run(
        ["git", *arguments], cwd=repository, capture_output=True, text=True, check=True
    ).stdout


def test_a_repository_of_two_states_differs_from_its_main_line_by_the_second(
    tmp_path: Path,
) -> None:
    repository = repository_of(BEFORE, AFTER, tmp_path / "one" / "repo")
    assert git(repository, "diff", "--name-only", "main").split() == ["shop/price.py"]
    folder = tmp_path / "before"
    for name, text in BEFORE.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text)
    other = repository_of(folder, AFTER, tmp_path / "two" / "repo")
    assert git(other, "rev-parse", "HEAD") == git(repository, "rev-parse", "HEAD")


@pytest.mark.parametrize("name", ["../other.py", "/etc/motd", ".git/config", "a/../../b"])
def test_a_state_names_no_file_outside_of_its_repository(tmp_path: Path, name: str) -> None:
    with pytest.raises(Refused, match="give a path below it"):
        repository_of(BEFORE, {name: "x\n"}, tmp_path / "repo")
    assert not (tmp_path / "repo").exists()


def test_a_state_without_files_is_refused(tmp_path: Path) -> None:
    with pytest.raises(Refused, match="has no files"):
        repository_of({}, AFTER, tmp_path / "repo")
