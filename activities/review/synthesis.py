"""The synthesis of a code review: what the lenses saw, merged, weighed, ranked and counted, and
what a model said of the remarks that it verified. What it refuted is ranked last, and stays.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence

from holdfast.activities.review import taken_out
from holdfast.activities.review.analysing.advice import add_advice
from holdfast.activities.review.answer import WORST, write
from holdfast.activities.review.outcome import Outcome
from holdfast.activities.review.scope import elsewhere
from holdfast.calls.synthesize import SynthesisMaterial
from holdfast.contracts import LensSum, Narrowing, Remark, ReviewData, Sightings, Synthesis
from holdfast.contracts.policies import MIN_CONFIDENCE
from holdfast.contracts.remarks import (
    SEVERITIES,
    add_verdicts,
    blocks_change,
    has_remarks,
    is_from_agent,
    merge_remarks,
    rank_remarks,
    sightings_of,
)
from holdfast.rendering.reach import unread_code
from holdfast.rendering.verdict import judge

MOST_UNLISTED = 100
"""Remarks that are not sure enough, and as many that are taken out, which the report names."""


def review(material: SynthesisMaterial) -> Synthesis:
    """Return the review as ranked remarks (in `data`) and as a short answer."""
    titles = {subtask.id: subtask.title for subtask in material.subtasks}
    failed = [
        (titles.get(each.subtask_id) or each.subtask_id, each.why or each.status)
        for each in material.findings
        if each.status != "complete"
    ]
    outcome = _weigh(material, tuple(title for title, _ in failed))
    return Synthesis(
        answer=write(outcome),
        data=outcome.data.model_dump(mode="json"),
        # Each remark has its own. Of the whole nobody can say how likely it is to be right: that
        # every file was read says nothing of what no lens looks for.
        confidence=None,
        gaps=tuple(f"{title}: {why}" for title, why in failed),
        by_template=True,
    )


def _weigh(material: SynthesisMaterial, failed: tuple[str, ...]) -> Outcome:
    complete = [each for each in material.findings if each.status == "complete"]
    # Verifiers say what becomes of the remarks of others, and make none.
    done = [each for each in complete if has_remarks(each) or not is_from_agent(each)]
    found = {each.subtask_id: sightings_of(each) for each in done}
    agents = {each.subtask_id: each.tool_calls for each in done if is_from_agent(each)}
    lenses = {name: each for name, each in found.items() if name not in agents}
    narrowing = _narrowing_of(lenses)

    merged = merge_remarks(remark for each in found.values() for remark in each.remarks)
    told = rank_remarks(add_verdicts(merged, material.verified))
    weighed = [each for each in told if not _is_open(each)]
    above = [each for each in weighed if _is_sure(each, material.min_confidence)]
    shown = [each for each in above if not each.hidden]
    remarks = [add_advice(each) for each in shown if not each.summed]
    summed = _summed_by_lens(shown)

    # The lenses read one snapshot, so what they say of its files is counted once.
    unread = max(lenses.values(), key=lambda each: each.unread, default=Sightings())
    missed = max(lenses.values(), key=lambda each: each.missed, default=Sightings())
    cut = {name: each.remarks_in_all - len(each.remarks) for name, each in found.items()}
    severities = Counter(each.severity for each in remarks if blocks_change(each))
    data = ReviewData(
        remarks=tuple(remarks),
        by_kind=elsewhere.count_kinds(remarks),
        hidden=taken_out.count_hidden(above),
        summed={
            lens: LensSum(remarks=len(each), worst=tuple(each[:WORST]))
            for lens, each in summed.items()
        },
        by_severity={severity: severities[severity] for severity in SEVERITIES},
        by_verdict=Counter(each.verdict for each in remarks if each.verdict),
        below_confidence=len(weighed) - len(above),
        min_confidence=material.min_confidence,
        not_listed=_select_unlisted(weighed, material.min_confidence),
        suppressed=sum(each.suppressed for each in lenses.values()),
        old=sum(each.old for each in lenses.values()),
        cut=sum(cut[name] for name in lenses),
        cut_of_agents={name: cut[name] for name in agents if cut[name]},
        unconfirmed=tuple(each for each in told if _is_open(each)),
        unread_in_all=unread.unread,
        unread=unread.unread_files,
        missed_in_all=missed.missed,
        missed=missed.missed_files,
        not_parsed=tuple(sorted({file for each in lenses.values() for file in each.not_parsed})),
        files_read=max(
            (max(each.files_read, each.files_in_scope) for each in lenses.values()), default=0
        ),
        not_parsed_by={
            name: count
            for name, each in lenses.items()
            if (count := max(each.not_parsed_in_all, len(each.not_parsed)))
        },
        not_reached=tuple(sorted({file for each in lenses.values() for file in each.not_reached})),
        not_reached_by={
            name: each.not_reached_in_all for name, each in lenses.items() if each.not_reached
        },
        looked_at={
            name: each.files_read for name, each in lenses.items() if not each.nothing_to_look_at
        },
        agents=agents,
        unsure={
            each.subtask_id: each.confidence
            for each in done
            if is_from_agent(each) and each.confidence is not None
            if each.confidence < MIN_CONFIDENCE
        },
        failed=failed,
        nothing_differs=any(each.change and each.change.nothing for each in material.inputs),
        nothing_to_look_at={
            name: each.nothing_to_look_at
            for name, each in lenses.items()
            if each.nothing_to_look_at
        },
        languages=next((each.languages for each in lenses.values() if each.languages), ()),
        base=next((each.base for each in lenses.values() if each.base), ""),
        scope=next((each.scope for each in lenses.values() if each.scope), ""),
        notes=tuple(dict.fromkeys(note for each in lenses.values() for note in each.notes)),
    )
    verdict = judge(data)
    came_to = {
        "verdict": verdict.line,
        "lacks": verdict.lacks,
        "unread_languages": tuple(each.name for each in unread_code(data)),
    }
    return Outcome(
        data=data.model_copy(update=came_to),
        summed=summed,
        outside=elsewhere.describe_elsewhere([*remarks, *(each for each in shown if each.summed)]),
        taken_out=taken_out.describe_taken_out(narrowing, above, material.min_confidence),
        to_verify=material.to_verify,
        unread_why=unread.unread_why,
    )


def _narrowing_of(lenses: Mapping[str, Sightings]) -> Narrowing:
    """Return what narrowed the lenses: as the last one says that was narrowed."""
    narrowings = [each.narrowing for each in lenses.values() if each.narrowing != Narrowing()]
    return narrowings[-1] if narrowings else Narrowing()


def _select_unlisted(weighed: Sequence[Remark], least: int) -> tuple[Remark, ...]:
    """Return the first by rank of those that are not sure enough, and of those taken out, without
    the code at their places.
    """
    below = [each for each in weighed if not _is_sure(each, least)]
    out = [each for each in weighed if _is_sure(each, least) and each.hidden]
    first = (*below[:MOST_UNLISTED], *out[:MOST_UNLISTED])
    return tuple(each.model_copy(update={"excerpt": None}) for each in first)


def _summed_by_lens(shown: Iterable[Remark]) -> Mapping[str, list[Remark]]:
    """Return, by lens, the remarks on production code that are told as a sum."""
    summed: defaultdict[str, list[Remark]] = defaultdict(list)
    for each in elsewhere.select_production(shown):
        if each.summed:
            summed[each.lens].append(each)
    return summed


def _is_sure(remark: Remark, least: int) -> bool:
    """True if a remark is sure enough to be listed: what an agent doubted is listed with what a
    model that saw the code says of it.
    """
    return remark.confidence >= least or (remark.by_agent and _is_decided(remark))


def _is_open(remark: Remark) -> bool:
    """True of what only an agent says: no model that saw the code has confirmed or refuted it."""
    return remark.by_agent and not _is_decided(remark)


def _is_decided(remark: Remark) -> bool:
    return remark.verdict in ("confirmed", "refuted")
