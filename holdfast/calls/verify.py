"""Ask whether remarks of analysers hold, by the code around each."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated, Literal

from holdfast.calls.about import About, say_today
from holdfast.calls.envelopes import envelope
from holdfast.calls.kind import Answer, AnyCase, ModelKind
from holdfast.contracts import Contract, PinnedInput, Problem, Remark, Reply
from holdfast.contracts.policies import EXCERPT_BYTES, model_policy
from holdfast.contracts.remarks import lens_and_rule


class VerdictAnswer(Answer):
    remark: int
    why: str
    verdict: Annotated[Literal["confirmed", "refuted", "undecided"], AnyCase]


class VerifyAnswer(Answer):
    verdicts: list[VerdictAnswer]


class Place(Contract):
    """A line of a file, 1-based."""

    file: str
    line: int


class Verdict(Contract):
    """A model's verdict on one remark, with the code in view."""

    verdict: Literal["confirmed", "refuted", "undecided"]
    why: str
    absent: bool = False
    """True if there is no such place, so that no model could tell more."""


class Verdicts(Contract):
    """One for each remark of the material, in order."""

    verdicts: tuple[Verdict, ...]


class VerifyMaterial(Contract):
    """Material of `verify`: remarks, each with the code around its line."""

    repository: PinnedInput
    remarks: tuple[Remark, ...]
    withheld: tuple[Place, ...] = ()
    """Lines of their files with a credential, which models may not see."""
    broken: Problem | None = None
    about: About = About()


@dataclass(frozen=True)
class Shown:
    """A remark as a model may see it, without secrets."""

    place: str
    message: str
    code: str
    """The code around its line, if any."""
    absent: str = ""
    """Why there is no such place; empty if there is."""


def to_verdicts(answer: VerifyAnswer, material: VerifyMaterial) -> Verdicts:
    """Return the verdicts on the remarks, which are numbered from 1. ValueError unless there is
    exactly one for each, with a reason.
    """
    count = len(material.remarks)
    said = {each.remark: each for each in answer.verdicts}
    numbers = range(1, count + 1)
    if len(answer.verdicts) != count or list(numbers) != sorted(said):
        raise ValueError(f"verdicts: exactly one is wanted for each of the remarks 1 to {count}")
    if not all(each.why.strip() for each in answer.verdicts):
        raise ValueError("verdicts: each needs its why")
    found = (said[number] for number in numbers)
    return Verdicts(verdicts=tuple(Verdict(verdict=each.verdict, why=each.why) for each in found))


def mark_absent(verdicts: Verdicts, shown: Sequence[Shown]) -> Verdicts:
    """Make verdicts on places that do not exist undecided."""
    return Verdicts(
        verdicts=tuple(
            Verdict(verdict="undecided", why=each.absent, absent=True) if each.absent else said
            for said, each in zip(verdicts.verdicts, shown, strict=True)
        )
    )


def show_without_code(material: VerifyMaterial) -> tuple[Shown, ...]:
    """Return the remarks as a history holds them, without code."""
    return tuple(
        Shown(f"{each.file} line {each.line}" if each.line else each.file, each.message, "")
        for each in material.remarks
    )


def verify_prompt(material: VerifyMaterial, code: Sequence[Shown]) -> str:
    """Return the verifier's user turn: each remark under its number, and the code around it."""
    parts = []
    for number, (remark, shown) in enumerate(zip(material.remarks, code, strict=True), 1):
        by = lens_and_rule(remark)
        said = f"{remark.severity}, {by}, {shown.place}\n{shown.message}"
        parts.append(envelope(f"remark {number}", said))
        parts.append(envelope(f"code around remark {number}", shown.code or "none can be shown"))
    parts += say_today(material.about)
    parts.append(f"Verify each of these remarks, 1 to {len(material.remarks)}.")
    return "\n\n".join(parts)


VERIFY: ModelKind[VerifyMaterial, VerifyAnswer, Verdicts] = ModelKind(
    name="verify",
    reply=Reply[Verdicts],
    policy=model_policy("sonnet", 4_000, "medium"),
    answer=VerifyAnswer,
    value=to_verdicts,
    prompt="verifier",
    turn=verify_prompt,
    words="whether remarks hold",
    beyond=lambda material: len(material.remarks) * EXCERPT_BYTES,
)
