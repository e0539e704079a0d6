"""Predict what a map will cost in both lanes, and how long it takes, from sizes alone. Pure."""

from __future__ import annotations

from dataclasses import replace
from decimal import ROUND_DOWN, ROUND_UP, Decimal
from math import ceil
from typing import Literal

from holdfast.calling import context, gathering
from holdfast.calling.reserving import tiers
from holdfast.calls.items import named_fields
from holdfast.calls.row import form_of, row_room, shared_bytes
from holdfast.calls.rows import ASKED_OTHERWISE, NONE_EQUAL, asked_of
from holdfast.contracts import KeptItems, ModelCard, Subtask, policies
from holdfast.contracts.goals import ItemsFound
from holdfast.contracts.plans import MapSpec
from holdfast.contracts.view import LanePrice, MapPreview, PreviewRow
from holdfast.ledger.ranges import PLACES, Range, range_of, total_of
from holdfast.ledger.rows import (
    WRITTEN,
    RowSizes,
    least_rows,
    price_rows,
    usual_written,
    worst_rows,
    worth_caching,
    worth_warming,
)
from holdfast.plans.mapping import BROKEN_REMEDY, broken_problem
from holdfast.state.parts import Progress
from holdfast.state.run import State

Taken = Literal["now", "batch"]
LANES: tuple[Taken, ...] = ("now", "batch")
ROW_SECONDS = WRITTEN[1] / policies.OUTPUT_TOKENS_PER_SECOND
"""Usual time of one call about one item."""
BATCH_SECONDS = 3_600.0
"""Within which most batches end."""
RULES_BYTES = 1_500
"""What all maps are told, and the marks around what stands before each item."""
AT_A_TIME = 100
"""Rows that are paid for together, at least."""


