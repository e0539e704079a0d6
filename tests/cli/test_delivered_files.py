"""Files of agents as the starter writes them: whatever a history says that they are called."""

from __future__ import annotations

import hashlib
import re
import urllib.request
from pathlib import Path
from typing import Any
from urllib.parse import urljoin, urlsplit

import pytest

from driving import Drive, subtask
from holdfast.cli.shared.delivery import deliver, files_of, with_files
from holdfast.client.reading import Look
from holdfast.contracts import Finding, MadeFile, Plan, Report
from holdfast.contracts.made_files import (
    ENDINGS,
    check_name,
    check_room,
    collect_team_files,
    merge_files,
)
from holdfast.rendering.html.prose import prose
from holdfast.rendering.report import as_markdown
from holdfast.state.events import TeamEnded
from holdfast.state.moves import StartTeam
from holdfast.storage import DirectoryStore
from outcomes import AMPLE

pytestmark = pytest.mark.anyio
HOSTILE = (
    "../a.csv", "/etc/a.csv", "..", ".", "", "a/b.csv", "a\\b.csv", ".hidden.csv", "-rf.csv",
    "a b.csv", "a.csv\n", "a\x00.csv", "a\u202evsc.exe.csv", "ü.csv", "a.csv.", "a..csv", "csv",
    "con.csv", "NUL.txt", "com1.x.csv", "a.html", "a.svg", "a.exe", "a.sh", "a.desktop", "a.xml",
    "a](http://x.example).csv", "a`b.csv", "x" * 120 + ".csv", "%2e%2e.csv", "a.csv#x", "a?.csv",
)  # fmt: skip


def test_a_name_that_leads_elsewhere_or_runs_when_it_is_clicked_is_refused_in_one_line() -> None:
    for name in HOSTILE:
        wrong = check_name(name)
        assert wrong and "\n" not in wrong and "\u202e" not in wrong and len(wrong) < 300, name


@pytest.mark.parametrize("name", ["notes.csv", "a-1_b.tar.txt", "A.MD", "2024.json", "a.b.c.py"])
def test_a_plain_name_is_taken(name: str) -> None:
    assert check_name(name) == "" and name.rpartition(".")[2].lower() in ENDINGS


def report(*files: MadeFile, subtask: str = "t1") -> Report:
    finding = {"subtask_id": subtask, "status": "complete", "files": files}
    fields: dict[str, Any] = {"status": "complete", "run_id": "r", "goal": "g"}
    return Report.model_validate({**fields, "findings": [finding]})


async def stored(store: DirectoryStore, name: str, content: bytes = b"x", **more: Any) -> MadeFile:
    digest = await store.put(content)
    return MadeFile.model_validate({"name": name, "size": len(content), "digest": digest, **more})


@pytest.fixture
def store(tmp_path: Path) -> DirectoryStore:
    return DirectoryStore(tmp_path / "store")


@pytest.mark.parametrize("name", HOSTILE)
async def test_a_hostile_name_of_a_history_is_written_nowhere_and_said(
    store: DirectoryStore, tmp_path: Path, name: str
) -> None:
    made = report(await stored(store, name))
    before = {*tmp_path.rglob("*")}
    told = await with_files(made, store, tmp_path / "r.files")
    assert {*tmp_path.rglob("*")} == before
    assert "its name is none that a file may have here" in told.notes[0]
    page = as_markdown(told, lambda *_: "", where="r.files")
    assert "](r.files" not in page and "\u202e" not in page
    assert "href" not in prose(page, {})


@pytest.mark.parametrize("subtask", ["..", "../t1", "a/b", "", "/tmp"])
async def test_a_hostile_subtask_of_a_history_is_no_folder(
    store: DirectoryStore, tmp_path: Path, subtask: str
) -> None:
    made = report(await stored(store, "a.csv"), subtask=subtask)
    before = {*tmp_path.rglob("*")}
    assert (await with_files(made, store, tmp_path / "r.files")).notes
    assert {*tmp_path.rglob("*")} == before


async def test_of_two_files_that_some_disks_cannot_tell_apart_one_is_written(
    store: DirectoryStore, tmp_path: Path
) -> None:
    made = report(await stored(store, "a.csv", b"1"), await stored(store, "A.csv", b"2"))
    told = await with_files(made, store, tmp_path / "r.files")
    assert (tmp_path / "r.files/t1/a.csv").read_bytes() == b"1"
    assert len(told.notes) == 1 and "A.csv" in told.notes[0]


@pytest.mark.parametrize(
    ("more", "why"),
    [
        ({"digest": "../../../etc/passwd"}, "that is no digest"),
        ({"digest": "0" * 64}, "is lost"),
        ({"size": 7}, "it has 1 bytes, and 7 were recorded"),
        ({"size": 10**12}, "it is said to have"),
    ],
)
async def test_bytes_that_are_not_those_that_were_recorded_are_not_written(
    store: DirectoryStore, tmp_path: Path, more: dict[str, Any], why: str
) -> None:
    told = await with_files(report(await stored(store, "a.csv", **more)), store, tmp_path / "r")
    assert why in told.notes[0] and not (tmp_path / "r/t1/a.csv").exists()


