"""A review as a comment on a change: short, the details folded, each place a link where the reader
knows what to link to. Pure, and everything that the repository may have written is escaped.
"""

from __future__ import annotations

import html
import re
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from holdfast.contracts import Remark, Report, ReviewData
from holdfast.contracts.remarks import (
    describe_hidden,
    group_same,
    lens_and_rule,
    read_review,
    stands,
    why_unread,
)
from holdfast.rendering import markdown
from holdfast.rendering import remarks as shown
from holdfast.rendering.blocks import Folded, Marked
from holdfast.rendering.foremost import one_thing
from holdfast.rendering.proofs import TITLE, fence_of, suggestion_of
from holdfast.rendering.reach import count_missed, who_looked
from holdfast.rendering.sarif import encoded
from holdfast.rendering.verdict import counted, failing, judge, uncounted
from holdfast.rendering.verified import QUESTIONS, count_verdicts, fold_open, list_questions
from holdfast.text import code_span, for_markdown, inline, pluralize, sentence, visible

MOST_LETTERS = 65_536
"""Longest comment that GitHub takes."""
MARGIN = 500
"""Letters kept for what is said of the rest."""
MARK = "<!-- holdfast review -->"
"""Lets a program find the comment again, to renew it."""
SUMMARY_LETTERS = 300
MOST_UNLISTED = 40
"""Remarks named that are not listed."""
MOST_FILES = 8
"""Files named that could not be parsed."""
_CALL = re.compile(r"(?<!&)[@#](?=\w)")
"""Matches what calls people or issues in an escaped text, where `&#` only begins a number."""
_COMMIT = re.compile(r"[0-9a-f]{7,64}")
MARKS = {"critical": "🔴", "warning": "🟠", "info": "🔵"}
FAILS = "⛔"
"""Marks what fails the change."""


class Links(NamedTuple):
    """Addresses of the files at the reviewed commit and at its base; empty: nothing is linked."""

    head: str
    base: str


def as_comment(
    report: Report, links: str = "", fail_on: str = "", besides: Sequence[Marked] = ()
) -> str:
    """Return the comment. `links`: the address of the files at the reviewed commit, without a slash
    at its end; without one, places are told and link nowhere. `fail_on`: the severity from which
    remarks fail the change, which are marked; empty: none does. `besides`: what else stands below
    the verdict.
    """
    review = read_review(report) or ReviewData()
    standing = counted(review)
    groups = group_same(standing)
    to = Links(links, _of_base(links, report, review))
    head = "\n\n".join([MARK, *_head(report, review, fail_on), *besides])
    folded = [*fold_open(review, MOST_UNLISTED), *shown.fold_unlisted(review, MOST_UNLISTED)]
    unlisted = markdown.write(folded)
    tail = "\n\n".join(filter(None, [_calm(unlisted), *_looked(review), _foot(report, review)]))
    room = MOST_LETTERS - MARGIN - len(head) - len(tail)
    told: list[str] = []
    for group in groups:
        block = _folded(group, to, fails=group[0].severity in failing(fail_on))
        room -= len(block) + 2
        if room < 0:
            break
        told.append(block)
    left = sum(map(len, groups[len(told) :]))
    more = [f"And {pluralize(left, 'more remark')}, in the report."] if left else []
    return "\n\n".join([head, *told, *more, tail]) + "\n"


def as_thread(remark: Remark, fail_on: str = "") -> str:
    """Return a remark as the first comment of a thread that stands at its line, where its code is
    seen. `fail_on` as for the comment.
    """
    mark = f"{FAILS} " * (remark.severity in failing(fail_on)) + MARKS[remark.severity]
    rule = code_span(lens_and_rule(remark))
    lines = "\n".join(f"- {_calm(line)}" for line in shown.advice(remark))
    script = fence_of(remark)
    proof = f"<details><summary>{TITLE}</summary>\n\n{script}\n\n</details>" if script else ""
    return "\n\n".join(filter(None, (f"{mark} {_calm(shown.said(remark))} ({rule})", lines, proof)))


def _head(report: Report, review: ReviewData, fail_on: str) -> Iterator[str]:
    """Yield the verdict with what the review lacks, what fails the change, and what to do first."""
    verdict, told = judge(review, report.status), counted(review)
    whole = verdict.known and not verdict.beside
    mark = MARKS[verdict.worst] if verdict.worst else "✅" if whole else "⚠️"
    parts = [f"{mark} **{inline(verdict.said)}.**"]
    parts += [f"⚠️ {inline(verdict.beside)}"] if verdict.beside else []
    if fail_on:
        severe = sum(each.severity in failing(fail_on) for each in told)
        count = f"{FAILS} {pluralize(severe, 'remark')} of these fail" if severe else "None fails"
        parts.append(f"{count} the change by {code_span(f'--fail-on {fail_on}')}.")
    yield " ".join(parts)
    if review.scope:
        yield _calm(f"Reviewed: {inline(review.scope)}.")
    if apart := uncounted(review):
        yield f"Not counted: {inline(', '.join(apart))}."
    if first := one_thing([each for each in told if stands(each)]):
        yield _calm(first)
    if said := [*count_verdicts(review)]:
        yield " ".join(said)
    if asked := list_questions(review):
        yield "\n".join([f"**{QUESTIONS}**", "", *(_calm(f"- ❓ {each}") for each in asked)])


