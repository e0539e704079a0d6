"""What was paid: by tier, by kind of call and by subtask, against what was expected."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from decimal import Decimal

import htpy
from htpy import Element, Node, h3, p, strong, table, tbody, td, th, thead, tr

from holdfast.contracts import Report
from holdfast.history.steps import WORDS, Step
from holdfast.rendering.amounts import at_most, calls, money
from holdfast.rendering.html.pictured import Pictured, section, wide

KINDS = WORDS | {
    "work": "Work of agents",
    "agent": "Agents with tools",
    "team": "Teams",
    "review": "Review of drafts",
    "refine": "Refinement of drafts",
    "examine": "Lenses",
}
"""Each kind of step as people say it."""


OF_TEAMS = "in teams; the page of each tells by which tier"


def prices(run: Pictured) -> Node:
    """The chapter."""
    paid = [each for each in run.steps if each.calls or each.spent != 0 or each.assumed]
    return section(
        "money",
        "Money",
        p[_told(run)],
        _grouped(
            "By tier",
            paid,
            lambda each: each.tier or OF_TEAMS,
        ),
        _grouped("By kind of call", paid, lambda each: KINDS.get(each.kind, each.kind)),
        _against(run, paid),
    )


def _told(run: Pictured) -> Node:
    report = run.report
    if not report.model_calls and not report.unpaid_calls:
        return "No model was asked, so nothing was paid."
    usage = report.usage
    parts: list[Node] = [
        strong[at_most(report.dollars, report.assumed)],
        f" for {calls(report.model_calls)}: ",
        f"{usage.input_tokens:,} tokens in, {usage.output_tokens:,} out,"
        f" {usage.cache_read_tokens:,} read from cache,"
        f" {usage.cache_write_tokens:,} written to it.",
    ]
    if report.unpaid_calls:
        parts.append(f" Besides, {calls(report.unpaid_calls)} brought no answer and cost nothing.")
    if report.assumed and report.dollars is not None:
        parts.append(f" Of it, {money(report.assumed)} is assumed: calls whose answers were lost.")
    if report.dollars_estimated:
        parts.append(f" The plan was estimated at {money(report.dollars_estimated)}")
        parts.append(f"{_share(report, over=run.over) if report.findings else ''}.")
    return parts


def _share(report: Report, *, over: bool) -> str:
    """Of the estimate; a worst case is measured against none."""
    if report.dollars is None or report.assumed or not report.dollars_estimated:
        return ""
    share = f"{report.dollars / report.dollars_estimated:.0%} of that"
    return f": it took {share}" if over else f": {share} so far"


def _grouped(title: str, steps: Iterable[Step], of: Callable[[Step], str]) -> Node:
    groups: dict[str, list[Step]] = {}
    for step in steps:
        groups.setdefault(of(step), []).append(step)
    if not groups:
        return None
    sums = {name: _sum(each.spent for each in found) for name, found in groups.items()}
    most = max((each for each in sums.values() if each), default=Decimal(0))
    rows = [
        tr[
            td[name],
            td(".bar")[_bar(sums[name], most)],
            td(".n")[f"{sum(each.calls for each in found):,}"],
            td(".n")[f"{sum(each.tokens for each in found):,}"],
            td(".n")[at_most(sums[name], sum((each.assumed for each in found), Decimal(0)))],
        ]
        for name, found in sorted(groups.items(), key=lambda each: -(sums[each[0]] or Decimal(0)))
    ]
    return [h3[title], wide(title, table[_heads("", "", "Calls", "Tokens", "Price"), tbody[rows]])]


def _heads(*names: str) -> Element:
    first, second, *rest = names
    return thead[
        tr[
            th(scope="col")[first] if first else td,
            th(".bar", scope="col")[second] if second else td(".bar"),
            (th(".n", scope="col")[each] for each in rest),
        ]
    ]


def _sum(amounts: Iterable[Decimal | None]) -> Decimal | None:
    total = Decimal(0)
    for each in amounts:
        if each is None:
            return None
        total += each
    return total


def _bar(amount: Decimal | None, most: Decimal, expected: Decimal | None = None) -> Node:
    if not most or amount is None:
        return None
    share = f"{float(amount / most) * 100:.1f}%"
    mark = None
    if expected:
        mark = htpy.rect(
            class_="odd", x=f"{min(float(expected / most) * 100, 99):.1f}%", width=2, height=12
        )
    return htpy.svg(width="100%", height=12, aria_hidden="true")[
        htpy.rect(class_="track", width="100%", height=12, rx=3),
        htpy.rect(class_="work", width=share, height=12, rx=3),
        mark,
    ]


def _against(run: Pictured, steps: Iterable[Step]) -> Node:
    """Each subtask, and the rest of the run: expected, and paid."""
    preview = run.view.preview if run.view else None
    expected = {row.id: row.expected for row in preview.rows if row.of_plan} if preview else {}
    paid = {id: found for id, found in run.findings.items() if not found.reused_from}
    amounts = {id: found.dollars for id, found in paid.items()}
    for id, row in run.rows.items():
        amounts.setdefault(id, row.dollars)
    most = max((each for each in (*amounts.values(), *expected.values()) if each), default=None)
    if most is None:
        return None
    rows = [
        tr[
            td[run.link(id)],
            td(".bar")[_bar(amount, most, expected.get(id))],
            td(".n")[money(expected[id]) if id in expected else ""],
            td(".n")[at_most(amount, paid[id].assumed if id in paid else Decimal(0))],
        ]
        for id, amount in amounts.items()
    ]
    own = _sum(each.spent for each in steps if not each.subtask_id)
    if own:
        rest = [td["plan, answer and checks"], td(".bar")[_bar(min(own, most), most)], td(".n")]
        rows.append(tr[rest, td(".n")[money(own)]])
    told = "By subtask, with the estimate as the mark" if expected else "By subtask"
    return [h3[told], wide(told, table[_heads("Subtask", "", "Expected", "Paid"), tbody[rows]])]
