"""Which review threads to open, resolve and open again, and which to leave. Pure.

A thread of ours is known by a mark in its first comment, of which only the token's own are
believed: the fingerprint of the remark, which survives moved lines. A thread is a talk: as soon as
anybody else has said a word in it or closed it, it is theirs. It is never repeated then, never
opened again, and never closed over their words.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass

from holdfast.contracts import Remark, Severity
from holdfast.contracts.remarks import SEVERITIES
from holdfast.rendering.comment import MARK
from holdfast.rendering.sarif import fingerprint

MOST_NEW = 30
"""Threads that are opened at one commit; the rest is in the summary and in the check."""
_MARK = re.compile(
    r"\A<!-- holdfast remark ([0-9a-f]{16,64}:\d+) ([a-z]+) (lens|agent) (\S{1,60})"
    r" ([0-9a-f]{16}|-) -->\n"
)
_GONE = re.compile(r"\A✅ Gone in `[0-9a-f]{7,64}`\.\n\n")
_HEX = re.compile(r"[0-9a-f]{16,64}")
Line = tuple[str, str, int]
"""Path, side (`RIGHT` is the head, `LEFT` the base) and number of a line in a difference."""


@dataclass(frozen=True)
class Mark:
    """What the first comment of a thread says of its remark, for this program alone."""

    key: str
    """Its fingerprint, and its number among equal ones."""
    severity: str
    by_agent: bool
    lens: str
    code: str
    """Hash of the line of code that an agent quoted; `-` without one."""

    @classmethod
    def of(cls, key: str, remark: Remark) -> Mark:
        lens = re.sub(r"[^\w.-]", "-", remark.lens)[:60] or "-"
        code = hash_of(remark.code) if remark.by_agent and remark.code else "-"
        return cls(key, remark.severity, remark.by_agent, lens, code)

    def __str__(self) -> str:
        who = "agent" if self.by_agent else "lens"
        return (
            f"<!-- holdfast remark {self.key} {self.severity} {who} {self.lens} {self.code} -->\n"
        )


@dataclass(frozen=True)
class Thread:
    """A review thread whose first comment is ours."""

    id: str
    comment: str
    """Id of its first comment."""
    path: str
    body: str
    resolved: bool
    answered: bool
    """True if anybody else wrote in it."""
    alone: bool
    """True if it has its first comment and no other."""
    mark: Mark
    number: int = 0
    """Of its first comment: later ones have higher ones."""
    head: str = ""
    """The commit that it was opened at."""

    @property
    def gone(self) -> bool:
        """True if we wrote into it that its remark is gone: who resolved it is told by that. Open
        all the same, it was opened again by a person, or the token may not resolve threads.
        """
        return bool(_GONE.match(_MARK.sub("", self.body)))


@dataclass(frozen=True)
class Plan:
    """What to do with the threads of a pull request."""

    opened: tuple[tuple[str, Remark], ...] = ()
    """Remarks that get a thread, each with its key, the most severe first."""
    resolved: tuple[Thread, ...] = ()
    reopened: tuple[Thread, ...] = ()
    left: tuple[Thread, ...] = ()
    """Threads of remarks that are gone, which somebody else has spoken in."""
    standing: tuple[Thread, ...] = ()
    """Open threads of what agents said of earlier commits, whose code is still there."""
    outside: int = 0
    """New remarks at lines that are not in the difference."""
    beyond: int = 0
    """New remarks above MOST_NEW."""


@dataclass(frozen=True)
class Seen:
    """What a review saw, as far as threads go."""

    remarks: Sequence[Remark]
    """Those that count, by rank."""
    in_diff: Collection[Line]
    whole: bool
    """False if the run came to no proper end: then nothing counts as gone."""
    failed: Collection[str] = ()
    """Lenses that came to no end."""
    unread: Collection[str] = ()
    """Files that some lens could not look at."""
    head: str = ""
    """The commit."""
    codes: Mapping[str, Collection[str]] | None = None
    """Hashes of the lines of each file of the head that a thread of an agent is about."""


def keyed(remarks: Iterable[Remark]) -> dict[str, Remark]:
    """Return the remarks by key, in their order."""
    seen: dict[str, int] = {}
    found: dict[str, Remark] = {}
    for each in remarks:
        print_of = fingerprint(each)
        if not _HEX.fullmatch(print_of):
            print_of = hashlib.sha256(print_of.encode()).hexdigest()[:32]
        seen[print_of] = seen.get(print_of, 0) + 1
        found[f"{print_of}:{seen[print_of]}"] = each
    return found


def single(threads: Iterable[Thread]) -> tuple[list[Thread], list[Thread]]:
    """Return the threads, the earliest first, without those that repeat an earlier one, as two jobs
    at once leave them; and those. What a person answered, closed or opened again is theirs, and no
    double.
    """
    kept: list[Thread] = []
    doubles: list[Thread] = []
    keys: set[str] = set()
    for each in sorted(threads, key=lambda thread: thread.number):
        theirs = not each.alone or each.resolved != each.gone
        (doubles if each.mark.key in keys and not theirs else kept).append(each)
        keys.add(each.mark.key)
    return kept, doubles


def plan(threads: Sequence[Thread], seen: Seen) -> Plan:
    """Return what to do so that the threads say what the review saw."""
    there = keyed(seen.remarks)
    known = {each.mark.key for each in threads}
    resolved: list[Thread] = []
    reopened: list[Thread] = []
    left: list[Thread] = []
    standing: list[Thread] = []
    for each in threads:
        if each.mark.key in there:
            if each.gone and not each.answered:
                reopened.append(each)
            continue
        if each.mark.by_agent and _still_there(each, seen):
            if not each.resolved and not each.gone:
                standing.append(each)
            continue
        if each.resolved or each.gone or not _is_gone(each, seen):
            continue
        (left if each.answered else resolved).append(each)
    new = [(key, each) for key, each in there.items() if key not in known]
    new.sort(key=lambda item: SEVERITIES.index(item[1].severity))
    placed = [item for item in new if place_of(item[1]) in seen.in_diff]
    room = max(MOST_NEW - sum(each.head == seen.head for each in threads), 0)
    return Plan(
        tuple(placed[:room]),
        tuple(resolved),
        tuple(reopened),
        tuple(left),
        tuple(standing),
        len(new) - len(placed),
        len(placed[room:]),
    )


def _still_there(thread: Thread, seen: Seen) -> bool:
    """True unless the line that an agent quoted is gone: it looks at new commits alone, so that it
    does not say it again means nothing.
    """
    if seen.codes is None or thread.mark.code == "-":
        # About a file as a whole, or nobody could look: a person closes it.
        return True
    return thread.mark.code in seen.codes.get(thread.path, ())


def _is_gone(thread: Thread, seen: Seen) -> bool:
    """True if whoever made the remark looked at its file again and does not see it."""
    if thread.mark.by_agent:
        return True
    return seen.whole and thread.mark.lens not in seen.failed and thread.path not in seen.unread


def place_of(remark: Remark) -> Line:
    """Return the line of the difference that a remark is about."""
    if remark.gone:
        return remark.file, "LEFT", remark.base_line or remark.line
    if remark.deleted and remark.base_line:
        return remark.file, "LEFT", remark.base_line
    return remark.file, "RIGHT", remark.line


def hash_of(code: str) -> str:
    """Return a mark of a line of code; spaces do not count."""
    return hashlib.sha256("".join(code.split()).encode("utf-8", "replace")).hexdigest()[:16]


# ---------------------------------------------------------------- what a thread says


def read_mark(body: str) -> Mark | None:
    """Return what a first comment says of its remark; None if it is none of this program."""
    found = _MARK.match(body.replace("\r\n", "\n"))
    if not found:
        return None
    key, severity, who, lens, code = found.groups()
    return Mark(key, severity, who == "agent", lens, code)


def as_gone(thread: Thread, head: str) -> str:
    """Return its first comment with a line that says since when the remark is gone."""
    body = thread.body.replace("\r\n", "\n")
    return f"{thread.mark}✅ Gone in `{head[:12]}`.\n\n{_GONE.sub('', _MARK.sub('', body))}"


def as_back(thread: Thread) -> str:
    """Return its first comment as it was before the remark was gone."""
    body = thread.body.replace("\r\n", "\n")
    return f"{thread.mark}{_GONE.sub('', _MARK.sub('', body))}"


# ---------------------------------------------------------------- the summary

_READ = re.compile(
    rf"\A{re.escape(MARK)}\s*<!-- holdfast agents read ([0-9a-f]{{40}}|[0-9a-f]{{64}}) -->"
)
"""At its very beginning: further down stands what the repository wrote."""


def is_summary(body: str) -> bool:
    return body.startswith(MARK)


def read_up_to(body: str) -> str:
    """Return the commit up to which agents have read the pull request; empty: none is known."""
    found = _READ.match(body)
    return found[1] if found else ""


def as_read(summary: str, head: str) -> str:
    """Return a summary that says up to which commit agents have read."""
    rest = summary.removeprefix(MARK)
    return f"{MARK}\n<!-- holdfast agents read {head} -->{rest}" if head else summary


def worst_of(threads: Iterable[Thread]) -> list[Severity]:
    """Return the severities that threads say."""
    return [name for each in threads for name in SEVERITIES if name == each.mark.severity]


# ---------------------------------------------------------------- the difference

_HUNK = re.compile(r"^@@ -(\d+)(?:,\d+)? \+(\d+)(?:,\d+)? @@", re.ASCII)


def lines_of(path: str, patch: str) -> Iterable[Line]:
    """Yield the lines of a file's difference, as GitHub lists it, that a comment may stand at."""
    left = right = 0
    for line in patch.split("\n"):
        if found := _HUNK.match(line):
            left, right = int(found[1]), int(found[2])
        elif line.startswith("+"):
            yield path, "RIGHT", right
            right += 1
        elif line.startswith("-"):
            yield path, "LEFT", left
            left += 1
        elif not line.startswith("\\"):
            yield path, "RIGHT", right
            yield path, "LEFT", left
            left, right = left + 1, right + 1
