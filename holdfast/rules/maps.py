"""A map: its subtask is a workflow of its own that asks for each item of an input, in slices of
money. Pure.

A segment that ends for money, a pause, an outage or an order reports where its rows stand, and the
next one goes on there: nothing is read or asked again.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from decimal import ROUND_DOWN, Decimal

from holdfast.calling import gathering, outages
from holdfast.calling.reserving import tiers
from holdfast.calls.items import named_fields
from holdfast.calls.row import row_room, shared_bytes
from holdfast.calls.rows import MapGoal, MapReport
from holdfast.calls.turn import Slice
from holdfast.contracts import (
    MICRODOLLAR,
    Draft,
    Escalation,
    FindingStatus,
    ModelCard,
    PinnedInput,
    Tier,
    policies,
)
from holdfast.contracts.plans import Lane, MapSpec
from holdfast.contracts.replacing import replace
from holdfast.ledger.ledger import Amount
from holdfast.ledger.rows import RowSizes, worst_rows
from holdfast.maps import money
from holdfast.maps.rules import first_state
from holdfast.rules import map_orders
from holdfast.rules.map_findings import content_of, data_of, describe_rows, table_of
from holdfast.rules.repair import CLIMB
from holdfast.state import paying
from holdfast.state.edits import add_bill, note_author, record_try, stop_for, update, without
from holdfast.state.events import MapEnded
from holdfast.state.moves import StartMap
from holdfast.state.parts import Progress
from holdfast.state.run import State
from holdfast.state.settling import end_for_person, settle, without_setback

LONGEST_ROW = 2**18
"""Bytes of one row, where nobody has looked at the input: a longer one is not asked."""
FEWEST_ROWS = 10
"""Rows that a segment can pay for, at least, where there are so many."""
GO_ON, STOP = "go on", "stop"


def spec_of(progress: Progress) -> MapSpec:
    assert progress.subtask.map is not None, "only a map has one"
    return progress.subtask.map


# ---------------------------------------------------------------- starting a segment


def start(state: State, progress: Progress, below: Amount) -> StartMap | None:
    """Start the next segment of a map; None: there is no money for even a few of its rows.
    `below`: what its dependents need at least.
    """
    amount = slice_of(state, progress, below)
    if not least(state, progress) <= amount or not state.ledger.fits(amount):
        return None
    return _segment(state, progress, amount)


def start_ordered(state: State) -> StartMap | None:
    """Start a segment that carries out what a person decided about rows, and asks none: it needs
    neither money nor an endpoint. None: nothing was decided, or it is still under way.
    """
    for progress in state.work.ready if state.work.maps else ():
        if progress.mapped.orders and progress.stage == "work":
            return _segment(state, progress, Amount())
    return None


def _segment(state: State, progress: Progress, amount: Amount) -> StartMap:
    number = state.next_number(f"map-{progress.subtask.id}")
    part = Slice(dollars=amount.dollars, calls=0, tokens=amount.tokens)
    goal = goal_of(state, progress).model_copy(update={"slice": part})
    return StartMap(progress.subtask.id, number, goal, amount)


def goal_of(state: State, progress: Progress) -> MapGoal:
    """Return the goal of the next segment, without its slice."""
    limits, mapped = state.goal.limits, progress.mapped
    work = gathering.for_map(state, progress)
    return MapGoal(
        work=work,
        role=state.brief.role(progress.subtask.role).model_copy(update={"tools": (), "specs": ""}),
        models=models_of(state, progress),
        slice=Slice(dollars=Decimal(0), calls=0, tokens=0),
        lane=lane_of(state, progress),
        tries=limits.tries_per_subtask,
        at_once=limits.concurrency,
        seconds_left=state.seconds_left,
        capabilities=state.brief.capabilities,
        first_run=state.first_run_id,
        project=state.goal.project,
        resume=mapped.resume,
        orders=mapped.orders,
        tolerated=mapped.tolerated,
        reuse=state.goal.reuse.tables.get(progress.subtask.id, "") if state.goal.reuse else "",
    )


def models_of(state: State, progress: Progress) -> tuple[ModelCard, ...]:
    """Return the models that its rows climb, the first one first; those that are served."""
    served = [card.tier for card in state.brief.models]
    assert progress.tier != "none", "a map asks a model"
    # Where its own tier is not served, a cheaper one is; else whoever serves it is waited for.
    cheaper = [each for each in tiers(state.brief, progress.tier) if each in served]
    found = cheaper[:1] or [progress.tier]
    above = None if state.brief.role(progress.subtask.role).fixed_tier else _above(progress.tier)
    while above is not None:
        found += [above] if above in served else []
        above = _above(above)
    return tuple(state.brief.model(each, progress.subtask.role) for each in found)


def _above(tier: Tier) -> Tier | None:
    above = CLIMB.get(tier)
    return None if above is None or above == "none" else above


def lane_of(state: State, progress: Progress) -> Lane:
    """Return the lane of the next segment: batches only where the endpoint has them, and of itself
    only where there is time for one.
    """
    lane = state.goal.lane or spec_of(progress).lane
    enough = lane == "batch" or state.seconds_left >= policies.BATCH_WORTH_SECONDS
    return lane if lane != "now" and enough and state.brief.capabilities.batches else "now"


def slice_of(state: State, progress: Progress, kept: Amount) -> Amount:
    """Return what a map would get now: all that is free but what is kept for its dependents, half
    of it where others are at work or will be; no more than all its rows can cost.
    """
    ledger, share = state.ledger, _parts(state, progress)
    free = ledger.cap - ledger.paid - ledger.held - ledger.kept - kept
    whole = _worst_of_all(state, progress)
    dollars = max(free.dollars, Decimal(0)) / share
    if whole is not None:
        dollars = min(dollars, max(whole.dollars, least(state, progress).dollars))
    tokens = 0 if models_of(state, progress)[0].prices else max(free.tokens, 0) // share
    return Amount(dollars.quantize(MICRODOLLAR, rounding=ROUND_DOWN), 0, tokens)


def _parts(state: State, progress: Progress) -> int:
    """Return into how many parts what is free is divided, of which a map gets one."""
    below = state.work.below(progress.subtask.id)
    alone = all(
        state.is_settled(key) or key in below or key == progress.subtask.id for key in state.work
    )
    return 1 if alone else 2


def least_free(state: State, progress: Progress, below: Amount) -> Amount:
    """Return what must be free for a segment to go on, beside what its dependents need."""
    return least(state, progress) * _parts(state, progress) + below


def least(state: State, progress: Progress) -> Amount:
    """Return the least that a segment can go on with."""
    if progress.mapped.needs != Amount():
        return progress.mapped.needs
    found = _input_of(state, progress)
    items = found.items.count if found is not None and found.items is not None else FEWEST_ROWS
    return worst_of(state, progress, min(items, FEWEST_ROWS))


def worst_of(state: State, progress: Progress, rows: int) -> Amount:
    """Return the worst case of the first answers of so many rows, each the longest one."""
    found, subtask = _input_of(state, progress), progress.subtask
    longest = LONGEST_ROW if found is None else min(LONGEST_ROW, found.size)
    if found is not None and found.items is not None:
        longest = found.items.most_shown(named_fields(subtask.instruction))
    return _worst(state, progress, rows, rows * longest, longest)


def _worst_of_all(state: State, progress: Progress) -> Amount | None:
    """Return the worst case of the next answers of all its rows; None: nobody has counted them."""
    if progress.mapped.resume.portions:
        stands = first_state(goal_of(state, progress), state.now)
        caching = money.caching_of(stands, lane_of(state, progress))
        due = [money.worst(stands, each, "now", caching) for each in stands.stands.portions]
        return sum(due, Amount())
    found = _input_of(state, progress)
    if found is None or found.items is None:
        return None
    names = named_fields(progress.subtask.instruction)
    items = found.items
    return _worst(state, progress, items.count, items.shown(names), items.most_shown(names))


def _worst(state: State, progress: Progress, rows: int, size: int, longest: int) -> Amount:
    work, role = gathering.for_map(state, progress), state.brief.role(progress.subtask.role)
    sizes = RowSizes(
        rows=rows,
        shared=shared_bytes(work, role),
        bytes=size,
        longest=longest,
        max_output=row_room(progress.subtask),
    )
    card = models_of(state, progress)[0]
    amount = worst_rows(card, sizes, "now", "1h" if lane_of(state, progress) != "now" else "5m")
    # Up, as a contract has it: what is told to its workflow is no less than what is reserved here.
    dollars = Slice(dollars=amount.dollars, calls=0, tokens=0).dollars
    return Amount(dollars, 0, 0 if card.prices else amount.tokens)


def _input_of(state: State, progress: Progress) -> PinnedInput | None:
    over = spec_of(progress).over
    return next((each for each in state.brief.inputs if each.name == over), None)


# ---------------------------------------------------------------- the end of a segment


def end_segment(state: State, event: MapEnded) -> State:
    """Settle a segment's slice, then go on, take what it brought, or give it up."""
    move, report = event.move, event.report
    if report is None:
        return _take_loss(state, event)
    state = _settle_segment(state, move, report)
    progress = state.work[move.subtask_id]
    if not progress.ending or report.outcome == "done":
        return end_for_person(_judge(state, move, report), move.subtask_id)
    state = _with_partial(state, move.subtask_id)
    why = f"{progress.ending}{_rows_so_far(state, move.subtask_id)}"
    state = update(state, move.subtask_id, lambda each: replace(each, ending=why))
    return end_for_person(state, move.subtask_id)


