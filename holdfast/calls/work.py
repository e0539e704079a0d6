"""One try of an agent at a subtask."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Annotated, Any, Generic, Literal, TypeVar

from pydantic import Field, JsonValue

from holdfast.calls.about import About, say_about
from holdfast.calls.changes import ChangeText, enclose_diff, enclose_messages, most_of_change
from holdfast.calls.envelopes import defang, envelope, section
from holdfast.calls.findings import as_data, preferred, sureness, text_for_dependents
from holdfast.calls.kind import Answer, AnyCase, ModelKind, percent
from holdfast.calls.verify import (
    Place,
    Shown,
    count_evidence,
    enclose_remarks,
    show_without_code,
)
from holdfast.contracts import (
    LONGEST_CALL_SECONDS,
    Check,
    CheckKind,
    Contract,
    Draft,
    Escalation,
    EscalationReason,
    Finding,
    PinnedInput,
    Problem,
    Remark,
    Reply,
    Subtask,
)
from holdfast.contracts.data import as_text
from holdfast.contracts.policies import model_policy
from holdfast.contracts.remarks import has_remarks
from holdfast.text import one_line

Result = TypeVar("Result")
COMPOSED_ROLE = "composed"
"""File in `prompts/` for all roles that plans compose."""
COMPOSED_ROW = "composed_row"
"""The same for rows of a map, which have no tools and give nothing back."""
REVIEWER_ROLE = "code_reviewer"
"""The same for all agents of a review."""


class _Worked(Answer, Generic[Result]):
    result: Result
    sources: list[str]
    why: str
    confidence: int
    status: Annotated[Literal["complete", "failed", "escalate"], AnyCase]
    reason: Annotated[
        Literal[EscalationReason, ""],
        AnyCase,
    ]


# Without a docstring: models would read it as the description of their schema.
class WorkAnswer(_Worked[str]):
    pass


class DataAnswer(_Worked[dict[str, JsonValue] | str]):
    """Answer of an agent whose role sets a form: data, or words where there is none. The schema
    that it is asked for names the form.
    """


AS_DATA = (
    "Your result is data: when `status` is complete, `result` is one object in the form that its"
    " schema gives, and no text. When it is not, `result` is text: what you have so far."
)


SHORTENED = {
    "": "",
    "digest": ", in fewer words: read_finding reads the whole",
    "beginning": ", only its beginning: read_finding reads the whole",
}
"""What the label of a dependency's finding says of how much of it is there."""


BY_CODE = "Code checks the result; what fails is not accepted:"
CHECKED: Mapping[CheckKind, str] = {
    "valid_json": "it is valid JSON",
    "keys": "it is JSON with the keys {}",
    "regex": "it has a match of the pattern {} (RE2)",
    "contains": "it contains the text {}",
    "min_words": "it has at least {} words",
    "max_words": "it has at most {} words",
    "cites_sources": "`sources` is not empty",
    "adds_up": "the numbers `{1}` of its list `{0}` add up to its `{2}`",
    "acyclic": "in its list `{0}` no `{2}` leads back to the `{1}` that it belongs to",
}
"""What an agent is told of its checks. A range of numbers is not told: it finds out whether one is
plausible, and whoever knows it writes one that is.
"""


ROOM = (
    "One answer of yours, thoughts included, has room for {tokens} tokens; a longer one is cut off"
    " and lost."
)


class WorkMaterial(Contract):
    """Material of `work` and `examine`: one subtask, and what its dependencies found."""

    subtask: Subtask
    inputs: tuple[PinnedInput, ...] = ()
    dependencies: tuple[Finding, ...] = ()
    lens: str = ""
    """Used by `examine` only."""
    timeout_seconds: int = 300
    number: int = 1
    why: str = ""
    previous: str = ""
    """The result that `why` is about, as far as it may be shown."""
    partial: str = ""
    """Text of an earlier try that ended without an answer."""
    broken: Problem | None = None
    composed: str = ""
    """Description of a composed role."""
    form: dict[str, JsonValue] = Field(default_factory=dict)
    """JSON schema of the result; empty: text."""
    prompt: str = ""
    """Digest of the role's system prompt, as in `RoleCard`."""
    told_last: bool = False
    """Same as in `RoleCard`."""
    about: About = About()
    shortened: dict[str, Literal["digest", "beginning"]] = Field(default_factory=dict)
    """Subtasks of whose findings less than the whole is here, and what."""
    remarks: tuple[Remark, ...] = ()
    """Remarks of a review that it verifies."""
    withheld: tuple[Place, ...] = ()
    """Lines of the repository with a credential, which models may not see."""


