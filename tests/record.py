"""Record the histories of tests/histories: `make record`, or this file with NAMEs.

Each scenario runs for real against a private server with a scripted model; the history is exported
with every payload inlined. Record anew only when running workflows are meant to break, and say so
in the changelog.
"""

from __future__ import annotations

import asyncio
import re
import sys
import tempfile
from collections.abc import Awaitable, Callable
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent / "support"))
sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from temporalio.client import WorkflowFailureError
from temporalio.testing import WorkflowEnvironment

from conftest import TEMPORAL, Runs, seen
from holdfast.activities.repositories.scratch import Snapshots
from holdfast.activities.review.lenses import lenses_of
from holdfast.contracts import Bill, Capabilities, Goal, GoalInput, Order
from holdfast.contracts.errors import PossiblyBilled
from holdfast.replaying.replay import export
from repositories import Repository
from scripted import ScriptedModel, digests, plans, ready, subtask, synthesizes, works

HISTORIES = Path(__file__).parent / "histories"


async def a_planned_run(runs: Runs) -> None:
    model = ScriptedModel(
        {
            "plan": [plans(subtask("t1"), subtask("t2"), subtask("t3", "t1", "t2"))],
            **{each: [works(each)] for each in ("t1", "t2", "t3")},
            "synthesize": [synthesizes("All three [t3].")],
        }
    )
    await runs.run(Goal(text="Compare three engines", use_models=True), model)


async def a_run_with_every_repair(runs: Runs) -> None:
    fails = works("", status="failed", why="no data")
    lost = PossiblyBilled("dropped", Bill(calls=1))
    patch = {
        "changes": [
            {"op": "add", "subtask": subtask("t4"), "why": "another way"},
            {"op": "replace", "subtask": subtask("t3", "t4"), "why": "needs t4"},
        ]
    }
    model = ScriptedModel(
        {
            "plan": [
                plans(
                    subtask("t1", tier="haiku"),
                    subtask("t2", acceptance_criteria="is good"),
                    subtask("t3", "t1"),
                )
            ],
            "t1": [fails, "malformed", fails, fails],
            "refine": [{"instruction": "Look for part t1 of the goal elsewhere"}],
            "t2": [lost, works("two " * 3_000)],
            "review": [{"verdict": "pass", "why": "good"}],
            "replan": [patch],
            "t4": [works("four")],
            "t3": [works("three")],
            "digest": [digests("two in short")],
            "synthesize": [
                synthesizes("first", conflicts=["t2 and t3 differ"]),
                synthesizes("last"),
            ],
            "judge": [{"winner": "t2", "why": "newer"}],
            "critique": [{"issues": [{"severity": "critical", "problem": "short", "fix": "more"}]}],
        }
    )
    await runs.run(Goal(text="Compare three engines", use_models=True), model)


async def a_cancelled_run(runs: Runs) -> None:
    never = asyncio.Event()
    model = ScriptedModel({"t1": [works("one")], "t2": [never]})
    plan = ready(subtask("t1"), subtask("t2"))
    async with runs.worker(model):
        handle = await runs.start(Goal(text="Compare", plan=plan, use_models=True), skipping=False)
        await model.asked("t1", "t2")
        await handle.cancel()
        try:
            await handle.result()
        except WorkflowFailureError:
            return


async def a_steered_run(runs: Runs) -> None:
    asks = works("", status="escalate", reason="ambiguous_input", why="which year?")
    model = ScriptedModel(
        {"t1": [asks, works("5")], "t2": [works("two")], "synthesize": [synthesizes("done")]}
    )
    plan = ready(subtask("t1"), subtask("t2"))
    goal = Goal.model_validate(
        {
            "text": "Compare",
            "plan": plan,
            "use_models": True,
            "ask_people": True,
            "approval": {"when": "always"},
        }
    )
    async with runs.worker(model):
        handle = await runs.start(goal, skipping=False)
        await seen(handle, lambda view: view.phase == "approval")
        await handle.execute_update("approve", Order(by="somebody"))
        await seen(handle, lambda view: view.waiting)
        await handle.execute_update("answer", Order(subtask_id="t1", text="2025"))
        await handle.result()


async def a_code_review(runs: Runs) -> None:
    repository = Repository.at(runs.folder / "reviewed")
    program = "import os\n\n\ndef run(cmd):\n    os.system(cmd)\n    return eval(cmd)\n"
    repository.commit({"app.py": program})
    given = GoalInput(name="repo", kind="repository", value=str(repository.path))
    tools = lenses_of(Snapshots(runs.store, runs.folder / "snapshots"))
    goal = Goal(text="Review the repository", playbook="code-review", inputs=(given,))
    await runs.run(goal, tools=tools)


async def a_run_that_begins_alike(runs: Runs) -> None:
    """The others leave when the answer to the first begins; a digest is ahead, and no critic."""
    first = asyncio.Event()
    model = ScriptedModel(
        {
            "t1": [first, works("It costs 15.")],
            "t2": [works("It costs 25. " + "two " * 3_000)],
            "t3": [works("It costs 35.")],
            "digest": [digests("It costs 25.", "t2")],
            "synthesize": [synthesizes("One costs 15 [t1], one 25 [t2], one 35 [t3].")],
        }
    )
    plan = ready(*(subtask(each, inputs=["book"]) for each in ("t1", "t2", "t3")))
    plan = plan.model_copy(update={"critic": "unless_checked"})
    book = GoalInput(name="book", kind="text", value="All of the handbook. " * 150)
    goal = Goal(text="Compare", plan=plan, inputs=(book,), use_models=True)
    async with runs.worker(model, capabilities=_with_caching):
        handle = await runs.start(goal, skipping=False)
        await model.asked("t1")
        model.requests[0].begins()
        await model.asked("t2", "t3", "digest")
        first.set()
        await handle.result()


async def _with_caching() -> Capabilities:
    return Capabilities(caching=True)


SCENARIOS: tuple[Callable[[Runs], Awaitable[None]], ...] = (
    a_planned_run,
    a_run_with_every_repair,
    a_cancelled_run,
    a_steered_run,
    a_code_review,
    a_run_that_begins_alike,
)


def nameless(history: str) -> str:
    """Without who recorded it, and where: that is nobody's business, and no replay looks at it."""
    history = re.sub(r'"identity": "[^"]*"', '"identity": "recorded"', history)
    history = re.sub(r'"name": "\d+@[^"]*"', '"name": "recorded"', history)
    return re.sub(r'"stackTrace": "(?:[^"\\]|\\.)*"', '"stackTrace": ""', history)


async def main(names: list[str]) -> None:
    HISTORIES.mkdir(exist_ok=True)
    flags = ["frontend.WorkflowTimeSkippingEnabled=true"]
    environment = await WorkflowEnvironment.start_time_skipping_v2(
        dev_server_existing_path=str(TEMPORAL),
        dev_server_log_level="never",
        dev_server_extra_args=[part for flag in flags for part in ("--dynamic-config-value", flag)],
    )
    async with environment:
        for scenario in SCENARIOS:
            name = scenario.__name__.replace("_", "-")
            if names and name not in names:
                continue
            with tempfile.TemporaryDirectory() as folder:
                runs = Runs(environment, Path(folder))
                await scenario(runs)
                text = await export(runs.client, runs.handles[-1].id, runs.store)
            (HISTORIES / f"{name}.json").write_text(nameless(text) + "\n")
            sys.stdout.write(f"recorded {name}\n")


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1:]))
