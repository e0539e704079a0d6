"""The example that `make demo` reviews: made of files, everywhere the same, its defects found."""

from __future__ import annotations

import json
import shutil
import subprocess
from pathlib import Path

import pytest

from holdfast.activities.review.lenses import analysers
from holdfast.errors import Refused
from holdfast.intake import example
from holdfast.intake.example import ASSEMBLED, MAIN, SHOP, make_repository
from holdfast.untrusted.secret_shapes import SHAPES
from repositories import Bench, Repository, remarks_of
from shipped import shipped_catalogue

Place = tuple[str, int]


def planted(repository: Path) -> dict[Place, str]:
    """The language of each planted defect, by file and line."""
    found = {}
    for each in json.loads((SHOP / "planted.json").read_text("utf-8")):
        lines = (repository / each["file"]).read_text("utf-8").splitlines()
        [line] = [number for number, text in enumerate(lines, 1) if each["text"] in text]
        found[each["file"], line] = each["language"]
    return found


def head(repository: Path) -> str:
    command = ["git", "-C", str(repository), "rev-parse", "main", "receipts"]
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout


@pytest.mark.anyio
async def test_the_review_finds_what_is_planted_and_nothing_else(tmp_path: Path) -> None:
    shown = shipped_catalogue().playbooks["code-review"].min_confidence
    repository, bench = Repository(make_repository(tmp_path)), Bench(tmp_path)
    pinned = await bench.pin(repository, MAIN)
    seen = {
        (remark.file, remark.line)
        for lens in analysers()
        for remark in remarks_of(await bench.look_at(lens, pinned))
        if remark.confidence >= shown
    }
    wanted = planted(repository.path)
    assert len(wanted) == 8 and len({*wanted.values()}) == 3
    assert seen == {*wanted}


def test_the_example_is_the_same_wherever_it_is_made_whatever_git_is_told_there(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    first = head(make_repository(tmp_path / "one"))
    config = tmp_path / "config"
    config.write_text(
        "[user]\n\tname = Nobody\n[core]\n\tautocrlf = true\n[init]\n\ttemplateDir=/x\n"
    )
    monkeypatch.setenv("GIT_CONFIG_GLOBAL", str(config))
    monkeypatch.setenv("GIT_DIR", str(tmp_path / "elsewhere"))
    monkeypatch.setenv("GIT_AUTHOR_NAME", "Nobody")
    second = make_repository(tmp_path / "two")
    monkeypatch.undo()
    assert head(second) == first


def test_what_a_person_changed_in_the_example_stays_until_its_files_are_others(
    tmp_path: Path,
) -> None:
    source = tmp_path / "source" / "shop"
    shutil.copytree(SHOP, source)
    repository = make_repository(tmp_path / "demo", source)
    (repository / "shop" / "orders.py").write_text("mended = True\n")
    assert make_repository(tmp_path / "demo", source) == repository
    assert (repository / "shop" / "orders.py").read_text() == "mended = True\n"
    (source / "change" / "shop" / "orders.py").write_text("other = True\n")
    make_repository(tmp_path / "demo", source)
    assert (repository / "shop" / "orders.py").read_text() == "other = True\n"
    assert [each.name for each in (tmp_path / "demo").iterdir()] == ["shop"], "no draft is left"


def test_a_part_of_the_change_is_not_committed(tmp_path: Path) -> None:
    repository = make_repository(tmp_path)
    command = ["git", "-C", str(repository), "status", "--porcelain"]
    status = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    assert status == f"?? {example.UNCOMMITTED}\n"


def test_no_file_of_the_example_holds_what_a_scanner_would_take_for_a_key() -> None:
    for path in (*SHOP.rglob("*.*"), Path(example.__file__)):
        text = path.read_text("utf-8")
        assert not any(shape.search(text) for shape in SHAPES), path
    assert any(shape.search(value) for shape in SHAPES for value in ASSEMBLED.values())


def test_an_example_that_cannot_be_made_is_a_refusal_with_the_reason(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with pytest.raises(Refused, match="missing from"):
        make_repository(tmp_path, tmp_path / "nothing")
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(Refused, match="git was not found"):
        make_repository(tmp_path)