def to_draft(answer: WorkAnswer | DataAnswer, data: Mapping[str, JsonValue] | None = None) -> Draft:
    """Return what a try produced. `data`: its result, as far as that is in its form."""
    text = answer.result if isinstance(answer.result, str) else as_text(answer.result)
    common: dict[str, Any] = {
        "content": text,
        "data": dict(data or {}),
        "confidence": percent(answer.confidence),
        "sources": tuple(answer.sources),
    }
    if answer.status == "complete":
        return Draft(**common)
    if answer.status == "failed":
        return Draft(status="failed", why=answer.why or "no reason given", **common)
    reason: EscalationReason = answer.reason or "ambiguous_input"
    escalation = Escalation(reason=reason, why=answer.why, partial=text)
    return Draft(
        status="escalated",
        why=answer.why,
        escalation=escalation,
        **common,
    )


@dataclass(frozen=True)
class Told:
    """What an agent is told beside its material."""

    contents: Mapping[str, str]
    """Text of its enclosed inputs, by name."""
    changes: Mapping[str, ChangeText] = field(default_factory=dict)
    """What differs in its repositories, by the name of the input."""
    role: str = ""
    """Its system prompt, where that stands behind the material."""
    shown: Sequence[Shown] = ()
    """What may be seen of the remarks that it verifies."""


def work_prompt(material: WorkMaterial, told: Told) -> str:
    """Return an agent's user turn: its inputs verbatim, with what differs in them, then findings,
    then its instruction, so that long material stands before what is asked of it.
    """
    return "\n\n".join((*_beginning(material, told), *_asked(material, told)))


def count_common(material: WorkMaterial, told: Told) -> int:
    """Return the characters at the start of an agent's user turn that are the same for all who work
    from these inputs and findings.
    """
    return len("\n\n".join(_beginning(material, told)))


def _beginning(material: WorkMaterial, told: Told) -> list[str]:
    """Return what an agent works from: inputs and findings."""
    parts = [part for name, each in told.changes.items() for part in enclose_messages(name, each)]
    parts += [envelope(f"input {name}", text) for name, text in told.contents.items()]
    pinned = {each.name: each for each in material.inputs}
    parts += [
        part for name, each in told.changes.items() for part in enclose_diff(pinned[name], each)
    ]
    unread = [line for each in material.inputs if not each.enclosed for line in _unread(each)]
    if unread:
        parts.append("\n".join(["Inputs that only tools read, by name:", *unread]))
    # Who uses what changed comes before what is wrong with it.
    found = sorted(material.dependencies, key=lambda each: not each.data.get("changed_in_all"))
    parts += [
        envelope(
            _dependency_label(each) + SHORTENED[material.shortened.get(each.subtask_id, "")],
            text_for_dependents(each),
        )
        for each in found
        if not _is_quiet(each)
    ]
    if quiet := [each.subtask_id for each in found if _is_quiet(each)]:
        parts.append(f"Lenses without a remark: {defang(', '.join(quiet))}.")
    return parts


