"""How many of a review's remarks a maintainer would act on, by the labelled remarks."""

from __future__ import annotations

import hashlib
import tarfile
import tempfile
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from bench.review.believed import SHOWN
from bench.review.labels import PRODUCTION, Label, Source, fingerprint, of
from bench.review.looking import committed, remarks_of
from holdfast.contracts import Remark
from holdfast.contracts.errors import BadGoal


@dataclass(frozen=True)
class Judged:
    """A remark that the review made, and its label, if somebody gave it one."""

    source: Source
    remark: Remark
    label: Label | None

    @property
    def shown(self) -> bool:
        """True if a review shows it."""
        return self.remark.confidence >= SHOWN

    @property
    def in_production(self) -> bool:
        """True if a label says so."""
        return self.label is not None and self.label.kind == PRODUCTION


async def judged(source: Source, folder: Path) -> list[Judged]:
    """The remarks of a review of one archive, each with its label."""
    archive = folder / source.archive
    if not archive.is_file():
        raise BadGoal(f"{archive} is not there; fetch it with: {source.fetch}")
    digest = hashlib.sha256(archive.read_bytes()).hexdigest()
    if digest != source.sha256:
        raise BadGoal(f"{archive} is another one: its SHA-256 is {digest}, not {source.sha256}")
    with tempfile.TemporaryDirectory(prefix="bench-review-") as scratch:
        with tarfile.open(archive) as packed:
            packed.extractall(scratch, filter="data")
        (tree,) = (each for each in Path(scratch).iterdir() if each.is_dir())
        committed(tree)
        remarks = await remarks_of(tree)
        return list(_with_labels(source, tree, remarks))


def _with_labels(source: Source, tree: Path, remarks: Iterable[Remark]) -> Iterable[Judged]:
    labels = {(each.path, each.rule, each.fingerprint): each for each in of(source)}
    for remark in remarks:
        text = (tree / remark.file).read_bytes().decode("utf-8", "replace") if remark.file else ""
        lines = text.split("\n")
        line = lines[remark.line - 1] if 0 < remark.line <= len(lines) else ""
        key = (remark.file, remark.rule, fingerprint(remark.file, remark.rule, line))
        yield Judged(source, remark, labels.get(key))


def tables(found: Sequence[Judged]) -> str:
    """Precision overall, by severity and by rule, as Markdown: of labelled production code."""
    real = [each for each in found if each.in_production and not each.remark.summed]
    shown = [each for each in real if each.shown]
    parts = [
        _table("what", shown, lambda _: "all shown"),
        _table("severity", shown, lambda each: each.remark.severity),
        _table("repository", shown, lambda each: each.source.key),
        _table("rule, shown", shown, lambda each: each.remark.rule),
        _table(
            "rule, not shown",
            [each for each in real if not each.shown],
            lambda each: each.remark.rule,
        ),
    ]
    return "\n\n".join(part for part in parts if part)


def _table(head: str, found: Sequence[Judged], name: Callable[[Judged], str]) -> str:
    if not found:
        return ""
    counted: dict[str, Counter[str]] = {}
    for each in found:
        assert each.label is not None
        counted.setdefault(name(each), Counter())[each.label.label] += 1
    rows = [
        f"| {head} | labelled | useful | true | false | precision |",
        "|---|---|---|---|---|---|",
    ]
    for key, said in sorted(counted.items()):
        share = said["useful"] / said.total()
        rows.append(
            f"| {key} | {said.total()} | {said['useful']} | {said['true']} | {said['false']}"
            f" | {share:.2f} |"
        )
    return "\n".join(rows)
