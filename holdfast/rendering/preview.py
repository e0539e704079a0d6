"""A plan before it runs: its table, and what it does, costs and sends."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from holdfast.contracts import HARD_SUBTASK_LIMIT, Money, Plan, Subtask
from holdfast.contracts.view import LanePrice, MapPreview, Preview, PreviewRow
from holdfast.ledger.ranges import format_price
from holdfast.rendering.amounts import bounded, money, seconds
from holdfast.rendering.blocks import Column, Line, Table, table
from holdfast.rendering.many import LINES, beginning
from holdfast.rendering.reach import join_words
from holdfast.rules.prices import percent_of
from holdfast.text import for_terminal

COLUMNS = (
    Column("", "ids"),
    Column("subtask"),
    Column("role", essential=False),
    Column("tier"),
    Column("needs", "ids"),
    Column("low", "number", essential=False),
    Column("expected", "number"),
    Column("high", "number", essential=False),
    Column("time", "number"),
)

ALTERNATIVES = (
    Column("the same work"),
    Column("expected", "number"),
    Column("of the plan's price", "number"),
)


_ROWS = {"subtask": "subtasks", "agent": "agents", "team": "teams", "map": "maps"}


def plan_table(plan: Preview, cap: Money, most: int = HARD_SUBTASK_LIMIT) -> Table:
    """Return the parts of a plan with their prices, which add up; of very many the first."""
    shown, left = beginning(plan.subtasks, most)
    ids = {each.id for each in shown}
    lines = [_line(each) for each in plan.rows if not each.of_plan or each.id in ids]
    if left:
        lines.append(Line(("", f"… and {left} more subtasks", *[""] * 7)))
    if _priced(plan):
        high = "the cap" if _may_reach(plan, cap) else format_price(plan.high)
        whole = (format_price(plan.low), format_price(plan.expected), high)
        lines.append(Line(("", "together", "", "", "", *whole, ""), total=True))
    return table(COLUMNS, lines)


def _line(row: PreviewRow) -> Line:
    asked = row.asks or row.paid
    prices = [format_price(each) if asked else "" for each in (row.low, row.expected, row.high)]
    cells = (
        row.id if row.of_plan else "",
        row.title,
        row.role,
        _tier(row),
        ", ".join(row.depends_on),
        *prices,
        _time(row),
    )
    return Line(cells, "skipped" if row.reused or row.paid else None, row.why)


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


def totals(plan: Preview, cap: Money) -> list[str]:
    """Return price, time and what is sent where, in a line each."""
    first, more = beginning(plan.critical_path, LINES)
    path = " → ".join([*first, *([f"{more} more"] if more else [])])
    work = f"about {seconds(plan.makespan)} of work"
    lines = [f"Expected: {price_under(plan, cap)} · {work}"]
    lines += filter(None, (plan.template, plan.choice, plan.single, _alone(plan), plan.overstaffed))
    lines += _under(plan, cap)
    if len(plan.critical_path) > 1:
        lines.append(f"Critical path: {path}")
    for row in plan.subtasks:
        if row.kind == "team":
            what = f"{row.id} is a team: a run of its own, with its own plan and subtasks"
            # What closed teams took is no bound of this one.
            most = row.worst if row.past else row.high
            lines.append(f"{what}, for up to {format_price(most)}")
        elif row.kind == "agent":
            tools = f" ({', '.join(row.tools)})" if row.tools else ""
            what = f"{row.id} is an agent with tools{tools}: up to {row.turns} turns"
            lines.append(f"{what}, of which {format_price(row.slice)} is reserved at a time")
            if row.approval:
                asks = ", ".join(row.approval)
                lines.append(f"{row.id} waits for your approval of each call of {asks}")
        elif row.map is not None:
            lines += _mapped(row, row.map)
        if row.warms:
            lines.append(_goes_first(row, plan))
        if own := bounded(row):
            lines.append(f"{row.id} has its own bounds: {own}")
    lines += [f"{each[:1].upper()}{each[1:]}" for each in (*plan.composed, *plan.brought)]
    lines += [f"Taken of {each}" for each in plan.taken]
    lines += [f"Goes without {each}" for each in plan.without]
    lines += _by_past(plan)
    lines += plan.prices
    if plan.asks:
        lines.append(_beyond(plan))
        where = f" at {plan.endpoint}" if plan.endpoint else ""
        lines.append(f"Sent to the models{where}: {', '.join(plan.leaves)}")
        lines += [f"Reached by tools: {each}" for each in plan.reached]
    elif any(row.paid for row in plan.rows):
        lines.append("No model is asked any more.")
    else:
        lines.append("No model is asked; nothing leaves the machines of this deployment.")
    return lines


def _by_past(plan: Preview) -> Iterator[str]:
    """Yield which prices are those of closed runs, and of how many such rows."""
    groups: dict[str, list[str]] = {}
    for row in plan.rows:
        if row.past:
            what = _ROWS.get(row.kind, "calls")
            name = row.id if row.of_plan else row.title
            groups.setdefault(f"as {row.past} such {what} took", []).append(name)
    if not groups:
        return
    shown, left = beginning([*groups.items()], LINES)
    said = [f"{_named(names)} {took}" for took, names in shown]
    said += [f"{left} more likewise"] if left else []
    rest = any(row.asks and not row.past for row in plan.rows)
    yield f"Priced by closed runs: {'; '.join(said)}{'; the rest by sizes alone' if rest else ''}"


def _named(names: Sequence[str]) -> str:
    first, more = beginning(names, LINES)
    return join_words([*first, *([f"{more} more"] if more else [])])


def _beyond(plan: Preview) -> str:
    """Return what no row has; what closed runs took has what they paid again."""
    again = "a subtask tried again", "a revised answer"
    asking = [row for row in plan.rows if row.asks]
    if not any(row.past for row in asking):
        return f"In no row: {again[0]}, a changed plan, {again[1]}."
    rest = (
        "" if all(row.past for row in asking) else f"; in none by sizes alone: {', '.join(again)}"
    )
    return f"In no row: a changed plan{rest}."


def _goes_first(row: PreviewRow, plan: Preview) -> str:
    """Return which subtasks wait for this one's call, and how much they read of what it leaves."""
    first, more = beginning(row.warms, LINES)
    named = ", ".join((*first, *([f"{more} more"] if more else [])))
    given = sum(each.tokens for each in plan.subtasks if each.id in (row.id, *row.warms))
    read = f"some {len(row.warms) * row.begins:,} of the {given:,} tokens of all"
    return f"{row.id} goes first: {named} then read from the cache what all begin with, {read}"


