"""What rows of previews took in closed runs, in place of what sizes alone say. Pure.

A run tells it in its memo, which the server lists; `prepare` reads the list and puts what fits into
the Briefing. It is money alone: when rows begin is told by a clock, on which nothing that a run
asks of its server may depend. Only previews use it: what is reserved remains the worst case.
"""

from __future__ import annotations

import hashlib
import json
import statistics
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from functools import cache

from pydantic import ValidationError

from holdfast.contracts import MICRODOLLAR, Briefing, Goal
from holdfast.contracts.past import RowTook, RunTook, Took
from holdfast.contracts.view import LanePrice, MapPreview, PreviewRow
from holdfast.ledger.ranges import Money, range_of, total_of
from holdfast.rules.reporting import status_of
from holdfast.state import graph
from holdfast.state.parts import Progress
from holdfast.state.run import State

LEAST = 8
"""Rows of one sort below which the past says too little."""
MOST_OF_SORT = 50
"""The newest rows of one sort that count."""
MOST_SORTS = 60
"""Sorts of rows that one run is told of."""
MOST_TOLD = 16
"""Rows that one run tells of: a list holds the memos of hundreds."""
MOST_ALIKE = 4
"""Rows of one sort that one run tells of, so that no single run is the past."""
CALLS = {"synthesis": "synthesize", "proof": "prove"}
"""Kinds of the supervisor's own calls by the ids of their rows, where these differ."""
Key = tuple[str, str, str, int]
Known = Mapping[Key, Took]


def sort_of(row: PreviewRow) -> str:
    """Return what sort of work a row is; a map's by its lane, which halves its price."""
    if row.map is not None:
        return _sort_of_map(row.map.takes)
    return row.kind if row.of_plan else row.id


def _sort_of_map(lane: str) -> str:
    return f"map {lane}"


def _key(row: PreviewRow, sort: str = "") -> Key:
    return sort or sort_of(row), row.role, row.tier, row.tokens.bit_length()


# ---------------------------------------------------------------- what a closed run tells


def tell_run(state: State) -> str:
    """Return what a closed run took, as JSON; empty: nothing that others could learn from."""
    estimate = state.estimate
    goal = state.goal
    if estimate is None or goal.plan_only or not goal.use_models or _tries_roles(goal):
        return ""
    ledger, said = state.ledger, (estimate.low, estimate.expected, estimate.high)
    whole = state.stop is None and status_of(state) == "complete"
    known = whole and not goal.depth and ledger.all_priced and not ledger.all_assumed
    amounts = [_millionths(each) for each in said if each is not None] if known else []
    rows = _pick([*_rows_taken(state)])
    if not rows and len(amounts) < 3:
        return ""
    try:
        told = RunTook(
            project=goal.project,
            playbook=goal.playbook,
            said=(amounts[0], amounts[1], amounts[2]) if len(amounts) == 3 else None,
            paid=_millionths(ledger.paid.dollars),
            rows=rows,
        )
    except ValidationError:
        # A name or an amount beyond all bounds: it must not stop the run that is closing.
        return ""
    return told.model_dump_json(exclude_defaults=True)


def _tries_roles(goal: Goal) -> bool:
    """True if a fork has roles that are not as their files are: others learn nothing from it. What
    they took it may learn itself, where model and effort of a role are theirs.
    """
    return goal.fork is not None and bool(goal.fork.roles)


def _millionths(dollars: Decimal) -> int:
    return int(dollars / MICRODOLLAR)


def _pick(rows: Sequence[RowTook]) -> tuple[RowTook, ...]:
    """Return the rows that are told: some of each sort rather than all of one."""
    seen = Counter[Key]()
    places = []
    for row in rows:
        key = (row.sort, row.role, row.tier, row.size)
        seen[key] += 1
        places.append(seen[key])
    order = sorted(range(len(rows)), key=lambda n: places[n])
    return tuple(rows[n] for n in order if places[n] <= MOST_ALIKE)[:MOST_TOLD]


def _rows_taken(state: State) -> Iterator[RowTook]:
    assert state.estimate is not None
    own = Counter(row.id for row in state.estimate.rows if not row.of_plan)
    for row in state.estimate.rows:
        if not (row.asks and row.tokens):
            continue
        if row.of_plan:
            found = _of_subtask(state, row)
        else:
            found = _of_call(state, row) if own[row.id] == 1 else None
        if found is not None:
            mark = mark_of(state.brief, row.role, row.tier)
            price = round(float(found / MICRODOLLAR), 3)
            yield RowTook(*_key(row), mark, price)


def _of_subtask(state: State, row: PreviewRow) -> Decimal | None:
    """Return the dollars of a subtask that is complete, with all its tries; None of one
    that says nothing of others.
    """
    progress = state.work.get(row.id)
    if progress is None or progress.finding is None or row.role.startswith(graph.COMPOSED):
        return None
    finding, paid = progress.finding, progress.paid
    if finding.status != "complete" or finding.reused_from or not paid.calls or paid.assumed:
        return None
    # A team asks its own models, and its tries have no tier.
    other = row.kind != "team" and any(each.tier != row.tier for each in finding.tries[:1])
    if paid.dollars is None or other:
        return None
    items = _items_asked(progress) if row.map else 1
    return paid.dollars / items if items > 0 else None


def _items_asked(progress: Progress) -> int:
    """Return how many items of a map were asked: before it ran nobody may have counted them all."""
    table = progress.mapped.table
    if table is None:
        return 0
    n = table.counts
    return n.complete + n.failed + n.supplied - n.broken - n.repeated - n.reused


