"""Syntheses without a model: the answer of a run, written by a template from its findings."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from holdfast.activities.review.synthesis import review
from holdfast.calls.contradictions import find_contradictions
from holdfast.calls.synthesize import SynthesisMaterial
from holdfast.contracts import Finding, Subtask, Synthesis
from holdfast.contracts.data import as_markdown, is_data
from holdfast.ports import Template
from holdfast.text import for_markdown

Themes = dict[str, list[tuple[Finding, str, str]]]
"""By heading in small letters: finding, heading as it stands, text below it."""
HEADING = re.compile(r"#{1,6}\s+(.+?)[\s#:]*$")
UNCERTAIN = "Uncertain: this subtask was escalated before it was complete."
ORDER = ("complete", "escalated", "failed", "skipped", "cancelled")


def merge(material: SynthesisMaterial) -> Synthesis:
    """Return what was found, by theme: what several findings say under the same heading stands
    together, each part with its source; the rest stands under the title of its subtask. Conclusions
    come before what they rest on. What is missing is named with its reason.
    """
    titles = {subtask.id: subtask for subtask in material.subtasks}
    findings = sorted(material.findings, key=lambda each: ORDER.index(each.status))
    shown = [each for each in findings if each.status == "complete" or _partial(each)]
    gaps = tuple(
        f"{_title(titles, each)}: {each.why or each.status}"
        for each in findings
        if each.status != "complete"
    )
    used = {edge for each in material.subtasks for edge in each.depends_on}
    shown.sort(key=lambda each: each.subtask_id in used)
    themes = find_themes(shown)
    parts = [*_under_themes(themes)]
    rests = ((_title(titles, each), _drop_said(each, themes)) for each in shown)
    parts += [f"## {for_markdown(title)}\n\n{rest}" for title, rest in rests if rest]
    if gaps:
        # Why, the report's gaps say: once.
        missing = [_title(titles, each) for each in findings if each.status != "complete"]
        parts.append(f"**Missing or incomplete**: {', '.join(map(for_markdown, missing))}.")
    return Synthesis(
        answer="\n\n".join(parts) or "Nothing was found out.",
        confidence=_confidence(material),
        gaps=gaps,
        conflicts=find_contradictions(shown, material.subtasks, material.goal),
        by_template=True,
    )


def _confidence(material: SynthesisMaterial) -> int | None:
    """Return the mean confidence of the agents' findings, a missing one counting as 0; None if no
    agent judged anything: a tool does not say how likely it is to be right.
    """
    complete = [each for each in material.findings if each.status == "complete"]
    if not any(each.model for each in complete):
        return None
    total = sum(each.confidence or 0 for each in complete)
    return total // max(len(material.subtasks), len(material.findings))


def _title(titles: dict[str, Subtask], finding: Finding) -> str:
    subtask = titles.get(finding.subtask_id)
    return subtask.title if subtask and subtask.title else finding.subtask_id


def _partial(finding: Finding) -> bool:
    return finding.status == "escalated" and bool(_text(finding))


def _text(finding: Finding) -> str:
    if is_data(finding):
        return as_markdown(finding.data)
    if finding.escalation and finding.escalation.partial:
        return finding.escalation.partial
    return finding.content


def find_themes(findings: Sequence[Finding]) -> Themes:
    """Return what stands under each heading that more than one finding has."""
    themes: Themes = {}
    for finding in findings:
        for heading, text in _sections(finding):
            if heading and text:
                themes.setdefault(heading.casefold(), []).append((finding, heading, text))
    several = {key: {each[0].subtask_id for each in parts} for key, parts in themes.items()}
    return {key: parts for key, parts in themes.items() if len(several[key]) > 1}


def _under_themes(themes: Themes) -> Iterator[str]:
    for parts in themes.values():
        said: dict[str, list[str]] = {}
        for finding, _, text in parts:
            # What two findings say in the same words is said once, with both as its source.
            said.setdefault(text, []).append(f"[{finding.subtask_id}]{_doubt(finding)}")
        body = "\n\n".join(f"{text} {' '.join(cited)}" for text, cited in said.items())
        yield f"## {parts[0][1]}\n\n{body}"


def _drop_said(finding: Finding, themes: Themes) -> str:
    """Return what a finding says outside of the themes; empty if that is nothing."""
    sections = [*_sections(finding)]
    kept = [each for each in sections if each[0].casefold() not in themes]
    text = _text(finding).strip() or "No text."
    if len(kept) < len(sections):
        parts = (f"### {heading}\n\n{body}" if heading else body for heading, body in kept)
        text = "\n\n".join(each.strip() for each in parts if each.strip())
    doubt = "" if finding.status == "complete" else f"*{UNCERTAIN}*\n\n"
    return f"{doubt}{text}" if text else ""


def _sections(finding: Finding) -> Iterator[tuple[str, str]]:
    """Yield a finding's headings, each with the text below it; the first heading may be empty."""
    heading, lines = "", list[str]()
    fenced = False
    for line in _text(finding).splitlines():
        fenced ^= line.lstrip().startswith("```")
        found = None if fenced else HEADING.match(line)
        if found is None:
            lines.append(line)
            continue
        yield heading, "\n".join(lines).strip()
        heading, lines = found[1], []
    yield heading, "\n".join(lines).strip()


def _doubt(finding: Finding) -> str:
    return "" if finding.status == "complete" else " (uncertain)"


TEMPLATES: dict[str, Template] = {
    "merge": merge,
    "review": review,
}
"""Functions that write an answer without a model, by the name in a playbook."""
