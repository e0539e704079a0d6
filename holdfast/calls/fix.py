"""Ask for a patch that mends a remark, and try it."""

from __future__ import annotations

from holdfast.calls.about import say_today
from holdfast.calls.envelopes import envelope
from holdfast.calls.kind import Answer, Kind, ModelKind
from holdfast.calls.prove import ProofCode, ProveMaterial, Script, Way, enclose_code
from holdfast.contracts import Contract, Fix, PinnedInput, Remark, Reply
from holdfast.contracts.policies import PROOF_BYTES, Policy, model_policy

MOST_LINES = 30
"""Lines that a patch replaces, and that it puts in their place: more is no small mend."""


class FixAnswer(Answer):
    why: str
    old: str
    new: str


class Edit(Contract):
    """Whole lines of one file, and what is to stand in their place."""

    why: str
    old: str = ""
    """Empty: nothing is proposed."""
    new: str = ""


class FixMaterial(ProveMaterial):
    """Material of `fix`: a remark, and the script that showed it, if one did."""


class TryFixMaterial(Contract):
    """Material of `try_fix`: an edit of a remark's file, and the script that it must mend."""

    repository: PinnedInput
    remark: Remark
    edit: Edit
    script: Script | None = None
    by: Way = "sandbox"


def to_edit(answer: FixAnswer, _: FixMaterial) -> Edit:
    """Return the edit. ValueError, with the reason, if it is none."""
    old, new = (text.strip("\n") for text in (answer.old, answer.new))
    if not answer.why.strip():
        raise ValueError("why: say what the patch changes, or why none is proposed")
    if not old.strip():
        return Edit(why=answer.why)
    if old == new:
        raise ValueError("new: it is the same as old")
    if max(old.count("\n"), new.count("\n")) >= MOST_LINES:
        raise ValueError(f"old and new: at most {MOST_LINES} lines each")
    return Edit(why=answer.why, old=old, new=new)


def fix_prompt(material: FixMaterial, code: ProofCode) -> str:
    """Return the user turn: the code, the remark, what showed it, then the order."""
    parts = [*enclose_code(material.remark, code)]
    if material.script is not None:
        parts.append(envelope("what fails today and must pass", material.script.text))
    parts += say_today(material.about)
    parts.append("Mend this remark with the smallest patch.")
    return "\n\n".join(parts)


FIX: ModelKind[FixMaterial, FixAnswer, Edit] = ModelKind(
    name="fix",
    reply=Reply[Edit],
    policy=model_policy("sonnet", 4_000, "medium"),
    answer=FixAnswer,
    value=to_edit,
    prompt="fixer",
    turn=fix_prompt,
    words="a patch for a remark",
    beyond=lambda _: PROOF_BYTES,
)
TRY_FIX: Kind[Fix] = Kind(
    name="try_fix",
    reply=Reply[Fix],
    policy=Policy(),
    free_words="lenses and proof on a patched copy",
)