def _settle_segment(state: State, move: StartMap, report: MapReport) -> State:
    bill, before = report.bill, move.goal.resume
    share = paying.share_of_flight(move, bill)
    state = paying.book(state, move.id, bill, [share], report.tokens, rows=True)
    notes = tuple(f"{move.subtask_id}: {each}" for each in report.notes)
    state = replace(
        state,
        unpaid_calls=state.unpaid_calls + report.unpaid_calls,
        transport=without(state.transport, move.purpose),
        notes=(*state.notes, *notes),
    )
    if report.resume.answers > before.answers:
        state = replace(state, heard=True, heard_json=True)
        state = state if report.unreached else outages.end_outage(state)
    # Its tokens are bounded by its dollars, where there is a price.
    tokens = max(move.amount.tokens, bill.usage.total) if move.goal.models[0].prices else 0
    reserved = replace(move.amount, tokens=tokens or move.amount.tokens)
    state = paying.note_bill(state, move.id, move.goal.models[0], bill, reserved)
    needs = report.needs
    priced = bool(move.goal.models[0].prices)
    due = Amount(needs.dollars, 0, 0 if priced else needs.tokens) if needs else Amount()
    over = map_orders.numbers_over(move, report)

    def stand(each: Progress) -> Progress:
        orders = tuple(order for order in each.mapped.orders if order.number not in over)
        told = report.table.counts.items > 0
        mapped = replace(
            each.mapped,
            resume=report.resume,
            orders=orders,
            needs=due,
            table=report.table if told else each.mapped.table,
            text=report.text,
        )
        files = report.table.files if told else each.files
        return replace(add_bill(each, bill), mapped=mapped, files=files)

    state = update(map_orders.take_told(state, move, report), move.subtask_id, stand)
    author = usual_author(move.goal.models, report.resume.tiers) or bill.model
    return update(state, move.subtask_id, lambda each: note_author(each, author, draft=True))


