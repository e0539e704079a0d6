"""Write what differs from a base as models may see it: a unified diff with line numbers and the
messages of its commits, without secrets and bounded.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import anyio.to_thread

from holdfast.activities.repositories.changed import Changed, list_changed
from holdfast.activities.repositories.manifest import BaseFile, Manifest, SnapshotFile
from holdfast.activities.repositories.scratch import Snapshot, Snapshots
from holdfast.activities.repositories.unified import Section, heads_around, lay_out
from holdfast.activities.review.analysing.languages import OTHER, is_code, language
from holdfast.activities.review.lenses import SCANS
from holdfast.contracts import FileKind, PinnedInput
from holdfast.ports import Store
from holdfast.text import for_terminal, one_line, pluralize
from holdfast.untrusted.redact import Redactor, redact, without_keys

DIFF_BYTES = 512 * 1024
FILE_BYTES = 128 * 1024
"""Of one file: a larger difference would leave no room for others."""
CONTEXT = 3
LINE_LETTERS = 500
RANKED: tuple[FileKind, ...] = ("production", "tests")
MOST_NAMES = 100
"""Files that are named of those that are left out."""
MESSAGES_BYTES = 32 * 1024
SCAN_SECONDS = 90.0
"""How long the search for secrets may take; without it nothing is quoted."""


async def add_diff(pinned: PinnedInput, snapshots: Snapshots, store: Store) -> PinnedInput:
    """Return a pinned repository with the digests of the diff and the messages of its change."""
    if pinned.change is None:
        return pinned
    snapshot = await snapshots.open(pinned.digest)
    deadline = time.monotonic() + SCAN_SECONDS
    head, base = await SCANS.redactors(snapshot, deadline)
    diff = await anyio.to_thread.run_sync(_Writer(snapshot, head, base).write)
    said = await anyio.to_thread.run_sync(_messages, snapshot.manifest, head)
    update = {
        "diff": await store.put(diff) if diff else "",
        "diff_bytes": len(diff),
        "messages": await store.put(said) if said else "",
        "messages_bytes": len(said),
    }
    change = pinned.change.model_copy(update=update)
    return pinned.model_copy(update={"change": change})


def _rank(file: Changed) -> tuple[int, int, str]:
    """Production code first, then tests, then all else; small before large."""
    code = language(file.shown) != OTHER and is_code(file.path)
    place = RANKED.index(file.shown.kind) if code and file.shown.kind in RANKED else len(RANKED)
    return place, file.added + file.deleted, file.path


@dataclass(frozen=True)
class _Writer:
    snapshot: Snapshot
    head: Redactor
    base: Redactor

    def write(self) -> bytes:
        """Return the diff, whole files as far as they fit, and what is left out. Blocking."""
        parts: list[str] = []
        left_out: list[str] = []
        size = 0
        for file in sorted(list_changed(self.snapshot.manifest), key=_rank):
            why, text = self._write_file(file, min(FILE_BYTES, DIFF_BYTES - size))
            if why:
                name = self.head.path(for_terminal(file.path))
                left_out.append(f"{name} (+{file.added:,} -{file.deleted:,}): {why}")
            else:
                parts.append(text)
                size += len(text.encode("utf-8", "replace"))
        unread = [
            f"{self.head.path(for_terminal(each.path))}: {each.why}"
            for each in self.snapshot.manifest.unread
        ]
        more = self.snapshot.manifest.unread_in_all - len(unread)
        parts += _listed("not shown", left_out, 0)
        parts += _listed("differs, or is new, and was not read", unread, more)
        if lost := self.snapshot.manifest.before_cut:
            files = pluralize(lost, "file")
            parts.append(f"[the base's version of {files} is not kept: no text, or too large]\n")
        return "".join(parts).encode("utf-8", "replace")

    def _write_file(self, file: Changed, most: int) -> tuple[str, str]:
        """Return why a file is not shown, or what of it differs."""
        if most <= 0:
            return "no room", ""
        for side, redactor in ((file.now, self.head), (file.was, self.base)):
            if side is not None and file.hunks and not redactor.quotes(side.path):
                return "it could not be searched for secrets", ""
        if file.was is None and file.now is not None and file.now.was:
            return "the base's version is not kept", ""
        lines = list(self._lines(file, most))
        if not lines:
            return "no room", ""
        return "", "".join(f"{line}\n" for line in lines)

    def _lines(self, file: Changed, most: int) -> Iterator[str]:
        """Yield the lines of a file's diff; none if they are more than fit."""
        now, was = file.now, file.was
        sections = list(
            lay_out(file.hunks, was.lines if was else 0, now.lines if now else 0, CONTEXT)
        )
        if sum(len(each.lines) for each in sections) > most:
            return
        old = _read(self.snapshot.before, was)
        new = _read(self.snapshot.root, now)
        lines = [line for section in sections for line in section.lines]
        heads = [_heads(section, old, new) for section in sections]
        gone = [each.old for each in lines if each.mark == "-"]
        kept = [each.new for each in lines if each.mark != "-"]
        for section, numbers in zip(sections, heads, strict=True):
            (gone if section.first.mark == "-" else kept).extend(numbers)
        gone_text = _clean(self.base, was, old, gone)
        kept_text = _clean(self.head, now, new, kept)
        found = list(_headers(was, now, self.base, self.head))
        for section, numbers in zip(sections, heads, strict=True):
            texts = gone_text if section.first.mark == "-" else kept_text
            found.append(section.header_within(texts[number] for number in numbers))
            found += (
                each.show(gone_text[each.old] if each.mark == "-" else kept_text[each.new])
                for each in section.lines
            )
        if sum(len(line.encode("utf-8", "replace")) + 1 for line in found) <= most:
            yield from found


