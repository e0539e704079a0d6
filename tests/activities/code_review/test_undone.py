"""Real fixes, undone: places are read from clones, and a review's remarks are held against them."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from bench.review import undone
from bench.review.labels import on_changes, sources
from bench.review.looking import git
from bench.review.undone import Fix, Looked, Repository
from holdfast.contracts import Remark
from holdfast.contracts.errors import BadGoal

BROKEN = "def pages(total, size):\n    return total // size\n"
MENDED = "def pages(total, size):\n    return -(-total // size)\n"
USE = "from pages import pages\n\n\ndef shown(items):\n    return pages(len(items), 10)\n"


@pytest.fixture
def case(tmp_path: Path) -> undone.Case:
    """A fix of a repository of its own, undone on top of a release."""
    source = tmp_path / "clones" / "some" / "book"
    source.mkdir(parents=True)
    git(source, "init", "-q", "-b", "main")
    (source / "pages.py").write_text(BROKEN)
    (source / "use.py").write_text(USE)
    git(source, "add", "-A")
    git(source, "commit", "-q", "-m", "Begin")
    (source / "pages.py").write_text(MENDED)
    git(source, "commit", "-q", "-a", "-m", "The last page is shown, too")
    fix = subprocess.check_output(["git", "rev-parse", "HEAD"], cwd=source, text=True).strip()
    git(source, "tag", "v1")
    mended = Fix(commit=fix, kind="wrong bound", files=("pages.py",), tests=("test_pages.py",))
    repository = Repository(repository="some/book", language="Python", tag="v1", fixes=(mended,))
    return undone.undo(source, repository, mended, tmp_path / "undone-1")


def test_a_fix_is_undone_as_a_change_against_the_release(case: undone.Case) -> None:
    assert (case.tree / "pages.py").read_text() == BROKEN
    assert case.ranges == {"pages.py": ((2, 2),)}
    assert case.lines == ("return -(-total // size)", "return total // size")


def test_who_calls_it_and_what_mended_it_are_known(case: undone.Case) -> None:
    assert case.within == "pages"
    assert case.callers == ("from pages import pages", "return pages(len(items), 10)")
    assert case.message == "The last page is shown, too"
    assert undone.said(case.tree, "log", "-1", "--format=%s").strip() == (
        "Tidy up a little (undone-1)"
    ), "what the change says of itself gives nothing away"


def test_a_remark_counts_as_found_only_near_what_was_undone(case: undone.Case) -> None:
    def remark(line: int, file: str = "pages.py", confidence: int = 90) -> Remark:
        return Remark(
            severity="warning", file=file, line=line, message="Wrong", confidence=confidence
        )

    assert Looked(case, [remark(2)], 1.0).found
    assert Looked(case, [remark(2, confidence=5)], 1.0).found, "however little it is believed"
    assert not Looked(case, [remark(2, confidence=5)], 1.0).shown
    assert not Looked(case, [remark(2, "use.py"), remark(40)], 1.0).found


def test_a_folder_without_clones_is_told_what_to_clone(tmp_path: Path) -> None:
    with pytest.raises(BadGoal, match=r"no clone in .*; clone some of them there, as OWNER/NAME"):
        undone.repositories(tmp_path)


def test_the_measure_is_of_repositories_that_no_belief_was_made_of() -> None:
    tuned = {each.name for each in sources()}
    measured = undone.listed()
    tuned |= {each.repository.partition("/")[2] for each in on_changes()}
    assert not tuned & {each.repository.partition("/")[2] for each in measured}
    fixes = [fix for each in measured for fix in each.fixes]
    assert len(fixes) >= 40 and len({each.language for each in measured}) >= 6
    assert len({fix.commit for fix in fixes}) == len(fixes)
    assert all(len(fix.commit) == 40 and fix.files and fix.tests and fix.kind for fix in fixes)
