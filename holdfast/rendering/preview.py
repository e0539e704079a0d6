"""A plan before it runs, in words for any screen: its table, what it does and costs. Pure."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from holdfast.contracts import Money, Plan
from holdfast.contracts.view import Preview, PreviewRow
from holdfast.ledger.ranges import format_price
from holdfast.rendering.amounts import bounded, money, seconds
from holdfast.rendering.many import LINES, beginning
from holdfast.text import for_terminal, one_line


@dataclass(frozen=True)
class Column:
    """One of the table: what it is called, and what it says of a row."""

    title: str
    cell: Callable[[PreviewRow], str]
    essential: bool = True
    """Whether it is there on a narrow screen, too."""
    priced: bool = False
    """Whether it says nothing of a plan that asks no model."""
    number: bool = False


COLUMNS = (
    Column("", lambda row: row.id if row.of_plan else ""),
    Column("subtask", lambda row: row.title),
    Column("role", lambda row: row.role, essential=False),
    Column("tier", lambda row: _tier(row)),
    Column("needs", lambda row: ", ".join(row.depends_on), essential=False),
    Column("low", lambda row: _price(row, row.low), essential=False, priced=True, number=True),
    Column("expected", lambda row: _price(row, row.expected), priced=True, number=True),
    Column("high", lambda row: _price(row, row.high), essential=False, priced=True, number=True),
    Column("time", lambda row: _time(row), number=True),
)


def columns(plan: Preview, *, wide: bool = True) -> list[Column]:
    """Return those that say something of this plan."""
    return [
        each for each in COLUMNS if (wide or each.essential) and (_priced(plan) or not each.priced)
    ]


def together(plan: Preview, shown: Sequence[Column]) -> list[str]:
    """Return the cells of the sums below the table; none where nothing is paid."""
    if not _priced(plan):
        return []
    whole = {
        "subtask": "together",
        "low": format_price(plan.low),
        "expected": format_price(plan.expected),
    }
    whole["high"] = format_price(plan.high)
    return [whole.get(each.title, "") for each in shown]


def _priced(plan: Preview) -> bool:
    return any(row.asks or row.paid for row in plan.rows)


def _tier(row: PreviewRow) -> str:
    if row.kind == "team":
        return "team"
    return "tool" if row.tier == "none" else row.tier


def _time(row: PreviewRow) -> str:
    if row.reused:
        return "reused"
    if row.paid:
        return "paid"
    return seconds(row.seconds) if row.of_plan else ""


def _price(row: PreviewRow, amount: Money | None) -> str:
    return format_price(amount) if row.asks or row.paid else ""


def totals(plan: Preview, cap: Money) -> list[str]:
    """Price, time and what is sent where, in a line each."""
    first, more = beginning(plan.critical_path, LINES)
    path = " → ".join([*first, *([f"{more} more"] if more else [])])
    work = f"about {seconds(plan.makespan)} of work"
    lines = [f"Expected: {price(plan)}{_against(plan, cap)} · {work}"]
    lines += _under(plan, cap)
    if len(plan.critical_path) > 1:
        lines.append(f"Critical path: {path}")
    for row in plan.subtasks:
        if row.kind == "team":
            what = f"{row.id} is a team: a run of its own, with its own plan and subtasks"
            lines.append(f"{what}, for up to {format_price(row.high)}")
        elif row.kind == "agent":
            what = f"{row.id} is an agent with tools: up to {row.turns} turns"
            lines.append(f"{what}, of which {format_price(row.slice)} is reserved at a time")
            if row.approval:
                asks = one_line(", ".join(row.approval))
                lines.append(f"{row.id} waits for your approval of each call of {asks}")
        if own := bounded(row):
            lines.append(f"{row.id} has its own bounds: {own}")
    lines += [one_line(f"{each[:1].upper()}{each[1:]}") for each in (*plan.composed, *plan.brought)]
    lines += [f"Taken of {one_line(each)}" for each in plan.taken]
    lines += [f"Goes without {one_line(each)}" for each in plan.without]
    if plan.asks:
        lines.append("In no row: a subtask tried again, a changed plan, a revised answer.")
        sent = ", ".join(map(one_line, plan.leaves))
        where = f" at {one_line(plan.endpoint)}" if plan.endpoint else ""
        lines.append(f"Sent to the models{where}: {sent}")
        lines += [f"Reached by tools: {one_line(each)}" for each in plan.reached]
    elif any(row.paid for row in plan.rows):
        lines.append("No model is asked any more.")
    else:
        lines.append("No model is asked; nothing leaves this machine.")
    return lines


def _against(plan: Preview, cap: Money) -> str:
    """How the expected price stands to the cap; nothing of a plan that asks no model."""
    if not plan.asks:
        return ""
    if plan.expected is not None and plan.expected > cap:
        return f", more than the cap of {money(cap)}: work stops there, at what is finished"
    return f", never above {money(cap)}"


def _under(plan: Preview, cap: Money) -> Iterator[str]:
    """What the cap takes from the plan, and which cap takes nothing."""
    if plan.lowered:
        yield one_line(f"Because of the cap of {money(cap)}: {'; '.join(plan.lowered)}")
    if plan.enough is not None:
        needed = f"--limits dollars={plan.enough:.2f}"
        yield f"As it stands the plan needs a cap of about {money(plan.enough)}: {needed}"


def told(plan: Plan) -> list[tuple[str, str]]:
    """All that a plan says beyond its table: lines with their styles."""
    lines: list[tuple[str, str]] = []
    for each in plan.subtasks:
        lines.append((f"{each.id} {one_line(each.title)}", "bold"))
        lines += _paragraph("why: ", each.why)
        lines += _paragraph("", each.instruction)
        lines += _paragraph("inputs: ", ", ".join(each.inputs))
        lines += _paragraph("must meet: ", each.acceptance_criteria)
        checks = "; ".join(f"{check.kind} {check.argument}".strip() for check in each.checks)
        lines += [*_paragraph("checked by code: ", checks), ("", "")]
    answer = f"by {plan.strategy}"
    lines.append((f"The answer, {answer}", "bold"))
    return [*lines, *_paragraph("", plan.synthesis_instruction or "as the goal asks"), ("", "")]


def _paragraph(name: str, text: str) -> list[tuple[str, str]]:
    """A text below its subtask, in its own lines; nothing of an empty one."""
    first, *rest = for_terminal(text.strip(), lines=True).splitlines() or [""]
    return [(f"  {name}{first}", ""), *((f"  {line}", "") for line in rest)] if first else []


def price(preview: Preview) -> str:
    """What a plan is expected to cost, and between which bounds."""
    if preview.expected is None or preview.low is None or preview.high is None:
        return "unpriced"
    if not (preview.asks or any(row.paid for row in preview.rows)):
        return "free"
    low, expected, high = map(format_price, (preview.low, preview.expected, preview.high))
    return f"{expected} ({low} to {high})"
