"""Remarks of agents are put at their places: what a model says of a line is checked by the code
that it quotes.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast

import pytest

from holdfast.activities.repositories.manifest import BaseFile, Manifest, SnapshotFile
from holdfast.activities.repositories.scratch import Snapshot, Snapshots
from holdfast.activities.review.placing import Placing
from holdfast.calls.work import WorkMaterial
from holdfast.contracts import Draft, Narrowing, PinnedInput, Remark, Subtask
from holdfast.contracts.errors import BlobLost
from repositories import remarks_of

pytestmark = [pytest.mark.anyio, pytest.mark.usefixtures("secrets_found_here")]

HEAD = """def load(user, order):
    row = find(order)
    return row


def save(user, order):
    check(user)
    return row
"""
BASE = """def load(user, order):
    if not user.may(order):
        raise Denied(order)
    row = find(order)
    return row


def save(user, order):
    check(user)
    return row
"""
GONE = "def old():\n    return 1\n"


@dataclass
class Fixed:
    """One snapshot, whatever is asked for."""

    snapshot: Snapshot | None

    async def open(self, digest: str) -> Snapshot:
        if self.snapshot is None:
            raise BlobLost(digest)
        return self.snapshot


@pytest.fixture
def snapshot(tmp_path: Path) -> Snapshot:
    manifest = Manifest(
        archive="",
        base="1" * 40,
        files=(
            SnapshotFile(
                path="app/load.py", size=len(HEAD), lines=8, touched=((1, 2),),
                was="app/load.py", hunks=((2, 2, 1, 0),),
            ),
        ),
        around=(SnapshotFile(path="tests/test_load.py", size=9, lines=1, kind="tests"),),
        before=(
            BaseFile(path="app/load.py", size=1, lines=10, touched=((2, 3),), now="app/load.py"),
            BaseFile(path="app/old.py", size=1, lines=2, touched=((1, 2),)),
        ),
        narrowing=Narrowing(rules_off={"logic:lost-error": "it is meant"}),
    )  # fmt: skip
    files = {
        "head/app/load.py": HEAD,
        "head/tests/test_load.py": "load(1)\n",
        "base/app/load.py": BASE,
        "base/app/old.py": GONE,
    }
    for name, text in files.items():
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return Snapshot(tmp_path / "head", manifest, tmp_path / "base", tmp_path)


async def place(snapshot: Snapshot | None, *said: dict[str, Any]) -> list[Remark]:
    common = {
        "severity": "warning", "file": "app/load.py", "line": 1, "code": "", "message": "It fails.",
        "suggestion": "Mend it.", "rule": "deleted-check", "confidence": 70,
    }  # fmt: skip
    draft = Draft(data={"remarks": [{**common, **each} for each in said]})
    subtask = Subtask(id="logic", title="", instruction="", role="logic", inputs=("repo",))
    pinned = PinnedInput(name="repo", kind="repository", size=1, digest="d")
    placing = Placing(cast("Snapshots", Fixed(snapshot)))
    return remarks_of(await placing.place(draft, WorkMaterial(subtask=subtask, inputs=(pinned,))))


async def test_a_line_that_is_off_is_mended_by_its_code(snapshot: Snapshot) -> None:
    said: list[dict[str, Any]] = [
        {"line": 4, "code": "    row = find(order)"},
        {"line": 2, "code": "+row  =  find(order)"},
        {"line": 7, "code": "return row"},
        {"file": "repo/app/load.py", "line": 300, "code": "check(user)"},
        {
            "file": "b/tests/test_load.py",
            "line": 1,
            "code": "load(1)",
            "message": "`load(1)` lacks the order.",
        },
    ]
    found = await place(snapshot, *said)
    assert [each.line for each in found] == [2, 2, 8, 7, 1]
    assert [each.code for each in found[:2]] == ["row = find(order)"] * 2
    assert [each.file for each in found[3:]] == ["app/load.py", "tests/test_load.py"]
    # A file around the change is searched for secrets as well, so it may be quoted.
    assert (found[4].code, found[4].message) == ("load(1)", "`load(1)` lacks the order.")
    assert found[4].kind == "tests" and not any(each.deleted for each in found)
    assert all(each.by_agent and each.lens == "logic" for each in found)
    assert found[0].excerpt is not None and found[0].column == 0


async def test_a_deleted_line_is_a_place_and_so_is_one_of_a_deleted_file(
    snapshot: Snapshot,
) -> None:
    check = "-    if not user.may(order):"
    said: list[dict[str, Any]] = [
        {"line": 1, "code": check},
        {"line": 2, "code": check},
        {"file": "app/old.py", "line": 1, "code": "return 1"},
        {"file": "a/app/old.py", "line": 0, "code": ""},
    ]
    found = await place(snapshot, *said)
    assert [(each.file, each.line) for each in found] == [
        *[("app/load.py", 1)] * 2,
        ("app/old.py", 2),
        ("app/old.py", 0),
    ]
    assert all(each.deleted for each in found)
    assert found[0].code == "if not user.may(order):"


async def test_what_is_quoted_and_stands_nowhere_is_not_moved_and_known_by_nothing(
    snapshot: Snapshot,
) -> None:
    said: list[dict[str, Any]] = [
        {"line": 3, "code": "drop(table)"},
        {"file": "no/such.py", "line": 3, "code": "return row"},
        {"file": "../../etc/passwd", "line": -5, "code": ""},
        {"line": 900, "code": ""},
    ]
    found = await place(snapshot, *said)
    assert [(each.line, each.code, each.fingerprint) for each in found] == [
        (3, "", ""),
        (3, "", ""),
        (-5, "", ""),
        (900, "", ""),
    ]


async def test_a_remark_is_known_again_when_its_line_has_moved(snapshot: Snapshot) -> None:
    before, other = await place(
        snapshot, {"line": 2, "code": "row = find(order)"}, {"line": 7, "code": "check(user)"}
    )
    assert before.fingerprint and before.fingerprint != other.fingerprint
    path = snapshot.path("app/load.py")
    path.write_text("\n\n" + path.read_text())
    moved = await place(
        Snapshot(
            snapshot.root,
            snapshot.manifest.model_copy(update={"known": (before.fingerprint,)}),
            snapshot.before,
            snapshot.patches,
        ),
        {"line": 4, "code": "row = find(order)", "message": "In other words."},
    )
    assert [(each.fingerprint, each.hidden) for each in moved] == [(before.fingerprint, "known")]


async def test_what_an_agent_says_of_a_test_that_asks_less_counts_though_it_stands_in_a_test_file(
    snapshot: Snapshot,
) -> None:
    there = {"file": "tests/test_load.py", "code": "load(1)"}
    less, other = await place(
        snapshot, {**there, "rule": "weakened-test"}, {**there, "rule": "wrong-value"}
    )
    assert (less.kind, other.kind) == ("production", "tests")


async def test_the_settings_of_the_repository_may_name_the_kind_of_an_agents_remark(
    snapshot: Snapshot,
) -> None:
    off, on = await place(snapshot, {"rule": "lost-error"}, {"rule": "race"})
    assert (off.hidden, on.hidden) == ("rule logic:lost-error", "")


async def test_what_was_paid_is_handed_on_without_the_snapshot(snapshot: Snapshot) -> None:
    del snapshot
    (found,) = await place(None, {"line": 3, "code": "x", "verdict": "confirmed", "lens": "bugs"})
    assert (found.line, found.lens, found.verdict, found.by_agent) == (3, "logic", "", True)
