"""What a run was paid, for what, and against what was expected."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from decimal import Decimal

from holdfast.contracts import Report, Share, Usage
from holdfast.history.steps import WORDS
from holdfast.ledger.ranges import total_of
from holdfast.rendering.amounts import calls, money
from holdfast.rendering.blocks import Block, Column, Heading, Line, Marked, Paragraph, table
from holdfast.rendering.reach import join_words
from holdfast.rules.prices import LOST, percent_of
from holdfast.state.paying import TAKEN_BACK
from holdfast.text import pluralize

ROWS = "map"
"""Kind of what the rows of a map cost."""
KINDS_OF_STEPS = WORDS | {
    "work": "Work of an agent",
    "agent": "Agent with tools",
    "team": "Team",
    ROWS: "Rows of a map",
    "review": "Review of a draft",
    "refine": "Refinement of a draft",
    "examine": "Lens",
    "digest": "Digest",
    LOST: "Lost by a reset of the run",
    TAKEN_BACK: "Begun before its plan was whole, and taken back",
}
PARTS = {
    "planning": ("match", "choose", "plan", "replan"),
    "work": ("work", "agent", "team", ROWS),
    "checks": ("review", "refine", "prove", "fix", "critique"),
    "answer": ("digest", "judge", "synthesize"),
    "taken back": (TAKEN_BACK,),
}
"""The parts of a run by the kinds of their calls; the rest is rare."""
OF_THE_RUN = {
    "the plan": PARTS["planning"],
    "proofs": ("prove",),
    "patches": ("fix",),
    "a judge's decision": ("judge",),
    "the answer": ("digest", "synthesize"),
    "its critic": ("critique",),
    "calls lost by a reset": (LOST,),
}
"""What no subtask has of a price, by the kinds of its calls."""
UNKNOWN_TIER = "not known"
COLUMNS = (
    Column(""),
    Column("calls", "number"),
    Column("tokens", "number"),
    Column("price", "number"),
    Column("share", "number"),
)


def blocks(report: Report, *, over: bool = True, whole: bool = True) -> list[Block]:
    """Return the chapter on money; `whole`: with its tables."""
    split = _split(report, over=over)
    said = filter(None, (paid(report, over=over), split, " ".join(report.prices)))
    return [*map(Paragraph, said), *(_tables(report) if whole else ())]


# ---------------------------------------------------------------- what for


Group = Callable[[Share], str]


def _split(report: Report, *, over: bool) -> str:
    """Return the parts of a price in percent; empty where there is only one, or no price."""
    if len(report.shares) < 2 or not _price(report.shares):
        return ""
    parts = {kind: part for part, kinds in PARTS.items() for kind in kinds}
    by_part = _percents(report, lambda each: parts.get(each.kind, "other"))
    by_tier = _percents(report, lambda each: each.tier or UNKNOWN_TIER)
    said = "" if over else " What is in flight counts here with all that it may cost."
    return f"By part: {by_part}. By tier: {by_tier}.{said}"


def _percents(report: Report, name_of: Group) -> str:
    groups = _grouped(report.shares, name_of).items()
    return ", ".join(
        f"{name} {_percent(percent_of(_price(each), _price(report.shares)))}"
        for name, each in groups
    )


def _tables(report: Report) -> Iterator[Block]:
    """Yield tables of the price by tier, by kind of call, and within each team."""
    if not report.shares:
        return
    yield from _table("By tier", report, report.shares, lambda each: each.tier or UNKNOWN_TIER)
    yield from _table("By kind of call", report, report.shares, _kind)
    for team in dict.fromkeys(each.team for each in report.shares if each.team):
        inside = [each for each in report.shares if each.team == team]
        title = f"In the team of {team}"
        yield from _table(title, report, inside, _kind_and_tier)


def _kind(share: Share) -> str:
    return KINDS_OF_STEPS.get(share.kind, share.kind)


def _kind_and_tier(share: Share) -> str:
    return ", ".join(filter(None, (_kind(share), share.tier)))


def _table(title: str, report: Report, shares: Sequence[Share], name_of: Group) -> Iterator[Block]:
    lines = [_line(name, each, report) for name, each in _grouped(shares, name_of).items()]
    if len(lines) > 1:
        lines.append(replace(_line("together", shares, report), total=True))
    yield Heading(title, 3)
    yield table(COLUMNS, lines)


def _grouped(shares: Iterable[Share], name_of: Group) -> Mapping[str, list[Share]]:
    """Return shares by name, dearest first."""
    groups: dict[str, list[Share]] = {}
    for each in shares:
        groups.setdefault(name_of(each), []).append(each)
    return dict(sorted(groups.items(), key=lambda group: -(_price(group[1]) or Decimal(0))))


def _line(name: str, shares: Sequence[Share], report: Report) -> Line:
    """Return a line whose price is exact, so that lines add up as they are shown."""
    count, tokens = sum(each.calls for each in shares), sum(each.usage.total for each in shares)
    price = _price(shares)
    exact = "unpriced" if price is None else f"${price:.6f}"
    assumed = price is not None and any(each.assumed for each in shares)
    share = _percent(percent_of(price, _price(report.shares)))
    return Line((name, f"{count:,}", f"{tokens:,}", f"{'≤ ' * assumed}{exact}", share))


def _price(shares: Iterable[Share]) -> Decimal | None:
    return total_of([each.dollars for each in shares])


def _percent(share: float | None) -> str:
    if share is None:
        return ""
    return f"{share:.0f}%" if share >= 1 or not share else "under 1%"


# ---------------------------------------------------------------- how much


def count_asked(report: Report) -> str:
    """Return `3 model calls and 10,200 answers about rows`: what was asked, of which calls alone
    count against the cap of calls; empty: nothing was.
    """
    answers = sum(each.calls for each in report.shares if each.kind == ROWS)
    asked = [calls(report.model_calls)] if report.model_calls else []
    of_rows = [f"{pluralize(answers, 'answer')} about rows"] if answers else []
    return " and ".join([*asked, *of_rows])


def paid(report: Report, *, over: bool = True) -> str:
    """Return what was paid for how much, against what was expected."""
    usage, unpaid = report.usage, report.unpaid_calls
    against = _against_estimate(report, over=over)
    if asked := count_asked(report):
        more = f" Besides, {calls(unpaid)} brought no answer and cost nothing." if unpaid else ""
        return Marked(
            f"{money(report.dollars)} for {asked}"
            f"{_assumed(report, over=over)}{_of_the_run(report)}."
            f" Tokens: {usage.input_tokens:,} in, {usage.output_tokens:,} out,"
            f" {usage.cache_read_tokens:,} read from cache{_share_of_read(usage)},"
            f" {usage.cache_write_tokens:,} written to it.{against}{more}"
        )
    if unpaid:
        were = "was" if unpaid == 1 else "were"
        refused = f"{calls(unpaid)} {were} refused or did not get through"
        return f"No model answered: {refused}, and nothing was paid."
    if report.shares and not over:
        return Marked(f"Nothing is paid yet: no call has its answer.{against}")
    return Marked(f"No model was asked, so nothing was paid.{against}")


def _share_of_read(usage: Usage) -> str:
    """Return which part of all that was read came from the cache; empty: none did."""
    read, written = usage.cache_read_tokens, usage.cache_write_tokens
    whole = usage.input_tokens + read + written
    return f" ({read / whole:.0%} of all that was read)" if read else ""


def _assumed(report: Report, *, over: bool) -> str:
    if report.dollars is None or not report.assumed:
        return ""
    which = "whose answers were lost" if over else "that are under way or were lost"
    return f", of which {money(report.assumed)} is assumed (the worst case of calls {which})"


def _of_the_run(report: Report) -> str:
    """Return what of the price no subtask has, and what it was for."""
    own = [each for each in report.findings if not each.reused_from]
    if report.dollars is None or not own or any(each.dollars is None for each in own):
        return ""
    shares = [each for each in report.shares if not each.team and each.dollars]
    taken = [each.dollars or Decimal(0) for each in shares if each.kind == TAKEN_BACK]
    back = sum(taken, Decimal(0))
    rest = report.dollars - sum((each.dollars or Decimal(0) for each in own), back)
    paid_for = {each.kind for each in shares}
    named = [name for name, kinds in OF_THE_RUN.items() if paid_for.intersection(kinds)]
    parts = [f"{money(rest)} of it went into {join_words(named)}"] if rest > 0 and named else []
    parts += [f"{money(back)} into what was begun early and taken back"] if back else []
    return "".join(f"; {each}" for each in parts)


def _against_estimate(report: Report, *, over: bool) -> str:
    """Return the estimate, and the share of it that was paid: only of what is known, since a worst
    case is measured against no estimate.
    """
    estimated, spent = report.dollars_estimated, report.dollars
    if not estimated or spent is None:
        return ""
    plan = f" The plan was estimated at {money(estimated)}"
    if not report.findings:
        return f"{plan}; none of it was run." if over else f"{plan}."
    if report.assumed:
        return f"{plan}; because of what is assumed, nobody can say what share of that it took."
    share = f"{spent / estimated:.0%} of that"
    return f"{plan}: it took {share}." if over else f"{plan}: {share} so far."