def _of_call(state: State, row: PreviewRow) -> Decimal | None:
    """Return what the run paid for its own calls of one kind, which may be nothing."""
    if status_of(state) != "complete":
        return None
    if row.id == "verification":
        agents = [state.work[each].paid for each in state.finishing.to_verify]
        dollars = total_of([each.dollars for each in agents if each.calls])
        return None if any(each.assumed for each in agents) else dollars
    kind = CALLS.get(row.id, row.id)
    shares = [each for key, each in state.shares.items() if key[0] == kind and not key[2]]
    dollars = total_of([each.dollars for each in shares])
    return None if any(each.assumed for each in shares) else dollars


def mark_of(brief: Briefing, role: str, tier: str) -> str:
    """Return a digest of what makes the same work dearer or cheaper: endpoint, model, its prices,
    and how hard the role thinks. After a change there is no past.
    """
    card = next((each for each in brief.roles if each.name == role), None)
    models = [each for each in brief.models if each.tier == tier or (card and card.team)]
    if card and card.model and card.model.tier == tier:
        models = [card.model]
    known = {"id", "prices", "search", "lane"}
    prices = [each.model_dump(mode="json", include=known) for each in models]
    said = json.dumps([brief.endpoint, prices, card.effort if card else ""])
    return hashlib.sha256(said.encode()).hexdigest()[:6]


# ---------------------------------------------------------------- what others learn


def read_told(text: str) -> RunTook | None:
    """Return what a run told; None for what is not to be read."""
    try:
        return RunTook.model_validate_json(text) if text else None
    except ValidationError:
        return None


def learn(runs: Iterable[RunTook], brief: Briefing, goal: Goal) -> tuple[Took, ...]:
    """Return what rows of a goal's project and playbook took at this endpoint and these prices.
    `runs`: the newest first.
    """
    mark = cache(lambda role, tier: mark_of(brief, role, tier))
    found: dict[Key, list[RowTook]] = defaultdict(list)
    for run in runs:
        same = (run.project, run.playbook) == (goal.project, goal.playbook)
        for row in run.rows if same else ():
            if row.mark == mark(row.role, row.tier):
                found[row.sort, row.role, row.tier, row.size].append(row)
    enough = {key: rows[:MOST_OF_SORT] for key, rows in found.items() if len(rows) >= LEAST}
    often = sorted(enough, key=lambda key: (-len(enough[key]), key))[:MOST_SORTS]
    return tuple(_sum_up(key, enough[key]) for key in often)


def _sum_up(key: Key, rows: Sequence[RowTook]) -> Took:
    sort, role, tier, size = key
    prices = spread([row.price for row in rows])
    low, expected, high = (MICRODOLLAR * Decimal(f"{each:.3f}") for each in prices)
    return Took(
        sort=sort,
        role=role,
        tier=tier,
        size=size,
        count=len(rows),
        low=low,
        expected=expected,
        high=high,
    )


def spread(values: Sequence[float]) -> tuple[float, float, float]:
    """Return the median between the 5 % and the 95 % quantile, which lie the further apart the
    fewer values there are.
    """
    cuts = statistics.quantiles(values, n=20, method="inclusive")
    few = LEAST / len(values)
    middle, least = cuts[9], cuts[9] * few / LEAST
    below, above = ((1 + few) * abs(each - middle) for each in (cuts[0], cuts[-1]))
    return max(middle - max(below, least), 0.0), middle, middle + max(above, least)


def known_past(brief: Briefing) -> Known:
    return {(each.sort, each.role, each.tier, each.size): each for each in brief.past}


def as_before(known: Known, row: PreviewRow) -> PreviewRow:
    """Return a row at the price of such rows of closed runs, where these are enough."""
    took = known.get(_key(row)) if row.asks and row.tokens else None
    if took is None or row.high is None:
        return row
    learned: dict[str, object] = {"past": took.count, "worst": row.high}
    if row.map is not None:
        return row.model_copy(update={**learned, **_map_as_before(known, row, row.map, took)})
    return row.model_copy(update={**learned, **range_of(took.low, took.expected, took.high)})


def _map_as_before(
    known: Known, row: PreviewRow, about: MapPreview, took: Took
) -> Mapping[str, object]:
    """Return the prices of a map by those of an item; of its other lane, of which there may be no
    past, in the same relation as by sizes.
    """
    items = about.asked
    share = items * took.expected / row.expected if row.expected else Decimal(1)

    def priced(lane: LanePrice) -> LanePrice:
        past = known.get(_key(row, _sort_of_map(lane.lane)))
        if past is not None:
            prices = range_of(items * past.low, items * past.expected, items * past.high)
        else:
            prices = range_of(_times(lane.low, share), _times(lane.expected, share), lane.high)
        return lane.model_copy(update={**prices, "uncached": _times(lane.uncached, share)})

    lanes = tuple(map(priced, about.lanes))
    prices = range_of(items * took.low, items * took.expected, items * took.high)
    return {**prices, "map": about.model_copy(update={"lanes": lanes})}


def _times(amount: Money, share: Decimal) -> Money:
    return None if amount is None else amount * share


# ---------------------------------------------------------------- how good previews were


@dataclass(frozen=True)
class Calibration:
    """How what closed runs paid compares with what their previews said."""

    runs: int
    within: int
    """Runs that paid no less than the low price and no more than the high one."""
    off: float
    """Half of them were off by at most this share of the expected price."""


def calibrate(runs: Iterable[RunTook]) -> Calibration | None:
    """Return how good the previews of these runs were; None: there are none."""
    told = [(each.paid, each.said) for each in runs if each.said is not None]
    if not told:
        return None
    within = sum(low <= paid <= high for paid, (low, _, high) in told)
    off = statistics.median(abs(paid - usual) / max(usual, 1) for paid, (_, usual, _) in told)
    return Calibration(len(told), within, off)
