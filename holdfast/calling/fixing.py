"""Choose the remarks that a model proposes a patch for, and tell what became of each. Pure.

Asked for by the input `fix`. A model writes a patch for a confirmed remark; a free activity tries
it on a copy. Nothing is applied.
"""

from __future__ import annotations

from collections.abc import Iterable

from holdfast.calling import proving, verifying
from holdfast.calls.about import About
from holdfast.calls.fix import Edit, FixMaterial, TryFixMaterial
from holdfast.calls.prove import Script
from holdfast.contracts import Fix, Problem, Remark, policies
from holdfast.contracts.remarks import is_credential
from holdfast.state.run import State

FIX_INPUT = "fix"
"""The input that asks for patches."""


def is_wanted(state: State) -> bool:
    named = any(each.name == FIX_INPUT for each in state.brief.inputs)
    return named and verifying.is_wanted(state)


def to_fix(state: State) -> tuple[tuple[int, Remark], ...]:
    """Return the confirmed criticals and then warnings that get a patch, each with its place among
    those that were verified, which names its calls.
    """
    if not is_wanted(state):
        return ()
    return _wanted(state)[: policies.FIXED]


def _wanted(state: State) -> tuple[tuple[int, Remark], ...]:
    said = {proving.key_of(each): each for each in verifying.verified_remarks(state)}
    found = (
        (place, said.get(proving.key_of(each), each))
        for place, each in enumerate(verifying.chosen(state))
    )
    return proving.by_need(
        (place, each)
        for place, each in found
        if each.verdict == "confirmed" and each.severity != "info" and not is_credential(each)
    )


def edit_of(state: State, place: int) -> Edit | None:
    said = state.finishing.proofs.get(proving.purpose_of("fix", place))
    return said if isinstance(said, Edit) else None


def shown_by(state: State, place: int) -> Script | None:
    """Return the script that showed a remark by running; None if none did."""
    for again in (proving.AGAIN, proving.FIRST):
        tried = proving.tried_of(state, place, again)
        if tried is not None and tried.verdict in ("proved", "shown"):
            return proving.script_of(state, place, again)
    return None


def material(state: State, place: int, remark: Remark, broken: Problem | None) -> FixMaterial:
    pinned = verifying.repository(state)
    assert pinned is not None, "remarks of a repository are mended"
    return FixMaterial(
        repository=pinned,
        remark=remark,
        by=proving.way_of(state) or "sandbox",
        withheld=proving.list_withheld(state, remark.file),
        script=shown_by(state, place),
        broken=broken,
        about=About(today=state.brief.today),
    )


def try_material(state: State, place: int, remark: Remark) -> TryFixMaterial | None:
    """Return the edit to try; None: there is none."""
    pinned, edit = verifying.repository(state), edit_of(state, place)
    if pinned is None or edit is None or not edit.old:
        return None
    return TryFixMaterial(
        repository=pinned,
        remark=remark,
        edit=edit,
        script=shown_by(state, place),
        by=proving.way_of(state) or "sandbox",
    )


def add_fixes(state: State, verified: Iterable[Remark]) -> tuple[Remark, ...]:
    """Return the verified remarks, those to be mended with what became of their patch."""
    if not is_wanted(state):
        return tuple(verified)
    fixes = {proving.key_of(remark): _fix(state, place) for place, remark in _wanted(state)}
    return tuple(
        each.model_copy(update={"fix": fixes[proving.key_of(each)]})
        if proving.key_of(each) in fixes
        else each
        for each in verified
    )


def _fix(state: State, place: int) -> Fix:
    tried = state.finishing.proofs.get(proving.purpose_of("try_fix", place))
    if isinstance(tried, Fix):
        return tried
    if place not in [each for each, _ in to_fix(state)]:
        return Fix(why=f"only the first {policies.FIXED} confirmed remarks get a patch")
    edit = edit_of(state, place)
    if edit is not None and not edit.old:
        return Fix(why=edit.why)
    if proving.purpose_of("fix", place) in state.finishing.given_up:
        return Fix(why="the call for it brought nothing, or it could not be tried")
    return Fix(why=state.stop.why if state.stop else proving.NO_MONEY)
