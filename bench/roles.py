"""What a composed role, and a level of teams, cost beyond what they replace.

    python -m bench.roles        prints Markdown; about half a minute

Ten subtasks are planned for a role of the deployment, and for one that the plan composes. Then two
subtasks are done by a run itself, by a team of it, and by a team below that. Answers are scripted,
each takes a fifth of a second; tokens and dollars are the simulator's.
"""

from __future__ import annotations

import asyncio
import sys
import tempfile
from pathlib import Path
from typing import Any

from bench.instruments.deployment import Deployment, deployed
from bench.instruments.tables import head, row
from holdfast.contracts import Goal, Limits, Plan, Report, Subtask

COLUMNS = (
    ("ten subtasks for", "status", "calls", "tokens", "dollars", "events of the run"),
    ("two subtasks by", "status", "levels", "calls", "dollars", "seconds"),
)
ANSWER_SECONDS = 0.2
TEAM, PLAYBOOK = "competitor-team", "competitive-intelligence"
STATIC, MADE = "Ask a role of ours about ten markets", "Ask a role of its own about ten markets"
WORK, DEEPER = "Answer both questions on the market", "Have both questions on the market answered"
ROLE = {
    "name": "made-watcher",
    "description": "Looks at one market and says what matters most in it",
    "tier": "sonnet",
}


def script() -> dict[str, Any]:
    """The planner's answers, told apart by the goal of whoever plans."""
    ten = [f"Look at market {number} and say what matters most" for number in range(1, 11)]
    both = [f"Work out question {number} on the market of today" for number in (1, 2)]
    plans: list[dict[str, Any]] = [
        {"text": STATIC, "plan": [{"role": "analyst", "instruction": each} for each in ten]},
        {
            "text": MADE,
            "plan": [{"role": ROLE["name"], "instruction": each} for each in ten],
            "roles": [ROLE],
        },
        {"text": WORK, "plan": [{"role": "analyst", "instruction": each} for each in both]},
        {"text": DEEPER, "plan": [{"role": TEAM, "instruction": WORK}]},
    ]
    return {"latency": ANSWER_SECONDS, "rules": [{"call": "plan", **each} for each in plans]}


def goal(text: str, *, team: bool = False) -> Goal:
    """A goal of this text; or whose one subtask has a team do it."""
    task = Subtask(id="t1", title="All of it", instruction=text, role=TEAM)
    plan = Plan(goal="Have it done", subtasks=(task,)) if team else None
    limits = Limits.model_validate({"dollars": 2, "subtasks": 10, "concurrency": 10})
    text = "Have it done" if team else text
    return Goal(text=text, plan=plan, limits=limits, use_models=True, roles_of=PLAYBOOK)


async def done(deployment: Deployment, wanted: Goal) -> tuple[Report, int]:
    """The report of a run, and the events of its own history."""
    handle = await deployment.start(wanted)
    report = await deployment.result(handle)
    described = await handle.describe()
    return report, described.history_length


async def main() -> None:
    with tempfile.TemporaryDirectory() as place:
        async with deployed(Path(place), script()) as deployment:
            # The first run of a worker pays for what it loads.
            await done(deployment, goal(WORK))
            sys.stdout.write(head(COLUMNS[0]))
            for name, text in (("a role of the deployment", STATIC), ("a composed role", MADE)):
                report, events = await done(deployment, goal(text))
                tokens = f"{report.usage.total:,}"
                paid = f"${report.dollars:.4f}"
                calls = report.model_calls
                sys.stdout.write(row((name, report.status, calls, tokens, paid, events)))
            sys.stdout.write("\n" + head(COLUMNS[1]))
            by = ("the run itself", goal(WORK)), ("a team", goal(WORK, team=True))
            for levels, (name, wanted) in enumerate(
                (*by, ("a team below a team", goal(DEEPER, team=True))), 1
            ):
                report, _ = await done(deployment, wanted)
                paid, seconds = f"${report.dollars:.4f}", f"{report.timings.makespan:.1f}"
                cells = (name, report.status, levels, report.model_calls, paid, seconds)
                sys.stdout.write(row(cells))


if __name__ == "__main__":
    asyncio.run(main())