def usual_author(models: Sequence[ModelCard], answers: Mapping[str, int]) -> str:
    """Return the model that gave most of a map's answers, by tier; empty: none gave any."""
    given = [each for each in models if answers.get(each.tier)]
    return max(given, key=lambda each: answers[each.tier]).id if given else ""


def _judge(state: State, move: StartMap, report: MapReport) -> State:
    subtask_id = move.subtask_id
    if state.work[subtask_id].mapped.orders and not state.stop:
        # What a person has decided meanwhile comes first.
        return state
    match report.outcome:
        case "more" if report.needs is not None and report.resume == move.goal.resume:
            # The same again would be no more: nothing is begun for ever.
            return _hand_up(state, subtask_id, "its next rows could not be paid from its slice")
        case "more":
            return state
        case "done":
            return _take_whole(state, subtask_id)
        case "intolerable":
            return _ask_or_escalate(state, subtask_id, report)
    if (unreached := report.unreached) is not None:
        waiting = outages.begin(state, unreached, move.goal.models[0].tier, move.purpose)
        state = waiting or state
        if report.outcome == "unreachable" and (waiting or unreached.lost):
            return state
    if report.stopping:
        state = stop_for(state, report.stopping, report.why)
    if report.outcome == "cut" and state.stop:
        return _cut_short(state, subtask_id)
    return _hand_up(state, subtask_id, report.why)