def _mapped(row: PreviewRow, about: MapPreview) -> Iterator[str]:
    """Yield what a map goes over, what of it cannot be asked, and which lane it takes, and why."""
    if not about.items:
        yield f"{row.id} is a map over what nobody has counted: it may take the whole cap"
    else:
        many = f"{'' if about.whole else 'more than '}{about.items:,} items"
        broken = f", {about.broken:,} of which cannot be asked" if about.broken else ""
        taken = f", {about.reused:,} taken over from {about.reused_from}" if about.reused else ""
        each = "each other" if about.reused else "each"
        yield (
            f"{row.id} is a map: {many}{broken}{taken}, {each} asked of {row.tier}, at most"
            f" {about.at_once} at once"
        )
    if about.unused:
        yield f"  nothing is taken over from {about.reused_from}: {about.unused}"
    yield from (f"  not asked: {each}" for each in about.samples)
    if about.note:
        yield f"  {about.note}"
    if about.barred:
        yield f"  nothing is paid as it stands: {about.barred}"
    if about.written:
        yield (
            f"  an answer is taken to have {about.written:,} tokens; if you know better, say"
            " `usual_output` in its map"
        )
    how = "goes by batches" if about.takes == "batch" else "asks at once"
    yield f"{row.id} {how}: {about.why}"


LANES = (
    Column("lane", "ids"),
    Column("low", "number"),
    Column("expected", "number"),
    Column("high", "number"),
    Column("not cached", "number"),
    Column("time", "number"),
)


def lane_tables(plan: Preview) -> list[Table]:
    """Return a table for each map: what its rows cost in both lanes, with its own lane marked."""
    return [
        table(LANES, (_lane(row, row.map, each) for each in row.map.lanes))
        for row in plan.subtasks
        if row.map is not None and row.map.lanes and not row.reused
    ]


def _lane(row: PreviewRow, about: MapPreview, each: LanePrice) -> Line:
    most = " (at most 24 h)" if each.lane == "batch" else ""
    cells = (
        f"{row.id} {each.lane}{' ◂' if each.lane == about.takes else ''}",
        *map(format_price, (each.low, each.expected, each.high)),
        "" if each.uncached is None else format_price(each.uncached),
        f"{seconds(each.seconds)}{most}",
    )
    return Line(cells, None if each.lane == about.takes else "skipped")


