"""`report`: the page of a history in a file, and what it refuses."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from holdfast.cli.commands.runs import report
from holdfast.cli.main import main
from holdfast.cli.screen.exits import Code
from holdfast.deployment.settings import Settings
from paged import HISTORIES


@pytest.mark.parametrize("history", HISTORIES, ids=lambda path: path.stem)
def test_a_history_from_a_file_becomes_a_page_without_any_server(
    history: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    page = tmp_path / "page.html"
    assert main(["report", "--history", str(history), "--out", str(page)]) == Code.COMPLETE
    assert capsys.readouterr().out.splitlines() == [page.as_uri()]
    assert page.stat().st_mode & 0o777 == 0o600
    assert "under way" not in page.read_text(), "each of these runs is over"


def test_a_history_from_a_file_leaves_the_page_of_a_run_here_with_its_id(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    assert main(["report", "--history", str(HISTORIES[0])]) == Code.COMPLETE
    (imported,) = tmp_path.rglob("*.html")
    own = imported.with_name(imported.name.replace(".imported.html", ".html"))
    assert own != imported
    own.write_text("of the run here")
    imported.unlink()
    assert main(["report", "--history", str(HISTORIES[0])]) == Code.COMPLETE
    assert capsys.readouterr().out.splitlines() == [imported.as_uri()] * 2
    assert own.read_text() == "of the run here" and imported.exists()


@pytest.mark.anyio
async def test_the_history_of_a_run_that_goes_on_is_shown_as_far_as_it_goes(
    tmp_path: Path,
) -> None:
    whole = next(each for each in HISTORIES if each.stem == "a-planned-run")
    events = json.loads(whole.read_text())["events"]
    file = tmp_path / "begun.json"
    file.write_text(json.dumps({"events": events[: len(events) // 2]}))
    look, run_id = await report.read_export(file, Settings())
    assert look.closed is None
    assert "under way" in report.page_of(run_id, look)


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ([], "name the run, or a history with --history FILE"),
        (["a-run", "--history", "a.json"], "name the run, or a history with --history FILE"),
        (["--history", "nowhere.json"], "nowhere.json"),
        (["a-run", "--out", "page.pdf"], "name a file that ends in .html"),
    ],
)
def test_what_cannot_be_shown_is_refused_in_a_line(
    given: list[str], said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["report", *given]) == Code.REFUSED
    err = capsys.readouterr().err
    assert said in err and err.count("\n") == 1


def test_no_browser_is_said_and_the_page_is_there(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    opened = list[str]()

    def none(address: str) -> bool:
        opened.append(address)
        return False

    monkeypatch.setattr("webbrowser.open", none)
    page = tmp_path / "page.html"
    given = ["report", "--history", str(HISTORIES[0]), "--out", str(page), "--open"]
    assert main(given) == Code.FAILED
    assert opened == [page.as_uri()] and page.exists()
    assert "open" in capsys.readouterr().err
