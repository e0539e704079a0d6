"""What is still to be asked of a map's rows: taken from a queue, and put back by how it went. Pure.

The first answer of a row is asked of the first model, the second mends it in the same conversation,
the third is asked anew of the next stronger model, and so on.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Sequence

from holdfast.calls.rows import Chunk, Portion, RowsDone
from holdfast.contracts import policies

MOST_IDLE = 3
"""How often in a row rows may come back without having been asked."""


def tier_place(step: int, models: int) -> int:
    """Return which model is asked at a step, of so many."""
    return min(step // 2, models - 1)


def mends(step: int, models: int) -> bool:
    """True if the conversation goes on from the last answer, as where no stronger model is left."""
    return step % 2 == 1 or step // 2 >= models


def count(chunks: Sequence[Chunk], portion: Portion) -> int:
    """Return the most rows of a portion that are asked."""
    return len(portion.rows) or sum(chunks[each].asked for each in portion.chunks)


def size(chunks: Sequence[Chunk], portion: Portion) -> int:
    """Return the most bytes that the rows of a portion show a model, together."""
    whole = sum(chunks[each].bytes for each in portion.chunks)
    return min(whole, len(portion.rows) * longest(chunks, portion)) if portion.rows else whole


def longest(chunks: Sequence[Chunk], portion: Portion) -> int:
    return max((chunks[each].longest for each in portion.chunks), default=0)


def take(
    chunks: Sequence[Chunk], queue: Sequence[Portion], rows: int, most: int
) -> tuple[Portion, tuple[Portion, ...]]:
    """Return what is asked next, and what is left: as many rows as may be asked together, by their
    number and their bytes, but one at least.
    """
    first, rest = _split(chunks, queue[0], rows, most)
    if rest is not None:
        return first, (rest, *queue[1:])
    left: list[Portion] = []
    for each in queue[1:]:
        joined = _join(first, each)
        fits = joined is not None and count(chunks, joined) <= rows
        if joined is not None and fits and size(chunks, joined) <= most:
            first = joined
        else:
            left.append(each)
    return first, tuple(left)


def _split(
    chunks: Sequence[Chunk], portion: Portion, rows: int, most: int
) -> tuple[Portion, Portion | None]:
    if not portion.rows:
        number = _chunks_within(chunks, portion, rows, most)
        if number == len(portion.chunks):
            return portion, None
        if number:
            return _of_chunks(portion, 0, number), _of_chunks(portion, number)
        portion = name_rows(chunks, portion)
    room = max(min(rows, most // max(longest(chunks, portion), 1)), 1)
    if len(portion.rows) <= room:
        return portion, None
    return _of_rows(chunks, portion, 0, room), _of_rows(chunks, portion, room)


def _chunks_within(chunks: Sequence[Chunk], portion: Portion, rows: int, most: int) -> int:
    """Return how many of its chunks may be asked together; 0: not even the first one whole."""
    asked = total = 0
    for number, each in enumerate(portion.chunks):
        asked, total = asked + chunks[each].asked, total + chunks[each].bytes
        if asked > rows or total > most:
            return number
    return len(portion.chunks)


def name_rows(chunks: Sequence[Chunk], portion: Portion) -> Portion:
    """Return the same rows by their places."""
    told = [chunks[each] for each in portion.chunks]
    places = (n for each in told for n in range(each.first, each.first + each.items))
    return portion.model_copy(update={"rows": tuple(places)})


def _of_chunks(portion: Portion, start: int, end: int | None = None) -> Portion:
    return portion.model_copy(update={"chunks": portion.chunks[start:end]})


def _of_rows(
    chunks: Sequence[Chunk], portion: Portion, start: int, end: int | None = None
) -> Portion:
    return place_rows(chunks, portion, portion.rows[start:end])


def place_rows(chunks: Sequence[Chunk], portion: Portion, rows: Sequence[int]) -> Portion:
    """Return these rows of a portion, with no chunk but theirs."""
    places = sorted(rows)

    def has(chunk: Chunk) -> bool:
        found = bisect_left(places, chunk.first)
        return found < len(places) and places[found] < chunk.first + chunk.items

    told = tuple(each for each in portion.chunks if has(chunks[each]))
    return portion.model_copy(update={"rows": tuple(places), "chunks": told})


def _join(one: Portion, other: Portion) -> Portion | None:
    """Return two portions as one; None if they are asked in different ways."""
    if bool(one.rows) != bool(other.rows):
        return None
    if (one.step, one.declined) != (other.step, other.declined):
        return None
    return one.model_copy(
        update={
            "chunks": tuple(sorted(dict.fromkeys((*one.chunks, *other.chunks)))),
            "rows": tuple(sorted((*one.rows, *other.rows))),
            "before": tuple(dict.fromkeys((*one.before, *other.before))),
            "losses": max(one.losses, other.losses),
            "idle": max(one.idle, other.idle),
        }
    )


def sort_out(
    chunks: Sequence[Chunk], portion: Portion, done: RowsDone, models: int, tries: int
) -> tuple[tuple[Portion, ...], int, tuple[int, ...]]:
    """Return what is to be asked again of some rows, how many of them have failed for good, and
    those of these that never had an answer.
    """
    failed, unanswered = done.hopeless, tuple[int, ...]()
    again: list[tuple[tuple[int, ...], dict[str, object]]] = []
    before = (done.outcomes,) if done.outcomes else ()
    answered: dict[str, object] = {"before": before, "losses": 0, "idle": 0}
    if done.failed:
        step = portion.step + 1
        if step < tries:
            again.append((done.failed, {**answered, "step": step}))
        else:
            failed += len(done.failed)
    if done.declined:
        place = tier_place(portion.step, models) + 1
        if place < models and portion.step + 1 < tries and not portion.declined:
            up = {**answered, "step": 2 * place, "declined": True}
            again.append((done.declined, up))
        else:
            failed += len(done.declined)
    if done.lost:
        if portion.losses + 1 < policies.ROW_LOSSES:
            again.append((done.lost, {"losses": portion.losses + 1, "idle": 0}))
        else:
            failed, unanswered = failed + len(done.lost), done.lost
    if done.left:
        again.append((done.left, {"idle": 0 if done.bill.calls else portion.idle + 1}))
    left = (place_rows(chunks, portion, rows).model_copy(update=changes) for rows, changes in again)
    return tuple(left), failed, unanswered


def drop(
    chunks: Sequence[Chunk], queue: Sequence[Portion], places: Sequence[int]
) -> tuple[tuple[Portion, ...], tuple[int, ...]]:
    """Return the queue without these rows, and those of them that stood in it."""
    wanted, found, left = set(places), [], []
    for each in queue if wanted else ():
        named = each.rows or name_rows(chunks, each).rows
        hit = [n for n in named if n in wanted]
        found += hit
        if not hit:
            left.append(each)
        elif rest := [n for n in named if n not in wanted]:
            left.append(place_rows(chunks, each, rest))
    return tuple(left) if wanted else tuple(queue), tuple(sorted(found))
