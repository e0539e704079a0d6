"""Syntheses without a model: the answer of a run, written by a template from its findings."""

from __future__ import annotations

from holdfast.activities.review.synthesis import review
from holdfast.calls.synthesize import SynthesisMaterial
from holdfast.contracts import Finding, Subtask, Synthesis
from holdfast.contracts.data import as_markdown, is_data
from holdfast.ports import Template
from holdfast.text import for_markdown

ORDER = ("complete", "escalated", "failed", "skipped", "cancelled")


def merge(material: SynthesisMaterial) -> Synthesis:
    """Return each finding under the title of its subtask, complete ones first; what is missing is
    named with its reason.
    """
    titles = {subtask.id: subtask for subtask in material.subtasks}
    findings = sorted(material.findings, key=lambda each: ORDER.index(each.status))
    shown = [each for each in findings if each.status == "complete" or _partial(each)]
    gaps = tuple(
        f"{_title(titles, each)}: {each.why or each.status}"
        for each in findings
        if each.status != "complete"
    )
    parts = [f"## {for_markdown(_title(titles, each))}\n\n{_body(each)}" for each in shown]
    if gaps:
        # Why, the report's gaps say: once.
        missing = [_title(titles, each) for each in findings if each.status != "complete"]
        parts.append(f"**Missing or incomplete**: {', '.join(map(for_markdown, missing))}.")
    return Synthesis(
        answer="\n\n".join(parts) or "Nothing was found out.",
        confidence=_confidence(material),
        gaps=gaps,
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


def _body(finding: Finding) -> str:
    text = _text(finding).strip() or "No text."
    if finding.status == "complete":
        return text
    return f"*Uncertain: this subtask was escalated before it was complete.*\n\n{text}"


TEMPLATES: dict[str, Template] = {
    "merge": merge,
    "review": review,
}
"""Functions that write an answer without a model, by the name in a playbook."""
