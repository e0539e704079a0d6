"""Summarize a review outside production code: in tests, docs and examples, and in files that nobody
edits. It is told in a line of its own, and a key in a fixture counts as made up.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence

from holdfast.contracts import FileKind, Remark
from holdfast.contracts.remarks import blocks_change, is_credential, rank_remarks, stands
from holdfast.rendering.remarks import by_severity, place, prose
from holdfast.text import for_markdown

KINDS: tuple[FileKind, ...] = (
    "tests", "examples", "docs", "generated", "vendored", "minified", "built",
)  # fmt: skip
WRITTEN: tuple[FileKind, ...] = ("tests", "examples", "docs")
"""Kinds that people edit by hand."""
WORST = 3
"""Remarks that are named one by one."""
MADE_UP = (
    "In {kind} a key is taken for made up: if it ever worked, revoke it, and read it from the"
    " environment"
)


def temper(remark: Remark, *, in_comment: bool = False) -> Remark:
    """Make what is critical in tests, examples, docs or comments a warning: broken files are often
    meant to be, nobody from outside reaches the code, and a credential is mostly made up, as is
    advised.
    """
    if remark.severity != "critical" or not (in_comment or remark.kind in WRITTEN):
        return remark
    place = remark.kind if remark.kind in WRITTEN else "comments"
    advice = MADE_UP.format(kind=place) if is_credential(remark) else remark.suggestion
    return remark.model_copy(update={"severity": "warning", "suggestion": advice})


def select_production(remarks: Iterable[Remark]) -> list[Remark]:
    """Return the remarks that are listed one by one."""
    return [each for each in remarks if each.kind == "production"]


def count_kinds(remarks: Iterable[Remark]) -> dict[str, int]:
    """Return how many remarks there are of each kind, production first."""
    counts = Counter(each.kind for each in remarks)
    return {kind: counts[kind] for kind in ("production", *KINDS) if counts[kind]}


def describe_elsewhere(remarks: Sequence[Remark]) -> str:
    """Return what stands outside production code as a line of Markdown: counts by kind, and the
    worst few; of what nobody edits by hand only criticals are named. Empty: nothing does. What
    counts wherever it stands is told one by one.
    """
    told = (each for each in remarks if stands(each) and not blocks_change(each))
    elsewhere = [each for each in rank_remarks(told) if each.kind != "production"]
    other = [each for each in elsewhere if not each.summed]
    if not other:
        return ""
    summed = Counter(each.lens for each in elsewhere if each.summed)
    kinds = ", ".join(_count(kind, other) for kind in KINDS if any(e.kind == kind for e in other))
    named = [each for each in other if each.kind in WRITTEN or each.severity == "critical"]
    worst = [each for each in named if each.severity != "info"][:WORST]
    parts = [f"**Outside production code, not counted**: {kinds}."]
    if worst:
        parts.append(f"The worst: {'; '.join(map(_place, worst))}.")
    if summed:
        lenses = ", ".join(f"{for_markdown(lens)} {count}" for lens, count in summed.items())
        parts.append(f"In sum, beside these: {lenses}.")
    return " ".join(parts)


def _count(kind: FileKind, remarks: Iterable[Remark]) -> str:
    counts = Counter(each.severity for each in remarks if each.kind == kind)
    return f"{kind} {counts.total()} ({by_severity(counts)})"


def _place(remark: Remark) -> str:
    return f"{place(remark)} ({prose(remark.message).rstrip('.')})"
