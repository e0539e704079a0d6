"""Choose the remarks to prove, and tell what became of each proof. Pure.

A model writes a script for a confirmed critical; a free activity runs it on the head and on the
base. What does not run is written once more. A proof takes no remark away.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from holdfast.calling import verifying
from holdfast.calls.about import About
from holdfast.calls.fix import Edit
from holdfast.calls.prove import ProveMaterial, Script, Tried, TryMaterial, Way, untried
from holdfast.calls.verify import Place
from holdfast.contracts import Contract, Fix, Problem, Proof, Remark
from holdfast.contracts.remarks import SEVERITIES, is_credential
from holdfast.contracts.replacing import replace
from holdfast.state.run import State

FIRST, AGAIN = "", "-again"
"""What the purposes of the two tries at a proof end with."""
PROVE_INPUT = "prove"
"""The input that says that nothing is to be run."""
PYTHON = (".py", ".pyi")
BEYOND = "only the first {} confirmed criticals are tried"
NO_MONEY = "the rest of the budget does not cover it"
ONLY_PYTHON = "the sandbox runs Python only; a test could be run with HOLDFAST_TEST_COMMAND"


def is_wanted(state: State) -> bool:
    playbook, proving = state.brief.playbook, state.brief.proving
    asked = playbook is not None and playbook.prove > 0 and proving is not None
    return asked and verifying.is_wanted(state)


def way_of(state: State) -> Way | None:
    """Return how this deployment can run a proof; None: not at all."""
    proving = state.brief.proving
    return proving.by or None if proving else None


def to_prove(state: State) -> tuple[tuple[int, Remark], ...]:
    """Return the remarks that a model is to prove, each with its place among those that were
    verified, which names its calls.
    """
    playbook, way = state.brief.playbook, way_of(state)
    if playbook is None or way is None or not is_wanted(state):
        return ()
    runnable = [each for each in _confirmed(state) if not _why_not(each[1], way)]
    return by_need(runnable)[: playbook.prove]


def by_need(remarks: Iterable[tuple[int, Remark]]) -> tuple[tuple[int, Remark], ...]:
    """Return confirmed remarks in the order in which they are worth a call: by severity, then by
    confidence, then those in production code that the change touched.
    """

    def order(item: tuple[int, Remark]) -> tuple[int, int, bool]:
        remark = item[1]
        touched = remark.kind == "production" and not remark.new_since
        return SEVERITIES.index(remark.severity), -remark.confidence, not touched

    return tuple(sorted(remarks, key=order))


def _confirmed(state: State) -> Iterator[tuple[int, Remark]]:
    """Yield the confirmed criticals by rank. A credential has nothing to run."""
    said = {key_of(each): each for each in verifying.verified_remarks(state)}
    for place, remark in enumerate(verifying.chosen(state)):
        verified = said.get(key_of(remark), remark)
        confirmed = verified.severity == "critical" and verified.verdict == "confirmed"
        if confirmed and not is_credential(verified):
            yield place, verified


def key_of(remark: Remark) -> tuple[str, ...]:
    """Return what tells a remark from every other, whatever was said of it later."""
    where = (str(remark.line), str(remark.column))
    return (remark.lens, remark.rule, remark.file, *where, remark.message)


def _why_not(remark: Remark, way: Way) -> str:
    """Return why nothing can be run for a remark; empty if something can."""
    if way == "sandbox" and not remark.file.endswith(PYTHON):
        return ONLY_PYTHON
    return ""


def purpose_of(kind: str, place: int, again: str = FIRST) -> str:
    return f"{kind}-{place + 1}{again}"


def script_of(state: State, place: int, again: str) -> Script | None:
    said = state.finishing.proofs.get(purpose_of("prove", place, again))
    return said if isinstance(said, Script) else None


def tried_of(state: State, place: int, again: str) -> Tried | None:
    said = state.finishing.proofs.get(purpose_of("try_proof", place, again))
    return said if isinstance(said, Tried) else None


def needs_another(state: State, place: int) -> bool:
    """True if the first script did not run, and another may."""
    tried = tried_of(state, place, FIRST)
    return tried is not None and tried.verdict == "not tried" and not tried.final


def material(
    state: State, place: int, remark: Remark, again: str, broken: Problem | None
) -> ProveMaterial:
    pinned, way = verifying.repository(state), way_of(state)
    assert pinned is not None and way is not None, "remarks are chosen where they can be proved"
    return ProveMaterial(
        repository=pinned,
        remark=remark,
        by=way,
        withheld=list_withheld(state, remark.file),
        script=script_of(state, place, FIRST) if again else None,
        tried=tried_of(state, place, FIRST) if again else None,
        broken=broken,
        about=About(today=state.brief.today),
    )


def list_withheld(state: State, file: str) -> tuple[Place, ...]:
    seen = (each for each in verifying.all_remarks(state) if each.file == file)
    lines = dict.fromkeys(each.line for each in seen if is_credential(each))
    return tuple(Place(file=file, line=line) for line in lines)


def try_material(state: State, place: int, remark: Remark, again: str) -> TryMaterial | None:
    """Return the script of a try to run; None: there is none."""
    pinned, way, script = verifying.repository(state), way_of(state), script_of(state, place, again)
    if pinned is None or way is None or script is None or not script.text:
        return None
    return TryMaterial(repository=pinned, remark=remark, script=script, by=way)


def take(state: State, purpose: str, value: Contract) -> State:
    """Take in a script or a patch, or how it ended."""
    assert isinstance(value, Script | Tried | Edit | Fix)
    said = {**state.finishing.proofs, purpose: value}
    return replace(state, finishing=replace(state.finishing, proofs=said))


def add_proofs(state: State, verified: Iterable[Remark]) -> tuple[Remark, ...]:
    """Return the verified remarks, confirmed criticals with what became of their proof."""
    if not is_wanted(state):
        return tuple(verified)
    proofs = {key_of(remark): _proof(state, place, remark) for place, remark in _confirmed(state)}
    return tuple(
        each.model_copy(update={"proof": proofs[key_of(each)]}) if key_of(each) in proofs else each
        for each in verified
    )


def _proof(state: State, place: int, remark: Remark) -> Proof:
    playbook, proving, way = state.brief.playbook, state.brief.proving, way_of(state)
    assert playbook is not None and proving is not None
    if way is None:
        return untried(proving.lacking)
    if why := _why_not(remark, way):
        return untried(why)
    if place not in [each for each, _ in to_prove(state)]:
        return untried(BEYOND.format(playbook.prove))
    for again in (AGAIN, FIRST):
        script, tried = script_of(state, place, again), tried_of(state, place, again)
        if script is None:
            continue
        if not script.text:
            return untried(script.why)
        if tried is not None:
            return Proof(
                verdict=tried.verdict,
                why=tried.why,
                shows=script.shows,
                script=tried.script,
                path=script.path,
                output=tried.output,
            )
    return untried(_why_unasked(state, place))


def _why_unasked(state: State, place: int) -> str:
    if purpose_of("prove", place) in state.finishing.given_up:
        return "the call for it brought nothing, or its script could not be run"
    return state.stop.why if state.stop else NO_MONEY
