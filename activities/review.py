"""The synthesis of a code review: what the lenses saw, merged, weighed, ranked and counted.

Two remarks are the same defect when they are in the same file, at most one line apart, and of the
same subject: the same rule, rules that SUBJECTS calls the same, or, without a rule, the same
message; sightings of a credential when they are in the same line. The merged remark keeps the
highest severity and confidence and names the others in `also`.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from pydantic import JsonValue, ValidationError

from activities.review_answer import Review, write
from orchestrator.contracts import Finding, Remark, Severity, Subtask, Synthesis
from orchestrator.materials import SynthesisMaterial

SEVERITIES: tuple[Severity, ...] = ("critical", "warning", "info")
ADJACENT = 1
"""Lines."""
CREDENTIAL_LENS = "secrets"
CREDENTIAL = "credential"
SUBJECTS = {
    # A password in the code: bandit by its name, the secrets lens by its look.
    "B105": "credential", "B106": "credential", "B107": "credential",
    # An exception that disappears: ruff by the bare except, bandit by the empty handler.
    "E722": "swallowed exception", "B110": "swallowed exception", "B112": "swallowed exception",
}  # fmt: skip


def review(material: SynthesisMaterial) -> Synthesis:
    """The review as ranked remarks (in `data`) and as a short answer."""
    tally = _Tally()
    for finding in material.findings:
        if finding.status == "complete":
            tally.add(finding)
    merged = ranked(merged_remarks(tally.remarks))
    shown = [each for each in merged if each.confidence >= material.min_confidence]
    gaps = tuple(_gaps(material.subtasks, material.findings))
    complete = [each.confidence for each in material.findings if each.status == "complete"]
    outcome = Review(
        remarks=tuple(shown),
        below=len(merged) - len(shown),
        min_confidence=material.min_confidence,
        suppressed=tally.suppressed,
        cut=tally.cut,
        unread=tally.unread,
        unread_reasons=tally.unread_reasons,
        not_parsed=tuple(sorted(tally.not_parsed)),
        files=tally.files,
        base=tally.base,
        notes=tuple(tally.notes),
        lenses=len(complete),
        gaps=gaps,
        not_run=tuple(f"{each.what}: {each.why}" for each in material.not_run),
    )
    return Synthesis(
        answer=write(outcome),
        data={**_data(outcome), "unread": tally.unread_files},
        confidence=sum(complete) // max(len(material.findings), 1),
        gaps=gaps,
        by_template=True,
    )


@dataclass
class _Tally:
    """What the lenses handed back, added up. The lenses read one snapshot, so what they say of it
    is counted once.
    """

    remarks: list[Remark] = field(default_factory=list)
    suppressed: int = 0
    cut: int = 0
    files: int = 0
    unread: int = 0
    unread_reasons: dict[str, int] = field(default_factory=dict)
    unread_files: list[JsonValue] = field(default_factory=list)
    not_parsed: set[str] = field(default_factory=set)
    base: str = ""
    notes: dict[str, None] = field(default_factory=dict)

    def add(self, finding: Finding) -> None:
        """Add what one lens found; what is no remark is left out and counted as cut."""
        data = finding.data
        given = _list(data, "remarks")
        remarks = [remark for item in given if (remark := _remark(item)) is not None]
        self.remarks += remarks
        self.cut += max(_number(data, "remarks_in_all"), len(given)) - len(remarks)
        self.suppressed += _number(data, "suppressed")
        self.files = max(self.files, _number(data, "files_read"))
        self.not_parsed.update(str(name) for name in _list(data, "not_parsed"))
        self.notes.update((str(note), None) for note in _list(data, "notes"))
        self.base = self.base or str(data.get("base") or "")
        if _number(data, "unread") > self.unread:
            self.unread = _number(data, "unread")
            self.unread_files = _list(data, "unread_files")
            reasons = data.get("unread_reasons")
            self.unread_reasons = _counts(reasons) if isinstance(reasons, dict) else {}


def _list(data: dict[str, JsonValue], key: str) -> list[JsonValue]:
    value = data.get(key)
    return value if isinstance(value, list) else []


def _number(data: dict[str, JsonValue], key: str) -> int:
    value = data.get(key)
    return value if isinstance(value, int) else 0


def _counts(reasons: dict[str, JsonValue]) -> dict[str, int]:
    return {str(reason): n for reason, n in reasons.items() if isinstance(n, int)}


def _remark(item: JsonValue) -> Remark | None:
    try:
        return Remark.model_validate(item)
    except ValidationError:
        return None


def merged_remarks(remarks: Iterable[Remark]) -> list[Remark]:
    """Each defect once; the rule is in the module's first lines."""
    places = sorted(remarks, key=lambda each: (each.file, _subject(each), each.line))
    groups: list[list[Remark]] = []
    for remark in places:
        if groups and _same(groups[-1][-1], remark):
            groups[-1].append(remark)
        else:
            groups.append([remark])
    return [_one(group) for group in groups]


def _subject(remark: Remark) -> str:
    if remark.lens == CREDENTIAL_LENS:
        return CREDENTIAL
    return SUBJECTS.get(remark.rule) or remark.rule or remark.message.casefold()


def _same(one: Remark, other: Remark) -> bool:
    if one.file != other.file or _subject(one) != _subject(other):
        return False
    # Of one rule of one lens, and of credentials, each line is a defect of its own.
    own_line = (one.lens, one.rule) == (other.lens, other.rule) or _subject(one) == CREDENTIAL
    near = 0 if own_line else ADJACENT
    return other.line - one.line <= near


def _one(group: Sequence[Remark]) -> Remark:
    best, *others = ranked(group)
    names = (f"{each.lens}:{each.rule}" for each in others)
    own = f"{best.lens}:{best.rule}"
    also = tuple(dict.fromkeys(name for name in (*best.also, *names) if name != own))
    confidence = max(each.confidence for each in group)
    return best.model_copy(update={"confidence": confidence, "also": also})


def ranked(remarks: Iterable[Remark]) -> list[Remark]:
    """By severity, confidence, file and line."""
    return sorted(
        remarks,
        key=lambda each: (
            SEVERITIES.index(each.severity), -each.confidence, each.file, each.line, each.rule
        ),
    )  # fmt: skip


def _gaps(subtasks: Sequence[Subtask], findings: Sequence[Finding]) -> Iterable[str]:
    titles = {subtask.id: subtask.title for subtask in subtasks}
    for finding in findings:
        if finding.status != "complete":
            title = titles.get(finding.subtask_id) or finding.subtask_id
            yield f"{title}: {finding.reason or finding.status}"


def _data(outcome: Review) -> dict[str, JsonValue]:
    counts = Counter(remark.severity for remark in outcome.remarks)
    return {
        "remarks": [remark.model_dump(mode="json") for remark in outcome.remarks],
        "by_severity": {severity: counts[severity] for severity in SEVERITIES},
        "below_confidence": outcome.below,
        "min_confidence": outcome.min_confidence,
        "suppressed": outcome.suppressed,
        "cut": outcome.cut,
        "unread_in_all": outcome.unread,
        "not_parsed": list(outcome.not_parsed),
        "files_read": outcome.files,
        "base": outcome.base,
    }
