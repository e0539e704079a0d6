"""The lenses as tools: every analyser of this package over the snapshot of the run."""

from __future__ import annotations

import importlib
import pkgutil
import time
from collections import Counter
from collections.abc import Sequence
from functools import cache, partial

import activities.analysers
from activities.analysers.examination import Examination
from activities.analysers.lens import Analyser, Parsed, Sighting
from activities.redact import redact
from activities.review import SEVERITIES, ranked
from activities.review_answer import many
from activities.seam import Tool
from activities.snapshot import Manifest, SnapshotFile
from activities.snapshots import Snapshot, Snapshots
from orchestrator.contracts import Draft, Remark
from orchestrator.errors import ToolFailed
from orchestrator.materials import WorkMaterial

MOST_REMARKS = 2_000
"""That one lens hands back, the most severe first."""
MOST_NAMES = 200
"""Of files that were not read or not parsed, named one by one."""
MESSAGE_LETTERS = 400
MARGIN_SECONDS = 15.0
"""Of the subtask's time, kept for reading and handing back."""


@cache
def analysers() -> dict[str, Analyser]:
    """Every analyser, by name: the modules of this package that define ANALYSER."""
    found: dict[str, Analyser] = {}
    package = activities.analysers
    for module in pkgutil.iter_modules(package.__path__, f"{package.__name__}."):
        analyser = getattr(importlib.import_module(module.name), "ANALYSER", None)
        if isinstance(analyser, Analyser):
            found[analyser.name] = analyser
    return found


def lens_tools(snapshots: Snapshots) -> dict[str, Tool]:
    """One tool per analyser, under the analyser's name."""
    return {
        name: partial(_look, analyser, snapshots) for name, analyser in sorted(analysers().items())
    }


async def _look(analyser: Analyser, snapshots: Snapshots, material: WorkMaterial) -> Draft:
    pinned = next((each for each in material.inputs if each.kind == "repository"), None)
    if pinned is None:
        raise ToolFailed(f"{analyser.name}: its subtask names no input that is a repository")
    deadline = time.monotonic() + max(material.timeout_seconds - MARGIN_SECONDS, 1.0)
    snapshot = await snapshots.open(pinned.digest)
    files = [file for file in snapshot.manifest.files if _examines(analyser, file.path)]
    if analyser.survey is not None:
        parsed = analyser.survey(snapshot.manifest)
    else:
        root = f"{snapshot.root}/"
        examination = Examination(analyser, deadline)
        parsed = await examination.look_at([root + file.path for file in files])
        parsed = _relative(parsed, root)
    return _draft(analyser, snapshot, files, parsed)


def _examines(analyser: Analyser, path: str) -> bool:
    return analyser.examines is None or analyser.examines(path)


def _relative(parsed: Parsed, root: str) -> Parsed:
    sightings = (
        Sighting(**{**vars(each), "file": each.file.removeprefix(root)})
        for each in parsed.sightings
    )
    names = tuple(path.removeprefix(root) for path in parsed.not_parsed)
    return Parsed(tuple(sightings), names, parsed.read, parsed.notes)


def _draft(
    analyser: Analyser, snapshot: Snapshot, files: Sequence[SnapshotFile], parsed: Parsed
) -> Draft:
    manifest = snapshot.manifest
    by_path = {file.path: file for file in files}
    counted = [each for each in parsed.sightings if _in_scope(each, by_path)]
    remarks = ranked(_remark(analyser, each) for each in counted if not each.suppressed)
    suppressed = sum(each.suppressed for each in counted)
    tried = (parsed.read or 0) + _unread(analyser, manifest)
    read = (parsed.read or 0) - len(parsed.not_parsed)
    return Draft(
        content=_content(analyser, manifest, parsed, remarks, suppressed),
        confidence=100 * read // tried if tried else 100,
        data={
            "remarks": [remark.model_dump(mode="json") for remark in remarks[:MOST_REMARKS]],
            "remarks_in_all": len(remarks),
            "files_read": read,
            "suppressed": suppressed,
            "not_parsed": list(parsed.not_parsed[:MOST_NAMES]),
            "not_parsed_in_all": len(parsed.not_parsed),
            "unread": len(manifest.unread),
            "unread_reasons": dict(Counter(each.reason for each in manifest.unread)),
            "unread_files": [
                {"path": each.path, "reason": each.reason} for each in manifest.unread[:MOST_NAMES]
            ],
            "base": manifest.base,
            "notes": list(manifest.notes),
        },
    )


def _in_scope(sighting: Sighting, files: dict[str, SnapshotFile]) -> bool:
    """Whether it is about a touched line, or about a file or the repository as a whole."""
    file = files.get(sighting.file)
    if file is None:
        return sighting.file == ""
    if file.touched is None or sighting.line == 0 or sighting.anywhere:
        return True
    end = max(sighting.line, sighting.last_line)
    return any(first <= end and sighting.line <= last for first, last in file.touched)


def _remark(analyser: Analyser, sighting: Sighting) -> Remark:
    grade = analyser.grade(sighting.grade)
    return Remark(
        severity=grade.severity,
        file=sighting.file,
        line=sighting.line,
        message=redact(sighting.message)[:MESSAGE_LETTERS],
        suggestion=redact(sighting.suggestion)[:MESSAGE_LETTERS],
        rule=sighting.rule,
        confidence=grade.confidence,
        lens=analyser.name,
    )


def _unread(analyser: Analyser, manifest: Manifest) -> int:
    """Files that this tool would have looked at, had they been read."""
    if analyser.examines is None:
        return 0
    return sum(analyser.examines(each.path) for each in manifest.unread)


def _content(
    analyser: Analyser, manifest: Manifest, parsed: Parsed, remarks: Sequence[Remark],
    suppressed: int,
) -> str:  # fmt: skip
    if not parsed.read:
        scope = "differing from the base" if manifest.base and analyser.survey is None else ""
        why = f"no {analyser.looks_for} {scope}".strip()
        return f"Nothing to look at: {why}."
    counts = Counter(remark.severity for remark in remarks)
    kinds = ", ".join(f"{counts[kind]} {kind}" for kind in SEVERITIES if counts[kind])
    lines = [
        f"{many(parsed.read - len(parsed.not_parsed), 'file')} looked at: {kinds or 'no remarks'}."
    ]
    if len(remarks) > MOST_REMARKS:
        lines.append(f"Only the first {MOST_REMARKS} of {len(remarks)} remarks are handed on.")
    if suppressed:
        lines.append(f"{many(suppressed, 'remark')} suppressed in the code.")
    if parsed.not_parsed:
        lines.append(f"{many(len(parsed.not_parsed), 'file')} could not be parsed.")
    lines += [f"{note[:1].upper()}{note[1:]}." for note in (*parsed.notes, *manifest.notes)]
    return "\n".join(f"- {line}" for line in lines)