def _heads(section: Section, old: Sequence[str], new: Sequence[str]) -> list[int]:
    """Return the lines of the definitions around a section, in the text of its first change."""
    first = section.first
    return heads_around(old, first.old) if first.mark == "-" else heads_around(new, first.new)


def _clean(
    redactor: Redactor,
    file: SnapshotFile | None,
    lines: Sequence[str],
    numbers: Sequence[int],
) -> dict[int, str]:
    """Return lines of a file as they may be shown, by number."""
    if file is None or not numbers:
        return {}
    texts = [lines[number - 1] if number <= len(lines) else "" for number in numbers]
    texts = [for_terminal(each, lines=True) for each in texts]
    shown = redactor.code(texts, file.path, numbers)
    return {number: _cut(text) for number, text in zip(numbers, shown, strict=True)}


def _cut(line: str) -> str:
    if len(line) <= LINE_LETTERS:
        return line
    return f"{line[:LINE_LETTERS]}… [{len(line):,} letters in all]"


def _read(root: Path, file: SnapshotFile | None) -> list[str]:
    """Return the lines of a file as git counts them, private keys taken out."""
    if file is None:
        return []
    text = (root / file.path).read_bytes().decode("utf-8", "replace")
    return [line.rstrip("\r") for line in without_keys(text).split("\n")]


def _headers(
    was: BaseFile | None, now: SnapshotFile | None, base: Redactor, head: Redactor
) -> Iterator[str]:
    old = base.path(for_terminal(was.path)) if was else ""
    new = head.path(for_terminal(now.path)) if now else ""
    if was and now and was.path != now.path:
        yield f"rename from {old}"
        yield f"rename to {new}"
    yield f"--- a/{old}" if was else "--- /dev/null"
    yield f"+++ b/{new}" if now else "+++ /dev/null"
    if was and was.link:
        yield f"({old} was {was.end})"


def _listed(what: str, lines: Sequence[str], more: int) -> Iterable[str]:
    """Return some lines on files that are not in the diff."""
    if not lines and not more:
        return []
    total = pluralize(len(lines) + more, "file")
    shown = [f"  {one_line(each)}\n" for each in lines[:MOST_NAMES]]
    rest = len(lines) + more - len(shown)
    return [f"[{what}: {total}]\n", *shown, *([f"  … and {rest:,} more\n"] if rest else [])]


def _messages(manifest: Manifest, redactor: Redactor) -> bytes:
    """Return the messages of the commits of a change, newest first, as far as they fit."""
    parts, size, left = [], 0, 0
    for commit in manifest.commits:
        if not commit.of_change or not commit.message:
            continue
        said = redactor.message(commit.message, len(commit.message), "")
        part = f"commit {commit.id[:12]}\n{redact(said)}\n\n"
        size += len(part.encode("utf-8", "replace"))
        if size > MESSAGES_BYTES:
            left += 1
        else:
            parts.append(part)
    if left:
        parts.append(f"[{pluralize(left, 'older message')} not shown]\n")
    return "".join(parts).encode("utf-8", "replace")
