"""Makes the leaves of a receipt: from a run's report, from the steps of its trace, and from the
digests of its histories. Nothing is told here that one of these does not have.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from decimal import Decimal
from typing import Any, Literal

from holdfast.contracts import Report
from holdfast.receipts.file import HEAD, Leaf, Receipt
from holdfast.receipts.resting import rests_on
from holdfast.receipts.tree import leaf_digest, root_of
from holdfast.rules.prices import LOST
from holdfast.text import pluralize
from holdfast.tracing.steps import TraceStep

Json = dict[str, Any]
Journal = Literal["same", "other", "gone", ""]
"""How the recorded answer of a call compares with the history; empty: it has none to compare."""
SHOWN = ("call", "tool", "lens")
BELOW = ("agent", "team", "map")
INPUT_FIELDS = {"name", "kind", "size", "digest", "commit", "base", "base_name", "scope"}
HOLDS = (
    "the report, which quotes inputs where findings, remarks and orders do, and digests; inputs"
    " themselves and prompts are not here"
)
HOLDS_ALL = (
    "the report, digests, and what each call was given and answered, inputs too; the prompts that"
    " were made of it are not here, and of rows of maps there are digests alone"
)


@dataclass(frozen=True)
class Digests:
    """What the history and the journal have of one call."""

    events: tuple[int, ...]
    """The events that scheduled and ended it."""
    asked: str = ""
    answered: str = ""
    recorded: str = ""
    """SHA-256 of the answer as the journal has it."""
    journal: Journal = ""


@dataclass(frozen=True)
class History:
    """One history as it was read, of the run or of an agent or team below it."""

    workflow: str
    execution: str
    events: int
    digest: str
    """Empty: a part of it is gone from the store."""
    lost: int = 0
    """Events of which a payload is gone from the store."""
    unreadable: str = ""
    calls: Mapping[str, Digests] = field(default_factory=dict)
    """By the ids of their steps in the trace."""


@dataclass(frozen=True)
class Material:
    """All that a receipt is made of."""

    report: Report
    execution: str
    steps: Sequence[TraceStep]
    histories: Sequence[History]
    unread: Sequence[str]
    """Agents, teams and maps whose histories the server has deleted."""
    version: str
    made: str
    single: str = ""
    """The only subtask, whose finding is the answer as it stands."""
    content: bool = False


def make_receipt(
    material: Material, key: str, sign: Callable[[bytes], str], blot: Callable[[Any], Any]
) -> Receipt:
    """Return the signed receipt. `key` is the public one, `blot` takes secrets out of a leaf."""
    # Where sentences stand is counted in what is shown.
    shown = Report.model_validate(blot(material.report.model_dump(mode="json")))
    material = replace(material, report=shown)
    run, execution = shown.run_id, material.execution
    leaves = {name: blot(holds) for name, holds in _Leaves(material).all()}
    head = leaves[HEAD]
    head |= {"key": key, "leaves": [*leaves]}
    made = [(name, leaf_digest(run, execution, name, holds)) for name, holds in leaves.items()]
    root = root_of([digest for _, digest in made])
    listed = tuple(Leaf(name, digest.hex(), leaves[name]) for name, digest in made)
    return Receipt(root.hex(), key, sign(root), listed)


@dataclass
class _Leaves:
    material: Material
    by_subtask: dict[str, list[str]] = field(default_factory=dict)
    """The calls of each subtask of the run; of the run itself under the empty name."""

    def all(self) -> Iterator[tuple[str, Json]]:
        calls = [*self._calls()]
        priced = [(name, holds) for name, holds in calls if name.startswith("price/")]
        yield HEAD, self._head([holds["dollars"] for _, holds in priced])
        yield "report", self._report()
        yield "answer", self._answer()
        yield from self._findings()
        for number, given in enumerate(self.material.report.orders, 1):
            yield f"order/{number}", given.model_dump(mode="json")
        yield from calls
        for each in self.material.histories:
            yield f"history/{each.workflow}", _history(each)

    def _head(self, prices: Sequence[str | None]) -> Json:
        report, material = self.material.report, self.material
        known = [Decimal(each) for each in prices if each is not None]
        total = str(sum(known, Decimal(0))) if len(known) == len(prices) else None
        return {
            "run": report.run_id,
            "execution": material.execution,
            "made": material.made,
            "version": material.version,
            "holds": HOLDS_ALL if material.content else HOLDS,
            "dollars_of_calls": total,
            "lacks": [*_lacks(material, total)],
        }

    def _report(self) -> Json:
        report = self.material.report
        apart = {"answer", "document", "findings", "orders", "inputs"}
        told = report.model_dump(mode="json", exclude=apart)
        fields = None if self.material.content else INPUT_FIELDS
        told["inputs"] = [each.model_dump(mode="json", include=fields) for each in report.inputs]
        ids = [each.subtask_id for each in report.findings]
        return {"report": told, "findings": ids, "orders": len(report.orders)}

    def _answer(self) -> Json:
        report = self.material.report
        return {
            "text": report.answer,
            "document": report.document,
            "rests_on": rests_on(report),
            "is_finding": self.material.single,
            "calls": self.by_subtask.get("", []),
        }

    def _findings(self) -> Iterator[tuple[str, Json]]:
        for each in self.material.report.findings:
            made = {"finding": each.model_dump(mode="json")}
            yield (
                f"finding/{each.subtask_id}",
                {**made, "calls": self.by_subtask.get(each.subtask_id, [])},
            )

    def _calls(self) -> Iterator[tuple[str, Json]]:
        run = self.material.report.run_id
        digests = {
            id: each for found in self.material.histories for id, each in found.calls.items()
        }
        tops = _subtasks(self.material.steps, run)
        inside = {each.run for each in self.material.steps}
        for step in self.material.steps:
            shut = step.kind in BELOW and step.id not in inside
            if step.kind not in SHOWN and not shut:
                continue
            name = step.id.removeprefix(run).lstrip("/.")
            subtask = tops.get(step.id, "")
            self.by_subtask.setdefault(subtask, []).append(name)
            found = digests.get(step.id, Digests(()))
            yield f"call/{name}", _call(step, subtask, found)
            if step.kind == "call" or shut:
                yield f"price/{name}", _price(step)
            if self.material.content and step.kind in SHOWN:
                yield f"content/{name}", {"asked": step.input, "answered": step.output}


def _call(step: TraceStep, subtask: str, found: Digests) -> Json:
    return {
        "kind": step.call or step.kind,
        "subtask": subtask,
        "role": step.agent,
        "tier": step.tier,
        "model": step.model,
        "tool": step.tool,
        "rows": step.rows,
        "outcomes": step.outcomes,
        "approved_by": step.by,
        "status": step.status,
        "verdict": step.verdict,
        "try": step.try_number,
        "history": step.run,
        "events": [*found.events],
        "asked": found.asked,
        "answered": found.answered,
        "recorded": found.recorded,
        "journal": found.journal,
    }


def _price(step: TraceStep) -> Json:
    told = step.model_dump(mode="json", include={"dollars", "assumed", "tokens", "model"})
    return {**told, "dollars": None if step.dollars is None else str(step.dollars)}


def _history(history: History) -> Json:
    return {
        "execution": history.execution,
        "events": history.events,
        "digest": history.digest,
        "lost": history.lost,
    }


def _subtasks(steps: Iterable[TraceStep], run: str) -> dict[str, str]:
    """Return the subtask of the run itself that each step belongs to, by the step's id."""
    by_id = {each.id: each for each in steps}
    found: dict[str, str] = {}
    for each in by_id.values():
        at: TraceStep | None = each
        for _ in by_id:
            if at is None or (at.kind == "subtask" and at.run == run):
                break
            at = by_id.get(at.parent)
        # Where its history cannot be read, a run has no subtasks, and its calls name theirs.
        found[each.id] = at.name if at else each.subtask if each.run == run else ""
    return found


