"""What was paid, by tier and by kind of call; what each subtask cost stands with the plan."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from decimal import Decimal

from htpy import Node

from holdfast.history.steps import Step
from holdfast.rendering import report
from holdfast.rendering.amounts import at_most
from holdfast.rendering.blocks import Block, Column, Heading, Line, Paragraph, Table
from holdfast.rendering.html.blocks import write
from holdfast.rendering.html.exchanges import KINDS_OF_STEPS
from holdfast.rendering.html.pictured import Pictured, section

OF_TEAMS = "in teams; the page of each tells by which tier"
COLUMNS = (
    Column(""),
    Column("calls", "number"),
    Column("tokens", "number"),
    Column("price", "number"),
)


def prices(run: Pictured) -> Node:
    paid = [each for each in run.steps if each.calls or each.spent != 0 or each.assumed]
    blocks = [
        Paragraph(report.paid(run.report, over=run.over)),
        *_grouped("By tier", paid, lambda each: each.tier or OF_TEAMS),
        *_grouped("By kind of call", paid, lambda each: KINDS_OF_STEPS.get(each.kind, each.kind)),
    ]
    return section("money", write(run, blocks))


def _grouped(title: str, steps: Iterable[Step], of: Callable[[Step], str]) -> Iterator[Block]:
    groups: dict[str, list[Step]] = {}
    for step in steps:
        groups.setdefault(of(step), []).append(step)
    if not groups:
        return
    spent = {name: _sum(each.spent for each in found) for name, found in groups.items()}
    names = sorted(groups, key=lambda name: -(spent[name] or Decimal(0)))
    yield Heading(title, 3)
    yield Table(COLUMNS, tuple(_line(each, groups[each], spent[each]) for each in names))


def _line(name: str, steps: Sequence[Step], spent: Decimal | None) -> Line:
    calls, tokens = sum(each.calls for each in steps), sum(each.tokens for each in steps)
    assumed = sum((each.assumed for each in steps), Decimal(0))
    return Line((name, f"{calls:,}", f"{tokens:,}", at_most(spent, assumed)))


def _sum(amounts: Iterable[Decimal | None]) -> Decimal | None:
    total = Decimal(0)
    for each in amounts:
        if each is None:
            return None
        total += each
    return total
