"""The verdict of a review, the first thing anybody reads of it: how many remarks count and how bad
they are, or in what there was none, and what the review lacks. Pure.

What counts is one thing everywhere: what may hold up a change (`blocks_change`). Exit code, SARIF,
comment, page, answer and lists all count that, and say of all else that it does not count.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from holdfast.contracts import Remark, ReportStatus, ReviewData, Severity
from holdfast.contracts.remarks import SEVERITIES, blocks_change, is_question, lens_and_rule, stands
from holdfast.rendering.blocks import Marked
from holdfast.rendering.reach import count_missed, looked_for_defects, unread_code
from holdfast.rendering.remarks import by_severity, refuted_of
from holdfast.text import inline, pluralize

BASELINE = "known"
"""Key of what a baseline takes out, in `ReviewData.hidden`."""
LEAST_SHARE = 5
"""Percent of the files from which a language that nobody looked at is named beside the verdict."""
MANY_OF_A_RULE = 10
"""Remarks of one rule that are told as one."""
MOST_NAMES = 3
"""Lenses that failed, and languages, that are named."""


@dataclass(frozen=True)
class Verdict:
    """How a review came out, as plain text."""

    said: str
    worst: Severity | None
    """Severity of the worst remark that counts; None if none does."""
    lacks: tuple[str, ...]
    """What of it came to nothing, each as the rest of a sentence; none if it is whole."""
    unread: str = ""
    """That nobody looked for defects in a language of many files, as a sentence; empty: in none."""

    known: bool = True
    """False if nobody looked for defects: that there is no remark then says nothing."""

    @property
    def beside(self) -> str:
        """What a reader must know beside the counts; empty if everything was looked at."""
        lacks = f"Not whole: {'; '.join(self.lacks)}." if self.lacks else ""
        return " ".join(filter(None, (lacks, self.unread)))

    @property
    def line(self) -> str:
        return f"{self.said}. {self.beside}".rstrip()


def judge(review: ReviewData, status: ReportStatus = "complete") -> Verdict:
    """Return the verdict. `status`: how the run ended."""
    told, lacks, unread = counted(review), (*_lacks(review, status),), _unread(review)
    if not told:
        known = review.nothing_differs or looked_for_defects(review)
        hidden = review.hidden.get(BASELINE, 0)
        but = f", {hidden:,} known by a baseline" if hidden else ""
        return Verdict(f"{_nothing(review)}{but}", None, lacks, unread, bool(known))
    counts = Counter(each.severity for each in told)
    files = pluralize(len({each.file for each in told}), "file")
    said = f"{by_severity(counts)} in {files}{refuted_of(told)}{_of_one_rule(told)}"
    return Verdict(said, next(each for each in SEVERITIES if counts[each]), lacks, unread)


def _of_one_rule(told: Sequence[Remark]) -> str:
    """Return how many of these remarks one rule makes, to follow their number, if these are many
    and outnumber all others.
    """
    (rule, count), *others = Counter(lens_and_rule(each) for each in told).most_common()
    if not others or count < MANY_OF_A_RULE or 2 * count <= len(told):
        return ""
    return f", {count:,} of them by the one rule {rule}"


def headline(review: ReviewData) -> Marked:
    """Return the verdict as the first paragraph of an answer, with what does not count."""
    verdict, apart = judge(review), uncounted(review)
    besides = f"Not counted: {', '.join(apart)}." if apart else ""
    parts = (f"**{inline(verdict.said)}.**", inline(verdict.beside), inline(besides))
    return Marked(" ".join(filter(None, parts)))


def counted(review: ReviewData) -> list[Remark]:
    """Return the remarks that count, by rank."""
    return [each for each in review.remarks if blocks_change(each)]


def failing(fail_on: str) -> tuple[Severity, ...]:
    """Return the severities that fail a change by `--fail-on`; none where it is empty."""
    return SEVERITIES[: [*SEVERITIES].index(fail_on) + 1] if fail_on in SEVERITIES else ()


def _nothing(review: ReviewData) -> str:
    """Return in what there was no remark."""
    lenses, agents = len(review.looked_at), len(review.agents)
    if looked_at_nothing(review):
        return "Nothing was looked at, so nothing is known"
    if not (lenses or agents):
        return "Nothing to review: no text differs from the base, line ends apart"
    if not looked_for_defects(review):
        return "No remarks, and nobody looked for defects in the code: nothing is known of it"
    who = [f"{lenses} {'lens' if lenses == 1 else 'lenses'}"] if lenses else []
    who += [pluralize(agents, "agent")] if agents else []
    return f"No remarks in what {' and '.join(who)} looked at"


def looked_at_nothing(review: ReviewData) -> bool:
    """True if no lens and no agent looked at anything, although something may differ."""
    return not (review.looked_at or review.agents or review.nothing_differs)


def _lacks(review: ReviewData, status: ReportStatus) -> Iterator[str]:
    if review.failed:
        yield f"{_named(review.failed)} came to no end"
    elif status != "complete":
        yield status.replace("_", " ")
    if review.missed_in_all:
        yield f"{count_missed(review)} could not be read"
    if review.not_reached_by:
        count = pluralize(max(review.not_reached_by.values()), "file")
        yield f"{count} not looked at by {_named([*review.not_reached_by])}: the time limit"
    if review.not_parsed:
        yield f"{pluralize(len(review.not_parsed), 'file')} could not be parsed"


def _unread(review: ReviewData) -> str:
    much = [each for each in unread_code(review) if each.percent >= LEAST_SHARE]
    languages = _named([f"{each.name} ({each.percent} %)" for each in much])
    who = "No analyser" if review.agents else "Nobody"
    return f"{who} looked for defects in {languages}." if much else ""


def _named(names: Sequence[str]) -> str:
    more = len(names) - MOST_NAMES
    return ", ".join(names[:MOST_NAMES]) + (f" and {more} more" if more > 0 else "")


def uncounted(review: ReviewData) -> list[str]:
    """Return what was seen and does not count, as `2 outside production code`."""
    apart = [each for each in review.remarks if not blocks_change(each)]
    elsewhere = sum(stands(each) for each in apart)
    asked = sum(map(is_question, review.unconfirmed))
    counts = {
        "outside production code": elsewhere,
        "refuted": len(apart) - elsewhere,
        "not confirmed": len(review.unconfirmed) - asked,
        f"below confidence {review.min_confidence}": review.below_confidence,
        "taken out by the repository's settings or a baseline": sum(review.hidden.values()),
    }
    questions = [f"{pluralize(asked, 'question')} to the author"] if asked else []
    return questions + [f"{count:,} {what}" for what, count in counts.items() if count]
