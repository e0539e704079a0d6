"""The subtasks of a run, with answers to what the rules ask of all of them at each event. Pure."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterator, Mapping
from datetime import timedelta
from types import MappingProxyType

from holdfast.contracts import Finding
from holdfast.state import graph
from holdfast.state.choices import Choice
from holdfast.state.parts import Progress, passes_on

Rank = tuple[int, str]
"""A subtask's place among others, and its id."""
NEVER_LONG = 100
"""Characters of a finding that no run finds too long: 400 bytes at most, of the fewest that
`Limits.digest_above_tokens` allows.
"""


class Work(Mapping[str, Progress]):
    """Subtasks by id, in plan order: an immutable value.

    Its answers are updated with each change of a subtask. Looking at all subtasks at each event
    would be quadratic.
    """

    def __init__(
        self,
        each: Mapping[str, Progress] = MappingProxyType({}),
        choices: tuple[Choice, ...] = (),
    ) -> None:
        self._each = dict(each)
        self._choices = choices
        self._attempts = {key: group for group in choices for key in group}
        subtasks = [progress.subtask for progress in self._each.values()]
        self._children = graph.children(subtasks)
        self._places = {key: place for place, key in enumerate(self._each)}
        below = graph.chain_below(subtasks)
        first = sorted(self._each, key=lambda key: -below[key])
        self._turns = {key: place for place, key in enumerate(first)}
        self._maps = tuple(each.id for each in subtasks if each.map is not None)
        self._ready: tuple[Rank, ...] = ()
        self._asking: tuple[Rank, ...] = ()
        self._blocked: tuple[Rank, ...] = ()
        self._ending: tuple[Rank, ...] = ()
        self._undigested: tuple[Rank, ...] = ()
        self._findings: tuple[Finding, ...] | None = None
        self._usable: tuple[Finding, ...] | None = None
        self._open = sum(each.finding is None for each in self._each.values())
        paces = [pace for each in self._each.values() if (pace := _pace(each)) is not None]
        self._took, self._timed = sum(paces, timedelta()), len(paces)
        for key in self._each:
            self._place(key)

    def __getitem__(self, key: str) -> Progress:
        return self._each[key]

    def __iter__(self) -> Iterator[str]:
        return iter(self._each)

    def __len__(self) -> int:
        return len(self._each)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Work) and self._each == other._each

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        return f"Work({self._each!r})"

    def with_progress(self, key: str, progress: Progress) -> Work:
        before = self._each[key]
        if _shape_of(progress) != _shape_of(before):
            return Work({**self._each, key: progress}, self._choices)
        after = object.__new__(Work)
        after.__dict__ |= self.__dict__
        after._findings = after._usable = None
        after._each = {**self._each, key: progress}
        after._count(before, -1)
        after._count(progress, 1)
        after._place(key)
        if (before.finding is None, before.lost) != (progress.finding is None, progress.lost):
            for child in self._children[key]:
                after._place(child)
        return after

    # ------------------------------------------------------------ what is asked at each event

    @property
    def all_settled(self) -> bool:
        return not self._open

    @property
    def findings(self) -> tuple[Finding, ...]:
        """Findings of the settled subtasks, in plan order."""
        if self._findings is None:
            each = (progress.finding for progress in self._each.values())
            self._findings = tuple(finding for finding in each if finding is not None)
        return self._findings

    @property
    def usable(self) -> tuple[Finding, ...]:
        if self._usable is None:
            self._usable = tuple(each for each in self.findings if passes_on(each))
        return self._usable

    @property
    def maps(self) -> tuple[str, ...]:
        """Ids of the subtasks that are done for each item of an input, in plan order."""
        return self._maps

    @property
    def ready(self) -> Iterator[Progress]:
        """Subtasks that can start now by their dependencies, the longest remaining chain first."""
        return (self._each[key] for _, key in self._ready)

    @property
    def undigested(self) -> Iterator[Finding]:
        """Findings without a digest that may be too long for their readers, in plan order."""
        each = (self._each[key].finding for _, key in self._undigested)
        return (finding for finding in each if finding is not None and passes_on(finding))

    @property
    def asking(self) -> tuple[str, ...]:
        """Ids of the subtasks that wait for a person, in plan order."""
        return tuple(key for _, key in self._asking)

    @property
    def blocked(self) -> bool:
        """True if any subtask waits for a finding that will not come."""
        return bool(self._blocked)

    @property
    def ending(self) -> bool:
        """True if a person has ended a subtask that has no finding yet."""
        return bool(self._ending)

    @property
    def pace(self) -> timedelta | None:
        """Mean duration of a try, over the complete findings."""
        return self._took / self._timed if self._timed else None

    def is_lost(self, key: str) -> bool:
        """True if no finding of a subtask will come, nor of another attempt at its question."""
        return all(self._each[each].lost for each in self._attempts.get(key, (key,)))

    def has_other_attempt(self, key: str) -> bool:
        """True if another attempt at the question of a subtask has a finding, or may have one."""
        return any(not self._each[each].lost for each in self._attempts.get(key, ()) if each != key)

    @property
    def choices(self) -> tuple[Choice, ...]:
        return self._choices

    def below(self, key: str) -> tuple[str, ...]:
        """Return every direct or indirect dependent, in plan order."""
        return tuple(sorted(graph.reach(self._children, key), key=self._places.__getitem__))

    # ------------------------------------------------------------ how it is kept

    def _count(self, progress: Progress, times: int) -> None:
        self._open += times * (progress.finding is None)
        pace = _pace(progress)
        if pace is not None:
            self._took, self._timed = self._took + times * pace, self._timed + times

    def _place(self, key: str) -> None:
        """Put a subtask into the rankings where it belongs now, and remove it from the others."""
        each = self._each[key]
        place = self._places[key], key
        waits = each.finding is None and not each.flight
        needed = [self._each[edge] for edge in each.subtask.depends_on if edge in self._each]
        asked = each.stage in ("approval", "decision") or (each.stage == "person" and each.asked)
        starts = waits and not asked
        starts = starts and all(edge.finding is not None for edge in needed)
        self._ready = _kept(self._ready, (self._turns[key], key), belongs=starts)
        self._asking = _kept(self._asking, place, belongs=each.waits)
        lost = waits and any(self.is_lost(edge.subtask.id) for edge in needed)
        self._blocked = _kept(self._blocked, place, belongs=lost)
        self._ending = _kept(self._ending, place, belongs=bool(each.ending) and not each.finding)
        found = each.finding
        may = found is not None and not found.digest and len(found.content) > NEVER_LONG
        self._undigested = _kept(self._undigested, place, belongs=may)


def _shape_of(progress: Progress) -> tuple[tuple[str, ...], bool]:
    """Return what of a subtask all others are ranked by."""
    return progress.subtask.depends_on, progress.subtask.map is not None


def _kept(ranks: tuple[Rank, ...], rank: Rank, *, belongs: bool) -> tuple[Rank, ...]:
    at = bisect_left(ranks, rank)
    there = ranks[at : at + 1] == (rank,)
    if there == belongs:
        return ranks
    return (*ranks[:at], rank, *ranks[at:]) if belongs else (*ranks[:at], *ranks[at + 1 :])


def _pace(progress: Progress) -> timedelta | None:
    """Return how long a try took; None if not complete or not known."""
    done = progress.finding
    if done is None or done.status != "complete" or not (done.started and done.finished):
        return None
    return timedelta(seconds=done.seconds / max(len(done.tries), 1))
