"""Which lens looked at how much, and at what nobody did: never more than was so."""

from __future__ import annotations

from activities.code_review.outcome import Outcome
from orchestrator.text import counted, for_markdown


def looked(outcome: Outcome) -> str:
    """Which lens looked at how much, and which had nothing to look at: never more than was so."""
    what = f"what differs from {outcome.base[:12]}" if outcome.base else "the tree"
    parts = [f"In {what}: {counted(outcome.files, 'file')} of text."]
    by_count: dict[int, list[str]] = {}
    for lens, count in outcome.looked:
        by_count.setdefault(count, []).append(lens)
    seen = [
        f"{names(lenses)} looked at {counted(count, 'file')}"
        for count, lenses in sorted(by_count.items(), reverse=True)
    ]
    if seen:
        parts.append(f"{'; '.join(seen)}.")
    by_reason: dict[str, list[str]] = {}
    for lens, why in outcome.idle:
        by_reason.setdefault(why, []).append(lens)
    parts += [
        f"**Nothing to look at** for {names(lenses)}: {for_markdown(why)}."
        for why, lenses in by_reason.items()
    ]
    return " ".join(parts)


def names(lenses: list[str]) -> str:
    """`bugs, security and history`, as Markdown."""
    shown = [for_markdown(each) for each in lenses]
    return " and ".join(filter(None, (", ".join(shown[:-1]), shown[-1])))
