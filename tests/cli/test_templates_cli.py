"""`template`: what needs no server, and what is wrong is said before one is looked for."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from bench.templates.__main__ import TEMPLATES
from holdfast.activities.library import shelves
from holdfast.activities.library.shelves import Shelf
from holdfast.cli.main import main


@pytest.fixture
def shelf(bare_environment: Path) -> Shelf:
    shelf = Shelf(bare_environment / "templates")
    shelves.save(shelf, "trip", TEMPLATES["trip"])
    return shelf


def test_a_template_is_shown_as_its_file_and_taken_out_of_use(
    shelf: Shelf, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["template", "show", "trip"]) == 0
    assert capsys.readouterr().out.strip() == (shelf.folder / "trip.yaml").read_text().strip()
    assert main(["template", "show", "trip", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["form"] == 1
    assert main(["template", "retire", "trip"]) == 0
    assert "move it back" in capsys.readouterr().err
    assert [*shelf.folder.rglob("*.yaml")] == [shelf.folder / "retired" / "trip.yaml"]


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("save", "template save: the id of a run is missing"),
        ("show tripp", "there is no template 'tripp' (did you mean 'trip'?); known: trip"),
        ("list trip", "template list: it lists all; for one: template show NAME"),
        ("save r1 --name Trip", "template 'Trip': a name is 1 to 60 of a-z, 0-9 and '-'"),
        ("save r1 --param to", "--param 'to': write name=WORDS, with words of the goal"),
        ("save r1 --param To=Oslo", "--param 'To': a name is a to z, 0 to 9 and _"),
        ("save r1 --param a=b --param a=c", "--param a: given twice; give each parameter once"),
        ("delete trip --name x", "template delete: --name and --param are for save"),
    ],
)
def test_what_is_wrong_is_said_in_a_line(
    shelf: Shelf, capsys: pytest.CaptureFixture[str], line: str, said: str
) -> None:
    assert main(["template", *line.split()]) == 2
    error = capsys.readouterr().err.strip()
    assert said in error and "\n" not in error
    assert (shelf.folder / "trip.yaml").exists()


def test_a_broken_template_says_what_is_wrong_with_it(
    shelf: Shelf, capsys: pytest.CaptureFixture[str]
) -> None:
    (shelf.folder / "trip.yaml").write_text("form: 0\n")
    assert main(["template", "show", "trip"]) == 2
    assert "form 0 is of an older holdfast; save it again from its run" in capsys.readouterr().err
