"""What `python -m bench.machines` counts, and what it leaves of its machines: nothing."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from bench.instruments.journals import answers_twice
from bench.machines import COLUMNS
from bench.machines.network import networked
from holdfast.deployment.settings import HOME
from holdfast.errors import Refused

REFUSAL = "RTNETLINK answers: Operation not permitted"


def keep(journal: Path, name: str, key: str, *, answered: bool = True) -> None:
    journal.mkdir(exist_ok=True)
    (journal / f"{name}.sent").write_text(key)
    if answered:
        (journal / f"{name}.answer").write_text("an answer")


def test_an_answer_in_the_journals_of_two_machines_was_paid_twice(tmp_path: Path) -> None:
    one, other = tmp_path / "one", tmp_path / "other"
    keep(one, "a", "default/run/1/work-t1-1/digest-a")
    keep(one, "b", "default/run/1/work-t2-1/digest-b", answered=False)
    keep(other, "a", "default/run/1/work-t1-2/digest-c")
    keep(other, "b", "default/run/1/work-t2-1/digest-b")
    assert answers_twice([one, other]) == (3, 1)


def stand_in(folder: Path, monkeypatch: pytest.MonkeyPatch, refused: str) -> Path:
    """Put a program `ip` that notes what it is told in place of the real one; return the notes."""
    notes, program = folder / "notes", folder / "ip"
    refuse = f'case "$*" in {refused}) echo "{REFUSAL}" >&2; exit 2;; esac'
    program.write_text(f'#!/bin/sh\necho "$*" >> {notes}\n{refuse}\n')
    program.chmod(0o700)
    monkeypatch.setenv("PATH", str(folder))
    return notes


def test_where_namespaces_are_not_permitted_one_line_says_so(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    notes = stand_in(tmp_path, monkeypatch, "'link add'*")
    said = f"no network namespaces here: .*{REFUSAL}"
    with pytest.raises(Refused, match=said) as refusal, networked(2):
        pass
    assert "\n" not in str(refusal.value)
    assert len(notes.read_text().splitlines()) == 1


def test_machines_that_were_made_go_away_when_the_next_cannot_be(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    notes = stand_in(tmp_path, monkeypatch, "'netns add holdfast-'*-4")
    with pytest.raises(Refused), networked(2):
        pass
    told = [line.split() for line in notes.read_text().splitlines()]
    made = [line[-1] for line in told if line[:2] == ["netns", "add"]][:-1]
    undone = [line[2] for line in told if line[1] == "del"]
    assert len(made) == 2 and {*made} < {*undone}
    assert told[0][:2] == ["link", "add"] and undone[-1] == told[0][2], "the bridge"


@pytest.mark.long
def test_a_run_on_a_machine_of_its_own_has_its_actions_counted_and_nothing_is_left() -> None:
    try:
        with networked(1):
            pass
    except Refused as error:
        pytest.skip(str(error))
    done = subprocess.run(
        [sys.executable, "-m", "bench.machines", "--small", "--only", "actions"],
        cwd=HOME,
        capture_output=True,
        text=True,
        timeout=280,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    rows = [
        line.strip("|\n ").split(" | ") for line in done.stdout.splitlines() if line[:2] == "| "
    ]
    assert tuple(rows[0]) == COLUMNS[4]
    assert [row[1] for row in rows[1:]] == ["11", "11"]
    left = subprocess.check_output(["ip", "netns", "list"], text=True)
    assert "holdfast-" not in left
