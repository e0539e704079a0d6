"""Tell what of a lens's sightings is new since the base, wherever it stands. Blocking, and for a
thread.

A sighting is known if the base has one of the same rule, at least as bad, in the same code and at
the same place of its line; spaces do not count. Of several equal ones as many are known as the base
has, but one in a touched line is not known by one that the change repaired in another place. A
function that is measured is known by its name.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from pathlib import Path

from holdfast.activities.repositories.manifest import Hunk, SnapshotFile
from holdfast.activities.review.analysing.lens import SYNTAX, Analyser, Beyond, Parsed, Sighting
from holdfast.activities.review.scope import baseline

MOST_LINES = 50
"""Lines of one sighting that are compared."""
NEAR = 3
"""Lines before and after one in which its neighbours are looked for."""
FEWEST_LETTERS = 3
"""Letters of a neighbour that tells anything, as a bracket does not."""
Key = tuple[str, ...]


@dataclass(frozen=True)
class Comparison:
    """What is new of what a lens saw."""

    new: frozenset[int]
    """Places in the list of sightings."""
    elsewhere: frozenset[int] = frozenset()
    """Those of them in lines that the change did not touch."""
    old: int = 0
    """Sightings in touched lines that the base has, too."""
    beyond: tuple[Beyond, ...] = ()
    """What is new and only counted."""
    not_compared: int = 0
    """Sightings that were only counted, and of which the base cannot tell."""
    unknown: int = 0
    """Files whose base the lens could not read: of them, touched lines count."""


def by_lines(parsed: Parsed, files: Mapping[str, SnapshotFile], *, whole: bool) -> Comparison:
    """Return those that are about a touched line, or about a file or the repository as a whole:
    without a base, all. What was only counted cannot be compared, unless the `whole` tree counts.
    """
    shown = ((place, each) for place, each in enumerate(parsed.sightings) if not each.suppressed)
    new = frozenset(place for place, each in shown if in_scope(each, files))
    if whole:
        return Comparison(new, beyond=parsed.beyond)
    return Comparison(new, not_compared=sum(count for _, _, count in parsed.beyond))


def of_change(parsed: Parsed, scope: Mapping[str, SnapshotFile]) -> Comparison:
    """Return the sightings of a lens that compares base and head itself: all are new."""
    new = frozenset(place for place, each in enumerate(parsed.sightings) if not each.suppressed)
    untouched = frozenset(
        place
        for place in new
        for file in [scope.get(parsed.sightings[place].file)]
        if not parsed.sightings[place].base_line
        and (file is None or not _is_touched(parsed.sightings[place], file))
    )
    return Comparison(new, untouched)


def in_scope(sighting: Sighting, files: Mapping[str, SnapshotFile]) -> bool:
    """True if it is about a touched line, or about a file or the repository as a whole."""
    file = files.get(sighting.file)
    if file is None:
        return sighting.file == ""
    return sighting.line == 0 or sighting.anywhere or _is_touched(sighting, file)


def _is_touched(sighting: Sighting, file: SnapshotFile) -> bool:
    if file.touched is None:
        return True
    begin, end = _span(sighting)
    return any(first <= end and begin <= last for first, last in file.touched)


def _span(sighting: Sighting) -> tuple[int, int]:
    """Return the first and the last line that it is about."""
    return sighting.first_line or sighting.line, max(sighting.line, sighting.last_line)


@dataclass(frozen=True)
class Base:
    """What a lens said of the base's versions of the files in which it saw something."""

    parsed: Parsed
    root: Path
    files: frozenset[str]
    """Paths of those that it was given."""


def compare(
    analyser: Analyser, head: Parsed, root: Path, files: Mapping[str, SnapshotFile], base: Base
) -> Comparison:
    """Return what is new. Where the lens could not read a file's base, or saw too much in it, the
    lines that were touched count.
    """
    read = base.files.difference(base.parsed.not_parsed, base.parsed.not_reached)
    broken = {each.file for each in base.parsed.sightings if each.rule == SYNTAX}
    cut = {(file, row) for file, row, _ in base.parsed.beyond}
    known = _known(analyser, base, files)
    spots = _spots(root, head.sightings)
    new, elsewhere, old = set[int](), set[int](), 0
    for place in _untouched_first(head.sightings, files):
        each = head.sightings[place]
        file = files.get(each.file)
        if file is None or each.suppressed:
            continue
        touched = _is_touched(each, file)
        if file.was not in read or (file.was, each.grade) in cut:
            counts = touched if each.anywhere and file.was in broken else in_scope(each, files)
        elif _take(
            known[(file.was, *spots[place].key)],
            _Place(each.line, _amount(analyser, each), spots[place].around),
            file.hunks if touched else (),
        ):
            old += touched
            continue
        else:
            counts = True
            if each.line and not touched:
                elsewhere.add(place)
        if counts:
            new.add(place)
    beyond, not_compared = _count_beyond(head, files, base.parsed, read, new)
    was = {files[each.file].was for each in head.sightings if each.file in files}
    unknown = len((was & base.files) - read)
    return Comparison(
        frozenset(new), frozenset(elsewhere), old, tuple(beyond), not_compared, unknown
    )


def _untouched_first(
    sightings: Sequence[Sighting], files: Mapping[str, SnapshotFile]
) -> Iterable[int]:
    """Return the places in an order in which what stayed where it was is known first, so that of
    equal ones the added one is new.
    """

    def is_touched(place: int) -> bool:
        file = files.get(sightings[place].file)
        return file is not None and _is_touched(sightings[place], file)

    return sorted(range(len(sightings)), key=is_touched)


