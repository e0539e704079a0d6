"""What became of the proof of a remark, and the script or the test that was run. Pure."""

from __future__ import annotations

import re
from collections.abc import Mapping

from holdfast.contracts import Proof, ProofVerdict, Remark
from holdfast.rendering.blocks import Marked
from holdfast.text import code_span, inline, sentence, visible

WORDS: Mapping[ProofVerdict, str] = {
    "proved": "Proved by running it",
    "shown": "Shown by running it",
    "not proved": "Not proved",
    "not tried": "A proof could not be tried",
}
TITLE = "The script, and how it ended"


def describe_proof(proof: Proof) -> Marked:
    """Return in a line how a proof ended, or why there is none."""
    shows = f" {sentence(inline(proof.shows))}" if proof.script and proof.shows.strip() else ""
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
    text = text_of(remark)
    longest = max(map(len, re.findall("`+", text)), default=0)
    fence = "`" * max(3, longest + 1)
    return f"{fence}\n{text}\n{fence}" if text else ""