def _take_whole(state: State, subtask_id: str) -> State:
    draft = Draft(
        content=content_of(state, subtask_id), data=data_of(state, subtask_id), confidence=None
    )

    def accepted(each: Progress) -> Progress:
        return replace(record_try(each, "accepted", ""), last=draft)

    return settle(update(state, subtask_id, accepted), subtask_id, "complete", "")


def _ask_or_escalate(state: State, subtask_id: str, report: MapReport) -> State:
    if not state.goal.ask_people or state.stop:
        return _hand_up(state, subtask_id, report.why)
    why = f"{report.why}. Answer {GO_ON!r} or {STOP!r}; retry, supply or skip rows of it instead."
    return update(state, subtask_id, lambda each: replace(each, stage="person", why=why))


def take_answer(state: State, subtask_id: str, answer: str, by: str = "") -> State:
    """Go on although more rows fail than is tolerated, or end with what there is, as a person said;
    if nobody said anything, it ends.
    """
    why = state.work[subtask_id].why.partition(". Answer ")[0]
    state = update(state, subtask_id, lambda each: replace(each, stage="work", asked=state.now))
    if answer.strip().lower() != GO_ON:
        return _hand_up(state, subtask_id, why)

    def go_on(each: Progress) -> Progress:
        source = f"let go on by {by or 'a person'}: {why}"
        mapped = replace(each.mapped, tolerated=True)
        return replace(each, why="", mapped=mapped, answers=(*each.answers, source))

    return update(state, subtask_id, go_on)


def _hand_up(state: State, subtask_id: str, why: str) -> State:
    """End with what there is of its rows: as uncertain where there is any, else as failed."""
    counts = table_of(state, subtask_id).counts
    if not counts.complete + counts.supplied:
        partial = Draft(status="failed", content=content_of(state, subtask_id), why=why)
        failed = update(
            state, subtask_id, lambda each: replace(record_try(each, "failed", why), last=partial)
        )
        return settle(failed, subtask_id, "failed", why)
    text = content_of(state, subtask_id)
    draft = Draft(
        status="escalated",
        content=text,
        data=data_of(state, subtask_id),
        why=why,
        escalation=Escalation(reason="confidence_too_low", why=why, partial=text),
    )
    state = update(
        state, subtask_id, lambda each: replace(record_try(each, "escalated", why), last=draft)
    )
    return settle(state, subtask_id, "escalated", why)


def _cut_short(state: State, subtask_id: str) -> State:
    """Settle a map that the run's stop has cut: with what it has, where time or money ran out."""
    assert state.stop is not None
    why = f"not finished: {state.stop.why}"
    if not state.stopped_by("cancelled"):
        return without_setback(_hand_up(state, subtask_id, why), subtask_id)
    state = _with_partial(state, subtask_id)
    return settle(state, subtask_id, "cancelled", f"{why}{_rows_so_far(state, subtask_id)}")


def _with_partial(state: State, subtask_id: str) -> State:
    """Note what there is of a map's rows as its last draft."""
    partial = Draft(content=content_of(state, subtask_id), data=data_of(state, subtask_id))
    return update(state, subtask_id, lambda each: replace(each, last=partial))


def _rows_so_far(state: State, subtask_id: str) -> str:
    """Return how the rows of a map stand, as the end of why it ended; empty: nobody knows."""
    table = table_of(state, subtask_id)
    return f"; {describe_rows(table).rstrip('.')}" if table.counts.items else ""


def leave_undone(state: State, subtask_id: str, why: str) -> State:
    """Settle a map that a stop of the run left over, with what there is of its rows."""
    return _hand_up(state, subtask_id, f"not finished: {why}")


def _take_loss(state: State, event: MapEnded) -> State:
    """Take in the loss of a segment; the next one goes on where it began."""
    move = event.move
    state = paying.settle_lost(state, event, priced=bool(move.goal.models[0].prices))
    failures = state.transport.get(move.purpose, 0) + 1
    state = replace(state, transport={**state.transport, move.purpose: failures})
    if state.work[move.subtask_id].ending:
        return end_for_person(state, move.subtask_id)
    if state.stop:
        status: FindingStatus = "cancelled" if state.stopped_by("cancelled") else "failed"
        return settle(state, move.subtask_id, status, f"not finished: {state.stop.why}")
    if failures >= policies.TRANSPORT_TRIES:
        return settle(state, move.subtask_id, "failed", event.why)
    return state
