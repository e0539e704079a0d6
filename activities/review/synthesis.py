"""The synthesis of a code review: what the lenses saw, merged, weighed, ranked and counted, and
what a model said of the remarks that it verified. What it refuted is ranked last, and stays.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace

from pydantic import JsonValue

from holdfast.activities.review import taken_out
from holdfast.activities.review.analysing.advice import advised
from holdfast.activities.review.answer import WORST, write
from holdfast.activities.review.by_agents import agents_of, parted
from holdfast.activities.review.outcome import Outcome
from holdfast.activities.review.scope import elsewhere
from holdfast.calls.synthesize import SynthesisMaterial
from holdfast.contracts import Finding, LanguageShare, Narrowing, Remark, Subtask, Synthesis, Unread
from holdfast.contracts.remarks import (
    SEVERITIES,
    add_verdicts,
    is_from_agent,
    merge_remarks,
    rank_remarks,
    sightings_of,
)


def review(material: SynthesisMaterial) -> Synthesis:
    """The review as ranked remarks (in `data`) and as a short answer."""
    tally = _tally(material)
    outcome = _outcome(material, tally)
    return Synthesis(
        answer=write(outcome),
        data=_data(outcome) | tally.of_files(),
        # Each remark has its own. Of the whole nobody can say how likely it is to be right: that
        # every file was read says nothing of what no lens looks for.
        confidence=None,
        gaps=tuple(_gaps(material.subtasks, material.findings)),
        by_template=True,
    )


def _outcome(material: SynthesisMaterial, tally: _Tally) -> Outcome:
    """What the review came to."""
    agents = agents_of(material.findings)
    everything = rank_remarks(add_verdicts(merge_remarks(tally.remarks), material.verified))
    merged, unconfirmed = parted(everything, agents)
    merged = taken_out.of_agents(merged, agents, tally.narrowing)
    above = [each for each in merged if each.confidence >= material.min_confidence]
    shown = taken_out.listed(above)
    return replace(
        tally.outcome(),
        remarks=tuple(advised(each) for each in shown if not each.summed),
        summed=tuple(each for each in shown if each.summed),
        to_verify=material.to_verify,
        taken_out=taken_out.told(tally.narrowing, above, material.min_confidence),
        hidden=taken_out.hidden_by(above),
        below=len(merged) - len(above),
        min_confidence=material.min_confidence,
        agents=agents,
        unconfirmed=unconfirmed,
        missing=tuple(_missing(material)),
    )


def _tally(material: SynthesisMaterial) -> _Tally:
    """What the lenses and agents that came to an end handed back."""
    tally = _Tally()
    inputs = {each.id: each.inputs for each in material.subtasks}
    for finding in material.findings:
        if finding.status == "complete":
            tally.add(finding, inputs.get(finding.subtask_id, ()))
    return tally


@dataclass
class _Tally:
    """What the lenses handed back, added up. The lenses read one snapshot, so what they say of it
    is counted once.
    """

    remarks: list[Remark] = field(default_factory=list)
    suppressed: int = 0
    cut: int = 0
    cut_of_agents: dict[str, int] = field(default_factory=dict)
    files: int = 0
    looked: list[tuple[str, int]] = field(default_factory=list)
    idle: list[tuple[str, str]] = field(default_factory=list)
    unread: int = 0
    unread_why: dict[str, int] = field(default_factory=dict)
    unread_files: tuple[Unread, ...] = ()
    missed: int = 0
    missed_files: tuple[Unread, ...] = ()
    not_parsed: set[str] = field(default_factory=set)
    not_parsed_by: list[tuple[str, int]] = field(default_factory=list)
    base: str = ""
    scope: str = ""
    narrowing: Narrowing = field(default_factory=Narrowing)
    notes: dict[str, None] = field(default_factory=dict)
    languages: tuple[LanguageShare, ...] = ()

    def of_files(self) -> dict[str, JsonValue]:
        """What the report's data says of files beside their remarks."""
        return {
            "languages": [each.model_dump(mode="json") for each in self.languages],
            "unread": [each.model_dump() for each in self.unread_files],
            "missed": [each.model_dump() for each in self.missed_files],
        }

    def add(self, finding: Finding, inputs: Sequence[str]) -> None:
        """Add what one lens or agent found; what is no remark is left out and counted as cut."""
        found = sightings_of(finding, inputs)
        self.remarks += found.remarks
        cut = max(found.remarks_in_all - len(found.remarks), 0)
        if is_from_agent(finding):
            self.cut_of_agents[finding.subtask_id] = cut
            return
        self.cut += cut
        self.suppressed += found.suppressed
        self.files = max(self.files, found.files_read, found.files_in_scope)
        if found.nothing_to_look_at:
            self.idle.append((finding.subtask_id, found.nothing_to_look_at))
        else:
            self.looked.append((finding.subtask_id, found.files_read))
        self.not_parsed.update(found.not_parsed)
        if failed := max(found.not_parsed_in_all, len(found.not_parsed)):
            self.not_parsed_by.append((finding.subtask_id, failed))
        self.notes.update(dict.fromkeys(found.notes))
        self.base, self.scope = self.base or found.base, self.scope or found.scope
        if found.narrowing != Narrowing():
            self.narrowing = found.narrowing
        self.languages = self.languages or found.languages
        if found.unread > self.unread:
            self.unread, self.unread_why = found.unread, found.unread_why
            self.unread_files = found.unread_files
        if found.missed > self.missed:
            self.missed, self.missed_files = found.missed, found.missed_files

    def outcome(self) -> Outcome:
        """What the lenses say of their own work, without a remark."""
        return Outcome(
            remarks=(),
            suppressed=self.suppressed,
            cut=self.cut,
            cut_of_agents={name: count for name, count in self.cut_of_agents.items() if count},
            unread=self.unread,
            unread_why=self.unread_why,
            missed=self.missed,
            missed_files=self.missed_files,
            not_parsed=tuple(sorted(self.not_parsed)),
            not_parsed_by=tuple(self.not_parsed_by),
            files=self.files,
            base=self.base,
            scope=self.scope,
            languages=self.languages,
            notes=tuple(self.notes),
            looked=tuple(self.looked),
            idle=tuple(self.idle),
        )