def _asked(material: WorkMaterial, told: Told) -> list[str]:
    """Return what is asked of this agent, in this try."""
    subtask, parts = material.subtask, list[str]()
    parts += enclose_remarks(material.remarks, told.shown or show_without_code(material.remarks))
    if material.why:
        why = envelope("why the previous try was not accepted", material.why)
        parts.append(f"This is try {material.number}.\n{why}")
    if material.previous:
        parts.append(envelope("the result of that try", material.previous))
    if material.partial:
        parts.append(
            envelope("what an earlier try had found, partial and unchecked", material.partial)
        )
    if role := material.composed or told.role:
        parts.append(section("role", role))
    parts += say_about(material.about)
    parts.append(section("instruction", subtask.instruction))
    if subtask.acceptance_criteria:
        parts.append(section("acceptance_criteria", subtask.acceptance_criteria))
    parts += say_checks(subtask)
    if material.form:
        parts.append(AS_DATA)
    if subtask.max_output:
        parts.append(ROOM.format(tokens=subtask.max_output))
    parts.append("Carry out the instruction.")
    return parts


def say_checks(subtask: Subtask) -> Iterator[str]:
    """Yield what code will check of a subtask's result, unless that is nothing."""
    checked = [f"- {_describe_check(check)}" for check in subtask.checks if check.kind in CHECKED]
    if checked:
        yield section("checks", "\n".join([BY_CODE, *checked]))


def _describe_check(check: Check) -> str:
    """Return a check as a sentence about the result; `list.key,key` are three names."""
    names = check.argument.replace(".", ",").split(",")
    several = names if check.kind in ("adds_up", "acyclic") else [check.argument]
    return CHECKED[check.kind].format(*map(str.strip, several))


def _unread(pinned: PinnedInput) -> Iterator[str]:
    """Yield a line on an input that stands in no prompt, with the tool that reads it, and one on
    the rules that are found in it.
    """
    if not pinned.is_folder:
        table = f"a table of {pinned.rows:,} rows" if pinned.rows else ""
        what = table or f"a document, {pinned.size} bytes"
        yield f"- {pinned.name} ({what}): {pinned.reader} reads it"
        return
    size = f"{pinned.size} bytes"
    if pinned.base:
        size += f" in files that differ from {pinned.against}, and {pinned.around} in others"
    yield f"- {pinned.name} (a folder, {size}): list_files shows its files"
    if pinned.rule_files:
        names = ", ".join(f"{pinned.name}/{path}" for path in pinned.rule_files)
        yield f"  Its own rules stand in: {defang(one_line(names))}"


def _is_quiet(finding: Finding) -> bool:
    return has_remarks(finding) and not text_for_dependents(finding)


def _dependency_label(finding: Finding) -> str:
    certainty = "" if finding.status == "complete" else ", uncertain: only a partial finding"
    about = f"finding of subtask {finding.subtask_id}{sureness(finding)}"
    return f"{about}{as_data(finding)}{certainty}{preferred(finding)}"


def join_rules(role: str, rules: str) -> str:
    """Join the prompt of a role and the rules for answering."""
    return f"{role}\n\n---\n{rules}"


def _beside(material: WorkMaterial) -> int:
    """Return the bytes of the enclosed inputs and changes, and of the code of remarks; what only
    tools read is just named.
    """
    whole = sum(pinned.size for pinned in material.inputs if pinned.enclosed)
    whole += sum(map(most_of_change, material.inputs))
    return whole + count_evidence(material.remarks)


WORK: ModelKind[WorkMaterial, WorkAnswer, Draft] = ModelKind(
    name="work",
    reply=Reply[Draft],
    policy=model_policy("haiku", 8_000, "medium"),
    answer=WorkAnswer,
    value=lambda answer, _: to_draft(answer),
    prompt="work_rules",
    turn=work_prompt,
    beyond=_beside,
)


def most_written(subtask: Subtask) -> int:
    """Return the tokens that one answer to a subtask may have: the plan's, else the usual limit."""
    return subtask.max_output or WORK.policy.max_output


def exchange_seconds(subtask: Subtask, limit: float, room: int) -> float:
    """Return how long an exchange with so much room for its answer may take: twice the run's limit
    for twice the room; a plan's own timeout holds as it is.
    """
    if subtask.timeout_seconds:
        return limit
    return min(limit * max(room / WORK.policy.max_output, 1.0), LONGEST_CALL_SECONDS)
