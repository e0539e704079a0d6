"""What one subtask found: who made it, in how many tries, for how much, and on what it rests."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator

from holdfast.contracts import Finding, Report, Subtask
from holdfast.contracts.data import as_markdown, is_data
from holdfast.contracts.remarks import has_remarks, is_from_agent, sightings_of
from holdfast.rendering import markdown, remarks
from holdfast.rendering.amounts import at_most, hands, seconds
from holdfast.rendering.blocks import Block, Heading, Marked, Paragraph, Prose, listed
from holdfast.text import code_span, for_json, inline, pluralize, visible

MOST_SOURCES = 200
MOST_SOURCE_CHARACTERS = 1_000
"""Longest source in a report: a person's answer may be a page, whole in `orders`."""
_ADDRESS = re.compile(r"https?://[^\s<>`\\]+\Z")


def sections(report: Report) -> list[Block]:
    """Return a section for each finding, also of what never ran, in plan order. Lenses that saw
    nothing, and have nothing to say of what they read, share a line.
    """
    quiet = {each.subtask_id: files for each in report.findings if (files := _files_in_vain(each))}
    told = (each for each in report.findings if each.subtask_id not in quiet)
    blocks = [block for finding in told for block in section(report, finding)]
    if quiet:
        names = ", ".join(f"{name} ({pluralize(n, 'file')})" for name, n in quiet.items())
        blocks.append(Paragraph(f"Lenses without remarks: {names}."))
    return blocks


def _files_in_vain(finding: Finding) -> int:
    """Return how many files a lens read without a remark; 0 if it has anything else to say."""
    if finding.status != "complete" or not has_remarks(finding) or is_from_agent(finding):
        return 0
    seen = sightings_of(finding)
    more = seen.remarks_in_all or seen.suppressed or seen.not_parsed or seen.notes or seen.old
    return 0 if more else seen.files_read


def section(report: Report, finding: Finding) -> list[Block]:
    """Return a finding below its heading. What stands in the report's answer word for word is not
    said twice.
    """
    subtask = subtask_of(report, finding.subtask_id)
    text = said_in(finding)
    heading = Heading(f"{finding.subtask_id} · {subtask.title}", 3)
    blocks = [heading, Paragraph(facts(finding, subtask)), *circumstances(finding, subtask)]
    if text and text in report.answer:
        blocks.append(Paragraph("Its text stands in the answer as it is."))
    elif text:
        blocks.append(Prose(text, quoted=not is_data(finding)))
    return blocks


def circumstances(finding: Finding, subtask: Subtask) -> list[Block]:
    """Return why it was planned and how it came about: reasons, tries, sources."""
    lines = [f"planned because: {subtask.why}"] if subtask.why else []
    lines += [f"second role: {subtask.secondary}"] if subtask.secondary else []
    lines += [finding.why] if finding.why else []
    lines += [f"opened nothing of: {', '.join(finding.unread)}"] if finding.unread else []
    lines += tries(finding)
    sources = finding.sources[:MOST_SOURCES]
    lines += [Marked(f"source: {source_text(each)}") for each in sources]
    left = len(finding.sources) - len(sources)
    return listed([*lines, *([f"and {left} more sources"] if left else [])])


def alone(report: Report, finding: Finding) -> str:
    """Return one finding as Markdown, with everything in it: the report's answer is not there to
    read.
    """
    blocks = section(report.model_copy(update={"answer": ""}), finding)
    written = markdown.write(blocks)
    if has_remarks(finding):
        found = [*listed(map(remarks.line, sightings_of(finding).remarks))]
        written = "\n\n".join([written, *([markdown.write(found)] if found else [])])
    elif finding.data:
        data = for_json(json.dumps(finding.data, indent=2)).splitlines()
        written = "\n\n".join([written, "\n".join(f"    {line}" for line in data)])
    return written + "\n"


def subtask_of(report: Report, subtask_id: str) -> Subtask:
    """Return the subtask of a finding as it ran."""
    planned = report.plan.subtasks if report.plan else ()
    none = Subtask(id=subtask_id, title="", instruction="", role="")
    return next((each for each in planned if each.id == subtask_id), none)


