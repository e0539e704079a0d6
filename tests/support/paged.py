"""Runs to draw a page of: of any size, and with text that means harm wherever others may write."""

from __future__ import annotations

from datetime import timedelta
from decimal import Decimal
from pathlib import Path

from temporalio.client import WorkflowHistory

from drawn import START
from holdfast.contracts import (
    Check,
    Finding,
    Gap,
    Omission,
    Plan,
    Report,
    Revision,
    Subtask,
    Timings,
    Try,
)
from holdfast.deployment.invocation import to_type
from holdfast.history.fold import Fold
from holdfast.rendering.html.pictured import Pictured
from holdfast.rendering.running import run_view
from holdfast.rules.reporting import report
from holdfast.temporal.connection import data_converter

HISTORIES = sorted((Path(__file__).parents[1] / "histories").glob("*.json"))
HARM = (
    "<script>alert(1)</script><img src=x onerror=alert(2)></style></title></pre></svg>"
    '"\' onmouseover=alert(3) x="{{7*7}} &#x202e; \u202egnp.exe \x00\x1b[2J \u2028'
    "[link](javascript:alert(4)) [data](data:text/html,<script>alert(5)</script>)"
    " ![picture](http://127.0.0.1:9/x.png) <http://127.0.0.1:9/a> [t1]: http://127.0.0.1:9/b"
)
WORD = "x" * 1_000_000
"""One word of a million letters."""


def subtasks(count: int, harm: str = "") -> tuple[Subtask, ...]:
    """A plan of layers: each third builds on the one before."""
    third = max(count // 3, 1)
    return tuple(
        Subtask(
            id=f"t{n}",
            title=f"Subtask {n} {harm}",
            instruction=f"Do part {n}. {harm}",
            role=f"analyst{harm}",
            depends_on=(f"t{n - third}",) if n > third else (),
            acceptance_criteria=harm,
            checks=(Check(kind="contains", argument=harm),),
            why=f"Part {n} is asked for. {harm}",
            inputs=(harm,) if harm else (),
        )
        for n in range(1, count + 1)
    )


def finding(subtask: Subtask, number: int, harm: str = "") -> Finding:
    """Complete in its second try, after a climb; every fifth failed."""
    failed = number % 5 == 0
    return Finding(
        subtask_id=subtask.id,
        status="failed" if failed else "complete",
        content=f"What part {number} says, after [t1]. {harm}",
        confidence=80,
        why=f"no data {harm}" if failed else "",
        sources=(f"notes.md {harm}", "https://example.org/a", "javascript:alert(1)"),
        model="claude-sonnet",
        dollars=Decimal("0.0123"),
        started=START + timedelta(seconds=number),
        finished=START + timedelta(seconds=number + 5),
        tries=(
            Try(number=1, tier="haiku", verdict="failed_checks", why=f"too short {harm}"),
            Try(number=2, tier="sonnet", verdict="failed" if failed else "accepted"),
        ),
    )


def shown(count: int = 6, harm: str = "", **fields: object) -> Pictured:
    """A finished run with this many subtasks."""
    planned = subtasks(count, harm)
    found = tuple(finding(each, n, harm) for n, each in enumerate(planned, 1))
    gaps = [
        Gap(subtask_id=each.subtask_id, title=f"Gap {harm}", status="failed", why=f"none {harm}")
        for each in found
        if each.status == "failed"
    ]
    made = Report.model_validate(
        {
            "status": "complete_with_gaps",
            "run_id": "run-1",
            "goal": f"Compare engines {harm}",
            "plan": Plan(goal="g", subtasks=planned),
            "findings": found,
            "gaps": gaps,
            "answer": f"# First\n\nEngine A wins [t1], says B [t2, T3], not [t99]. {harm}",
            "conflicts": [f"t1 and t2 differ {harm}"],
            "flags": [f"cites [t9] {harm}"],
            "not_run": (Omission(what=f"A lens {harm}", why=harm),),
            "notes": [f"a note {harm}"],
            "revisions": (Revision(number=1, why=f"stuck {harm}", added=("t2",)),),
            "model_calls": 12,
            "dollars": "0.0738",
            "dollars_estimated": "0.1",
            "confidence": 80,
            "timings": Timings(makespan=65, work=50, critical_path=15),
            "started": START,
            "finished": START + timedelta(seconds=65),
            **fields,
        }
    )
    return Pictured(made, to_type)


def reviewed(harm: str = "", **fields: object) -> Pictured:
    """A review with remarks of all severities, of two lenses."""
    remark = {"file": f"app.py{harm}", "message": f"it leaks {harm}", "confidence": 90}
    remarks = [
        {
            **remark,
            "severity": "critical",
            "line": 5,
            "column": 9,
            "lens": "security",
            "rule": f"B1{harm}",
            "matters": f"Others read it. {harm}",
            "excerpt": {"first": 4, "lines": [f"import os{harm}", f"os.system(x){harm}", harm]},
        },
        {
            **remark,
            "severity": "info",
            "line": 9,
            "lens": "bugs",
            "suggestion": f"do not `sleep()` {harm}",
        },
        {
            **remark,
            "severity": "info",
            "file": "b.py",
            "lens": f"bugs{harm}",
            "verdict": "refuted",
            "why": f"it does not {harm}",
        },
    ]
    data = {"remarks": remarks, "by_severity": {"critical": 1, "warning": 0, "info": 2}}
    data["not_listed"] = [{**remarks[1], "hidden": f"rule {harm}"}]
    return shown(2, harm, **{"data": data, "answer": f"**3 remarks** {harm}", **fields})


async def recorded(path: Path) -> Pictured:
    """The run of a recorded history."""
    history = WorkflowHistory.from_json(path.stem, path.read_text())
    fold = Fold(path.stem, data_converter(None))
    for event in history.events:
        await fold.take(event)
    assert fold.state is not None
    made = fold.report or report(fold.state)
    return Pictured(made, to_type, tuple(fold.steps.by_id.values()), run_view(fold.state))
