"""The answer from all findings."""

from __future__ import annotations

import json

from pydantic import Field, JsonValue

from holdfast.calls.about import About, say_today
from holdfast.calls.contradictions import find_contradictions
from holdfast.calls.envelopes import defang, envelope, section
from holdfast.calls.findings import circumstances, shared_text
from holdfast.calls.kind import Answer, ModelKind, percent
from holdfast.contracts import (
    AnswerForm,
    Contract,
    Finding,
    Omission,
    Percent,
    PinnedInput,
    Problem,
    Remark,
    Reply,
    Subtask,
    Synthesis,
)
from holdfast.contracts.policies import model_policy


class SynthesisAnswer(Answer):
    answer: str
    conflicts: list[str]
    gaps: list[str]
    confidence: int


class FormedAnswer(Answer):
    """The same with an answer that is data, by a schema of its own."""

    answer: JsonValue
    conflicts: list[str]
    gaps: list[str]
    confidence: int


class SynthesisMaterial(Contract):
    goal: str
    instruction: str = ""
    template: str = "merge"
    """The template that writes the answer where the call names no model."""
    min_confidence: Percent = 0
    subtasks: tuple[Subtask, ...] = ()
    findings: tuple[Finding, ...] = ()
    inputs: tuple[PinnedInput, ...] = ()
    not_run: tuple[Omission, ...] = ()
    citable: tuple[str, ...] = ()
    """Subtasks that found something for this answer: only these may be cited."""
    aside: tuple[str, ...] = Field(default=(), exclude_if=lambda texts: not texts)
    """Texts of findings that were put aside for a better one. Code alone reads them: a figure that
    stands there is not made up.
    """
    cut: tuple[str, ...] = ()
    """Findings that were cut to fit the supervisor's context."""
    previous: str = ""
    """The answer to revise; empty outside a revision."""
    beside: str = ""
    """Text beside the answer to revise."""
    issues: tuple[str, ...] = ()
    """Changes that the critic wants in a revision."""
    judged: tuple[str, ...] = ()
    """Contradictions and how they were judged, for a revision."""
    to_verify: int = 0
    """Remarks that a model was to verify."""
    verified: tuple[Remark, ...] = ()
    """Those that one did verify, each with its verdict."""
    broken: Problem | None = None
    about: About = About()
    form: AnswerForm = AnswerForm()
    counted: bool = Field(default=False, exclude_if=lambda yes: not yes)
    """True if no critic is asked where code can check all figures and citations."""


AS_JSON = (
    "Your answer is data: `answer` is one value in the form that its schema gives, and no text"
    " around it."
)
AS_TABLE = (
    "Your answer is a table: `columns` names its columns, and each of `rows` has a text for each of"
    " them, in their order. Text outside of the table has no place."
)
OF_DATA = (
    "Cite in its texts, at the end of the text that a finding supports: [t2]. Make nothing up to"
    " fill it: what the findings do not say is left empty or out, and named in `gaps`."
)


AGAINST = (
    "statements that differ in a figure or date, found by code; list in `conflicts` those that are"
    " about the same thing"
)
AGAINST_BYTES = 2_000
"""At most so many that the prompt has beyond the material."""


def to_synthesis(answer: SynthesisAnswer | FormedAnswer, text: str) -> Synthesis:
    """Return the synthesis that an answer means; `text` is the answer as people read it."""
    return Synthesis(
        answer=text,
        confidence=percent(answer.confidence),
        conflicts=tuple(answer.conflicts),
        gaps=tuple(answer.gaps),
    )


def synthesis_prompt(material: SynthesisMaterial) -> str:
    """Return the synthesizer's user turn: every finding or why it failed, goal and instruction."""
    titles = {subtask.id: subtask.title for subtask in material.subtasks}
    parts: list[str] = []
    for finding in material.findings:
        label = f"subtask {finding.subtask_id} ({titles.get(finding.subtask_id, '')})"
        if finding.status == "complete":
            label += circumstances(finding)
            parts.append(envelope(label, finding.digest or finding.content))
        else:
            text = f"{finding.why}\n{shared_text(finding)}".strip()
            parts.append(envelope(f"{label}, {finding.status}", text))
    if material.previous:
        wanted = "\n".join((*material.issues, *material.judged))
        parts.append(envelope("your previous answer", material.previous))
        parts.append(envelope("what you said beside it", material.beside))
        parts.append(envelope("what must change", wanted))
    elif against := find_contradictions(material.findings, material.subtasks, material.goal):
        parts.append(envelope(AGAINST, "\n".join(against)))
    parts.append(section("goal", material.goal))
    parts.append(section("instruction", material.instruction or "Answer the goal."))
    parts += say_today(material.about)
    if material.form.is_data:
        parts.append(_as_data(material.form))
    again = "Write the answer anew with the changes named above and no others."
    parts.append(again if material.previous else "Write the answer.")
    return "\n\n".join(parts)


def _as_data(form: AnswerForm) -> str:
    """Return the instruction for an answer that is data: its form, and how it cites."""
    if form.kind == "json":
        return f"{AS_JSON} {OF_DATA}"
    wanted = f" The columns are these: {json.dumps(form.columns, ensure_ascii=False)}."
    return f"{AS_TABLE}{defang(wanted) if form.columns else ''} {OF_DATA}"


SYNTHESIZE: ModelKind[SynthesisMaterial, SynthesisAnswer, Synthesis] = ModelKind(
    name="synthesize",
    reply=Reply[Synthesis],
    policy=model_policy("sonnet", 16_000, "medium"),
    answer=SynthesisAnswer,
    value=lambda answer, _: to_synthesis(answer, answer.answer),
    prompt="synthesizer",
    turn=synthesis_prompt,
    beyond=lambda material: AGAINST_BYTES - sum(len(each.encode()) for each in material.aside),
    words="one answer from all findings",
    free_words="merge by template",
)
