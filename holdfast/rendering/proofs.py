"""What became of the proof of a remark, and the script or the test that was run. Pure."""

from __future__ import annotations

import re
from collections.abc import Mapping

from holdfast.contracts import Fix, Proof, ProofVerdict, Remark, ReviewData
from holdfast.rendering.blocks import Marked
from holdfast.text import code_span, inline, sentence, visible

WORDS: Mapping[ProofVerdict, str] = {
    "proved": "Run and compared",
    "shown": "Run",
    "not proved": "Not proved",
    "not tried": "A proof could not be tried",
}
TITLE = "The script, and how it ended"
CONTEXT = 3
"""Lines around a change in a patch."""


def describe_proof(proof: Proof) -> Marked:
    """Return in a line how a proof ended, or why there is none."""
    said = sentence(inline(proof.shows)) if proof.script and proof.shows.strip() else ""
    # The words of a model: that it fails was seen, that this is why was not.
    shows = f" Meant to show: {said}" if said else ""
    where = f" The test is {code_span(proof.path)}." if proof.path else ""
    return Marked(f"{WORDS[proof.verdict]}: {sentence(inline(proof.why))}{shows}{where}")


def text_of(remark: Remark) -> str:
    """Return the script with how it ended, as it is; empty without one."""
    proof = remark.proof
    if proof is None or not proof.script:
        return ""
    ended = "".join(f"# {line}\n" for line in proof.output.splitlines())
    return "\n".join(map(visible, f"{proof.script.rstrip()}\n{ended}".rstrip().split("\n")))


def fence_of(remark: Remark) -> str:
    """Return that text as a block of Markdown; empty without one."""
    return _fenced(text_of(remark), "")


# ---------------------------------------------------------------- patches


def describe_fix(fix: Fix) -> Marked:
    """Return in a line what speaks for a patch, or why there is none."""
    words = "A patch, not applied" if fix.diff else "No patch is proposed"
    return Marked(f"{words}: {sentence(inline(fix.why))}")


def diff_of(remark: Remark) -> str:
    """Return the difference as a block of Markdown; empty without one."""
    return _fenced(remark.fix.diff.rstrip("\n"), "diff") if remark.fix else ""


def suggestion_of(remark: Remark) -> str:
    """Return the lines of a patch as GitHub takes a suggestion, with what they replace; empty
    without one.
    """
    fix = remark.fix
    if fix is None or not fix.diff:
        return ""
    lines = f"line {fix.first}" if fix.first == fix.last else f"lines {fix.first} to {fix.last}"
    return f"In place of {lines}:\n\n" + _fenced("\n".join(fix.lines), "suggestion")


def patches_of(review: ReviewData) -> tuple[str, list[Remark]]:
    """Return the patches of a review one after another, as `git apply` takes them, and the remarks
    whose patches are not among them: another one touches the lines around.
    """
    taken: dict[str, list[tuple[int, int]]] = {}
    parts, left_out = [], []
    for each in review.remarks:
        fix = each.fix
        if fix is None or not fix.diff:
            continue
        # Lines of context may not overlap either.
        first, last = fix.first - CONTEXT, fix.last + CONTEXT
        others = taken.setdefault(each.file, [])
        if all(last < start or first > end for start, end in others):
            others.append((first, last))
            parts.append(fix.diff)
        else:
            left_out.append(each)
    return "".join(parts), left_out


def _fenced(text: str, kind: str) -> str:
    longest = max(map(len, re.findall("`+", text)), default=0)
    fence = "`" * max(3, longest + 1)
    shown = "\n".join(map(visible, text.split("\n")))
    return f"{fence}{kind}\n{shown}\n{fence}" if text else ""