def _missing(material: SynthesisMaterial) -> Iterable[str]:
    titles = {subtask.id: subtask.title for subtask in material.subtasks}
    for finding in material.findings:
        if finding.status != "complete":
            yield titles.get(finding.subtask_id) or finding.subtask_id


def _gaps(subtasks: Sequence[Subtask], findings: Sequence[Finding]) -> Iterable[str]:
    titles = {subtask.id: subtask.title for subtask in subtasks}
    for finding in findings:
        if finding.status != "complete":
            title = titles.get(finding.subtask_id) or finding.subtask_id
            yield f"{title}: {finding.why or finding.status}"


def _data(outcome: Outcome) -> dict[str, JsonValue]:
    counts = Counter(remark.severity for remark in outcome.counted)
    said = Counter(remark.verdict for remark in outcome.remarks if remark.verdict)
    verdicts: dict[str, JsonValue] = {str(name): n for name, n in said.items()}
    return {
        "remarks": [remark.model_dump(mode="json") for remark in outcome.remarks],
        "by_kind": {**elsewhere.by_kind(outcome.remarks)},
        "hidden": {**outcome.hidden},
        "summed": _summed(outcome),
        "by_severity": {severity: counts[severity] for severity in SEVERITIES},
        **(
            {"by_verdict": {str(name): n for name, n in verdicts.items()}}
            if outcome.to_verify
            else {}
        ),
        "below_confidence": outcome.below,
        "min_confidence": outcome.min_confidence,
        "suppressed": outcome.suppressed,
        "cut": outcome.cut,
        "cut_of_agents": {**outcome.cut_of_agents},
        "unconfirmed": [each.model_dump(mode="json") for each in outcome.unconfirmed],
        "unread_in_all": outcome.unread,
        "missed_in_all": outcome.missed,
        "not_parsed": list(outcome.not_parsed),
        "files_read": outcome.files,
        "looked_at": {lens: count for lens, count in outcome.looked},
        "nothing_to_look_at": {lens: why for lens, why in outcome.idle},
        "unread_languages": [each.name for each in outcome.unread_code],
        "base": outcome.base,
        "scope": outcome.scope,
    }


def _summed(outcome: Outcome) -> dict[str, JsonValue]:
    """By lens, how much is told in sum, and the worst of it."""
    by_lens: dict[str, list[Remark]] = {}
    for remark in elsewhere.in_production(outcome.summed):
        by_lens.setdefault(remark.lens, []).append(remark)
    return {
        lens: {
            "remarks": len(remarks),
            "worst": [each.model_dump(mode="json") for each in remarks[:WORST]],
        }
        for lens, remarks in by_lens.items()
    }
