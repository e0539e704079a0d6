"""What a finding hands on to those that build on it. Pure."""

from __future__ import annotations

from orchestrator.contracts import (
    Finding,
)


def passes_on(finding: Finding) -> bool:
    """Whether dependents run on this finding: it is complete, or escalated with a partial."""
    return bool(partial_of(finding)) or finding.status == "complete"


def partial_of(finding: Finding) -> str:
    """What a finding hands on: the content of a complete one, the partial of an escalation."""
    if finding.status == "complete":
        return finding.content
    escalated = finding.status == "escalated" and finding.escalation is not None
    return finding.escalation.partial if escalated and finding.escalation else ""