def facts(finding: Finding, subtask: Subtask) -> str:
    """Return status, role, model, confidence, price and time in a line."""
    parts = [f"**{finding.status}**", inline(who(finding, subtask))]
    if finding.reused_from:
        parts.append(f"taken over from run {code_span(finding.reused_from)}")
    if finding.model:
        parts.append(inline(finding.model))
        # Of what was never finished nobody said how sure it is.
        if finding.status == "complete" and finding.confidence is not None:
            parts.append(f"confidence {finding.confidence} of 100")
    parts.append(hands(finding.turns, finding.tool_calls, finding.failed_calls))
    parts.append(price(finding))
    parts.append(seconds(duration(finding)) if duration(finding) else "")
    return Marked(" · ".join(part for part in parts if part))


def who(finding: Finding, subtask: Subtask) -> str:
    """Return the role that did the last try, and for which it stood in."""
    last = finding.tries[-1].role if finding.tries else ""
    return f"{last} for {subtask.role}" if last not in ("", subtask.role) else subtask.role


def price(finding: Finding) -> str:
    """Return what it cost, `≤` where a part is assumed; empty if no model was asked or it was taken
    over.
    """
    free = finding.reused_from or (not finding.model and finding.dollars == 0)
    return "" if free else at_most(finding.dollars, finding.assumed)


def duration(finding: Finding) -> float:
    """Return the seconds from start to end, less what the run waited; 0 if it never ran here."""
    return 0.0 if finding.reused_from else finding.seconds


def tried(finding: Finding) -> str:
    """Return how often models were asked, and their tiers. Counts tries, or calls while there is no
    try; an agent that was ended before its answer counts as one. Of a map: all answers by tier.
    """
    answers = finding.data.get("tiers") if "table" in finding.data else None
    if isinstance(answers, dict) and answers:
        return f"{', '.join(f'{count} {tier}' for tier, count in answers.items())} answers"
    count = len(finding.tries) or min(finding.turns, 1) or len(finding.unanswered)
    tiers = [each.tier for each in finding.tries if each.tier != "none"]
    climbed = f": {' → '.join(tiers)}" if len(set(tiers)) > 1 else ""
    return f"{count}{climbed}" if count else ""


def tries(finding: Finding) -> Iterator[str]:
    """Yield each try with its verdict and the reason, and each call without an answer with its
    price; of a finding that was taken over, in which run that was.
    """
    there = f"in run {code_span(finding.reused_from)}: " if finding.reused_from else ""
    for each in finding.tries:
        tier = "" if each.tier == "none" else f" on {each.tier}"
        why = f": {inline(each.why)}" if each.why else ""
        known = each.dollars is not None and not finding.reused_from
        cost = f", {at_most(each.dollars, each.assumed)}" if known else ""
        by = f" by {inline(each.role)}, the fallback," if each.role else ""
        verdict = inline(each.verdict.replace("_", " "))
        yield Marked(f"{there}try {each.number}{by}{tier}, {verdict}{cost}{why}")
    for call in finding.unanswered:
        cost = "cost nothing" if call.dollars == 0 else at_most(call.dollars, call.assumed)
        lost = f"call {inline(call.id)} on {call.tier}, no answer, {cost}: {inline(call.why)}"
        yield Marked(f"{there}{lost}")


def source_text(source: str) -> str:
    """Return a source as Markdown: an address as a link, any other text as it is."""
    said = visible(source.strip())
    if _ADDRESS.match(said) and len(said) <= MOST_SOURCE_CHARACTERS:
        return f"<{said}>"
    return inline(shorten(source, MOST_SOURCE_CHARACTERS))


def shorten(text: str, most: int) -> str:
    """Return the beginning of a text, with a sign where there is more."""
    return text[:most] + "…" * (len(text) > most)


def said_in(finding: Finding) -> str:
    """Return what a finding says, as Markdown, or the part that there is."""
    if is_data(finding):
        return as_markdown(finding.data).strip()
    partial = finding.escalation.partial if finding.escalation else ""
    return (finding.content or partial).strip()
