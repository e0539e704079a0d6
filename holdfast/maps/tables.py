"""What of a map is read and put together, free of charge: its items, the table of its rows, the
merged text. Pure.
"""

from __future__ import annotations

from holdfast.calls.rows import CloseMaterial, Items, MapReport, MapTable, OpenMaterial, Portion
from holdfast.contracts import policies
from holdfast.contracts.replacing import replace
from holdfast.maps import asking, portions
from holdfast.maps.money import shared_of, work_of
from holdfast.maps.returning import count_equal, tolerate
from holdfast.maps.state import CloseMap, MapState, OpenMap, stand

UNMERGED = "Not merged, as they came:"


def open_map(state: MapState) -> OpenMap:
    """Return the reading of the input, in chunks of which there are few whatever its size."""
    goal, spec = state.goal, state.goal.work.subtask.map
    assert spec is not None
    found = next((each.items for each in goal.work.inputs if each.name == spec.over), None)
    items = found.count if found is not None else spec.most
    most = max(policies.FEWEST_CHUNK_ITEMS, -(-items // policies.MOST_CHUNKS), 4 * goal.at_once)
    material = OpenMaterial(
        work=goal.work, chunk_items=most, chunk_bytes=policies.CHUNK_BYTES, reuse=goal.reuse
    )
    return OpenMap(asking.next_number(state, "open"), material)


def close_map(state: MapState, *, orders: bool = False) -> CloseMap:
    """Return the making of the table; `orders`: those of people are carried out in it."""
    goal, stands = state.goal, state.stands
    material = CloseMaterial(
        work=goal.work,
        items=stands.chunks,
        outcomes=stands.outcomes,
        unanswered=stands.unanswered,
        waiting=_waiting(state),
        orders=goal.orders if orders else (),
    )
    return CloseMap(asking.next_number(state, "close"), material)


def _waiting(state: MapState) -> tuple[int, ...]:
    """Return the rows that have had an answer, and are to be asked again."""
    if state.stands.level:
        return ()
    again = (each.rows for each in state.stands.portions if each.before)
    return tuple(sorted({n for rows in again for n in rows}))


def next_level(state: MapState) -> OpenMap | None:
    """Return the grouping of the texts that stand, or of what was merged of them; None: there are
    none.
    """
    stands = state.stands
    assert stands.table is not None, "it is made before texts are merged"
    merged = stands.merges if stands.level else stands.table.outcomes or stands.outcomes
    if not (merged or stands.level):
        return None
    material = OpenMaterial(
        work=work_of(state.goal, merging=True),
        chunk_items=policies.FEWEST_CHUNK_ITEMS,
        chunk_bytes=policies.CHUNK_BYTES,
        merging=merged,
        named=() if stands.level else stands.chunks,
        groups=stands.texts if stands.level else (),
        unmerged_bytes=max(policies.UNMERGED_BYTES - len(stands.unmerged.encode()), 0),
    )
    return OpenMap(asking.next_number(state, "open"), material)


# ---------------------------------------------------------------- what comes back


def take_items(state: MapState, items: Items) -> MapState:
    """Take in what there is to ask."""
    kept = items.kept
    if items.unused:
        note = f"nothing was taken over from the earlier run: {items.unused}"
        state = replace(state, notes=(*state.notes, note))
    queue = tuple(Portion(chunks=(place,)) for place, each in enumerate(items.chunks) if each.asked)
    queue, _ = portions.drop(items.chunks, queue, kept) if kept else (queue, ())
    return tolerate(
        stand(
            state,
            opened=True,
            chunks=items.chunks,
            items=items.count,
            broken=items.broken,
            repeated=items.repeated,
            reused=items.reused,
            portions=queue,
            outcomes=items.outcomes,
            failed=items.broken,
            complete=items.reused,
        ),
        broken=items.broken,
    )


def take_table(state: MapState, table: MapTable, *, ordered: bool) -> MapState:
    """Take in the table; `ordered`: with what people decided, which changes what is left to ask."""
    spec = state.goal.work.subtask.map
    # The table has given those without an answer an outcome.
    state = stand(state, outcomes=table.outcomes or state.stands.outcomes, unanswered=())
    stands = state.stands
    if not ordered:
        merges = spec is not None and spec.reduce and not stands.portions
        if merges and state.over is None:
            return stand(state, table=table)
        return replace(count_equal(state, table), table=table)
    state = replace(state, ordered=True, table=table)
    # What waits to be asked has neither failed for good nor been completed yet.
    queue, waiting = portions.drop(stands.chunks, stands.portions, table.settled)
    _, queued = portions.drop(stands.chunks, queue, table.retry)
    stood = {*waiting, *queued}
    again = [each for each in table.retry if each not in stood]
    failed = [each for each in table.had_failed if each not in stood]
    if again:
        whole = Portion(chunks=tuple(range(len(stands.chunks))), step=_step_of_order(state))
        queue = (*queue, portions.place_rows(stands.chunks, whole, again))
    return tolerate(
        stand(
            state,
            portions=queue,
            failed=stands.failed - len(failed),
            complete=stands.complete + len(table.settled) - len(table.had_result),
            table=None,
        ),
        broken=table.counts.broken,
    )


def _step_of_order(state: MapState) -> int:
    """Return the first step of the tier that a person wants rows asked of again."""
    wanted = [each.tier for each in state.goal.orders if each.kind == "retry" and each.tier]
    tiers = [each.tier for each in state.goal.models]
    return 2 * tiers.index(wanted[-1]) if wanted and wanted[-1] in tiers else 0


def take_groups(state: MapState, items: Items) -> MapState:
    """Take in groups of texts: the next level of merging, or the one text that is left."""
    unmerged = "\n\n".join(filter(None, (state.stands.unmerged, items.unmerged)))
    state = stand(state, unmerged=unmerged)
    if items.text or not items.chunks:
        # Whoever reads the text learns what it is not of.
        apart = f"{UNMERGED}\n\n{unmerged}" if unmerged else ""
        text = "\n\n".join(filter(None, (items.text, apart)))
        done = MapReport(outcome="done")
        return replace(state, text=text, ending=done, table=state.stands.table)
    queue = tuple(Portion(chunks=(place,)) for place, each in enumerate(items.chunks) if each.asked)
    state = replace(state, shared=shared_of(state.goal, merging=True))
    level = state.stands.level + 1
    return stand(state, level=level, texts=items.chunks, merges=(), portions=queue)


def lose_file(state: MapState, move: OpenMap | CloseMap, why: str) -> MapState:
    """End without what could not be read or put together."""
    if isinstance(move, OpenMap) and move.material.of_texts:
        state = replace(state, notes=(*state.notes, f"texts were not merged: {why}"))
        done = MapReport(outcome="done")
        return replace(state, ending=done, table=state.stands.table)
    if isinstance(move, CloseMap):
        state = replace(state, table=MapTable(), ordered=True)
    return replace(state, ending=MapReport(outcome="stopped", why=why))
