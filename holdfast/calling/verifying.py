"""Choose the remarks that agents verify, share them out, and apply the verdicts. Pure.

The analysers' remarks stand whatever a model says: a verdict is added, and no remark removed.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import count

from holdfast.calls.verify import Place, read_verdicts
from holdfast.contracts import PinnedInput, Remark, Subtask, policies
from holdfast.contracts.remarks import (
    SEVERITIES,
    is_credential,
    is_withheld,
    merge_remarks,
    rank_remarks,
    sightings_of,
)
from holdfast.contracts.replacing import replace
from holdfast.state.run import State
from holdfast.text import pluralize

ORDER = (
    "Verify {which}, which others made on this code: one verdict for each. Read"
    " what is shown of it first; where that does not decide it, look with your tools."
)
"""What a verifier is asked to do."""
UNSAID = {"excerpt": None, "matters": "", "fingerprint": "", "also": ()}
"""Fields of a remark that are of no use to a verifier."""


def is_wanted(state: State) -> bool:
    """True if agents verify the remarks of this run."""
    playbook = state.brief.playbook
    asked = playbook is not None and playbook.verify > 0 and state.goal.use_models
    known = any(each.name == policies.VERIFIER for each in state.brief.roles)
    return asked and known and repository(state) is not None


def share_out(state: State) -> tuple[State, tuple[Subtask, ...]]:
    """Choose the remarks to verify, once all other work has ended, and return the subtasks that
    verify them: none if there is nothing to verify, or they were planned already.
    """
    if not is_wanted(state) or state.finishing.to_verify:
        return state, ()
    remarks = choose_remarks(state)
    size = policies.VERIFIED_AT_ONCE
    batches = [remarks[first : first + size] for first in range(0, len(remarks), size)]
    free = (name for number in count(1) if (name := f"verify-{number}") not in state.work)
    subtasks = tuple(subtask_for(state, next(free), len(batch)) for batch in batches)
    to_verify = {each.id: batch for each, batch in zip(subtasks, batches, strict=True)}
    return replace(state, finishing=replace(state.finishing, to_verify=to_verify)), subtasks


def subtask_for(state: State, name: str, count: int) -> Subtask:
    """Return the subtask that verifies a batch of so many remarks. It comes after all others, whose
    findings it is not shown: it does not know who made a remark.
    """
    pinned = repository(state)
    assert pinned is not None, "remarks of a repository are verified"
    given = (name for each in state.work.values() for name in each.subtask.inputs)
    return Subtask(
        id=name,
        title=f"Verify {pluralize(count, 'remark')}",
        role=policies.VERIFIER,
        instruction=ORDER.format(which="the remark" if count == 1 else f"the remarks 1 to {count}"),
        inputs=tuple(dict.fromkeys((pinned.name, *given))),
        depends_on=tuple(each.subtask_id for each in state.usable),
        max_output=policies.VERIFIER_OUTPUT,
    )


def remarks_for(state: State, subtask: Subtask) -> tuple[Remark, ...]:
    """Return the remarks that a subtask verifies; none if it is no verification."""
    return state.finishing.to_verify.get(subtask.id, ())


def chosen(state: State) -> tuple[Remark, ...]:
    """Return the remarks that were chosen to be verified, in order."""
    return tuple(each for batch in state.finishing.to_verify.values() for each in batch)


def withheld_from(state: State, remarks: Sequence[Remark]) -> tuple[Place, ...]:
    """Return the lines with a credential in the files of these remarks."""
    files = {each.file: None for each in remarks}
    if not files:
        return ()
    places = {(each.file, each.line): None for each in all_remarks(state) if is_credential(each)}
    return tuple(Place(file=file, line=line) for file, line in places if file in files)


def choose_remarks(state: State) -> tuple[Remark, ...]:
    """Return the first remarks by rank, as many as the playbook says. Those of agents that are not
    sure enough come last, the surest first: agents are told that what they doubt is checked. A
    credential that an analyser found is not among them: it counts whatever is said of it, and its
    line is shown to no model.
    """
    playbook = state.brief.playbook
    assert playbook is not None, "a playbook says how many remarks are verified"
    found = [each for each in all_remarks(state) if not each.summed]
    least, merged = least_confidence(state), merge_remarks(found)
    shown = [each for each in rank_remarks(merged) if not each.hidden and not is_withheld(each)]
    sure = [each for each in shown if each.confidence >= least]
    unsure = [each for each in shown if each.by_agent and each.confidence < least]
    first = _share_room(sure, playbook.verify)
    doubted = sorted(unsure, key=lambda each: -each.confidence)[: playbook.verify - len(first)]
    return _by_severity((*first, *doubted))


def _share_room(remarks: Sequence[Remark], most: int) -> tuple[Remark, ...]:
    """Return at most so many of the ranked remarks. Analysers have half of the room and agents, in
    turns, the other; each may use what the other leaves.
    """
    of_agent: dict[str, list[Remark]] = {}
    analysed = list[Remark]()
    for each in remarks:
        (of_agent.setdefault(each.lens, []) if each.by_agent else analysed).append(each)
    turns = [item for told in of_agent.values() for item in enumerate(told)]
    said = [each for _, each in sorted(turns, key=lambda item: item[0])]
    half = max(most - len(said), most - most // 2)
    return (*analysed[:half], *said[: most - len(analysed[:half])])


def _by_severity(remarks: Sequence[Remark]) -> tuple[Remark, ...]:
    """Return the remarks by severity, among equals in their order: analysers' first."""
    return tuple(sorted(remarks, key=lambda each: SEVERITIES.index(each.severity)))


def all_remarks(state: State) -> list[Remark]:
    """Return what all lenses and agents reported."""
    return [
        remark
        for progress in state.work.values()
        if progress.finding is not None
        for remark in sightings_of(progress.finding).remarks
    ]


def least_confidence(state: State) -> int:
    """Return the least confidence of a shown remark: the caller's, else the playbook's."""
    said, playbook = state.goal.limits.min_confidence, state.brief.playbook
    return said if said is not None else playbook.min_confidence if playbook else 0


def repository(state: State) -> PinnedInput | None:
    pinned = (each for each in state.brief.inputs if each.kind == "repository")
    return next(pinned, None)


def verified_remarks(state: State) -> tuple[Remark, ...]:
    """Return the remarks that a verifier gave a verdict on, with it."""
    return tuple(
        remark
        for key, remarks in state.finishing.to_verify.items()
        for remark in _with_verdicts(state, key, remarks)
    )


def _with_verdicts(state: State, key: str, remarks: Sequence[Remark]) -> Iterator[Remark]:
    progress = state.work.get(key)
    if progress is None or progress.finding is None:
        return
    said = read_verdicts(progress.finding.data, len(remarks))
    for number, remark in enumerate(remarks, 1):
        if (each := said.get(number)) is not None:
            yield remark.model_copy(update={"verdict": each.verdict, "why": each.why})
