"""What is told of several suites: one beside the other first."""

from __future__ import annotations

from decimal import Decimal

from holdfast.contracts.evals import EvalReport, Mark
from holdfast.evals.tally import tally_suites
from holdfast.rendering import evals, markdown


def mark(suite: str, number: int, *, passed: bool, dollars: str, seconds: float) -> Mark:
    return Mark(
        run=f"{suite}-{number}",
        suite=suite,
        case=f"case-{number}",
        passed=passed,
        status="complete",
        dollars=Decimal(dollars),
        seconds=seconds,
    )


def test_one_agent_and_a_team_stand_beside_each_other_in_quality_price_and_time() -> None:
    marks = (
        mark("one-agent", 1, passed=True, dollars="0.01", seconds=4),
        mark("one-agent", 2, passed=False, dollars="0.03", seconds=8),
        mark("team", 1, passed=True, dollars="0.10", seconds=20),
        mark("team", 2, passed=True, dollars="0.20", seconds=30),
    )
    report = EvalReport(name="several", marks=marks, trials=4, dollars=Decimal("0.34"))
    tallies = tally_suites(marks, {"one-agent": 75, "team": 75})
    table, rest = markdown.write(evals.blocks(report, tallies, None)).split("## one-agent", 1)
    rows = [[cell.strip() for cell in line.strip("|").split("|")] for line in table.splitlines()]
    assert rows[0] == ["suite", "passed", "95 %", "price each", "time each", "must pass"]
    assert [row for row in rows if row[0] in ("one-agent", "team")] == [
        ["one-agent", "1 of 2", "9–91 %", r"\$0.0200", "6.0 s", "75 %"],
        ["team", "2 of 2", "34–100 %", r"\$0.1500", "25 s", "75 %"],
    ]
    assert rest.startswith(": did not hold")
    alone = markdown.write(evals.blocks(report, tallies[:1], None))
    assert alone.startswith("## one-agent")
