"""Runs that wait for somebody at the command line."""

from __future__ import annotations

from conftest import Runs, seen
from holdfast.certifying.deployment import outcome
from holdfast.cli.commands.runs import start
from holdfast.contracts import Approval, Goal, Report
from holdfast.intake.connection import Connection
from scripted import ScriptedModel, subtask, synthesizes, works
from scripted import plans as planned

ALWAYS = Approval(when="always")
GOAL = Goal(text="Compare three engines", use_models=True, approval=ALWAYS)


def script(**lines: object) -> ScriptedModel:
    answers = {
        "plan": [planned(subtask("t1"), subtask("t2", "t1"))],
        "t1": [works("one")],
        "t2": [works("two")],
        "synthesize": [synthesizes("Both [t1] [t2].")],
    }
    return ScriptedModel(answers | lines)  # type: ignore[arg-type]


async def waiting(runs: Runs, connection: Connection, run_id: str, goal: Goal = GOAL) -> None:
    """Start a run, with time as usual, and return once it asks a person something."""
    with runs.env.with_time_skipping_disabled():
        await start.run(connection, goal, run_id)
    await seen(connection.handle(run_id), lambda view: view.waiting)


async def report_of(connection: Connection, run_id: str) -> Report:
    return await outcome(connection.handle(run_id))
