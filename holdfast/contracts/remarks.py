"""Remarks of a review, merged and ranked. Pure.

Two remarks are the same defect when they are in the same file, at most one line apart, and of the
same subject: the same rule, rules that SUBJECTS calls the same, or, without a rule, the same
message (of one agent both); what two agents say of one line, if they quote the same code of it or
share half of their words, or of lines near each other, if they share most of them, or half and the
rule; sightings of a credential when they are in the same line. The merged remark keeps the highest
severity and confidence and names the others in `also`.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import TypeVar

from pydantic import JsonValue, ValidationError

from holdfast.contracts import Draft, Finding, Remark, Report, ReviewData, Severity, Sightings
from holdfast.text import pluralize

REVIEW = "review"
"""Template of a review's answer: its roles report remarks."""
NO_REMARKS = "no remarks"
"""What a table says of a lens that saw none."""
SEVERITIES: tuple[Severity, ...] = ("critical", "warning", "info")
ADJACENT = 1
"""Lines."""
OF_AN_AGENT = 10
"""Remarks taken from one agent, in its own order: words cost a model nothing."""
ASKED, ASKED_CRITICAL = 80, 60
"""Percent from which an agent's open remark is a question to the author; of a critical one."""
WORD = re.compile(r"\w{4,}")
STEM = 6
"""Letters by which two words are one: `refund`, `refunded`."""
ABOUT_TESTS = frozenset(
    {
        *("deleted-test", "deleted-assertion", "weakened-assertion", "skipped-test"),
        *("weakened-test", "outdated-test", "missing-test"),
    }
)
"""Rules about what tests hold no more: what they see in a test file counts like production code."""
LEAST_SHARED = 2
"""Words that two remarks on one line share at least, if they are one defect."""
NEAR = 3
"""Lines by which two agents may be apart that tell one defect."""
LISTED = 60
"""Remarks of one lens that an agent is told."""
CREDENTIAL_LENS = "secrets"
CREDENTIAL = "credential"
SUBJECTS = {
    # A test that is gone: one agent asks what it held, another which check an old commit put in.
    "deleted-test": "deleted check", "deleted-check": "deleted check",
    # A password in the code: bandit by its name, the secrets lens by its look.
    "B105": "credential", "B106": "credential", "B107": "credential",
    # An exception that disappears: ruff by the bare except, bandit by the empty handler.
    "E722": "swallowed exception", "B110": "swallowed exception", "B112": "swallowed exception",
    # Characters that turn the reading direction around, and a jump out of a `finally`.
    "B613": "hidden direction", "PLE2502": "hidden direction",
    "B012": "jump out of finally", "SIM107": "jump out of finally",
    # Text that is run: oxlint by the call, a rule of ours by where its text comes from.
    "js-code-of-request": "text run as code", "no-eval": "text run as code",
    "no-implied-eval": "text run as code",
}  # fmt: skip
RUNS = re.compile(
    "no-eval|no-implied-eval|B102|B201|B301|B307|B60[124589]|SC2114|SC2115|SC2294"
    "|template-injection|[a-z]+-(code|command|shell|sql|objects)-of-"
)
"""Rules about strangers' text that runs as a program, a command or a query, or about deleting a
disk: with credentials, the worst that code can do.
"""
HOLES = re.compile(
    "[a-z]+-(page|path|redirect)-of-|[a-z]+-(tls-unverified|no-verify-mode|weak-|short-key)"
    "|[a-z]+-(unsigned|guessable|cipher|html-of|unescaped|all-parameters)"
)
"""Rules about other ways in, besides those of the lenses that look for nothing else."""
LENSES_OF_HOLES = {"security", "workflows", "attacks"}
Data = TypeVar("Data", Sightings, ReviewData)


def has_remarks(finding: Finding | Draft) -> bool:
    """True if a finding reports remarks, though maybe none."""
    return isinstance(finding.data.get("remarks"), list)


def sightings_of(finding: Finding) -> Sightings:
    """Return what a lens or agent reported; items that are not remarks are left out and counted."""
    found, given = _read(Sightings, finding.data), finding.data.get("remarks")
    in_all = max(found.remarks_in_all, len(given) if isinstance(given, list) else 0)
    update: dict[str, object] = {"remarks_in_all": in_all}
    if is_from_agent(finding):
        # Whatever its data say: no model passes for a lens, or vouches for itself.
        said = {"lens": finding.subtask_id, "by_agent": True, "verdict": "", "why": ""}
        update["remarks"] = tuple(each.model_copy(update=said) for each in found.remarks)
    return found.model_copy(update=update)


def read_review(report: Report) -> ReviewData | None:
    """Return the data of a review's report; None if it is of no review."""
    if not isinstance(report.data.get("remarks"), list):
        return None
    return _read(ReviewData, report.data)


def _read(shape: type[Data], data: Mapping[str, JsonValue]) -> Data:
    """Read data that another version may have written: items that are no remarks are left out, and
    any other field that does not fit takes its default.
    """
    fields = {**data, "remarks": _remarks(data)}
    try:
        return shape.model_validate(fields)
    except ValidationError as error:
        wrong = {each["loc"][0] for each in error.errors()}
        return shape.model_validate({name: fields[name] for name in fields if name not in wrong})