@dataclass(frozen=True)
class _Place:
    """A sighting: how bad it is, and the lines around it."""

    line: int
    amount: int
    around: frozenset[str]


def _known(
    analyser: Analyser, base: Base, files: Mapping[str, SnapshotFile]
) -> defaultdict[Key, list[_Place]]:
    """Return the sightings of the base by file and key: first those in lines that the change left
    alone, of these the least bad ones first.
    """
    hunks = {file.was: file.hunks for file in files.values() if file.was}
    known: defaultdict[Key, list[_Place]] = defaultdict(list)
    seen = base.parsed.sightings
    for each, spot in zip(seen, _spots(base.root, seen), strict=True):
        was = _Place(each.line, _amount(analyser, each), spot.around)
        known[(each.file, *spot.key)].append(was)
    for (file, *_), listed in known.items():
        listed.sort(
            key=lambda was: (_hunk_of(was.line, hunks.get(file, ())) is not None, was.amount)
        )
    return known


def _take(known: list[_Place], now: _Place, hunks: Sequence[Hunk]) -> bool:
    """Take away the first of the base's that is as bad and may be the one of the head; True if
    there is one. `hunks` say what may have been repaired, while another one came.
    """
    for place, was in enumerate(known):
        may_be = not _is_repaired(was.line, now.line, hunks) or was.around & now.around
        if was.amount >= now.amount and may_be:
            del known[place]
            return True
    return False


def _hunk_of(line: int, hunks: Sequence[Hunk]) -> Hunk | None:
    """Return the hunk in which a line of the base stood; None: the head has it."""
    return next((hunk for hunk in hunks if hunk[0] <= line < hunk[0] + hunk[1]), None)


def _is_repaired(was: int, line: int, hunks: Sequence[Hunk]) -> bool:
    """True if the change wrote something else where a line of the base stood, and not this line of
    the head.
    """
    hunk = _hunk_of(was, hunks)
    return hunk is not None and hunk[3] > 0 and not hunk[2] <= line < hunk[2] + hunk[3]


def _amount(analyser: Analyser, sighting: Sighting) -> int:
    """Return how bad it is among those with the same key."""
    return sighting.weight if sighting.name else analyser.grade(sighting.grade).confidence


@dataclass(frozen=True)
class _Spot:
    """What a sighting is known by, and the lines before and after it."""

    key: Key
    around: frozenset[str]


def _spots(root: Path, sightings: Sequence[Sighting]) -> list[_Spot]:
    """Return what each sighting is known by, in their order: each file is read once."""
    by_file: dict[str, list[int]] = defaultdict(list)
    for place, each in enumerate(sightings):
        by_file[each.file].append(place)
    spots: dict[int, _Spot] = {}
    for file, places in by_file.items():
        lines = baseline.read_lines(root, file)
        for place in places:
            each = sightings[place]
            spots[place] = _Spot(_key(each, lines), frozenset(_around(each, lines)))
    return [spots[place] for place in range(len(sightings))]


def _around(sighting: Sighting, lines: Sequence[bytes]) -> Iterator[str]:
    """Yield the nearest lines before and after a sighting that are not blank."""
    first, last = _span(sighting)
    for listed in (lines[max(first - 1 - NEAR, 0) : first - 1][::-1], lines[last : last + NEAR]):
        squeezed = map(baseline.squeeze, listed)
        yield from islice((text for text in squeezed if len(text) > FEWEST_LETTERS), 1)


def _key(sighting: Sighting, lines: Sequence[bytes]) -> Key:
    if sighting.name:
        return ("", sighting.name)
    if not 0 < sighting.line <= len(lines):
        return (sighting.rule, sighting.message)
    first, last = _span(sighting)
    code = "\n".join(map(baseline.squeeze, lines[first - 1 : min(last, first + MOST_LINES)]))
    # Two names in one line are two defects; where a line is very long, their number counts.
    start = lines[sighting.line - 1][: baseline.LINE_BYTES].decode("utf-8", "replace")
    before = "".join(start[: max(sighting.column - 1, 0)].split())
    return (sighting.rule, code, str(len(before)))


def _count_beyond(
    head: Parsed,
    files: Mapping[str, SnapshotFile],
    base: Parsed,
    read: frozenset[str],
    new: set[int],
) -> tuple[list[Beyond], int]:
    """Return how many more sightings than in the base were counted and not handed on, by file and
    row, and how many cannot be compared.
    """
    before = _count(base)
    seen = _count(head)
    listed = Counter((each.file, each.grade) for each in map(head.sightings.__getitem__, new))
    beyond: list[Beyond] = []
    not_compared = 0
    for path, row, count in head.beyond:
        file = files.get(path)
        # Without one in the base, all is new.
        if file is None or (file.was and file.was not in read):
            not_compared += count
            continue
        more = seen[path, row] - before[file.was, row] - listed[path, row]
        if more > 0:
            beyond.append((path, row, min(more, count)))
    return beyond, not_compared


def _count(parsed: Parsed) -> Counter[tuple[str, str]]:
    counts = Counter((each.file, each.grade) for each in parsed.sightings)
    for file, row, count in parsed.beyond:
        counts[file, row] += count
    return counts
