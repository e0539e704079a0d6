"""Syntheses without a model: the answer of a run, written by a template from its findings."""

from __future__ import annotations

from collections.abc import Callable

from activities.review import review
from orchestrator.contracts import Finding, Subtask, Synthesis
from orchestrator.materials import SynthesisMaterial
from orchestrator.text import for_markdown

ORDER = ("complete", "escalated", "failed", "skipped", "cancelled")


def merge(material: SynthesisMaterial) -> Synthesis:
    """Each finding under the title of its subtask, complete ones first; what is missing is named
    with its reason.
    """
    titles = {subtask.id: subtask for subtask in material.subtasks}
    findings = sorted(material.findings, key=lambda each: ORDER.index(each.status))
    shown = [each for each in findings if each.status == "complete" or _partial(each)]
    gaps = tuple(
        f"{_title(titles, each)}: {each.reason or each.status}"
        for each in findings
        if each.status != "complete"
    )
    parts = [f"## {for_markdown(_title(titles, each))}\n\n{_body(each)}" for each in shown]
    if gaps:
        parts.append("## Missing\n\n" + "\n".join(f"- {for_markdown(gap)}" for gap in gaps))
    complete = [each.confidence for each in findings if each.status == "complete"]
    return Synthesis(
        answer="\n\n".join(parts) or "Nothing was found out.",
        confidence=sum(complete) // max(len(material.subtasks), len(findings), 1),
        gaps=gaps,
        by_template=True,
    )


def _title(titles: dict[str, Subtask], finding: Finding) -> str:
    subtask = titles.get(finding.subtask_id)
    return subtask.title if subtask and subtask.title else finding.subtask_id


def _partial(finding: Finding) -> bool:
    return finding.status == "escalated" and bool(_text(finding))


def _text(finding: Finding) -> str:
    if finding.escalation and finding.escalation.partial:
        return finding.escalation.partial
    return finding.content


def _body(finding: Finding) -> str:
    text = _text(finding).strip() or "No text."
    if finding.status == "complete":
        return text
    return f"*Uncertain: this subtask was escalated before it was complete.*\n\n{text}"


TEMPLATES: dict[str, Callable[[SynthesisMaterial], Synthesis]] = {
    "merge": merge,
    "review": review,
}
"""By the name that a playbook gives."""