def _lacks(material: Material, total: str | None) -> Iterator[str]:
    """Yield what cannot be shown any more, a sentence each."""
    report, histories = material.report, material.histories
    for each in material.unread:
        yield f"The server has deleted the history of {each}: one price stands for its calls."
    for found in histories:
        if found.lost:
            events = pluralize(found.lost, "event")
            yield (
                f"Of {events} of {found.workflow} the content is gone from the store:"
                " there are no digests of it."
            )
        elif found.unreadable:
            yield f"The history of {found.workflow} cannot be followed: {found.unreadable}."
    compared = [each for found in histories for each in found.calls.values() if each.journal]
    if gone := sum(each.journal == "gone" for each in compared):
        of = f"{gone} of {pluralize(len(compared), 'answer')}"
        yield f"The journal no longer has {of} of models: the history alone tells these."
    for found in histories:
        for id, call in found.calls.items():
            if call.journal == "other":
                yield f"The journal's answer of {id} is not what the history has."
    for finding in report.findings:
        if finding.reused_from:
            yield (
                f"The finding of {finding.subtask_id} was taken over from run"
                f" {finding.reused_from}: its calls stand in that run's receipt."
            )
    yield from unexplained(report, total)


def unexplained(report: Report, total: str | None) -> Iterator[str]:
    """Yield why a report counts other dollars than its calls come to. Nothing if it does not."""
    if total is None or report.dollars is None:
        yield "Some model has no known price: prices are not added up."
        return
    lost = [each.dollars or Decimal(0) for each in report.shares if each.kind == LOST]
    undone = sum(lost, Decimal(0))
    if undone:
        yield f"Calls of ${undone} were undone by a reset of the run, and are not listed."
    rest = report.dollars - undone - Decimal(total)
    if rest:
        yield (
            f"The report counts ${report.dollars} and the calls here ${total}: for the rest"
            " reservations count whose calls nobody can tell."
        )
