"""Choose the remarks that a model verifies, batch them, and apply its verdicts. Pure.

The analysers' remarks stand whatever a model says: a verdict is added, and no remark removed.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence

from holdfast.calls.about import About
from holdfast.calls.verify import Place, Verdict, Verdicts, VerifyMaterial
from holdfast.contracts import PinnedInput, Problem, Remark, policies
from holdfast.contracts.remarks import (
    SEVERITIES,
    is_credential,
    is_from_agent,
    merge_remarks,
    rank_remarks,
    sightings_of,
)
from holdfast.contracts.replacing import replace
from holdfast.state.run import State


def is_wanted(state: State) -> bool:
    playbook = state.brief.playbook
    asked = playbook is not None and playbook.verify > 0 and state.goal.use_models
    return asked and repository(state) is not None


def choose_remarks(state: State) -> State:
    """Choose the remarks to verify, once the lenses have ended."""
    playbook = state.brief.playbook
    if playbook is None or not is_wanted(state):
        return state
    found = [each for each in all_remarks(state) if not each.summed]
    least, merged = least_confidence(state), merge_remarks(found)
    shown = [each for each in merged if each.confidence >= least and not each.hidden]
    agents = {each.subtask_id for each in state.findings if is_from_agent(each)}
    first = _share_room(rank_remarks(shown), agents, playbook.verify)
    return replace(state, finishing=replace(state.finishing, to_verify=first))


def _share_room(
    remarks: Sequence[Remark], agents: Collection[str], most: int
) -> tuple[Remark, ...]:
    """Return at most so many of the ranked remarks, by severity, among equals those of analysers
    first. Analysers have half of the room and agents, in turns, the other; each may use what the
    other leaves.
    """
    of_agent: dict[str, list[Remark]] = {}
    analysed = list[Remark]()
    for each in remarks:
        (of_agent.setdefault(each.lens, []) if each.lens in agents else analysed).append(each)
    turns = [item for told in of_agent.values() for item in enumerate(told)]
    said = [each for _, each in sorted(turns, key=lambda item: item[0])]
    half = max(most - len(said), most - most // 2)
    first = [*analysed[:half], *said[: most - len(analysed[:half])]]
    return tuple(sorted(first, key=lambda each: SEVERITIES.index(each.severity)))


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


def batches(state: State) -> int:
    return _calls(state.finishing.to_verify)


def second_batches(state: State) -> range:
    """Return the places of the batches for a stronger model: of what is undecided."""
    first = batches(state)
    return range(first, first + _calls(_undecided(state)))


def _calls(remarks: Sequence[Remark]) -> int:
    return -(-len(remarks) // policies.VERIFIED_AT_ONCE)


def _undecided(state: State) -> tuple[Remark, ...]:
    """Return the remarks that the first look left undecided, though their place exists."""
    return tuple(
        remark
        for place in range(batches(state))
        for remark, said in _verdicts(state, place)
        if said.verdict == "undecided" and not said.absent
    )


def _verdicts(state: State, place: int) -> Iterator[tuple[Remark, Verdict]]:
    verdicts = state.finishing.verified.get(place)
    return zip(_batch(state, place), verdicts.verdicts if verdicts else (), strict=bool(verdicts))


def material(state: State, place: int, broken: Problem | None) -> VerifyMaterial:
    remarks = _batch(state, place)
    files = tuple(each.file for each in remarks)
    places = {(each.file, each.line): None for each in all_remarks(state) if is_credential(each)}
    pinned = repository(state)
    assert pinned is not None, "remarks are chosen of a repository only"
    return VerifyMaterial(
        repository=pinned,
        remarks=remarks,
        withheld=tuple(Place(file=file, line=line) for file, line in places if file in files),
        broken=broken,
        about=About(today=state.brief.today),
    )


def verified_remarks(state: State) -> tuple[Remark, ...]:
    """Return the verified remarks, each with its last verdict."""
    later = [each for place in second_batches(state) for each in _verdicts(state, place)]
    said_later = [remark for remark, _ in later]
    first = [each for place in range(batches(state)) for each in _verdicts(state, place)]
    return tuple(
        remark.model_copy(update={"verdict": said.verdict, "why": said.why})
        for remark, said in (*(each for each in first if each[0] not in said_later), *later)
    )


def take_verdicts(state: State, place: int, verdicts: Verdicts) -> State:
    said = {**state.finishing.verified, place: verdicts}
    return replace(state, finishing=replace(state.finishing, verified=said))


def _batch(state: State, place: int) -> tuple[Remark, ...]:
    remarks, first = state.finishing.to_verify, place * policies.VERIFIED_AT_ONCE
    if place >= batches(state):
        remarks, first = _undecided(state), first - batches(state) * policies.VERIFIED_AT_ONCE
    return remarks[first : first + policies.VERIFIED_AT_ONCE]