def price_map(state: State, progress: Progress, row: PreviewRow, tokens: int) -> PreviewRow:
    """Return the row of a subtask that is done once for each item of its input. `tokens`: what its
    role, instruction, inputs and dependencies come to, for an ordinary call.
    """
    subtask, spec = progress.subtask, progress.subtask.map
    assert spec is not None and progress.tier != "none", "a map asks a model"
    served = [each.tier for each in state.brief.models]
    tier = next(each for each in tiers(state.brief, progress.tier) if each in served)
    card, found = state.brief.model(tier, subtask.role), _items(state, spec)
    row = row.model_copy(update={"kind": "map", "tier": tier})
    if found is None:
        return _uncounted(state, row, spec, card)
    kept = _kept(state, progress, found)
    usual, bound = _sizes(state, progress, found, kept, tokens)
    caching = state.brief.capabilities.caching
    takes, why = choose_lane(state, spec)
    written = usual_written(form_of(gathering.for_work(state, progress)), spec.usual_output)
    texts = found.asked if spec.reduce else 0
    lanes = tuple(
        _lane(
            each,
            card,
            usual,
            bound,
            written,
            cached=caching and worth_warming(card, usual, each),
            state=state,
            texts=texts,
        )
        for each in LANES
    )
    if kept.rows and caching and worth_caching(card, usual.shared):
        lanes = tuple(_with_cache(each, card, usual, written[0]) for each in lanes)
    taken = next(each for each in lanes if each.lane == takes)
    one = replace(bound, rows=min(bound.rows, AT_A_TIME))
    one = replace(one, bytes=min(bound.bytes, one.rows * bound.longest))
    some = worst_rows(card, one, takes).dollars.quantize(PLACES, rounding=ROUND_UP)
    about = MapPreview(
        items=found.count,
        whole=found.whole,
        asked=found.asked - kept.rows,
        broken=found.broken - kept.mended,
        samples=found.samples,
        note=f"{spec.over} {found.note}" if found.note else "",
        barred=_barred(state, subtask, found, kept),
        reused=kept.rows + kept.mended,
        reused_from=state.goal.reuse.run if state.goal.reuse else "",
        unused=kept.unused,
        at_once=state.goal.limits.concurrency,
        takes=takes,
        why=why,
        written=0 if spec.usual_output else min(written[1], row_room(subtask)),
        lanes=lanes,
    )
    prices = {"low": taken.low, "expected": taken.expected, "high": taken.high}
    each = usual.shared + usual.bytes // max(usual.rows, 1)
    update = {"map": about, "seconds": taken.seconds, "slice": some if card.prices else None}
    update["tokens"] = int(each // context.EXPECTED_BYTES_PER_TOKEN)
    return row.model_copy(update={**update, **prices, "max_output": subtask.max_output})


def choose_lane(state: State, spec: MapSpec) -> tuple[Taken, str]:
    """Return the lane that a map would take now, and why, as the rest of a sentence."""
    wanted, left = state.goal.lane or spec.lane, state.seconds_left
    if wanted == "now":
        return "now", "as was asked"
    if not state.brief.capabilities.batches:
        return "now", "the endpoint is not known to take batches"
    if wanted == "batch":
        return "batch", "as was asked"
    if left < policies.BATCH_WORTH_SECONDS:
        least = _time(policies.BATCH_WORTH_SECONDS)
        return (
            "now",
            f"{_time(left)} are left for its rows, and batches are worth it from {least} on",
        )
    return "batch", f"half the price, and {_time(left)} are left for its rows"


def _time(seconds: float) -> str:
    return f"{seconds / 3_600:.3g} h" if seconds >= 3_600 else f"{seconds / 60:.0f} min"


def _items(state: State, spec: MapSpec) -> ItemsFound | None:
    return next((each.items for each in state.brief.inputs if each.name == spec.over), None)


def _uncounted(state: State, row: PreviewRow, spec: MapSpec, card: ModelCard) -> PreviewRow:
    """Return the row of a map over what nobody has counted: it may take the whole cap."""
    takes, why = choose_lane(state, spec)
    about = MapPreview(items=0, takes=takes, why=why, at_once=state.goal.limits.concurrency)
    cap = state.ledger.cap.dollars if card.prices else None
    prices = range_of(None if cap is None else Decimal(0), cap, cap)
    return row.model_copy(update={"map": about, **prices})


def _kept(state: State, progress: Progress, found: ItemsFound) -> KeptItems:
    """Return what is taken over of an earlier run, as far as that is known before it starts."""
    subtask, reuse = progress.subtask, state.goal.reuse
    if reuse is None:
        return KeptItems()
    # Where a planner has planned, the input was not read for its maps.
    unread = "its items are compared once it begins"
    unread = unread if subtask.id in reuse.tables else f"it has no rows of {subtask.id}"
    kept = found.kept.get(subtask.id, KeptItems(unused=unread))
    if kept.unused or not kept.rows + kept.mended:
        return KeptItems(unused=kept.unused or NONE_EQUAL)
    if kept.asked == asked_of(gathering.for_map(state, progress)):
        return kept
    before = [each for each in subtask.depends_on if not state.is_settled(each)]
    first = f"what is asked depends on {', '.join(before)}, and is known only after it"
    return KeptItems(unused=first if before else ASKED_OTHERWISE)


def _barred(state: State, subtask: Subtask, found: ItemsFound, kept: KeptItems) -> str:
    """Return why nothing is asked at first, and what then; empty: it is."""
    wrong = broken_problem(subtask, found, kept.mended)
    if not wrong:
        return ""
    return f"{wrong}; {'a person is asked first' if state.goal.ask_people else BROKEN_REMEDY}"


def _sizes(
    state: State, progress: Progress, found: ItemsFound, kept: KeptItems, tokens: int
) -> tuple[RowSizes, RowSizes]:
    """Return the sizes that are expected of all rows to come, and those that are never exceeded."""
    subtask, names = progress.subtask, named_fields(progress.subtask.instruction)
    work, role = gathering.for_work(state, progress), state.brief.role(subtask.role)
    bound = RowSizes(
        rows=max(found.asked - kept.rows, 0),
        shared=shared_bytes(work, role),
        bytes=max(found.shown(names) - kept.bytes, 0),
        longest=found.most_shown(names),
        max_output=row_room(subtask),
    )
    beginning = (tokens - policies.EXPECTED_OVERHEAD_TOKENS) * context.EXPECTED_BYTES_PER_TOKEN
    form = form_of(work)
    beginning += RULES_BYTES + len(subtask.acceptance_criteria) + (len(str(form)) if form else 0)
    tools = gathering.role_of(state, subtask).tools
    # They are left away, with what the endpoint adds to them.
    beginning -= sum(each.size for each in role.reads if each.tool in tools)
    beginning -= policies.TOOLS_TOKENS if tools else 0
    beginning -= _mapped_size(state, subtask)
    return replace(bound, shared=min(beginning, bound.shared)), bound


def _mapped_size(state: State, subtask: Subtask) -> int:
    """Return what the mapped input counts among the subtask's inputs: it is in no beginning."""
    spec = subtask.map
    named = gathering.inputs_of(state, subtask)
    return sum(each.size for each in named if spec and each.name == spec.over and each.enclosed)


def _lane(
    lane: Taken,
    card: ModelCard,
    usual: RowSizes,
    bound: RowSizes,
    written: tuple[int, int],
    *,
    cached: bool,
    state: State,
    texts: int,
) -> LanePrice:
    """Return what the rows cost in a lane, and then to merge so many texts."""
    low, expected, _ = price_rows(card, usual, lane, cached=cached, written=written)
    _, _, high = price_rows(card, bound, lane, cached=cached)
    uncached = price_rows(card, usual, lane, written=written)[1] if cached else None
    merges = _merging(card, texts, min(written[1], usual.max_output), lane)
    if not card.prices:
        merges = (None, None, None)
    sums = [total_of(pair) for pair in zip((low, expected, high), merges, strict=True)]
    work = ceil(usual.rows / max(state.goal.limits.concurrency, 1)) * ROW_SECONDS
    return LanePrice(
        lane=lane,
        **range_of(sums[0], sums[1], sums[2]),
        uncached=None if uncached is None else uncached.quantize(PLACES, rounding=ROUND_UP),
        seconds=round(work if lane == "now" or not usual.rows else BATCH_SECONDS, 1),
    )


def _with_cache(lane: LanePrice, card: ModelCard, usual: RowSizes, written: int) -> LanePrice:
    """Return the price of a lane, whose rows may find what they begin with in the cache: the run
    whose rows are taken over may have just left it there.
    """
    low = least_rows(card, usual, lane.lane, min(written, usual.max_output))
    low = min(low, lane.low or Decimal(0)).quantize(PLACES, rounding=ROUND_DOWN)
    return lane.model_copy(update={"low": low})


def _merging(card: ModelCard, texts: int, size: int, lane: Taken) -> Range:
    """Return what it costs to merge so many texts of this size, level by level, until one is
    left.
    """
    whole = [Decimal(0)] * 3
    while texts > 1:
        groups = ceil(texts / max(policies.MERGED_TOKENS // size, 2))
        read = texts * size * context.EXPECTED_BYTES_PER_TOKEN
        sizes = RowSizes(groups, RULES_BYTES, read, ceil(read / groups), policies.MERGE_OUTPUT)
        priced = price_rows(card, sizes, lane)
        whole = [one + (more or Decimal(0)) for one, more in zip(whole, priced, strict=True)]
        texts = groups
    return whole[0], whole[1], whole[2]
