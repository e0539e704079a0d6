"""Checks a receipt by itself: whether each leaf is what was signed, and what was changed if not."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from decimal import Decimal, InvalidOperation

from pydantic import ValidationError

from holdfast.contracts import Report
from holdfast.receipts.file import HEAD, Leaf, Receipt, words
from holdfast.receipts.making import unexplained
from holdfast.receipts.resting import rests_on
from holdfast.receipts.signing import has_signed
from holdfast.receipts.tree import leaf_digest, root_of
from holdfast.text import visible

MOST_NAMED = 20
MOST_FINDINGS = 5_000
FEW = 50
"""Changed leaves up to which it is told of each in what it was changed."""


def find_changes(receipt: Receipt, key: str = "", countersigned_by: str = "") -> tuple[str, ...]:
    """Return what is wrong with a receipt, a line each; empty: it is what was signed.

    `key`: the public key that signs, where the caller knows it. `countersigned_by`: one that must
    have signed, too.
    """
    try:
        return tuple(_found(receipt, key, countersigned_by))
    except RecursionError:
        return ("it is nested too deep",)


def _found(receipt: Receipt, key: str, countersigned_by: str) -> list[str]:
    found = [*_Leaves(receipt).changes()]
    named = bool(found)
    found += _signed(receipt, named)
    if not named:
        # Whoever makes the digests anew, or signs himself, has to make anew all that rests on it.
        found += _contradictions(receipt)
    if key and receipt.key != key:
        found.append(f"{receipt.key} signed it, which is not the key that you know")
    found += _countersigned(receipt, countersigned_by)
    left = len(found) - MOST_NAMED
    return [*found[:MOST_NAMED], *([f"and {left} more"] if left > 0 else [])]


# ---------------------------------------------------------------- what was signed


class _Leaves:
    """The leaves as they are, against their digests and what the head lists."""

    def __init__(self, receipt: Receipt) -> None:
        self.receipt, self.head = receipt, receipt.head
        self.digests = {each.name: self._digest(each) for each in receipt.leaves}
        self.changed = {
            each.name: each for each in receipt.leaves if each.digest != self.digests[each.name]
        }

    def _digest(self, leaf: Leaf, name: str = "") -> str:
        run, execution = self.head.get("run", ""), self.head.get("execution", "")
        return leaf_digest(run, execution, name or leaf.name, leaf.holds).hex()

    def changes(self) -> Iterator[str]:
        """Yield what was changed, in a line each."""
        head = self.changed.pop(HEAD, None)
        if HEAD not in self.digests:
            yield f"{words(HEAD)} is missing"
            return
        if head is not None:
            yield f"{words(HEAD)} was changed{self._digest_alone(head)}"
        if head is None:
            yield from self._moved()
        elif len(self.changed) == len(self.receipt.leaves) - 1:
            # Each digest has in it of which run the head is.
            return
        if len(self.changed) > FEW:
            first = words(next(iter(self.changed)))
            yield f"{len(self.changed)} leaves were changed, the first of them {first}"
            return
        while self.changed:
            one = self.changed.pop(next(iter(self.changed)))
            other = next(filter(lambda each: self._swapped(one, each), self.changed.values()), None)
            if other is not None:
                del self.changed[other.name]
                yield f"{words(one.name)} and {words(other.name)} are swapped"
            else:
                yield f"{words(one.name)} was changed{self._digest_alone(one) or _now(one)}"

    def _moved(self) -> Iterator[str]:
        """Yield which leaves are missing, added, renamed or in another place than the head says."""
        there = [each.name for each in self.receipt.leaves]
        listed = self.head.get("leaves")
        wanted = [*map(str, listed)] if isinstance(listed, list) else []
        missing, added = _differences(wanted, there)
        for name in missing[:FEW]:
            now = next((each for each in added[:FEW] if self._renamed(each, name)), "")
            if now:
                added.remove(now)
                yield f"{words(name)} was renamed: {words(now)}"
            else:
                yield f"{words(name)} is missing"
        yield from (f"{words(name)} was added" for name in added)
        for name in added:
            self.changed.pop(name, None)
        if {*wanted} != {*there}:
            return
        wrong = [name for name, other in zip(there, wanted, strict=False) if name != other]
        if len(wrong) == 2:
            yield f"{words(wrong[0])} and {words(wrong[1])} are swapped"
        elif wrong or len(there) != len(wanted):
            yield "the leaves are in another order"

    def _renamed(self, now: str, name: str) -> bool:
        leaf = self.changed.get(now)
        if leaf is None or self._digest(leaf, name) != leaf.digest:
            return False
        del self.changed[now]
        return True

    def _swapped(self, one: Leaf, other: Leaf) -> bool:
        return (
            self._digest(one, other.name) == other.digest
            and self._digest(other, one.name) == one.digest
        )

    def _digest_alone(self, leaf: Leaf) -> str:
        """Return that only its digest differs; empty if what it holds does."""
        digests = [
            self.digests[each.name] if each is leaf else each.digest for each in self.receipt.leaves
        ]
        alone = root_of([*map(bytes.fromhex, digests)]).hex() == self.receipt.root
        return ": its digest" if alone else ""


def _now(leaf: Leaf) -> str:
    """Return what a changed leaf says now, where that is short."""
    holds = leaf.holds
    match leaf.name.partition("/")[0]:
        case "price":
            said = f"${holds.get('dollars')}"
        case "order":
            order = holds.get("order")
            by = order.get("by") if isinstance(order, Mapping) else ""
            said = f"{holds.get('command')} by {by}"
        case "call":
            said = f"{holds.get('kind')}, {holds.get('model') or holds.get('tool')}"
        case _:
            return ""
    return f"; it now says: {visible(said)[:100]}"


def _signed(receipt: Receipt, named: bool) -> Iterator[str]:
    """Yield what is wrong with root, key and signature. `named`: what was changed is told."""
    stated = bytes.fromhex(receipt.root)
    found = root_of([bytes.fromhex(each.digest) for each in receipt.leaves])
    whose = receipt.head.get("key")
    if isinstance(whose, str) and whose != receipt.key and not named:
        if has_signed(whose, stated, receipt.signature):
            yield "the key was changed"
            return
        yield "the key is not the one that the head names"
    if has_signed(receipt.key, stated, receipt.signature):
        if found != stated and not named:
            yield f"leaves and their digests were changed after {receipt.key} had signed them"
    elif found != stated and has_signed(receipt.key, found, receipt.signature):
        yield "the root was changed"
    else:
        yield (
            f"the signature is not that of {receipt.key} over this root: it was changed, or"
            " something was changed, left out or added and the digests made anew"
        )


def _countersigned(receipt: Receipt, wanted: str) -> Iterator[str]:
    root = bytes.fromhex(receipt.root)
    good = set()
    for number, (key, signature) in enumerate(receipt.countersignatures, 1):
        if has_signed(key, root, signature, "countersignature"):
            good.add(key)
        else:
            yield f"countersignature {number} is not that of {key} over this root"
    if wanted and wanted not in good:
        yield f"{wanted} has not countersigned it"


# ---------------------------------------------------------------- what it says of itself


def report_of(receipt: Receipt) -> Report:
    """Return the report in a receipt. Raise ValueError if there is none that can be read."""
    named = receipt.named()
    try:
        return Report.model_validate(
            {
                **named["report"]["report"],
                "answer": named["answer"]["text"],
                "document": named["answer"]["document"],
                "findings": [holds["finding"] for _, holds in receipt.of_kind("finding")],
                "orders": [holds for _, holds in receipt.of_kind("order")],
            }
        )
    except (KeyError, TypeError, ValidationError, RecursionError):
        raise ValueError("the report in it is none that this version can read") from None


def _contradictions(receipt: Receipt) -> Iterator[str]:
    """Yield where leaves do not agree with each other."""
    named = receipt.named()
    try:
        report = report_of(receipt)
        wanted, orders = [*named["report"]["findings"]], named["report"]["orders"]
        rests, total = named["answer"]["rests_on"], named[HEAD]["dollars_of_calls"]
        lacks = [*map(str, named[HEAD]["lacks"])]
    except (KeyError, TypeError):
        yield "it lacks what every receipt has"
        return
    except ValueError as error:
        yield str(error)
        return
    there = [id for id, _ in receipt.of_kind("finding")]
    if len(there) > MOST_FINDINGS:
        yield f"it has more than {MOST_FINDINGS:,} findings, which no run has"
        return
    missing, added = _differences([*map(str, wanted)], there)
    yield from (f"{words(f'finding/{id}')} is missing" for id in missing)
    yield from (f"{words(f'finding/{id}')} was added" for id in added)
    if orders != len(report.orders):
        yield f"the report has {orders} orders, and {len(report.orders)} are here"
    if named[HEAD].get("run") != report.run_id:
        yield f"the report is of another run: {visible(report.run_id)[:100]}"
    if rests != rests_on(report) and not missing:
        yield "the answer does not rest on the findings that are named for it"
    yield from _missing_calls(receipt)
    if (added_up := _sum_prices(receipt)) != total:
        said = visible(str(total))[:40]
        yield f"the prices of the calls add up to ${added_up}, and the head says ${said}"
    elif any(each not in lacks for each in unexplained(report, total)):
        yield f"the report counts ${report.dollars}, the calls ${total}, and nothing says why"


def _missing_calls(receipt: Receipt) -> Iterator[str]:
    """Yield which calls findings or the answer name that are not here, and which histories calls
    name.
    """
    calls = dict(receipt.of_kind("call"))
    histories = {name for name, _ in receipt.of_kind("history")}
    of_calls = dict.fromkeys(str(each.get("history")) for each in calls.values())
    for each in of_calls:
        if each not in histories:
            yield f"{words(f'history/{each}')} is missing, which calls name"
    parts = (*receipt.of_kind("finding"), ("", receipt.named()["answer"]))
    for name, holds in parts:
        told = holds.get("calls")
        named = [*map(str, told)] if isinstance(told, list) else [""]
        missing = [each for each in named if each not in calls]
        whose = words(f"finding/{name}") if name else words("answer")
        yield from (f"{words(f'call/{each}')} of {whose} is missing" for each in missing)


def _sum_prices(receipt: Receipt) -> str | None:
    prices = [holds.get("dollars") for _, holds in receipt.of_kind("price")]
    try:
        return None if None in prices else str(sum(map(Decimal, map(str, prices)), Decimal(0)))
    except InvalidOperation:
        return "?"


def _differences(wanted: Sequence[str], there: Sequence[str]) -> tuple[list[str], list[str]]:
    """Return what is wanted and not there, and what is there and not wanted."""
    one, other = {*wanted}, {*there}
    return [each for each in wanted if each not in other], [
        each for each in there if each not in one
    ]
