"""The code around remarks, for a model that verifies them. What looks like a secret, and every line
in which a lens saw one, stays on this machine.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Collection
from dataclasses import dataclass
from functools import partial

import anyio.to_thread

from holdfast.activities.repositories.manifest import SnapshotFile
from holdfast.activities.repositories.scratch import Snapshot, Snapshots
from holdfast.activities.review.lenses import SCANS
from holdfast.calls.verify import Shown, VerifyMaterial
from holdfast.contracts import Remark
from holdfast.contracts.policies import EXCERPT_BYTES
from holdfast.untrusted.known_secrets import REDACTED
from holdfast.untrusted.redact import Redactor, redact, without_keys

SCAN_SECONDS = 60.0
"""How long the search for secrets may take, if no lens has made it in this process."""
AROUND = 25
"""Lines before and after a remark's, as far as the bytes go."""
LONGEST_LINE = 300
"""Characters shown of a line."""
LOOKED_AT = 2_000
"""Characters of a line in which secrets are looked for; nothing behind them is shown."""


@dataclass(frozen=True)
class Excerpts:
    """Cuts excerpts out of stored snapshots."""

    snapshots: Snapshots

    async def around(self, material: VerifyMaterial) -> tuple[Shown, ...]:
        """Return an excerpt for each remark, in their order. Raise BlobLost if the store has lost
        the snapshot.
        """
        snapshot = await self.snapshots.open(material.repository.digest)
        redactor = await SCANS.redactor(snapshot, time.monotonic() + SCAN_SECONDS)
        return await anyio.to_thread.run_sync(_all, snapshot, material, redactor)


def _all(snapshot: Snapshot, material: VerifyMaterial, redactor: Redactor) -> tuple[Shown, ...]:
    files = {file.path: file for file in snapshot.manifest.files}
    found = []
    for remark in material.remarks:
        withheld = [each.line for each in material.withheld if each.file == remark.file]
        text = snapshot.path(remark.file).read_text("utf-8") if remark.file in files else ""
        absent = _absent(remark, files.get(remark.file), text)
        file = redactor.path(remark.file)
        place = f"{file} line {remark.line}" if remark.line else file
        said = redactor.message(remark.message, LOOKED_AT, remark.file)
        shown_of = partial(_line, redactor, remark.file)
        code = "" if absent else excerpt(text, remark.line, withheld, shown_of)
        found.append(Shown(place, said, code, absent))
    return tuple(found)


def _absent(remark: Remark, file: SnapshotFile | None, text: str) -> str:
    """Return why there is no such place in what is reviewed; empty if there is. Analysers look at
    what is there; an agent may name anything.
    """
    if not remark.by_agent:
        return ""
    if file is None:
        return "There is no such file in what is reviewed."
    if not 0 <= remark.line <= text.count("\n") + 1:
        return "The file has no such line."
    spans = file.touched
    if remark.line and spans is not None and not any(a <= remark.line <= b for a, b in spans):
        return "The line is not part of what changed."
    return ""


def _line(redactor: Redactor, file: str, text: str) -> str:
    return redactor.message(text, LONGEST_LINE, file)


def excerpt(
    text: str,
    line: int,
    withheld: Collection[int] = (),
    shown_of: Callable[[str], str] = lambda line: redact(line[:LOOKED_AT]),
) -> str:
    """Return the numbered lines nearest to `line` (0: the first ones), at most EXCERPT_BYTES of
    them.
    """
    lines = without_keys(text).split("\n")
    middle = min(max(line, 1), len(lines))
    near = sorted(range(1, len(lines) + 1), key=lambda number: abs(number - middle))
    shown: dict[int, str] = {}
    left = EXCERPT_BYTES
    for number in near[: 2 * AROUND + 1]:
        text = REDACTED if number in withheld else shown_of(lines[number - 1])
        shown[number] = f"{number:>5}  {text[:LONGEST_LINE]}"
        left -= len(shown[number].encode()) + 1
        if left < 0:
            del shown[number]
            break
    return "\n".join(shown[number] for number in sorted(shown)) if lines != [""] else ""
