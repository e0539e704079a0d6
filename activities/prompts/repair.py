"""User turns of the calls that check, repair and finish."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from activities.prompts.user_turns import envelope, menu, section
from activities.seam import Shown
from orchestrator.contracts import Finding
from orchestrator.materials import (
    CritiqueMaterial,
    DigestMaterial,
    JudgeMaterial,
    RefineMaterial,
    ReplanMaterial,
    ReviewMaterial,
    VerifyMaterial,
)


def review_prompt(material: ReviewMaterial) -> str:
    subtask = material.subtask
    return "\n\n".join(
        (
            section("instruction", subtask.instruction),
            section("acceptance_criteria", subtask.acceptance_criteria),
            envelope(f"result of subtask {subtask.id}", material.draft.content),
            "Does the result meet the acceptance criteria?",
        )
    )


def refine_prompt(material: RefineMaterial) -> str:
    whys = "\n".join(f"try {number}: {why}" for number, why in enumerate(material.whys, start=1))
    return "\n\n".join(
        (
            section("instruction", material.subtask.instruction),
            section("acceptance_criteria", material.subtask.acceptance_criteria),
            envelope("why the tries were not accepted", whys),
            "Write the better instruction.",
        )
    )


def replan_prompt(material: ReplanMaterial) -> str:
    standings = {each.subtask_id: each for each in material.standings}
    lines = []
    for subtask in material.plan.subtasks:
        each = standings[subtask.id]
        edges = ", ".join(subtask.depends_on) or "nothing"
        said = f" ({each.why})" if each.why else ""
        lines.append(
            f"{subtask.id} [{each.status}{said}] role {subtask.role}, depends on {edges}: "
            f"{subtask.instruction}"
        )
    inputs = ", ".join(pinned.name for pinned in material.inputs) or "none"
    parts = [
        section("goal", material.goal),
        envelope("the plan as it stands", "\n".join(lines)),
        envelope("what went wrong", material.trouble),
        f"Roles you may assign:\n{menu(material.roles)}",
        f"Inputs of the goal, by name: {inputs}",
        f"Used ids: {', '.join(material.used_ids)}. At most {material.addable} may be added.",
    ]
    if material.errors:
        listed = "\n".join(f"- {error}" for error in material.errors)
        wrong = envelope("errors of your previous changes", listed)
        parts.append(f"Your previous changes were refused; mend every error:\n{wrong}")
    return "\n\n".join(parts)


def verify_prompt(material: VerifyMaterial, code: Sequence[Shown]) -> str:
    """The verifier's user turn: each remark under its number, and the code around it."""
    parts = ["Verify each of these remarks."]
    for number, (remark, shown) in enumerate(zip(material.remarks, code, strict=True), 1):
        said = f"{remark.severity}, {remark.lens}:{remark.rule}, {shown.place}\n{shown.message}"
        parts.append(envelope(f"remark {number}", said))
        parts.append(envelope(f"code around remark {number}", shown.code or "none can be shown"))
    return "\n\n".join(parts)


def judge_prompt(material: JudgeMaterial) -> str:
    return "\n\n".join((section("question", material.question), *_findings(material.findings)))


def digest_prompt(material: DigestMaterial) -> str:
    return "\n\n".join(
        (
            section("goal", material.goal),
            *_findings(material.findings),
            f"Shorten to at most {material.words} words.",
        )
    )


def critique_prompt(material: CritiqueMaterial) -> str:
    return "\n\n".join(
        (
            section("goal", material.goal),
            section("instruction", material.instruction or "Answer the goal."),
            *_findings(material.findings),
            envelope("the answer to check", material.synthesis.answer),
            "What must change before this is delivered?",
        )
    )


def _findings(findings: Iterable[Finding]) -> list[str]:
    return [envelope(_label(each), each.digest or each.content or each.why) for each in findings]


def _label(finding: Finding) -> str:
    return f"subtask {finding.subtask_id}, {finding.status}, confidence {finding.confidence}"
