"""A receipt of a small run, made without one: for tests of the file and its check."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime
from decimal import Decimal
from typing import Any

from holdfast.contracts import Finding, Given, Order, Report, Share
from holdfast.receipts.file import Receipt
from holdfast.receipts.making import Digests, History, Material, make_receipt
from holdfast.receipts.signing import make_key, public_of, read_key, sign
from holdfast.tracing.steps import TraceStep

NOON = datetime(2026, 11, 26, 12, tzinfo=UTC)
OURS, THEIRS = (read_key(make_key()) for _ in range(2))
ANSWER = "Rates rose to 2.5 % [t1]. Rents fell [t2, t1].\n\n- Nobody knows why.\n"


def call(run: str, id: str, subtask: str, dollars: str | None, **more: Any) -> TraceStep:
    parent = f"{run}:{subtask}" if subtask else run
    price = None if dollars is None else Decimal(dollars)
    facts: dict[str, Any] = {
        "kind": "call",
        "call": "work",
        "tier": "haiku",
        "model": "claude-haiku",
        "status": "ok",
    }
    return TraceStep(
        session=run,
        id=f"{run}/{id}",
        parent=parent,
        name=id,
        run=run,
        dollars=price,
        **facts | more,
    )


def steps_of(run: str) -> list[TraceStep]:
    subtasks = [
        TraceStep(session=run, id=f"{run}:{id}", parent=run, kind="subtask", name=id, run=run)
        for id in ("t1", "t2")
    ]
    tool = {"kind": "tool", "call": "", "tier": "", "model": "", "tool": "web", "by": "anna"}
    return [
        *subtasks,
        call(run, "plan-1", "", "0.01", call="plan"),
        call(run, "work-t1-1", "t1", "0.02"),
        call(run, "tool-t1-1", "t1", "0", **tool),
        call(run, "work-t2-1", "t2", "0.03"),
        call(run, "synthesize-1", "", "0.04", call="synthesize"),
    ]


def report_of(run: str, **more: Any) -> Report:
    findings = [
        Finding(subtask_id=id, status="complete", content=f"Found {id}", dollars=Decimal("0.02"))
        for id in ("t1", "t2")
    ]
    approved = Given(number=1, command="approve", order=Order(by="anna"), at=NOON)
    facts: dict[str, Any] = {
        "status": "complete",
        "goal": "Which rates changed?",
        "answer": ANSWER,
        "findings": findings,
        "orders": [approved],
        "dollars": Decimal("0.10"),
        "shares": [Share(kind="work", dollars=Decimal("0.10"))],
        "model_calls": 4,
    }
    return Report(run_id=run, **facts | more)


def material_of(run: str = "r1", **more: Any) -> Material:
    steps = steps_of(run)
    digests = {
        each.id: Digests((5, 7), "a" * 64, "b" * 64, "c" * 64, "same")
        for each in steps
        if each.kind == "call"
    }
    facts: dict[str, Any] = {
        "report": report_of(run),
        "execution": f"execution-of-{run}",
        "steps": steps,
        "histories": [History(run, f"execution-of-{run}", 55, "d" * 64, calls=digests)],
        "unread": (),
        "version": "0.2.0",
        "made": "2026-11-26T12:00:00Z",
    }
    return Material(**facts | more)


def receipt_of(
    run: str = "r1", key: Any = OURS, blot: Callable[[Any], Any] = lambda each: each, **more: Any
) -> Receipt:
    material = material_of(run, **more)
    return make_receipt(material, public_of(key), lambda root: sign(key, root), blot)
