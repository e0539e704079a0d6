"""Put the remarks of an agent at their places. A model says a file, a line and the code of that
line: where the line is off and the code is found, the line is mended, also to where a deleted one
stood.
"""

from __future__ import annotations

import asyncio
import time
from collections import Counter
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import anyio.to_thread
from pydantic import ValidationError

from holdfast.activities.repositories.manifest import BaseFile, Hunk, SnapshotFile
from holdfast.activities.repositories.scratch import Snapshot, Snapshots
from holdfast.activities.review.lenses import SCANS
from holdfast.activities.review.scope import baseline
from holdfast.activities.review.scope.narrowing import Narrower
from holdfast.activities.review.surroundings import CodeAround
from holdfast.calls.work import WorkMaterial
from holdfast.contracts import Draft, Remark
from holdfast.contracts.errors import BlobLost
from holdfast.contracts.remarks import ABOUT_TESTS, OF_AN_AGENT, is_credential
from holdfast.rendering.remarks import by_severity
from holdfast.untrusted.known_secrets import REDACTED
from holdfast.untrusted.redact import Redactor

SCAN_SECONDS = 10.0
"""How long the search for secrets may take here, if no lens has made it in this process: what was
paid for is not to be lost by it.
"""
NEAR = 25
"""Lines by which the place of a quote that stands in a file several times may be off."""
LEAST_PART = 8
"""Letters of a quote that may be a part of its line only."""
MESSAGE_LETTERS, CODE_LETTERS = 1_000, 200


@dataclass(frozen=True)
class Placing:
    """Puts the remarks of agents at their places in stored snapshots."""

    snapshots: Snapshots

    async def place(self, draft: Draft, material: WorkMaterial) -> Draft:
        """Return the draft of an agent with remarks as lenses hand them on: at most OF_AN_AGENT, in
        the agent's own order.
        """
        found = _read(draft)
        pinned = next((each for each in material.inputs if each.kind == "repository"), None)
        if pinned is None:
            return draft
        lens = material.subtask.id
        said = [_keep_said(each, lens) for each in found[:OF_AN_AGENT]]
        try:
            snapshot = await self.snapshots.open(pinned.digest)
            redactor = await _redactor(snapshot, _said_paths(said))
        except BlobLost:
            # The answer is paid: its remarks are handed on, as they were said.
            placed = said
        else:
            places = _Places(snapshot, redactor, {each.name for each in material.inputs})
            placed = await anyio.to_thread.run_sync(places.put, said)
        counts = Counter(each.severity for each in found)
        data = [each.model_dump(mode="json", exclude_defaults=True) for each in placed]
        return draft.model_copy(
            update={
                "content": f"{by_severity(counts) or 'No remarks'}.",
                "data": {"remarks": data, "remarks_in_all": len(found)},
            }
        )


def _said_paths(remarks: Sequence[Remark]) -> set[str]:
    """Return what the files of remarks may be called in the snapshot, see `_Places._path`."""
    said = [each.file.removeprefix("./").split("/") for each in remarks]
    return {"/".join(each[left:]) for each in said for left in range(min(3, len(each)))}


async def _redactor(snapshot: Snapshot, around: Collection[str]) -> Redactor:
    """Return the redactor that has searched the change, and of the files around it these."""
    try:
        async with asyncio.timeout(SCAN_SECONDS):
            return await SCANS.redactor(snapshot, time.monotonic() + SCAN_SECONDS, around)
    except TimeoutError:
        return Redactor(whole=False)


def _read(draft: Draft) -> list[Remark]:
    given = draft.data.get("remarks")
    found = []
    for item in given if isinstance(given, list) else []:
        try:
            found.append(Remark.model_validate(item))
        except ValidationError:
            continue
    return found


def _keep_said(remark: Remark, lens: str) -> Remark:
    """Keep what a model can say of a place and a defect."""
    said = ("severity", "file", "line", "message", "suggestion", "rule", "confidence", "code")
    return Remark(**{name: getattr(remark, name) for name in said}, lens=lens, by_agent=True)


@dataclass(frozen=True)
class _Spot:
    """A line with the code of a quote. `line` is what a remark about it says."""

    line: int
    text: str
    number: int
    """Its own; of a deleted line in the base."""
    deleted: bool = False

    def off(self, line: int) -> int:
        """Return by how many lines a model is off that says `line`."""
        return min(abs(line - self.line), abs(line - self.number))


