"""User turns, built from material: of planning, of work and of the answer.

What people, files, tools and models wrote is data in labelled envelopes, never an instruction.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable, Mapping

from orchestrator.contracts import Finding, PinnedInput, Problem, RoleCard
from orchestrator.materials import PlanMaterial, SynthesisMaterial, WorkMaterial

WINDOW = 80
"""Characters behind the first letter after a bracket within which its tag is looked for."""
_FIRST = re.compile(r"[\W_]{0,64}+([^\W_])")
_NOISE = re.compile(r"[^\w/]+")
_BRACKET = re.compile(
    "[<\u02c2\u1438\u2039\u2329\u276e\u276c\u2770\u27e8\u3008\u300a\u00ab\ufe64\uff1c\u227a\u22d6\u2a9e]"
    r"|&(?:lt|#0*60|#[xX]0*3[cC]);?|\\u003[cC]|%3[cC]"
)
"""What is, looks like or decodes to the beginning of a mark."""
_ALIKE = str.maketrans(
    {
        **dict.fromkeys("\u2044\u2215\u29f8\u29f5\u2571\\", "/"),
        **dict(zip("асеіјморрѕтухаεικμνορτυℓı", "aceijmoppstyxaeikmvoptuli", strict=True)),
    }
)
"""Slashes, and letters of other alphabets, that look like those of a tag."""
LABEL = str.maketrans({'"': "'", "<": "(", ">": ")"})


def envelope(source: str, text: str) -> str:
    """Untrusted text between labelled marks that it cannot close itself."""
    label = " ".join(source.translate(LABEL).split())
    return f'<material source="{label}">\n{_unmarked("material", text)}\n</material>'


def section(tag: str, text: str) -> str:
    """What the agent is asked to do; it cannot close its own mark either."""
    return f"<{tag}>\n{_unmarked(tag, text)}\n</{tag}>"


def _unmarked(tag: str, text: str) -> str:
    """A reader takes `< / Material >` for the mark as well, and what looks or decodes like it, so
    none of its spellings is left: its bracket becomes a round one.
    """

    def unmarked(bracket: re.Match[str]) -> str:
        first = _FIRST.match(text, bracket.end())
        if first is None or _folded(first[1])[:1] != tag[0]:
            return bracket[0]
        return "(" if _reads_as(tag, text[bracket.end() : first.end() + WINDOW]) else bracket[0]

    return _BRACKET.sub(unmarked, text)


def _reads_as(tag: str, text: str) -> bool:
    """Whether what follows a bracket is the tag, or its end, to somebody who only looks at it."""
    return _NOISE.sub("", _folded(text)).lstrip("/").startswith(tag)


def _folded(text: str) -> str:
    if text.isascii():
        return text.lower()
    return unicodedata.normalize("NFKD", text).casefold().translate(_ALIKE)


def plan_prompt(material: PlanMaterial) -> str:
    """The planner's user turn: goal, roles, inputs by preview, and what was wrong before."""
    inputs = "\n\n".join(_preview(pinned) for pinned in material.inputs) or "none"
    parts = [
        section("goal", material.goal),
        f"Roles you may assign:\n{menu(material.roles)}",
        f"Inputs of the goal, by name:\n{inputs}",
        f"At most {material.subtask_limit} subtasks.",
    ]
    if material.guidance:
        parts.append(f"Guidance of this playbook:\n{material.guidance}")
    if material.errors:
        listed = "\n".join(f"- {error}" for error in material.errors)
        wrong = envelope("errors of your previous plan", listed)
        parts.append(f"Your previous plan was refused; mend every error:\n{wrong}")
    return "\n\n".join(parts)


def menu(roles: Iterable[RoleCard]) -> str:
    """The roles that a planner may assign, one a line."""
    return "\n".join(
        f"- {role.name} ({role.tier}): {role.description}"
        for role in roles
        if role.tier in ("haiku", "sonnet")
    )


def _preview(pinned: PinnedInput) -> str:
    head = f"- {pinned.name}: {pinned.kind}, {pinned.size} bytes"
    return f"{head}; it begins:\n{envelope(f'input {pinned.name}', pinned.preview)}"


def work_prompt(material: WorkMaterial, contents: Mapping[str, str]) -> str:
    """An agent's user turn: instruction, inputs, dependencies' findings, why it is asked again."""
    subtask = material.subtask
    parts = [section("instruction", subtask.instruction)]
    if subtask.acceptance_criteria:
        parts.append(section("acceptance_criteria", subtask.acceptance_criteria))
    parts += [envelope(f"input {name}", text) for name, text in contents.items()]
    parts += [envelope(_dependency_label(each), _passed_on(each)) for each in material.dependencies]
    if material.why:
        why = envelope("why the previous try was not accepted", material.why)
        parts.append(f"This is try {material.number}.\n{why}")
    parts.append("Carry out the instruction.")
    return "\n\n".join(parts)


def _dependency_label(finding: Finding) -> str:
    certainty = "" if finding.status == "complete" else ", uncertain: only a partial finding"
    return f"finding of subtask {finding.subtask_id}, confidence {finding.confidence}{certainty}"


def _passed_on(finding: Finding) -> str:
    if finding.status == "escalated" and finding.escalation:
        return finding.escalation.partial
    return finding.content


def mend(prompt: str, broken: Problem | None) -> str:
    """The same user turn, with the malformed answer that is to be mended."""
    if broken is None:
        return prompt
    return "\n\n".join(
        (
            prompt,
            envelope("your previous answer", broken.answer),
            envelope("what is wrong with its form", broken.why),
            "Give the same answer again in the right form.",
        )
    )


def synthesis_prompt(material: SynthesisMaterial) -> str:
    """The synthesizer's user turn: goal, instruction, every finding, and why others failed."""
    titles = {subtask.id: subtask.title for subtask in material.subtasks}
    parts = [
        section("goal", material.goal),
        section("instruction", material.instruction or "Answer the goal."),
    ]
    for finding in material.findings:
        label = f"subtask {finding.subtask_id} ({titles.get(finding.subtask_id, '')})"
        if finding.status == "complete":
            label += f", confidence {finding.confidence}"
            parts.append(envelope(label, finding.digest or finding.content))
        else:
            text = f"{finding.why}\n{_passed_on(finding)}".strip()
            parts.append(envelope(f"{label}, {finding.status}", text))
    if material.previous:
        wanted = "\n".join((*material.issues, *material.judged))
        parts.append(envelope("your previous answer", material.previous))
        parts.append(envelope("what must change", wanted))
        parts.append("Write the answer anew with these changes and no others.")
    return "\n\n".join(parts)
