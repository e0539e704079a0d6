"""Ask for a script or a test that fails where a remark is right, and run it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

from pydantic import Field

from holdfast.calls.about import About, say_today
from holdfast.calls.envelopes import envelope
from holdfast.calls.kind import Answer, Kind, ModelKind
from holdfast.calls.verify import Place
from holdfast.contracts import Contract, PinnedInput, Problem, Proof, ProofVerdict, Remark, Reply
from holdfast.contracts.policies import PROOF_BYTES, Policy, model_policy
from holdfast.contracts.remarks import lens_and_rule

SCRIPT_LETTERS = 8_000
"""Longest script; one that shows a defect has a few lines."""
Way = Literal["sandbox", "tests"]


TESTER = "tester"
"""File of the system prompt for a test; that for the sandbox is the kind's."""


class ProveAnswer(Answer):
    why: str = Field(
        description="Why it shows the defect, or why nothing can, in one or two sentences."
    )
    shows: str = Field(
        description="What is seen, in a sentence with a capital, such as: 7 items in pages of 3 are"
        " 2 pages, and the last item is lost."
    )
    script: str
    fails_with: str = Field(
        description="Name of the error that ends it today: AssertionError, or the error that the"
        " defect itself raises."
    )


class TestAnswer(ProveAnswer):
    # No test of ours, for pytest.
    __test__ = False

    path: str = Field(
        description="Path of the new test file from the root of the repository, where the test"
        " command finds tests; no file stands there yet."
    )
    fails_with: str = Field(
        description="What the test command prints where it fails today: the name of an error such"
        " as AssertionError, or for `pytest.raises`, which prints no error's name, DID NOT RAISE."
    )


class Script(Contract):
    """What a model wrote to show a defect."""

    why: str
    """Why it shows the defect, or why nothing can."""
    shows: str = ""
    text: str = ""
    """Empty: it cannot be shown."""
    path: str = ""
    """The new file of a test; empty for the sandbox."""
    fails_with: str = ""
    """Name of the error that it ends with where the remark is right."""


class Tried(Contract):
    """How a script ended."""

    verdict: ProofVerdict
    """`not tried`: it did not run, or failed otherwise than it should."""
    why: str
    output: str = ""
    """The first lines that it ended with, without secrets."""
    printed: str = ""
    """The last lines that a test command wrote, without secrets, for whoever writes another."""
    script: str = ""
    """Its text without secrets."""
    final: bool = False
    """True if another script would fare no better."""


class ProveMaterial(Contract):
    """Material of `prove`: one remark, and what became of the first script for it."""

    repository: PinnedInput
    remark: Remark
    by: Way = "sandbox"
    withheld: tuple[Place, ...] = ()
    """Lines of its file with a credential, which models may not see."""
    script: Script | None = None
    tried: Tried | None = None
    broken: Problem | None = None
    about: About = About()


class TryMaterial(Contract):
    """Material of `try_proof`: a script to run on the head, and on the base if there is one."""

    repository: PinnedInput
    remark: Remark
    script: Script
    by: Way = "sandbox"


@dataclass(frozen=True)
class ProofCode:
    """What a model may see of a remark's code, without secrets."""

    place: str
    message: str
    suggestion: str = ""
    name: str = ""
    """The function that a script for the sandbox must use; empty: any of the file."""
    code: str = ""
    """The function, with what the change did to it; empty: none can be shown."""
    around: str = ""
    """What it calls, and the test that is nearest to it."""
    names: str = ""
    """What a script can call, a line each."""
    runner: str = ""
    """The Python or the command that runs it, in a few words."""


def to_script(answer: ProveAnswer, _: ProveMaterial) -> Script:
    """Return the script. ValueError, with the reason, if it cannot be run."""
    text = answer.script.strip("\n")
    path = answer.path.strip() if isinstance(answer, TestAnswer) else ""
    if not answer.why.strip():
        raise ValueError("why: say why the script shows the defect, or why nothing can")
    if not text.strip():
        return Script(why=answer.why)
    if len(text) > SCRIPT_LETTERS:
        raise ValueError(f"script: it has {len(text):,} letters; at most {SCRIPT_LETTERS:,}")
    if not answer.fails_with.strip():
        raise ValueError("fails_with: name the error that it ends with, such as AssertionError")
    if isinstance(answer, TestAnswer):
        _check_path(path)
    return Script(
        why=answer.why,
        shows=answer.shows,
        text=text + "\n",
        path=path,
        fails_with=answer.fails_with.strip(),
    )


def proof_shape(material: ProveMaterial) -> type[ProveAnswer]:
    """Return the answer that is asked for: only a test has a path."""
    return TestAnswer if material.by == "tests" else ProveAnswer


def _check_path(path: str) -> None:
    """Raise ValueError unless it names a file inside the repository."""
    parts = path.split("/")
    odd = {"", ".", "..", ".git"} & {each.lower() for each in parts}
    if odd or len(path) > 200 or not path.isprintable() or "\\" in path:
        raise ValueError(f"path: {path!r:.100} is not a new file inside the repository")


def show_proof_without_code(material: ProveMaterial) -> ProofCode:
    """Return the remark as a history holds it, without code."""
    remark = material.remark
    place = f"{remark.file} line {remark.line}" if remark.line else remark.file
    return ProofCode(place, remark.message, remark.suggestion)


def enclose_code(remark: Remark, code: ProofCode) -> Iterator[str]:
    """Yield the code of a remark and what stands around it, then the remark and what it wants."""
    yield envelope("the code under review", code.code or "none can be shown")
    if code.around:
        yield envelope("around it", code.around)
    said = f"{remark.severity}, {lens_and_rule(remark)}, {code.place}\n{code.message}"
    yield envelope("the remark", said)
    if code.suggestion:
        yield envelope("what the remark suggests", code.suggestion)


def prove_prompt(material: ProveMaterial, code: ProofCode) -> str:
    """Return the user turn: the code, the remark, and last what to write."""
    parts = [*enclose_code(material.remark, code)]
    if code.names:
        parts.append(envelope("what a script can call", code.names))
    if material.script is not None and material.tried is not None:
        parts.append(envelope("your first script", material.script.text))
        tried = material.tried
        ended = "\n".join([tried.why, tried.output, *([tried.printed] if tried.printed else [])])
        parts.append(envelope("how it ended", ended))
    parts += say_today(material.about)
    uses = f" It uses `{code.name}`." if code.name else ""
    if material.tried is not None:
        parts.append(
            "Your first script ended as above. Write another that fails where this remark is right,"
            f" or leave `script` empty if it cannot be done.{uses}"
        )
    elif material.by == "tests":
        parts.append("Write one new test file that fails where this remark is right.")
    else:
        parts.append(f"Write a script that fails where this remark is right.{uses}")
    if code.runner:
        parts[-1] += f" It runs with {code.runner}."
    return "\n\n".join(parts)


PROVE: ModelKind[ProveMaterial, ProveAnswer, Script] = ModelKind(
    name="prove",
    reply=Reply[Script],
    policy=model_policy("sonnet", 4_000, "medium"),
    answer=ProveAnswer,
    value=to_script,
    prompt="prover",
    turn=prove_prompt,
    words="a script that shows a defect",
    beyond=lambda _: PROOF_BYTES,
)
TRY_PROOF: Kind[Tried] = Kind(
    name="try_proof",
    reply=Reply[Tried],
    policy=Policy(),
    free_words="run what shows a defect",
)


def untried(why: str) -> Proof:
    return Proof(verdict="not tried", why=why)