class _Places:
    """Finds places in one snapshot. Blocking, and for a thread."""

    def __init__(self, snapshot: Snapshot, redactor: Redactor, inputs: Collection[str]) -> None:
        self._snapshot, self._redactor, self._inputs = snapshot, redactor, inputs
        manifest = snapshot.manifest
        self._head = {each.path: each for each in (*manifest.files, *manifest.around)}
        self._before = {each.now or each.path: each for each in manifest.before}
        self._narrower = Narrower(manifest.narrowing, manifest.known)

    def put(self, remarks: Sequence[Remark]) -> list[Remark]:
        """Return the remarks as they leave this process, each at its place."""
        equal: Counter[tuple[str, ...]] = Counter()
        placed = [self._put(each, equal) for each in remarks]
        code = CodeAround(self._snapshot, self._redactor)
        shown = [place for place, each in enumerate(placed) if each.code]
        for place, remark in zip(shown, code.at([placed[each] for each in shown]), strict=True):
            # Of a place that a model names, nobody knows the column.
            placed[place] = remark.model_copy(update={"column": 0})
        return [self._clean(each) for each in placed]

    def _put(self, remark: Remark, equal: Counter[tuple[str, ...]]) -> Remark:
        path = self._path(remark.file)
        head, before = self._head.get(path), self._before.get(path)
        of = head or before
        spot = _nearest([*self._spots(remark, head, before)], remark.line) if of else None
        placed = remark.model_copy(
            update={
                "file": path,
                "kind": of.kind if of and remark.rule not in ABOUT_TESTS else "production",
                "line": spot.line if spot else remark.line,
                "deleted": spot.deleted if spot else head is None and before is not None,
                "gone": head is None and before is not None,
                "base_line": spot.number if spot and spot.deleted else 0,
                "code": self._shown(spot.text, path)[:CODE_LETTERS] if spot else "",
            }
        )
        if of and (spot or not remark.line):
            # Of the line of a credential nothing is told, be it a hash.
            told = "" if is_credential(placed) else _squeeze(placed.code)
            key = (placed.rule, path, told)
            mark = baseline.fingerprint(placed.lens, placed, told, equal[key])
            equal[key] += 1
            placed = placed.model_copy(update={"fingerprint": mark})
        return placed.model_copy(update={"hidden": self._narrower.why_hidden(placed)})

    def _spots(
        self, remark: Remark, head: SnapshotFile | None, before: BaseFile | None
    ) -> Iterator[_Spot]:
        """Yield the lines with the code that a remark quotes; without a quote its line itself."""
        quote = _quote(remark.code)

        def fits(number: int, text: str) -> bool:
            return self._has(text, quote, remark.file) if quote else number == remark.line

        for number, text in enumerate(self._lines(self._snapshot.root, head), 1):
            if fits(number, text):
                yield _Spot(number, text, number)
        for number, text in enumerate(self._lines(self._snapshot.before, before), 1):
            gone = _covers(before, number) if head and quote else head is None
            if gone and fits(number, text):
                line = _after(head.hunks, number) if head else number
                yield _Spot(line, text, number, deleted=True)

    def _has(self, text: str, quote: str, file: str) -> bool:
        # What a model was shown is without secrets.
        line = _squeeze(self._shown(text, file) if REDACTED in quote else text)
        return quote == line or (len(quote) >= LEAST_PART and quote in line)

    def _path(self, said: str) -> str:
        """Return a path as the snapshot has it: below the top of the repository, without the
        input's name, which tools show, or the side, which a diff shows.
        """
        path = said.removeprefix("./")
        if path not in self._head and path not in self._before:
            first, _, rest = path.partition("/")
            if rest and first in (*self._inputs, "a", "b"):
                return self._path(rest)
        return path

    def _lines(self, root: Path, file: SnapshotFile | None) -> list[str]:
        try:
            text = (root / file.path).read_text("utf-8", "replace") if file else ""
        except OSError:
            return []
        return text.split("\n")

    def _shown(self, line: str, path: str) -> str:
        return self._redactor.message(line.strip(), MESSAGE_LETTERS, path)

    def _clean(self, remark: Remark) -> Remark:
        redactor = self._redactor
        update = {
            "file": redactor.path(remark.file),
            "message": redactor.message(remark.message, MESSAGE_LETTERS, remark.file),
            "suggestion": redactor.message(remark.suggestion, MESSAGE_LETTERS, remark.file),
        }
        return remark.model_copy(update=update)


def _quote(code: str) -> str:
    """Return the first line of a quote without its spaces, and without the sign of a diff."""
    line = next((each for each in code.splitlines() if each.strip()), "")
    return _squeeze(line[1:] if line[0:1] in ("+", "-") else line)


def _squeeze(line: str) -> str:
    return "".join(line.split())


def _covers(file: BaseFile | None, number: int) -> bool:
    spans = (file.touched if file else None) or ()
    return any(first <= number <= last for first, last in spans)


def _after(hunks: Sequence[Hunk], number: int) -> int:
    """Return the line of the head that stands where a line of the base stood: the first of those
    that replace it, else the one before.
    """
    found = (head for base, count, head, _ in hunks if base <= number < base + count)
    return max(next(found, number), 1)


def _nearest(spots: Sequence[_Spot], line: int) -> _Spot | None:
    """Return the spot that is meant: the only one, else the only nearest one that is near."""
    order = sorted(spots, key=lambda each: (each.off(line), each.deleted))
    if len(order) < 2:
        return order[0] if order else None
    first, second = order[0], order[1]
    alike = first.off(line) == second.off(line) and first.deleted == second.deleted
    return None if alike or first.off(line) > NEAR else first
