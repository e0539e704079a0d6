"""The code of a remark on a terminal of any width."""

from __future__ import annotations

import pytest
from rich.cells import cell_len
from rich.console import Console

from holdfast.cli.screen.typeset import Page
from holdfast.contracts import Excerpt, Remark
from holdfast.rendering.remarks import code_of

BEFORE = "    connection.execute(sql, timeout=30, retries=5, name="
AROUND = "    for each in things that are written in a very long line: pass"


def shown(code: str, width: int) -> list[str]:
    console = Console(width=width, force_terminal=False, color_system=None)
    with console.capture() as capture:
        console.print(Page(code, hyperlinks=False))
    return [line.rstrip() for line in capture.get().splitlines() if line.strip()]


@pytest.mark.parametrize("width", [24, 40, 60, 80])
@pytest.mark.parametrize("before", [BEFORE, "    x = ", BEFORE.replace("sql", "漢字")])
def test_a_line_of_code_goes_on_below_and_its_mark_stands_right_below_its_letter(
    width: int, before: str
) -> None:
    lines = (AROUND, f"{before}missing(some, more, arguments)", "    done()")
    remark = Remark(
        severity="warning",
        file="a.py",
        line=9,
        message="m",
        confidence=90,
        excerpt=Excerpt(first=8, lines=lines, letter=len(before) + 1),
    )
    rows = shown(code_of(remark), width)
    assert all(cell_len(row) <= width for row in rows)
    (place,) = [number for number, row in enumerate(rows) if row.endswith("^")]
    row, mark = rows[place - 1], cell_len(rows[place]) - 1
    at = next(n for n in range(len(row)) if cell_len(row[:n]) == mark)
    assert "missing".startswith(row[at : at + 7]) and row[at] == "m"
    told: dict[str, str] = {}
    number = ""
    for row in (*rows[:place], *rows[place + 1 :]):
        head, _, code = row.partition("|")
        number = head.strip(" >") or number
        told[number] = told.get(number, "") + code.replace(" ", "")
    assert told == {f"{n}": line.replace(" ", "") for n, line in enumerate(lines, 8)}


def test_any_other_block_goes_on_in_the_next_line_so_that_it_can_be_copied() -> None:
    command = ".venv/bin/python starter.py fork a-run-with-a-long-name"
    assert "".join(each.strip() for each in shown(f"    {command}", 30)).replace(
        " ", ""
    ) == command.replace(" ", "")
