"""What became of the remarks that agents were to verify: how many were confirmed, refuted or left
open, and the open ones that are a question to the author. Pure.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Literal

from holdfast.contracts import Remark, ReviewData, Verdict
from holdfast.contracts.remarks import is_question, is_withheld, lens_and_rule
from holdfast.rendering.blocks import Folded, Marked
from holdfast.rendering.many import beginning
from holdfast.rendering.remarks import place, prose
from holdfast.text import code_span, pluralize, sentence

VERDICTS: tuple[Verdict | Literal[""], ...] = ("confirmed", "refuted", "open", "")
QUESTIONS = "Questions to the author"


def count_verdicts(review: ReviewData) -> Iterator[str]:
    """Yield a sentence with all verdicts on what agents said, and one on what analysers said."""
    told = [*review.remarks, *review.unconfirmed]
    if not any(each.by_agent or each.verdict for each in told):
        return
    for who, by_agent in (("agents", True), ("analysers", False)):
        whose = [each for each in told if each.by_agent == by_agent and not each.summed]
        if whose:
            more = _count_merged(review, told) if by_agent else 0
            merged = f" ({more} more merged)" if more else ""
            yield f"{pluralize(len(whose), 'remark')} of {who}{merged}: {_counts(whose)}."


def _count_merged(review: ReviewData, told: Sequence[Remark]) -> int:
    """Return how many remarks of agents are told in the words of another that saw the same."""
    return sum(name.partition(":")[0] in review.agents for each in told for name in each.also)


def _counts(remarks: Sequence[Remark]) -> str:
    counts = Counter(each.verdict for each in remarks if each.verdict or not is_withheld(each))
    asked = sum(map(is_question, remarks))
    beside = {"open": f" ({asked} shown as questions)" if asked else ""}
    said = [
        f"{counts[each]:,} {each or 'not looked at'}{beside.get(each, '')}"
        for each in VERDICTS
        if counts[each]
    ]
    if withheld := sum(not each.verdict and is_withheld(each) for each in remarks):
        said.append(f"{withheld:,} verified by no model, as secrets are")
    return ", ".join(said)


def list_questions(review: ReviewData) -> list[Marked]:
    """Return the questions, each with its place and the remark that it is about."""
    return [
        Marked(f"{place(each)}: {_ask(each)} ({code_span(lens_and_rule(each))})")
        for each in review.unconfirmed
        if is_question(each)
    ]


def _ask(remark: Remark) -> str:
    return f"{sentence(prose(remark.message))} **{sentence(prose(remark.why))}**"


def fold_open(review: ReviewData, most: int = 200) -> list[Folded]:
    """Return a line for each of the first other remarks that only an agent makes and nobody has
    confirmed, folded away; nothing if there are none.
    """
    left = [each for each in review.unconfirmed if not is_question(each)]
    first, more = beginning(left, most)
    if not first:
        return []
    lines = [
        Marked(
            f"{place(each)}: {sentence(prose(each.message))} ({code_span(lens_and_rule(each))},"
            f" {each.confidence} %) {sentence(prose(each.why or 'no model looked at it'))}"
        )
        for each in first
    ]
    lines += [Marked(f"and {more} more")] if more else []
    title = f"{pluralize(len(left), 'remark')} of agents that nobody has confirmed"
    return [Folded(title, tuple(lines))]