@pytest.mark.parametrize("place", ["r.files", "r.files/t1", "r.files/t1/a.csv"])
async def test_no_link_is_followed(store: DirectoryStore, tmp_path: Path, place: str) -> None:
    away = tmp_path / "away"
    away.mkdir()
    (away / "a.csv").write_text("mine")
    link = tmp_path / place
    link.parent.mkdir(parents=True, exist_ok=True)
    link.symlink_to(away / "a.csv" if place.endswith("csv") else away)
    told = await with_files(report(await stored(store, "a.csv")), store, tmp_path / "r.files")
    assert [*away.iterdir()] == [away / "a.csv"] and (away / "a.csv").read_text() == "mine"
    if place.endswith("csv"):
        # The link itself is replaced by the file.
        assert link.read_bytes() == b"x" and not link.is_symlink()
    else:
        assert "is a link, which is not followed" in told.notes[0]


async def test_a_file_of_a_run_that_a_schedule_started_is_linked_by_a_path_and_no_scheme(
    store: DirectoryStore, tmp_path: Path
) -> None:
    made = report(await stored(store, "a.csv"))
    made = made.model_copy(update={"run_id": "nightly-2026-11-23T06:28:00Z"})
    deliver(await with_files(made, store, files_of(made.run_id, tmp_path)), tmp_path, None, Look())
    for page in (tmp_path / f"{made.run_id}.md", tmp_path / f"{made.run_id}.html"):
        [link] = re.findall(r"""(?:\]\(|href=")([^"#)]*/a\.csv)""", page.read_text())
        aimed = urllib.request.url2pathname(urlsplit(urljoin(page.as_uri(), link)).path)
        assert Path(aimed).read_bytes() == b"x"


@pytest.mark.parametrize("harm", ["link", "folder", "lost"])
async def test_what_could_not_be_written_is_not_linked_and_said_where_it_is_listed(
    store: DirectoryStore, tmp_path: Path, harm: str, capsys: pytest.CaptureFixture[str]
) -> None:
    more: dict[str, Any] = {"digest": "0" * 64} if harm == "lost" else {}
    made = report(await stored(store, "a.csv", **more), await stored(store, "b.csv"))
    only = report(*made.findings[0].files[:1])
    where = files_of("r", tmp_path)
    if harm == "link":
        where.symlink_to(tmp_path)
    if harm == "folder":
        (where / "t1/a.csv").mkdir(parents=True)
    told = await with_files(made, store, where)
    deliver(told, tmp_path, None, Look())
    said = capsys.readouterr().err
    linked = ["t1/b.csv"] if harm != "link" else []
    assert ("Files: " in said) == bool(linked) and "Not written: " in said
    for page in ((tmp_path / "r.md").read_text(), (tmp_path / "r.html").read_text()):
        assert re.findall(r"""(?:\]\(|href=")r\.files/([\w/.]+)""", page) == linked
        assert "; not here: " in page
    deliver(await with_files(only, store, where), tmp_path, None, Look())
    assert "Files: " not in capsys.readouterr().err


def test_a_subtask_that_has_made_much_makes_no_more() -> None:
    def file(name: str, size: int = 1) -> MadeFile:
        return MadeFile(name=name, size=size, digest=hashlib.sha256(name.encode()).hexdigest())

    many = tuple(file(f"{number}.csv") for number in range(20))
    assert "20 files" in check_room(many, "new.csv", 1)
    assert check_room(many, "0.CSV", 1) == "", "one takes the place of another"
    assert "at most 4,194,304" in check_room((), "a.csv", 5_000_000)
    large = tuple(file(f"{number}.csv", 4_000_000) for number in range(4))
    assert "together" in check_room(large, "a.csv", 2_000_000)
    assert merge_files(many[:2], [file("0.CSV", 9)])[-1].size == 9


def test_what_a_team_made_is_named_after_its_subtask_there() -> None:
    file = MadeFile(name="a.csv", size=1, digest="0" * 64)
    long = MadeFile(name=f"{'x' * 79}.csv", size=1, digest="0" * 64)
    kept, left = collect_team_files(report(file, long))
    assert [each.name for each in kept] == ["t1-a.csv", f"t1-{'x' * 77}.csv"] and left == 0
    assert not any(check_name(each.name) for each in kept)


def test_of_a_team_no_file_takes_the_place_of_another_and_what_is_left_out_is_counted() -> None:
    def made(*files: tuple[str, str]) -> Report:
        findings = [
            Finding(
                subtask_id=subtask,
                status="complete",
                files=(MadeFile(name=name, size=1, digest="0" * 64),),
            )
            for subtask, name in files
        ]
        return report().model_copy(update={"findings": tuple(findings)})

    kept, left = collect_team_files(
        made(("a", "b-c.csv"), ("a-b", "C.csv"), ("a-b-c", f"{'x' * 80}.md"))
    )
    assert [each.name for each in kept] == ["a-b-c.csv", "a-b-C-2.csv", f"a-b-c-{'x' * 74}.md"]
    kept, left = collect_team_files(made(*((f"t{number}", "a.csv") for number in range(23))))
    assert (len(kept), left) == (20, 3)


def test_what_a_team_made_beyond_what_is_handed_up_is_noted_with_the_run_that_has_it() -> None:
    run = Drive(Plan(goal="g", subtasks=(subtask("t1", role="department"),)), AMPLE)
    (move,) = run.teams
    assert isinstance(move, StartTeam)
    files = [MadeFile(name=f"{number}.csv", size=1, digest="0" * 64) for number in range(23)]
    below = report(*files).model_copy(update={"run_id": "run.t1.1", "answer": "made"})
    run.put(TeamEnded(move, below))
    assert len(run.state.work["t1"].files) == 20
    (note,) = [each for each in run.state.notes if "files" in each]
    assert note == (
        "t1: its team made more than 20 files; run run.t1.1 has 3 that are not listed here."
    )
