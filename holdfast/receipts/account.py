"""What a receipt says, in lines for people."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from decimal import Decimal
from typing import Any

from holdfast.contracts import Report
from holdfast.history.charges import OF_MAPS
from holdfast.receipts.checking import report_of
from holdfast.receipts.file import Receipt
from holdfast.receipts.making import HOLDS, HOLDS_ALL
from holdfast.rendering.amounts import at_most, calls, money
from holdfast.rendering.orders import PAST
from holdfast.text import one_line, pluralize

MOST_CALLS = 20
QUOTED = 200
"""Letters quoted of a sentence."""
UNNAMED = "names no finding"
NOT_COMPARED = "not compared: --countersigned-by"
OF_ITSELF = "says of itself"


def account(receipt: Receipt, key: str = "", countersigned_by: str = "") -> Iterator[str]:
    """Yield what a whole receipt says. `key`, `countersigned_by`: the public keys that those in it
    were compared with.
    """
    head, report = receipt.head, report_of(receipt)
    price = at_most(report.dollars, report.assumed)
    at, by = (one_line(str(head.get(each)))[:40] for each in ("made", "version"))
    made = f"made {at} by holdfast {by}"
    yield f"{one_line(report.title or report.goal)[:QUOTED]}: {report.status}, {price}; {made}"
    known = "the key that you know" if key else "compared with no key that you know: give --key"
    yield f"signed by {receipt.key} ({known})"
    for public in dict.fromkeys(public for public, _ in receipt.countersignatures):
        compared = "the key that you know" if public == countersigned_by else NOT_COMPARED
        yield f"countersigned by {public} ({compared})"
    yield _counts(receipt, report)
    yield from _orders(report)
    yield _sentences(receipt)
    if head.get("holds") in (HOLDS, HOLDS_ALL):
        yield f"holds {head['holds']}"
    else:
        yield f"{OF_ITSELF}: it holds {one_line(str(head.get('holds')))}"
    yield from (f"{OF_ITSELF}: {one_line(str(each))}" for each in head.get("lacks", ()))


def _counts(receipt: Receipt, report: Report) -> str:
    made = [holds for _, holds in receipt.of_kind("call")]
    tools, lenses = (sum(each.get("kind") == kind for each in made) for kind in ("tool", "lens"))
    asked, rows = Counter[str](), Counter[str]()
    for each in made:
        if each.get("rows"):
            rows[str(each.get("model"))] += int(each["rows"])
        elif each.get("tier") and each.get("kind") not in OF_MAPS:
            asked[str(each.get("model"))] += 1
    findings = pluralize(len(report.findings), "finding")
    of_models = f"{calls(sum(asked.values()))}{_served(asked)}"
    if rows:
        about = pluralize(sum(rows.values()), "call")
        of_models = f"{of_models}, {about} about rows{_served(rows)}"
    looked = f", {pluralize(lenses, 'look')} of lenses" if lenses else ""
    return f"{findings}, {of_models}, {pluralize(tools, 'call')} of tools{looked}"


def _served(asked: Mapping[str, int]) -> str:
    told = ", ".join(f"{one_line(name)[:80]} {count:,}" for name, count in sorted(asked.items()))
    return f" ({told})" if told else ""


def _orders(report: Report) -> Iterator[str]:
    done = [each for each in report.orders if not each.refused]
    for given in done:
        what = PAST.get(given.command, given.command).replace("{what}", given.order.what)
        subject = f" {given.order.subtask_id}" if given.order.subtask_id else ""
        about = f": {given.about}" if given.about else ""
        who = given.order.by or "somebody"
        yield one_line(f"{who} {what}{subject}{about}")[:300]
    if not any(each.command in ("approve", "edit") and not each.order.call for each in done):
        yield "no person approved the plan"


def _sentences(receipt: Receipt) -> str:
    answer = receipt.named()["answer"]
    rests = answer["rests_on"]
    if answer.get("is_finding"):
        return f"the answer is the finding of {one_line(str(answer['is_finding']))[:100]}"
    named = sum(bool(each["findings"]) for each in rests)
    if not rests:
        return "it has no answer"
    if answer.get("document") is not None:
        return f"the answer is data; its texts name {len(rests[0]['findings'])} findings"
    of = pluralize(len(rests), "sentence")
    return f"{named} of {of} of the answer {'names its' if named == 1 else 'name their'} findings"


# ---------------------------------------------------------------- sentence by sentence


def sentences(receipt: Receipt) -> Iterator[str]:
    """Yield each sentence of the answer, then on what it rests: findings, calls, prices, and who
    approved them; then what no sentence rests on.
    """
    named = receipt.named()
    answer = named["answer"]
    alone, told = answer.get("is_finding"), set[str]()
    for each in answer["rests_on"]:
        whole = "the answer, which is data"
        said = answer["text"][each["from"] : each["to"]] if "from" in each else whole
        yield f"“{one_line(said)[:QUOTED]}”"
        found = each["findings"] or ([alone] if alone else [])
        if not found:
            yield f"    {UNNAMED}"
        for id in found:
            above = f"[{one_line(id)}], as above"
            yield f"    {above if id in told else _finding(named, id)}"
            told.add(id)
    written = answer.get("calls", ())
    if written:
        yield f"{'Plan and answer' if answer['rests_on'] else 'Plan'}: {_listed(named, written)}"
    findings = dict(receipt.of_kind("finding"))
    for id in findings:
        if id not in told:
            yield f"In no sentence: {_finding(named, id)}"
    of_all = {*written, *(id for holds in findings.values() for id in holds["calls"])}
    if left := [id for id, _ in receipt.of_kind("call") if id not in of_all]:
        yield f"In no finding: {_listed(named, left)}"


def _finding(named: Mapping[str, Mapping[str, Any]], id: str) -> str:
    holds = named[f"finding/{id}"]
    made, paid = holds["finding"], holds["calls"]
    price = None if made.get("dollars") is None else Decimal(str(made["dollars"]))
    from_run = (
        f", taken over from {one_line(made['reused_from'])}" if made.get("reused_from") else ""
    )
    return f"[{one_line(id)}] {made['status']}, {money(price)}{from_run}: {_listed(named, paid)}"


def _listed(named: Mapping[str, Mapping[str, Any]], ids: Sequence[str]) -> str:
    told = [_call(named, id) for id in ids[:MOST_CALLS]]
    left = len(ids) - MOST_CALLS
    return ", ".join([*told, *([f"and {left} more"] if left > 0 else [])]) or "no call"


def _call(named: Mapping[str, Mapping[str, Any]], id: str) -> str:
    call, price = named[f"call/{id}"], named.get(f"price/{id}")
    told = [str(call.get("model") or call.get("tool") or "")]
    if price is not None:
        told.append(money(None if price["dollars"] is None else Decimal(str(price["dollars"]))))
    if call.get("rows"):
        told.append(pluralize(int(call["rows"]), "answer"))
    if call.get("status") != "ok":
        told.append(str(call.get("status")))
    if call.get("approved_by"):
        told.append(f"approved by {call['approved_by']}")
    return one_line(f"{id} ({', '.join(filter(None, told))})")[:200]
