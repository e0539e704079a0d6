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
from holdfast.activities.repositories.scratch import Snapshots
from holdfast.activities.review.lenses import lenses_of
from holdfast.contracts import Goal, GoalInput
from holdfast.contracts.remarks import has_remarks
from holdfast.ports import ModelRequest
from repositories import Repository, remarks_of
from reviewing import ReviewingModel, finds
from scripted import ScriptedModel, calls, plans, subtask, synthesizes, works
from shipped import shipped_catalogue

pytestmark = [pytest.mark.anyio, pytest.mark.usefixtures("secrets_found_here")]
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
    report = await runs.run(goal, model, catalogue=shipped_catalogue())
    assert report.status == "complete", report.gaps
    kept(model.requests, "ordinary")


ORDERS = """\"\"\"Orders of the shop.\"\"\"

from shop.store import Denied, find, save


def load(user, number):
    \"\"\"Return an order. Raise Denied if the user may not see it.\"\"\"
    order = find(number)
    if not user.may_see(order):
        raise Denied(number)
    return order


def pages(total, size):
    \"\"\"Return how many pages of a size there are.\"\"\"
    return -(-total // size)


def refund(user, number, cents):
    \"\"\"Pay back a part of an order.\"\"\"
    order = load(user, number)
    if cents > order.paid:
        raise ValueError("more than was paid")
    order.refunded += cents
    save(order)
"""
MENDED = ORDERS.replace("if cents > order.paid:", "if cents > order.paid - order.refunded:")
CHANGED = (
    ORDERS.replace("    if not user.may_see(order):\n        raise Denied(number)\n", "")
    .replace("import Denied, find", "import find")
    .replace("-(-total // size)", "total // size + 1")
    .replace("refund(user, number, cents)", "refund(user, number, reason, cents)")
    .replace(
        "    order.refunded +=", "    order.note(reason, cents / 100.0)\n    order.refunded +="
    )
)
WEB = """from shop.orders import load, pages


def show(request):
    order = load(request.user, request.args["number"])
    return {"order": order, "pages": pages(len(order.lines), 20)}
"""
BATCH = """from shop.orders import refund


def refund_all(user, rows):
    for number, cents in rows:
        refund(user, number, cents)
"""
TESTS = """from shop.orders import pages, refund


def test_the_last_page_may_be_partly_filled():
    assert pages(41, 20) == 3
    assert pages(40, 20) == 2


def test_what_was_refunded_is_not_refunded_again(user, order):
    refund(user, order.number, 900)
    with raises(ValueError):
        refund(user, order.number, 900)
"""
BEFORE: dict[str, str | bytes] = {
    "AGENTS.md": "# Rules\n\n- Money is an int of cents; no float anywhere.\n"
    "- Every function has a test.\n",
    "shop/orders.py": ORDERS,
    "shop/web.py": WEB,
    "shop/batch.py": BATCH,
    "tests/test_orders.py": TESTS.partition("\n\ndef test_what")[0] + "\n",
}
AFTER: dict[str, str | bytes] = {
    "shop/orders.py": CHANGED,
    "tests/test_orders.py": TESTS.partition("\n\ndef test_what")[0].replace(
        "    assert pages(40, 20) == 2", "    assert pages(19, 20) == 1"
    )
    + "\n",
}
INTENT = """Refunds carry a reason (#77)

Support wants to see why money was paid back. Permissions stay as they are.
"""


MEND = "Refund at most what is left\n\nTwo clicks paid an order back twice (#41)."


def remark(file: str, line: int, code: str, rule: str, message: str) -> dict[str, Any]:
    return {"file": file, "line": line, "code": code, "rule": rule, "message": message}


