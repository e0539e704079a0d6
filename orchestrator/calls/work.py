"""One try of an agent at a subtask."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, Literal

from orchestrator.calls.findings import passed_on
from orchestrator.calls.kind import Answer, AnyCase, ModelKind, percent
from orchestrator.contracts import (
    Contract,
    Draft,
    Escalation,
    EscalationReason,
    Finding,
    PinnedInput,
    Problem,
    Reply,
    Subtask,
)
from orchestrator.envelopes import envelope, section
from orchestrator.policies import model_policy


class WorkAnswer(Answer):
    status: Annotated[Literal["complete", "failed", "escalate"], AnyCase]
    result: str
    confidence: int
    sources: list[str]
    reason: Annotated[
        Literal["out_of_scope", "ambiguous_input", "confidence_too_low", "timeout", ""], AnyCase
    ]
    why: str


class WorkMaterial(Contract):
    """What `work` and `examine` work from: one subtask and what its dependencies found, nothing
    else of the run.
    """

    subtask: Subtask
    inputs: tuple[PinnedInput, ...] = ()
    dependencies: tuple[Finding, ...] = ()
    lens: str = ""
    """Only for `examine`: the lens to look through."""
    timeout_seconds: int = 300
    number: int = 1
    why: str = ""
    """Why the previous try was not accepted; empty at the first."""
    broken: Problem | None = None
    """The malformed answer that this call is to mend."""


def to_draft(answer: WorkAnswer) -> Draft:
    """What a try produced; an escalation keeps what there is as its partial."""
    common: dict[str, Any] = {
        "confidence": percent(answer.confidence),
        "sources": tuple(answer.sources),
    }
    if answer.status == "complete":
        return Draft(content=answer.result, **common)
    if answer.status == "failed":
        return Draft(
            status="failed",
            content=answer.result,
            why=answer.why or "no reason given",
            **common,
        )
    reason: EscalationReason = answer.reason or "ambiguous_input"
    escalation = Escalation(reason=reason, why=answer.why, partial=answer.result)
    return Draft(
        status="escalated",
        content=answer.result,
        why=answer.why,
        escalation=escalation,
        **common,
    )


def work_prompt(material: WorkMaterial, contents: Mapping[str, str]) -> str:
    """An agent's user turn: instruction, inputs verbatim, what it depends on, why asked again."""
    subtask = material.subtask
    parts = [section("instruction", subtask.instruction)]
    if subtask.acceptance_criteria:
        parts.append(section("acceptance_criteria", subtask.acceptance_criteria))
    parts += [envelope(f"input {name}", text) for name, text in contents.items()]
    unread = [_unread(pinned) for pinned in material.inputs if not pinned.enclosed]
    if unread:
        parts.append("\n".join(["Inputs that only tools read, by name:", *unread]))
    parts += [envelope(_dependency_label(each), passed_on(each)) for each in material.dependencies]
    if material.why:
        why = envelope("why the previous try was not accepted", material.why)
        parts.append(f"This is try {material.number}.\n{why}")
    parts.append("Carry out the instruction.")
    return "\n\n".join(parts)


def _unread(pinned: PinnedInput) -> str:
    """An input that stands in no prompt, with the tool that reads it."""
    if pinned.is_folder:
        return f"- {pinned.name} (a folder, {pinned.size} bytes): list_files shows its files"
    return f"- {pinned.name} (a document, {pinned.size} bytes): {pinned.reader} reads it"


def _dependency_label(finding: Finding) -> str:
    certainty = "" if finding.status == "complete" else ", uncertain: only a partial finding"
    return f"finding of subtask {finding.subtask_id}, confidence {finding.confidence}{certainty}"


def below(role: str, rules: str) -> str:
    """What an agent is told: the prompt of its role, and how to answer."""
    return f"{role}\n\n---\n{rules}"


def _inputs(material: WorkMaterial) -> int:
    """What only tools read is named, never enclosed."""
    return sum(pinned.size for pinned in material.inputs if pinned.enclosed)


WORK: ModelKind[WorkMaterial, WorkAnswer, Draft] = ModelKind(
    name="work",
    reply=Reply[Draft],
    policy=model_policy("haiku", 8_000, "medium"),
    answer=WorkAnswer,
    value=lambda answer, _: to_draft(answer),
    prompt="work_rules",
    turn=work_prompt,
    beyond=_inputs,
)