def _remarks(data: Mapping[str, JsonValue]) -> tuple[Remark, ...]:
    given = data.get("remarks")
    items = given if isinstance(given, list) else []
    return tuple(remark for item in items if (remark := _remark(item)) is not None)


def _remark(item: JsonValue) -> Remark | None:
    try:
        return Remark.model_validate(item)
    except ValidationError:
        return None


def is_from_agent(finding: Finding) -> bool:
    """True if a model found it, which nobody takes at its word."""
    return bool(finding.model)


def list_remarks(finding: Finding) -> str:
    """Return the first remarks of a lens by rank, a line each, for whoever builds on them."""
    found = [each for each in rank_remarks(sightings_of(finding).remarks) if not each.hidden]
    lines = [f"{each.file}:{each.line} {each.severity}: {each.message}" for each in found[:LISTED]]
    more = [f"and {len(found) - LISTED} more"] if found[LISTED:] else []
    return "\n".join([*lines, *more])


def describe_hidden(review: ReviewData) -> str:
    """Return how many remarks the repository's settings or a baseline took out, if any."""
    counts = {word: count for word, count in review.hidden.items() if count > 0}
    if not counts:
        return ""
    listed = ", ".join(f"{word} ({count})" for word, count in counts.items())
    taken = pluralize(sum(counts.values()), "remark")
    return f"{taken} taken out by the repository's settings or a baseline: {listed}"


def why_unread(review: ReviewData) -> list[tuple[str, int]]:
    """Return why files were not read, each reason with how many of the files that are named, the
    most common first.
    """
    return Counter(each.why for each in review.unread).most_common()


def summarize(finding: Finding) -> str:
    """Return what a lens saw, for a table; empty for other findings. Remarks are only counted,
    because the table is drawn at every event; how many of them count is known when the review is
    over.
    """
    if nothing := finding.data.get("nothing_to_look_at"):
        return f"nothing to look at: {nothing}"
    remarks = finding.data.get("remarks")
    if finding.status != "complete" or not isinstance(remarks, list):
        return ""
    return f"{len(remarks):,} seen" if remarks else NO_REMARKS


def is_credential(remark: Remark) -> bool:
    """True if the line of a remark holds, or may hold, a secret."""
    return _subject(remark) == CREDENTIAL


def is_withheld(remark: Remark) -> bool:
    """True if an analyser found a credential: no model is asked about it."""
    return not remark.by_agent and is_credential(remark)


def merge_remarks(remarks: Iterable[Remark]) -> list[Remark]:
    """Return each defect once, by the rule at the top of this module."""
    places = sorted(remarks, key=lambda each: (each.file, _subject(each), each.line))
    groups: list[list[Remark]] = []
    kinds: dict[tuple[object, ...], Remark] = {}
    for remark in places:
        # All of them: else remarks of two lenses in lines one after another would be a chain. One
        # line may have thousands that are alike, so one of a kind stands for the others.
        if groups and all(_same(each, remark) for each in kinds.values()):
            groups[-1].append(remark)
        else:
            groups.append([remark])
            kinds.clear()
        kinds.setdefault(_kind(remark), remark)
    return _merge_retold(_one(group) for group in groups)


def _kind(remark: Remark) -> tuple[object, ...]:
    """Return all that `_same` looks at in two remarks of one file and subject."""
    said = remark.message if remark.by_agent else ""
    return remark.line, remark.lens, remark.rule, remark.severity, remark.by_agent, said


def _merge_retold(remarks: Iterable[Remark]) -> list[Remark]:
    """Merge what agents tell of one place: of the same code, or in words that they share."""
    merged: list[Remark] = []
    of_file: dict[str, list[int]] = {}
    for remark in remarks:
        places = of_file.setdefault(remark.file, []) if remark.by_agent else []
        at = next((each for each in places if _retells(merged[each], remark)), None)
        if at is None:
            places.append(len(merged))
            merged.append(remark)
        else:
            merged[at] = _one((merged[at], remark))
    return merged


def _retells(one: Remark, other: Remark) -> bool:
    if other.lens in (one.lens, *(each.partition(":")[0] for each in one.also)):
        return False
    apart, alike = abs(one.line - other.line), one.deleted == other.deleted
    if apart > NEAR or (apart and not (alike and one.line and other.line)):
        return False
    if not apart and alike and one.code and one.code == other.code:
        return True
    said, again = (
        {word[:STEM] for word in WORD.findall(each.message.casefold())} for each in (one, other)
    )
    # Farther apart, and under another rule, they must say nearly the same.
    part, least = (
        (2 / 3, LEAST_SHARED + 1) if apart and one.rule != other.rule else (1 / 2, LEAST_SHARED)
    )
    return len(said & again) >= max(part * min(len(said), len(again)), least)


def _subject(remark: Remark) -> str:
    if remark.lens == CREDENTIAL_LENS:
        return CREDENTIAL
    return SUBJECTS.get(remark.rule) or remark.rule or remark.message.casefold()