def _may_reach(plan: Preview, cap: Money) -> bool:
    return plan.asks and plan.high is not None and plan.high > cap


def price_under(plan: Preview, cap: Money) -> str:
    """Return what a plan is expected to cost, whose upper bound is at most the cap."""
    if not plan.asks:
        return price(plan)
    if plan.expected is not None and plan.expected > cap:
        more = f"more than the cap of {money(cap)}: work stops there, at what is finished"
        return f"{format_price(plan.expected)}, {more}"
    if _may_reach(plan, cap):
        low, expected = format_price(plan.low), format_price(plan.expected)
        return f"{expected} ({low} to the cap of {money(cap)})"
    return f"{price(plan)}, never above {money(cap)}"


def _alone(plan: Preview) -> str:
    if plan.alone is None or plan.alone.expected is None:
        return ""
    return f"{_one_agent(plan.alone)}: about {format_price(plan.alone.expected)}"


def _one_agent(row: PreviewRow) -> str:
    return f"One agent, {'one call' if row.kind == 'subtask' else f'up to {row.turns} turns'}"


def alternatives(plan: Preview) -> list[Table]:
    """Return a table of what the same work is expected to cost by one tier's model alone, and by
    one agent; none where nothing else is known than the plan's own price.
    """
    prices = {f"Every call to come by {tier}": price for tier, price in plan.by_tier.items()}
    prices |= {"As planned": plan.expected}
    prices |= {_one_agent(plan.alone): plan.alone.expected} if plan.alone else {}
    if len(prices) == 1:
        return []
    return [table(ALTERNATIVES, (_alternative(*each, plan.expected) for each in prices.items()))]


def _alternative(name: str, amount: Money | None, planned: Money | None) -> Line:
    share = percent_of(amount, planned)
    return Line((name, format_price(amount), "" if share is None else f"{share:.0f}%"))


def _under(plan: Preview, cap: Money) -> Iterator[str]:
    """Yield what the cap takes from the plan, and which cap would take nothing."""
    if plan.lowered:
        yield f"Because of the cap of {money(cap)}: {'; '.join(plan.lowered)}"
    if plan.enough is not None:
        needed = f"--limits dollars={plan.enough:.2f}"
        yield f"As it stands the plan needs a cap of about {money(plan.enough)}: {needed}"


def instructions(subtask: Subtask) -> dict[str, str]:
    """Return all that its agent is told of a subtask, and how that is checked, by what it is."""
    checks = (f"{check.kind} {check.argument}".strip() for check in subtask.checks)
    parts = {
        "instruction": subtask.instruction,
        "inputs": ", ".join(subtask.inputs),
        "must meet": subtask.acceptance_criteria,
        "checked by code": "; ".join(checks),
    }
    return {name: text for name, text in parts.items() if text.strip()}


def told(plan: Plan) -> list[tuple[str, str]]:
    """Return all that a plan says beyond its table, as lines of a terminal with their styles."""
    lines: list[tuple[str, str]] = []
    for each in plan.subtasks:
        lines.append((for_terminal(f"{each.id} {each.title}"), "bold"))
        for name, text in {"why": each.why, **instructions(each)}.items():
            lines += _paragraph(f"{name}: ", text)
        lines.append(("", ""))
    lines.append((f"The answer, by {plan.strategy}", "bold"))
    lines += _paragraph("", plan.synthesis_instruction or "as the goal asks")
    if plan.critic == "unless_checked":
        lines += _paragraph(
            "critic: ", "none, if code finds each figure in a finding that its line cites"
        )
    return [*lines, ("", "")]


def _paragraph(name: str, text: str) -> list[tuple[str, str]]:
    first, *rest = for_terminal(text.strip(), lines=True).splitlines() or [""]
    return [(f"  {name}{first}", ""), *((f"  {line}", "") for line in rest)] if first else []


def price(preview: Preview) -> str:
    """Return what a plan is expected to cost, and between which bounds."""
    if preview.expected is None or preview.low is None or preview.high is None:
        return "unpriced"
    if not _priced(preview):
        return "free"
    low, expected, high = map(format_price, (preview.low, preview.expected, preview.high))
    return f"{expected} ({low} to {high})"
