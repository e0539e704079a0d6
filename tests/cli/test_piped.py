"""What stands in a pipe: plain text in whole lines, the short form first."""

from __future__ import annotations

import io
import json
import re
from pathlib import Path

import pytest
from rich.console import Console

from drawn import UNSEEN, row, view
from holdfast.cli.commands.care import doctor
from holdfast.cli.main import main
from holdfast.cli.screen import report as pages
from holdfast.cli.screen.board import board
from holdfast.cli.screen.exits import Code
from holdfast.cli.screen.looks import console
from holdfast.cli.screen.plain import as_text
from holdfast.cli.screen.streams import OUT, draw
from holdfast.contracts import Report
from holdfast.deployment.settings import Settings
from holdfast.text import for_markdown
from paged import reviewed, shown

HISTORY = Path(__file__).parent.parent / "histories" / "a-planned-run.json"
ESCAPE = re.compile(r"\\[\\`*\[\]|~$^_!#+=./@-]|&(amp|lt|gt|#\d+);")
ODD = ["/* and obj[key]", "a_b _c_ **d** ~~e~~", "1. no list", "<b>&amp;</b>", "# no heading"]


def piped(monkeypatch: pytest.MonkeyPatch) -> Console:
    """What a command has whose output goes to a program, whatever its shell says of itself."""
    monkeypatch.setenv("COLUMNS", "80")
    made = console()
    made.file = io.StringIO()
    return made


def text_of(onto: Console) -> str:
    assert isinstance(onto.file, io.StringIO)
    return onto.file.getvalue()


@pytest.mark.parametrize("written", [*ODD, "see https://example.org/a@b"])
def test_what_others_wrote_is_read_as_they_wrote_it(written: str) -> None:
    escaped = for_markdown(written)
    assert as_text(escaped) == written
    table = "|a|b|\n|---|---:|\n|" + escaped.replace("|", "\\|") + "|1|"
    assert as_text(table).splitlines()[1].split("  ")[0] == written


def test_headings_lists_tables_and_code_are_told_without_their_signs() -> None:
    source = (
        "# One `f`\n\n## Two\n\n### Three\n\n**bold** and [a page](https://example.org), `code`\n\n"
        "- first\n  - below\n- second\n\n3. third\n4. fourth\n\n"
        "```\n> 7 | x[0] * 2\n    | ^\n```\n\n"
        "| name | price |\n|---|---:|\n| a | 1 |\n| long one | 12 |\n\n> said\n"
    )
    assert as_text(source).split("\n") == [
        "One f",
        "=====",
        "",
        "Two",
        "---",
        "",
        "Three",
        "",
        "bold and a page (https://example.org), `code`",
        "",
        "- first",
        "  - below",
        "- second",
        "",
        "3. third",
        "4. fourth",
        "",
        "  > 7 | x[0] * 2",
        "      | ^",
        "",
        "name      price",
        "a             1",
        "long one     12",
        "",
        "> said",
    ]


def show(report: Report, capsys: pytest.CaptureFixture[str], **asked: bool) -> str:
    capsys.readouterr()
    pages.show(report, as_json=False, subtasks=True, **asked)
    return capsys.readouterr().out


def test_a_report_in_a_pipe_is_plain_and_short_until_all_of_it_is_asked_for(
    capsys: pytest.CaptureFixture[str],
) -> None:
    for run in (shown(9), reviewed()):
        short, whole = (show(run.report, capsys, whole=each) for each in (False, True))
        assert not ESCAPE.search(short) and not re.search(r"^#|\*\*|^\|", short, re.MULTILINE)
        assert "show run-1 --all" in short or "starter.py show" in short
        assert len(short.splitlines()) < len(whole.splitlines())
        assert "\nFindings\n--------\n" in whole and "\nFindings\n" not in short


def test_no_entity_becomes_a_control_character(capsys: pytest.CaptureFixture[str]) -> None:
    run = shown(2, answer="before &#x202e; &#27;[2J after")
    assert not UNSEEN.search(show(run.report, capsys))


def test_what_stands_in_columns_is_neither_cut_nor_torn_in_a_pipe(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    title = "A title that is longer than any terminal of eighty columns, and still one line " * 3
    onto = piped(monkeypatch)
    rows = [row(f"a-subtask-with-a-long-name-{n}", title=title, note=title) for n in range(3)]
    draw(board(view(*rows), width=onto.width), onto)
    lines = text_of(onto).splitlines()
    for each in rows:
        (line,) = [line for line in lines if each.id in line]
        assert line.count(title.strip()) == 2 and line == line.rstrip()


@pytest.mark.anyio
@pytest.mark.usefixtures("bare_environment")
async def test_doctor_tells_what_is_odd_and_all_of_it_when_asked_a_line_each(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("HOLDFAST_WORKERS", "3")
    told: dict[bool, list[str]] = {}
    for whole in (False, True):
        await doctor.run(Settings(), True, whole=whole)
        captured = capsys.readouterr()
        told[whole] = captured.out.splitlines()
        assert ("doctor --all" in captured.err) is not whole
    short, long = told[False], told[True]
    assert len(short) < 16 and len(long) > 40
    names = {line.split("  ")[0] for line in long}
    assert {"project", "server", "settings"} <= names
    assert any("HOLDFAST_WORKERS" in each for each in short), "what somebody has set is told"
    assert not any("(default)" in each for each in short)
    odd = [each[10:] for each in long if each[10:11] in ("·", "✗")]
    assert odd and set(odd) <= {each[10:] for each in short}


def trace(capsys: pytest.CaptureFixture[str], *options: str) -> list[str]:
    assert main(["trace", "--history", str(HISTORY), *options]) == Code.COMPLETE
    return capsys.readouterr().out.splitlines()


def test_a_trace_is_lines_to_a_person_and_json_to_a_program(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    as_json = trace(capsys)
    steps = [json.loads(each) for each in as_json]
    monkeypatch.setattr(OUT, "_force_terminal", True)
    lines = trace(capsys)
    assert lines == trace(capsys, "--format", "text") and len(lines) == len(steps)
    assert as_json == trace(capsys, "--json") == trace(capsys, "--format", "json")
    for step in steps:
        (line,) = [each for each in lines if f"{step['kind']} {step['name']}" in each]
        assert step["model"] in line and step["agent"] in line
    assert re.fullmatch(r" +0\.0 s  ✓ run \S+ · .*", lines[0])
    out = tmp_path / "trace.jsonl"
    trace(capsys, "--out", str(out))
    assert out.read_text().splitlines() == as_json, "a file is for a program"
    assert main(["trace", "--history", str(HISTORY), "--json", "--format", "otlp"]) == Code.REFUSED