def _looked(review: ReviewData) -> list[str]:
    """Return, folded, who looked at what, and what was not read; empty if nobody looked."""
    said = [*who_looked(review), *_not_read(review)]
    if not said:
        return []
    names = ", ".join([*review.looked_at, *review.agents])
    by = f" by {names}" if names else ""
    title = f"Looked at: {pluralize(review.files_read, 'file')}{by}"
    return [_calm(markdown.write([Folded(title, tuple(map(Marked, said)))]))]


def _not_read(review: ReviewData) -> Iterator[str]:
    """Yield what was not parsed, not read or taken out, with names."""
    if lost := review.not_parsed:
        named = ", ".join(code_span(each) for each in lost[:MOST_FILES])
        count = pluralize(len(lost), "file")
        yield f"{count} could not be parsed: {named}{', …' * (len(lost) > MOST_FILES)}."
    if late := review.not_reached:
        named = ", ".join(code_span(each) for each in late[:MOST_FILES])
        more = ", …" * (max(review.not_reached_by.values()) > MOST_FILES)
        yield f"Not looked at by every lens before the time limit: {named}{more}."
    if hidden := describe_hidden(review):
        yield f"{for_markdown(hidden)}."
    if review.missed_in_all:
        texts = review.missed[:MOST_FILES]
        listed = ", ".join(f"{code_span(each.path)} ({inline(each.why)})" for each in texts)
        more = ", …" * (review.missed_in_all > len(texts))
        yield f"Nobody knows what is in {count_missed(review)}: {listed}{more}."
    if review.unread_in_all:
        listed = ", ".join(f"{inline(why)} ({n})" for why, n in why_unread(review))
        yield f"{pluralize(review.unread_in_all, 'file')} not read{f': {listed}' * bool(listed)}."
    yield from (sentence(for_markdown(note)) for note in review.notes)


def _folded(group: Sequence[Remark], links: Links, *, fails: bool) -> str:
    first = group[0]
    places = len(group) - 1
    also = f" and {pluralize(places, 'more place')}" if places else ""
    place = f"<code>{_html(shown.place_of(first))}</code>{also}"
    refuted = "" if stands(first) else "refuted by a model: "
    mark = f"{FAILS} " * fails + MARKS[first.severity]
    summary = f"{mark} {place}: {refuted}{_calm(_html(first.message))}"
    body = [f"{_linked(first, links)} · {code_span(lens_and_rule(first))}"]
    body += [code] if (code := shown.code_of(first)) else []
    same = shown.same_at(group[1:], lambda remark: _linked(remark, links), shown.MOST_PLACES)
    lines = (*map(_calm, shown.advice(first)), *same)
    body.append("\n".join(f"- {line}" for line in lines))
    if script := fence_of(first):
        body.append(f"<details><summary>{TITLE}</summary>\n\n{script}\n\n</details>")
    body += [suggestion] if (suggestion := suggestion_of(first)) else []
    inside = "\n\n".join(body)
    return f"<details><summary>{summary}</summary>\n\n{inside}\n\n</details>"


def _linked(remark: Remark, links: Links) -> str:
    place = shown.place(remark)
    to = links.base if remark.gone else links.head
    if not to or not remark.file:
        return place
    line = f"#L{remark.line}" if remark.line else ""
    return f"[{place}]({to}/{encoded(remark.file)}{line})"


def _of_base(links: str, report: Report, review: ReviewData) -> str:
    """Return the address of the files at the base, where that of the head names its commit; empty:
    nobody knows it.
    """
    head = next((each.commit for each in report.inputs if each.kind == "repository"), "")
    named = head if head and head in links else links.rpartition("/")[2]
    if not review.base or not _COMMIT.fullmatch(named):
        return ""
    before, _, after = links.rpartition(named)
    return f"{before}{review.base}{after}"


def _html(text: str) -> str:
    """Return the text within a tag, where Markdown means nothing."""
    return html.escape(visible(" ".join(text.split()))[:SUMMARY_LETTERS])


def _calm(text: str) -> str:
    """Return the text without calling anybody or any issue: a character that is not seen stands
    between the sign and the name.
    """
    return _CALL.sub(lambda found: f"{found[0]}\u2060", text)


def _foot(report: Report, review: ReviewData) -> str:
    against = f" against {code_span(review.base[:12])}" if review.base else ""
    return f"<sub>holdfast{against}, run {code_span(report.run_id)}</sub>"
