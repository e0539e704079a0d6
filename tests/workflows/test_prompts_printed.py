"""Everything that models are really sent in an ordinary run and in a review of a change.

    RENEW_PROMPTS=1 pytest tests/workflows/test_prompts_printed.py

writes `tests/prompts/ordinary/` and `tests/prompts/review/` anew: read them as the model that gets
them before you commit the difference.
"""

from __future__ import annotations

import json
import os
import re
from pathlib import Path
from typing import Any

import pytest

from conftest import Runs
from holdfast.activities.catalogue.catalogue import Catalogue
from holdfast.activities.repositories.scratch import Snapshots
from holdfast.activities.review.lenses import lenses_of
from holdfast.contracts import Goal, GoalInput
from holdfast.ports import ModelRequest
from repositories import Repository
from reviewing import ReviewingModel, finds
from scripted import ScriptedModel, calls, plans, subtask, synthesizes, works

pytestmark = pytest.mark.anyio
SAVED = Path(__file__).parents[1] / "prompts"
TODAY = "2026-11-23"

HARBOUR = """Offer of Harbour Estates, 2 November 2026.
Lease of 410 square metres for 11,900 euro a month, service charge 1,150 euro a month, fixed for
five years.
The offer is binding until 16 November 2026. Fitting out: paid by the tenant, about 60,000 euro.
"""
MILL = """Offer of Old Mill GmbH, 10 November 2026.
Lease of 395 square metres, 10,400 euro a month, service charge 1,600 euro a month, with 3 % more a
year. Fitting out is included. The offer is binding until 4 December 2026.
"""
MINUTES = """Board, 28 October 2026: staff voted 31 to 9 for a place near the station. Harbour is
12 minutes from it, the Mill 4. The old lease ends on 31 March 2027; notice must be given by 31
December 2026.
"""


class ByInstruction(ScriptedModel):
    """Knows an agent's work by its instruction, whatever comes first of what runs at once."""

    def _what(self, request: ModelRequest) -> str:
        told = request.prompt or str(request.messages).replace("\\n", "\n")
        known = (each for each in self.lines if f"<instruction>\n{each}" in told)
        what = super()._what(request)
        return next(known, what) if what == "the whole goal" else what


async def test_an_ordinary_run(runs: Runs) -> None:
    costs = subtask(
        "t1",
        title="Costs over five years",
        instruction="Calculate from the inputs `harbour` and `mill` what each office costs over"
        " five years, as a table with one row for each kind of cost and the sum.",
        inputs=["harbour", "mill"],
        acceptance_criteria="Each figure has its calculation.",
    )
    dates = subtask(
        "t2",
        role="researcher",
        title="What must be decided by when",
        instruction="List every date in the inputs by which something must be decided, with what"
        " and by whom, as bullets.",
        inputs=["harbour", "mill", "minutes"],
    )
    advice = subtask(
        "t3",
        "t1",
        "t2",
        title="Advice",
        instruction="From the findings of t1 and t2, say which office to take and why, in at most"
        " 150 words.",
    )
    model = ByInstruction(
        {
            "plan": [
                {
                    **plans(costs, dates, advice),
                    "goal": "Choose between two offices: costs over five years, dates",
                    "synthesis_instruction": "For the board, in English, one page: advice first,"
                    " then costs, then dates.",
                }
            ],
            costs["instruction"]: [works("Harbour 783,000 + 60,000; Mill 752,000")],
            dates["instruction"]: [
                works("- 16 November 2026: Harbour (over)\\n- 4 December 2026: Mill")
            ],
            advice["instruction"]: [works("Take the Mill: it is cheaper and its offer stands.")],
            "review": [{"why": "each figure has its sum", "verdict": "pass"}],
            "synthesize": [
                synthesizes(
                    "Take the Mill [t3].", conflicts=["t1 counts 60,000 for fitting out, t3 none"]
                ),
                synthesizes("Take the Mill [t3]; the offer of Harbour has ended [t2]."),
            ],
            "judge": [{"why": "The offer of Harbour says 60,000.", "winner": "t1"}],
            "critique": [
                {"issues": [{"problem": "No dates", "fix": "Name them", "severity": "warning"}]}
            ],
        }
    )
    inputs = {"harbour": HARBOUR, "mill": MILL, "minutes": MINUTES}
    goal = Goal(
        text="Which of the two offices should we take, what does each cost over five years, and"
        " what must be decided by when? One page for the board.",
        inputs=tuple(
            GoalInput(name=name, kind="text", value=text) for name, text in inputs.items()
        ),
        use_models=True,
        today=TODAY,
    )
    report = await runs.run(goal, model, catalogue=Catalogue.load())
    assert report.status == "complete", report.gaps
    kept(model.requests, "ordinary")


async def test_a_review_of_a_change(runs: Runs) -> None:
    repository = Repository.at(runs.folder / "repository")
    repository.commit({"pages.py": "def pages(total, size):\n    return -(-total // size)\n"})
    base = repository.commit({"AGENTS.md": "Every function has a test.\n"})
    repository.commit({"pages.py": "def pages(total, size):\n    return total // size\n"})
    given = {"repo": ("repository", str(runs.folder / "repository")), "base": ("text", base)}
    goal = Goal(
        text="Review",
        playbook="code-review",
        inputs=tuple(
            GoalInput.model_validate({"name": name, "kind": kind, "value": value})
            for name, (kind, value) in given.items()
        ),
        use_models=True,
        today=TODAY,
    )
    lost = {"file": "repo/pages.py", "line": 2, "message": "The last, partly filled page is lost."}
    model = ReviewingModel(
        {
            "logic": [calls(("read_file", {"file_path": "repo/pages.py"})), finds(lost)],
            "verify": [{"verdicts": [{"remark": 1, "why": "Line 2", "verdict": "confirmed"}]}],
        }
    )
    tools = lenses_of(Snapshots(runs.store, runs.folder / "snapshots"))
    report = await runs.run(goal, model, tools=tools)
    assert report.status == "complete", report.gaps
    kept(model.requests, "review")


# ---------------------------------------------------------------- as text


def kept(requests: list[ModelRequest], name: str) -> None:
    """Compare what was sent with what is saved, whatever the order in which calls left."""
    texts = sorted(map(written, requests))
    folder = SAVED / name
    if os.environ.get("RENEW_PROMPTS"):
        folder.mkdir(exist_ok=True)
        for path in folder.iterdir():
            path.unlink()
        for number, text in enumerate(texts, 1):
            (folder / f"{number:02}.txt").write_text(text, encoding="utf-8")
    saved = [path.read_text("utf-8") for path in sorted(folder.iterdir())]
    assert texts == saved, "what models are sent has changed: see the docstring of this file"


def written(request: ModelRequest) -> str:
    parts = [request.system]
    if request.tools:
        parts.append("tools: " + ", ".join(str(each["name"]) for each in request.tools))
    parts += [said(each) for each in request.messages] or [request.prompt]
    parts.append("answer: " + json.dumps(request.schema))
    whole = "\n\n======== \n\n".join(each.strip() for each in parts) + "\n"
    return re.sub(r"\b[0-9a-f]{12,40}\b", "192768f00000", whole)


def said(message: Any) -> str:
    content = message["content"]
    if isinstance(content, str):
        return f"{message['role']}: {content}"
    blocks = (each.get("text") or json.dumps(each, sort_keys=True) for each in content)
    return f"{message['role']}: " + "\n".join(blocks)