def _same(one: Remark, other: Remark) -> bool:
    if one.file != other.file or _subject(one) != _subject(other):
        return False
    # One kind of an agent's is no rule: what it tells apart is not the same.
    if one.by_agent and one.lens == other.lens and one.message != other.message:
        return False
    # What an analyser says stays its own; an agent that says more is verified by itself.
    if one.by_agent != other.by_agent:
        ours, said = (other, one) if one.by_agent else (one, other)
        if SEVERITIES.index(ours.severity) > SEVERITIES.index(said.severity):
            return False
    # Of one rule of one lens, and of credentials, each line is a defect of its own.
    own_line = (one.lens, one.rule) == (other.lens, other.rule) or _subject(one) == CREDENTIAL
    near = 0 if own_line else ADJACENT
    return other.line - one.line <= near


def _one(group: Sequence[Remark]) -> Remark:
    # What is taken out for one lens or rule stays if another saw it, too.
    seen = [each for each in group if not each.hidden] or group
    best, *others = rank_remarks(seen)
    severity, kind = best.severity, best.kind
    if all(each.by_agent for each in seen):
        # Its words are those of the surest: nobody knows more of what agents say.
        best, *others = sorted((best, *others), key=lambda each: -each.confidence)
    own = lens_and_rule(best)
    named = (name for each in (best, *others) for name in (*each.also, lens_and_rule(each)))
    also = tuple(dict.fromkeys(name for name in named if name != own))
    confidence = max(each.confidence for each in seen if each.by_agent == best.by_agent)
    update = {"severity": severity, "kind": kind, "confidence": confidence, "also": also}
    return best.model_copy(update=update)


def lens_and_rule(remark: Remark) -> str:
    """Return `lens:rule`, as far as there is either."""
    return ":".join(part for part in (remark.lens, remark.rule) if part)


def stands(remark: Remark) -> bool:
    """True if no model has refuted it."""
    return remark.verdict != "refuted"


def blocks_change(remark: Remark) -> bool:
    """True if a remark may hold up a change: it is listed, of production code, and confirmed by a
    verifier where only an agent reports it. No model takes away what an analyser found: the model
    has read the code under review, where somebody may have told it what to say. A critical
    credential counts wherever it stands: whoever reads it there has it.
    """
    counts = remark.kind == "production" or (
        remark.severity == "critical" and is_credential(remark)
    )
    believed = remark.verdict == "confirmed" or not remark.by_agent
    return believed and not remark.hidden and counts


def is_question(remark: Remark) -> bool:
    """True if a remark is shown as a question to the author: only an agent makes it, a verifier
    could not tell, and it is too sure, or would be too bad, to be left aside.
    """
    least = ASKED_CRITICAL if remark.severity == "critical" else ASKED
    return remark.by_agent and remark.verdict == "open" and remark.confidence >= least


def group_same(remarks: Iterable[Remark]) -> list[tuple[Remark, ...]]:
    """Group remarks that say the same, in the order of the first of each, to be shown once with
    their places.
    """
    groups: dict[tuple[str, ...], list[Remark]] = {}
    for each in remarks:
        said = (
            each.severity,
            each.lens,
            each.rule,
            each.message,
            each.verdict,
            each.why,
            each.new_since,
            _script_of(each),
            each.fix.diff if each.fix else "",
        )
        groups.setdefault(said, []).append(each)
    return [tuple(group) for group in groups.values()]


def _script_of(remark: Remark) -> str:
    return remark.proof.script if remark.proof else ""


def add_verdicts(remarks: Iterable[Remark], verified: Iterable[Remark]) -> list[Remark]:
    """Return the remarks with the verdicts on those that were verified."""
    said = {_without_verdict(each): each for each in verified}
    return [said.get(each, each) for each in remarks]


def _without_verdict(remark: Remark) -> Remark:
    return remark.model_copy(update={"verdict": "", "why": "", "proof": None, "fix": None})


def rank_remarks(remarks: Iterable[Remark]) -> list[Remark]:
    """Sort remarks: production code first, then by severity, among equals what analysers found
    first, then by harm and confidence, those in touched lines first, then by weight, file and line;
    refuted ones later, hidden ones last.
    """
    return sorted(remarks, key=rank)


def rank(remark: Remark) -> tuple[bool | int | str, ...]:
    return (
        bool(remark.hidden),
        remark.verdict == "refuted",
        remark.kind != "production",
        SEVERITIES.index(remark.severity),
        remark.by_agent,
        -harm(remark),
        -remark.confidence,
        bool(remark.new_since),
        -remark.weight,
        remark.file,
        remark.line,
        remark.column,
        remark.rule,
    )


def harm(remark: Remark) -> int:
    """Return how much a defect can do if it is one: 2 strangers' code or a credential, 1 another
    hole.
    """
    if is_credential(remark) or RUNS.match(remark.rule):
        return 2
    return int(remark.lens in LENSES_OF_HOLES or bool(HOLES.match(remark.rule)))