DENIED = ("shop/orders.py", 9, "if not user.may_see(order):", "deleted-check")
LEFT = ("shop/orders.py", 20, "    if cents > order.paid:")
ANSWERS: dict[str, list[Any]] = {
    "logic": [
        finds(
            remark(*DENIED, "Any user is given any order: nothing asks may_see any more."),
            remark(
                "shop/orders.py", 15, "return total // size + 1", "wrong-bound",
                "pages(40, 20) is 3, and was 2: a last, empty page.",
            ),
            remark(*LEFT, "wrong-condition", "What was refunded before is refunded again."),
        )
    ],
    "attacks": [
        finds(remark(*DENIED, "Whoever guesses a number reads and refunds orders of others."))
    ],
    "callers": [
        calls(
            ("read_file", {"file_path": "repo/shop/web.py"}),
            ("read_file", {"file_path": "repo/shop/batch.py"}),
        ),
        finds(
            remark(
                "shop/batch.py", 6, "refund(user, number, cents)", "changed-signature",
                "refund now takes a reason before cents: this call fails.",
            ),
            remark(
                "shop/web.py", 5, 'order = load(request.user, request.args["number"])',
                "changed-effect", "show relied on load to refuse strangers.",
            ),
        ),
    ],
    "conventions": [
        calls(("read_file", {"file_path": "repo/AGENTS.md"})),
        finds(
            remark(
                "shop/orders.py", 22, "order.note(reason, cents / 100.0)", "broken-rule",
                "AGENTS.md: \"Money is an int of cents; no float anywhere\".",
            ),
            remark(
                "shop/orders.py", 7, "Return an order. Raise Denied if the user may not see it",
                "false-comment", "load raises nothing now.",
            ),
        ),
    ],
    "regressions": [
        calls(("git_history", {"path": "repo/shop/orders.py"})),
        finds(remark(*LEFT, "undone-fix", "Undoes \"Refund at most what is left\" (#41).")),
    ],
    "untested": [
        finds(
            remark(
                "tests/test_orders.py", 6, "def test_what_was_refunded_is_not_refunded_again",
                "deleted-test", "Nothing holds that an order is not refunded twice.",
            ),
            remark(
                "tests/test_orders.py", 6, "assert pages(19, 20) == 1", "weakened-test",
                "pages(40, 20) was the case that the change breaks.",
            ),
        )
    ],
}  # fmt: skip


@pytest.mark.long
async def test_a_review_of_a_change(runs: Runs) -> None:
    """Answered as a reader of these prompts would, truthfully."""
    repository = Repository.at(runs.folder / "repository")
    repository.commit(BEFORE, message="Orders")
    mended = "Refund at most what is left\n\nTwo clicks paid an order back twice (#41)."
    base = repository.commit(
        {"shop/orders.py": MENDED, "tests/test_orders.py": TESTS}, "Bo", mended
    )
    repository.commit(AFTER, message="Refunds carry a reason\n\nAlso simpler pages.")
    intent = runs.folder / "intent.md"
    intent.write_text(INTENT)
    given = {
        "repo": ("repository", str(runs.folder / "repository")),
        "base": ("text", base),
        "intent": ("file", str(intent)),
    }
    goal = Goal(
        text="Review the repository",
        playbook="code-review",
        inputs=tuple(
            GoalInput.model_validate({"name": name, "kind": kind, "value": value})
            for name, (kind, value) in given.items()
        ),
        use_models=True,
        today=TODAY,
    )
    model = ReviewingModel(ANSWERS)
    tools = lenses_of(Snapshots(runs.store, runs.folder / "snapshots"))
    report = await runs.run(goal, model, tools=tools)
    assert report.status == "complete", report.gaps
    agents = [each for each in report.findings if each.model and has_remarks(each)]
    told = [each for finding in agents for each in remarks_of(finding)]
    assert len(told) == 11 and all(each.code and each.fingerprint for each in told)
    deleted = [(each.file, each.line) for each in told if each.deleted]
    assert sorted(deleted) == [*[("shop/orders.py", 8)] * 2, ("tests/test_orders.py", 7)]
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
    whole = re.sub(r"\b(?=\w*\d)[0-9a-f]{10,40}\b", "192768f00000", whole)
    return re.sub(r"\b\d{4}-\d\d-\d\d \d\d:\d\d\b", f"{TODAY} 09:00", whole)


def said(message: Any) -> str:
    content = message["content"]
    if isinstance(content, str):
        return f"{message['role']}: {content}"
    blocks = (
        each.get("text") or each.get("content") or json.dumps(each, sort_keys=True)
        for each in content
    )
    return f"{message['role']}: " + "\n".join(blocks)
