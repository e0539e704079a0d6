"""Write findings into a user turn."""

from __future__ import annotations

from collections.abc import Iterable

from holdfast.calls.envelopes import envelope
from holdfast.contracts import Finding, Synthesis
from holdfast.contracts.data import is_data
from holdfast.contracts.remarks import has_remarks, list_remarks


def enclose_findings(findings: Iterable[Finding]) -> list[str]:
    """Put each finding into an envelope, a failure with its reason."""
    return [envelope(_label(each), each.digest or each.content or each.why) for each in findings]


def shared_text(finding: Finding) -> str:
    """Return what a writer reads: content, for a lens with remarks; or an escalation's partial."""
    if finding.status == "escalated" and finding.escalation:
        return finding.escalation.partial
    if has_remarks(finding) and not is_data(finding):
        return f"{finding.content}\n{list_remarks(finding)}".strip()
    return finding.content


def text_for_dependents(finding: Finding) -> str:
    """Return what dependents read. Of a lens these are its first remarks and the callers that it
    found; how it looked is of no use to them. Empty: it has found nothing.
    """
    if not has_remarks(finding) or is_data(finding):
        return shared_text(finding)
    # Behind its counts stand these.
    used = finding.content.partition("\n\n")[2]
    return f"{list_remarks(finding)}\n\n{used}".strip()


def _label(finding: Finding) -> str:
    return f"subtask {finding.subtask_id}, {finding.status}{circumstances(finding)}"


def circumstances(finding: Finding) -> str:
    """Return the label's words on how sure a finding is, in what form it stands below, and over
    which it was chosen."""
    return f"{sureness(finding)}{as_data(finding)}{in_digest(finding)}{preferred(finding)}"


def preferred(finding: Finding) -> str:
    """Return the label's addition for a finding for which others were put aside."""
    others = ", ".join(finding.chosen_over)
    return f", chosen by a judge over {others}, which attempted the same" if others else ""


def in_digest(finding: Finding) -> str:
    """Return the label's addition for a finding of which a digest stands below it."""
    return ", shortened by another agent: the whole may say more" if finding.claims else ""


def as_data(finding: Finding) -> str:
    """Return the label's addition for a finding that stands below it as data."""
    return ", as JSON" if is_data(finding) and not finding.digest else ""


def sureness(finding: Finding) -> str:
    """Return the label's words on confidence; empty where nobody stated any."""
    return "" if finding.confidence is None else f", confidence {finding.confidence}"


MOST_BESIDE = 2_000
"""Characters of what stands beside an answer, for its reader or reviser."""


def author_says(synthesis: Synthesis) -> str:
    """Return an author's confidence, gaps and contradictions, a line each."""
    sure = () if synthesis.confidence is None else (f"confidence {synthesis.confidence} of 100",)
    lacks = (f"missing: {each}" for each in synthesis.gaps)
    against = (f"contradiction: {each}" for each in synthesis.conflicts)
    return "\n".join((*sure, *lacks, *against))[:MOST_BESIDE] or "nothing"
