"""What one subtask found, as Markdown: behind each id of a report stands its finding, with who made
it, in how many tries, for how much, and on what it rests. Pure.
"""

from __future__ import annotations

import json
from collections.abc import Iterator

from holdfast.contracts import Finding, Remark, Report, Subtask
from holdfast.contracts.data import as_markdown, is_data
from holdfast.contracts.remarks import has_remarks, remarks_of
from holdfast.rendering.amounts import at_most, hands, seconds
from holdfast.text import code_span, for_json, inline
from holdfast.text.harmless import quote_markdown

MOST_SOURCE_CHARACTERS = 1_000
"""A report shows this much of one source: a person's answer may be a page, whole in `orders`."""


def sections(report: Report) -> Iterator[str]:
    """A section for each finding, in plan order: also of what never ran, or found nothing."""
    for finding in report.findings:
        yield section(report, finding)


def section(report: Report, finding: Finding) -> str:
    """One finding: heading, facts, tries, sources, and what it says, quoted. What stands in the
    report's answer word for word is not said twice.
    """
    subtask = subtask_of(report, finding.subtask_id)
    heading = f"### {inline(finding.subtask_id)} · {inline(subtask.title)}"
    parts = [heading, facts(finding, subtask)]
    why = [f"planned because: {inline(subtask.why)}"] if subtask.why else []
    why += [inline(finding.why)] if finding.why else []
    why += [f"second role: {inline(subtask.secondary)}"] if subtask.secondary else []
    if finding.unread:
        why.append(f"opened nothing of: {', '.join(map(inline, finding.unread))}")
    listed = [*why, *tries(finding), *_sources(finding)]
    parts += ["\n".join(f"- {line}" for line in listed)] if listed else []
    text = said_in(finding)
    if text and text in report.answer:
        parts.append("Its text stands in the answer as it is.")
    elif text and is_data(finding):
        parts.append(as_markdown(finding.data))
    elif text:
        parts.append(quote_markdown(text))
    return "\n\n".join(parts)


def alone(report: Report, finding: Finding) -> str:
    """One finding by itself, with everything in it: the report's answer is not there to read."""
    apart = report.model_copy(update={"answer": ""})
    parts = [section(apart, finding)]
    if has_remarks(finding):
        found = remarks_of(finding)
        parts += ["\n".join(f"- {remark_line(each)}" for each in found)] if found else []
    elif finding.data:
        written = for_json(json.dumps(finding.data, indent=2))
        parts.append("\n".join(f"    {line}" for line in written.splitlines()))
    return "\n\n".join(parts) + "\n"


def subtask_of(report: Report, subtask_id: str) -> Subtask:
    """The subtask of a finding as it ran."""
    planned = report.plan.subtasks if report.plan else ()
    none = Subtask(id=subtask_id, title="", instruction="", role="")
    return next((each for each in planned if each.id == subtask_id), none)


def facts(finding: Finding, subtask: Subtask) -> str:
    """Status, role, model, confidence, price and time in a line."""
    parts = [f"**{finding.status}**", inline(who(finding, subtask))]
    if finding.reused_from:
        parts.append(f"taken over from run {code_span(finding.reused_from)}")
    if finding.model:
        parts.append(inline(finding.model))
        # Of what was never finished nobody said how sure it is.
        if finding.status == "complete" and finding.confidence is not None:
            parts.append(f"confidence {finding.confidence} of 100")
    parts.append(hands(finding.turns, finding.tool_calls, finding.failed_calls))
    if spent := price(finding):
        parts.append(spent)
    if duration(finding):
        parts.append(seconds(duration(finding)))
    return " · ".join(part for part in parts if part)


def who(finding: Finding, subtask: Subtask) -> str:
    """The role that did the last try, and for which it stood in."""
    last = finding.tries[-1].role if finding.tries else ""
    return f"{last} for {subtask.role}" if last not in ("", subtask.role) else subtask.role


def price(finding: Finding) -> str:
    """What it cost, `≤` where a part is assumed; nothing if none was asked or it was taken over."""
    free = finding.reused_from or (not finding.model and finding.dollars == 0)
    return "" if free else at_most(finding.dollars, finding.assumed)


def duration(finding: Finding) -> float:
    """Seconds from its start to its end, less what the run waited; 0: it never ran here."""
    return 0.0 if finding.reused_from else finding.seconds


def tried(finding: Finding) -> str:
    """How often models were asked for it: its tries, or, where none came so far, its calls; of an
    agent that was ended before its answer, that it was one.
    """
    return str(len(finding.tries) or min(finding.turns, 1) or len(finding.unanswered) or "")


def tries(finding: Finding) -> Iterator[str]:
    """Each try with its verdict and the reason, and each call without an answer with its price;
    of a finding that was taken over, in which run that was.
    """
    there = f"in run {code_span(finding.reused_from)}: " if finding.reused_from else ""
    for each in finding.tries:
        tier = "" if each.tier == "none" else f" on {each.tier}"
        why = f": {inline(each.why)}" if each.why else ""
        known = each.dollars is not None and not finding.reused_from
        cost = f", {at_most(each.dollars, each.assumed)}" if known else ""
        by = f" by {inline(each.role)}, the fallback," if each.role else ""
        verdict = inline(each.verdict.replace("_", " "))
        yield f"{there}try {each.number}{by}{tier}, {verdict}{cost}{why}"
    for call in finding.unanswered:
        cost = "cost nothing" if call.dollars == 0 else at_most(call.dollars, call.assumed)
        yield f"{there}call {inline(call.id)} on {call.tier}, no answer, {cost}: {inline(call.why)}"


def _sources(finding: Finding) -> Iterator[str]:
    for source in finding.sources:
        yield f"source: {inline(shorten_source(source))}"


def shorten_source(source: str) -> str:
    """Return the beginning of a source, with a sign where there is more."""
    more = "…" * (len(source) > MOST_SOURCE_CHARACTERS)
    return source[:MOST_SOURCE_CHARACTERS] + more


def said_in(finding: Finding) -> str:
    """What a finding says, as Markdown, or the part that there is."""
    if is_data(finding):
        return as_markdown(finding.data).strip()
    partial = finding.escalation.partial if finding.escalation else ""
    return (finding.content or partial).strip()


def remark_line(remark: Remark) -> str:
    """A remark in a line, with its place, its rule and how sure its lens is."""
    place = f"{remark.file}:{remark.line}" if remark.line else remark.file or "the repository"
    return (
        f"**{remark.severity}** {code_span(place)} {inline(remark.message)}"
        f" ({code_span(remark.rule or remark.lens)}, {remark.confidence} %)"
    )
