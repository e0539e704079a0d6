"""A receipt says what a run came to, and its check names what was changed since it was signed."""

from __future__ import annotations

import json
import random
from collections.abc import Callable, Mapping
from dataclasses import replace
from decimal import Decimal
from hashlib import sha256
from typing import Any

import pytest

from holdfast.contracts import Share
from holdfast.receipts.account import account, sentences
from holdfast.receipts.checking import find_changes
from holdfast.receipts.file import HEAD, Leaf, NotReceipt, Receipt, words
from holdfast.receipts.making import Digests, History
from holdfast.receipts.resting import sentences as places
from holdfast.receipts.signing import public_of, sign
from holdfast.receipts.tree import LEAF, NODE, canonical, leaf_digest, root_of
from holdfast.untrusted.known_secrets import KnownSecrets
from receipted import ANSWER, OURS, THEIRS, call, material_of, receipt_of, report_of, steps_of

WHOLE = receipt_of()
CONTENT = WHOLE.dump()
Holds = dict[str, Any]


def changed(name: str, change: Callable[[Holds], object], of: Receipt = WHOLE) -> Receipt:
    """The receipt with one leaf changed, and nothing else."""
    leaves = [
        replace(each, holds=_with(each.holds, change)) if each.name == name else each
        for each in of.leaves
    ]
    return replace(of, leaves=tuple(leaves))


def _with(holds: Mapping[str, Any], change: Callable[[Holds], object]) -> Holds:
    copy = json.loads(json.dumps(holds))
    change(copy)
    return dict(copy)


def remade(receipt: Receipt, key: Any = None) -> Receipt:
    """The receipt with digests and root made anew, and signed by another key if there is one."""
    head = receipt.head
    if key is not None:
        public = public_of(key)
        receipt = changed(HEAD, lambda holds: holds.update(key=public), receipt)
        receipt = replace(receipt, key=public)
    digests = [
        leaf_digest(head["run"], head["execution"], each.name, each.holds)
        for each in receipt.leaves
    ]
    leaves = tuple(
        replace(each, digest=digest.hex())
        for each, digest in zip(receipt.leaves, digests, strict=True)
    )
    root = root_of(digests)
    signature = sign(key, root) if key is not None else receipt.signature
    return replace(receipt, leaves=leaves, root=root.hex(), signature=signature)


def without(name: str, of: Receipt = WHOLE) -> Receipt:
    return replace(of, leaves=tuple(each for each in of.leaves if each.name != name))


def swapped(one: str, other: str) -> Receipt:
    leaves = {each.name: each for each in WHOLE.leaves}
    order = [{one: other, other: one}.get(each.name, each.name) for each in WHOLE.leaves]
    return replace(WHOLE, leaves=tuple(leaves[name] for name in order))


def exchanged(one: str, other: str) -> Receipt:
    holds = WHOLE.named()
    put = {one: holds[other], other: holds[one]}
    leaves = [replace(each, holds=put.get(each.name, each.holds)) for each in WHOLE.leaves]
    return replace(WHOLE, leaves=tuple(leaves))


def test_a_whole_receipt_is_read_as_it_was_written_and_nothing_is_found_in_it() -> None:
    read = Receipt.load(CONTENT)
    assert read.dump() == CONTENT and CONTENT.isascii()
    assert find_changes(read) == ()
    assert find_changes(read, public_of(OURS)) == ()


def test_the_root_is_that_of_rfc_6962_over_named_leaves_of_one_run() -> None:
    a, b, c = (bytes([each]) * 32 for each in range(3))
    pair = sha256(NODE + a + b).digest()
    assert root_of([a]) == a and root_of([a, b]) == pair
    assert root_of([a, b, c]) == sha256(NODE + pair + c).digest()
    told = b'["r1","x","order/1",{"by":"anna"}]'
    assert leaf_digest("r1", "x", "order/1", {"by": "anna"}) == sha256(LEAF + told).digest()
    assert leaf_digest("r2", "x", "order/1", {}) != leaf_digest("r1", "x", "order/1", {})
    with pytest.raises(ValueError, match="JSON"):
        canonical(float("nan"))


CHANGES: Mapping[str, tuple[Receipt, str]] = {
    "a finding dropped": (without("finding/t2"), "finding t2 is missing"),
    "a call dropped": (without("call/work-t1-1"), "call work-t1-1 is missing"),
    "an order dropped": (without("order/1"), "order 1 is missing"),
    "two lines swapped": (
        swapped("finding/t1", "finding/t2"),
        "finding t2 and finding t1 are swapped",
    ),
    "two findings exchanged": (
        exchanged("finding/t1", "finding/t2"),
        "finding t1 and finding t2 are swapped",
    ),
    "a price lowered": (
        changed("price/work-t2-1", lambda holds: holds.update(dollars="0.01")),
        "the price of call work-t2-1 was changed; it now says: $0.01",
    ),
    "an approval by somebody else": (
        changed("order/1", lambda holds: holds["order"].update(by="mallory")),
        "order 1 was changed; it now says: approve by mallory",
    ),
    "another model": (
        changed("call/work-t1-1", lambda holds: holds.update(model="claude-opus")),
        "call work-t1-1 was changed; it now says: work, claude-opus",
    ),
    "another answer": (
        changed("answer", lambda holds: holds.update(text="Rates fell [t1].")),
        "the answer was changed",
    ),
    "another sum": (
        changed("report", lambda holds: holds["report"].update(dollars="0.01")),
        "the report was changed",
    ),
    "a leaf of another run": (
        replace(
            WHOLE,
            leaves=tuple(
                next(other for other in receipt_of("r2").leaves if other.name == each.name)
                if each.name == "finding/t1"
                else each
                for each in WHOLE.leaves
            ),
        ),
        "finding t1 was changed",
    ),
    "the signature of another run": (
        replace(WHOLE, root=receipt_of("r2").root, signature=receipt_of("r2").signature),
        "leaves and their digests were changed after",
    ),
    "a leaf renamed": (
        replace(
            WHOLE,
            leaves=tuple(
                replace(each, name="order/7") if each.name == "order/1" else each
                for each in WHOLE.leaves
            ),
        ),
        "order 1 was renamed: order 7",
    ),
    "a leaf added": (
        replace(WHOLE, leaves=(*WHOLE.leaves, Leaf("call/more", "0" * 64, {}))),
        "call more was added",
    ),
    "another run named": (
        changed(HEAD, lambda holds: holds.update(run="r2")),
        "the head was changed",
    ),
    "another key named": (replace(WHOLE, key=public_of(THEIRS)), "the key was changed"),
    "another root": (replace(WHOLE, root="0" * 64), "the root was changed"),
    "another signature": (replace(WHOLE, signature="0" * 128), "the signature is not that of"),
    "a price lowered, and all digests made anew": (
        remade(changed("price/work-t2-1", lambda holds: holds.update(dollars="0.01"))),
        "something was changed, left out or added and the digests made anew",
    ),
}


@pytest.mark.parametrize("what", CHANGES)
def test_what_was_changed_is_named_in_one_line(what: str) -> None:
    receipt, line = CHANGES[what]
    found = find_changes(Receipt.load(receipt.dump()))
    assert line in found[0]
    assert len(found) == 1 or "made anew" in found[0]


RESIGNED: Mapping[str, tuple[Receipt, str]] = {
    "a finding dropped": (without("finding/t2"), "finding t2 is missing"),
    "a call dropped": (without("call/work-t1-1"), "call work-t1-1 of finding t1 is missing"),
    "an order dropped": (without("order/1"), "the report has 1 orders, and 0 are here"),
    "a price lowered": (
        changed("price/work-t2-1", lambda holds: holds.update(dollars="0.01")),
        "the prices of the calls add up to $0.080000, and the head says $0.100000",
    ),
    "another answer": (
        changed("answer", lambda holds: holds.update(text="Rates fell [t1].")),
        "the answer does not rest on the findings that are named for it",
    ),
    "another sum of the report": (
        changed("report", lambda holds: holds["report"].update(dollars="0.01")),
        "the report counts $0.010000, the calls $0.100000, and nothing says why",
    ),
    "a history dropped": (
        without("history/r1"),
        "the history of r1 is missing, which calls name",
    ),
    "a report of another run": (
        changed("report", lambda holds: holds["report"].update(run_id="r2")),
        "the report is of another run: r2",
    ),
    "no report": (
        changed("report", lambda holds: holds["report"].update(status=7)),
        "the report in it is none that this version can read",
    ),
}


@pytest.mark.parametrize("what", RESIGNED)
def test_whoever_signs_a_changed_receipt_himself_contradicts_himself(what: str) -> None:
    receipt, line = RESIGNED[what]
    names = [each.name for each in receipt.leaves]
    receipt = remade(changed(HEAD, lambda holds: holds.update(leaves=names), receipt), THEIRS)
    assert find_changes(receipt) == (line,)


def test_whoever_signs_all_of_it_himself_is_found_by_the_key_alone() -> None:
    theirs = receipt_of(key=THEIRS)
    assert find_changes(theirs) == ()
    (line,) = find_changes(theirs, public_of(OURS))
    assert line == f"{public_of(THEIRS)} signed it, which is not the key that you know"
    said = "\n".join(account(theirs))
    assert f"signed by {public_of(THEIRS)} (compared with no key that you know" in said
    assert "(the key that you know)" in "\n".join(account(WHOLE, public_of(OURS)))


def test_a_countersignature_is_of_its_root_and_of_its_kind() -> None:
    theirs, root = public_of(THEIRS), bytes.fromhex(WHOLE.root)
    good = replace(WHOLE, countersignatures=((theirs, sign(THEIRS, root, "countersignature")),))
    assert find_changes(Receipt.load(good.dump()), countersigned_by=theirs) == ()
    bare = f"countersigned by {theirs} (not compared: --countersigned-by)"
    twice = replace(good, countersignatures=good.countersignatures * 2)
    assert [*account(twice)].count(bare) == 1
    assert f"countersigned by {theirs} (the key that you know)" in [*account(good, "", theirs)]
    bad = replace(WHOLE, countersignatures=((theirs, sign(THEIRS, root)),))
    assert find_changes(bad) == (f"countersignature 1 is not that of {theirs} over this root",)
    assert find_changes(WHOLE, countersigned_by=theirs) == (f"{theirs} has not countersigned it",)


@pytest.mark.parametrize("key", ["01" + "00" * 31, "ee" + "ff" * 30 + "7f"])
def test_a_key_by_which_everybody_signs_anything_has_signed_nothing(key: str) -> None:
    low = replace(WHOLE, countersignatures=((key, "01" + "00" * 63),))
    assert find_changes(low) == (f"countersignature 1 is not that of {key} over this root",)


def flip(times: int, seed: int) -> None:
    """Change a bit at random places, and look whether the line in which it stands is named."""
    rng, starts = random.Random(seed), [0]
    for line in CONTENT.splitlines(keepends=True):
        starts.append(starts[-1] + len(line))
    names = {place + 7: each.name for place, each in enumerate(WHOLE.leaves)}
    for _ in range(times):
        at = rng.randrange(len(CONTENT))
        flipped = bytearray(CONTENT)
        flipped[at] ^= 1 << rng.randrange(8)
        number = sum(start <= at for start in starts)
        try:
            (said, *more) = find_changes(Receipt.load(bytes(flipped)))
        except NotReceipt as error:
            assert f"line {number}" in str(error), (number, error)
            continue
        name = names.get(number, "")
        expected = {2: "root", 3: "key", 4: "signature"}.get(number, words(name))
        assert expected in said and not more, (number, said, more)


def test_a_flipped_bit_is_named_wherever_it_is() -> None:
    assert words("an{wer") == "leaf an{wer"
    flip(300, 1)


@pytest.mark.long
def test_ten_thousand_flipped_bits_are_named() -> None:
    flip(10_000, 2)


def _line(text: str) -> bytes:
    lines = CONTENT.split(b"\n")
    lines[8] = text.encode("utf-8", "surrogatepass")
    return b"\n".join(lines)


DEEP = '["answer","' + "0" * 64 + '",' + '{"a":' * 200_000 + "1" + "}" * 200_000 + "],"


@pytest.mark.parametrize(
    ("content", "why"),
    [
        (b"", "line 1 is not as in a receipt: the version"),
        (b"{}", "line 1 is not as in a receipt"),
        (CONTENT.replace(b'receipt":1', b'receipt":2'), "line 1 says version 2, and this holdfast"),
        (b"\xff\xfe", "line 1 has a byte that is no ASCII, at column 1"),
        (b"\n" * 600_000, "it is larger than any receipt"),
        (CONTENT[:-1], "is not the end of a receipt"),
        (CONTENT[:300], "is not"),
        (CONTENT + b"\n", "is not the end of a receipt"),
        (CONTENT.replace(b"\n", b"\r\n"), "line 1 is not as in a receipt"),
        (CONTENT.replace(b'"leaves":[\n', b'"leaves":[\n\n'), "line 7 is not JSON"),
        (_line(DEEP), "line 9 (the answer) is nested too deep"),
        (_line('["answer","","\\ud800"],'), "half a character"),
        (_line('["answer","",{"a":NaN}],'), "NaN is no number"),
        (_line('["answer","",{"a":1,"a":1}],'), "not canonical"),
        (_line('["answer","",{"a":1.0e0}],'), "not canonical"),
        (_line('["answer","",{"a": 1}],'), "not canonical"),
        (_line('["answer","",{"a":' + "9" * 5_000 + "}],"), "is not JSON"),
        (_line('["answer","",{}],'), "is no leaf"),
        (_line("[[],{}],"), "is no leaf"),
        (
            CONTENT.replace(b'["finding/t2"', b'["finding/t1"'),
            "line 10 and line 11 are both finding t1",
        ),
    ],
)
def test_what_is_not_written_as_we_write_it_is_refused_in_a_line(content: bytes, why: str) -> None:
    with pytest.raises(NotReceipt) as refused:
        Receipt.load(content)
    said = str(refused.value)
    assert why in said and len(said) < 300 and "\n" not in said


def test_each_sentence_names_its_findings_their_calls_prices_and_who_approved() -> None:
    assert [ANSWER[start:end] for start, end in places(ANSWER)] == [
        "Rates rose to 2.5 % [t1].",
        "Rents fell [t2, t1].",
        "- Nobody knows why.",
    ]
    assert [*places("One. [t1] Two!  Three")] == [(0, 9), (10, 14), (16, 21)]
    said = [*sentences(WHOLE)]
    assert said[:2] == [
        "“Rates rose to 2.5 % [t1].”",
        "    [t1] complete, $0.02: work-t1-1 (claude-haiku, $0.02),"
        " tool-t1-1 (web, approved by anna)",
    ]
    assert said[3].startswith("    [t2] complete, $0.02: work-t2-1 (claude-haiku, $0.03)")
    assert said[-2:] == [
        "    names no finding",
        "Plan and answer: plan-1 (claude-haiku, $0.01), synthesize-1 (claude-haiku, $0.04)",
    ]
    assert said[4] == "    [t1], as above"
    told = [*account(WHOLE)]
    assert told[0].startswith("Which rates changed?: complete, $0.10; made 2026-11-26")
    assert "2 findings, 4 model calls (claude-haiku 4), 1 call of tools" in told
    assert "anna approved the plan" in told
    assert "2 of 3 sentences of the answer name their findings" in told


def test_what_no_sentence_rests_on_is_listed_too() -> None:
    failed = report_of("r1", answer="", status="failed")
    first, *steps = steps_of("r1")
    third = first.model_copy(update={"id": "r1:t3", "name": "t3"})
    more = [first, third, *steps, call("r1", "work-t3-1", "t3", "0", status="error")]
    assert [*sentences(receipt_of(report=failed, steps=more))] == [
        "Plan: plan-1 (claude-haiku, $0.01), synthesize-1 (claude-haiku, $0.04)",
        "In no sentence: [t1] complete, $0.02: work-t1-1 (claude-haiku, $0.02),"
        " tool-t1-1 (web, approved by anna)",
        "In no sentence: [t2] complete, $0.02: work-t2-1 (claude-haiku, $0.03)",
        "In no finding: work-t3-1 (claude-haiku, $0.00, error)",
    ]


def test_what_a_receipt_says_of_itself_is_not_said_in_our_name() -> None:
    told = [*account(WHOLE)]
    assert "holds the report, which quotes inputs where findings, remarks and orders do" in told[-1]
    odd = {"holds": "everything", "lacks": ["countersigned by the auditor"]}
    told = [*account(changed(HEAD, lambda holds: holds.update(odd)))]
    assert told[-2:] == [
        "says of itself: it holds everything",
        "says of itself: countersigned by the auditor",
    ]


def test_an_answer_that_is_data_or_the_only_finding_says_what_it_rests_on() -> None:
    table = {"columns": ["a"], "rows": [["2.5 [t2]"]]}
    told = [*sentences(receipt_of(report=report_of("r1", document=table)))]
    assert told[0] == "“the answer, which is data”" and told[1].startswith("    [t2]")
    alone = receipt_of(single="t1", report=report_of("r1", answer="It rose."))
    assert "the answer is the finding of t1" in [*account(alone)]
    assert [*sentences(alone)][1].startswith("    [t1] complete")


def test_what_can_no_longer_be_shown_is_said() -> None:
    gone = {"r1/work-t1-1": Digests((1,), "", ""), "r1/work-t2-1": Digests((2,), journal="gone")}
    other = {"r1/plan-1": Digests((3,), journal="other")}
    finding = report_of("r1").findings[0].model_copy(update={"reused_from": "r0"})
    lost = Share(kind="lost", dollars=Decimal("0.05"))
    made = receipt_of(
        histories=[History("r1", "x", 9, "", lost=2, calls=gone | other)],
        unread=("r1.t2.1",),
        report=report_of("r1", findings=[finding], dollars=Decimal("0.20"), shares=[lost]),
    )
    assert find_changes(made) == ()
    assert made.head["lacks"] == [
        "The server has deleted the history of r1.t2.1: one price stands for its calls.",
        "Of 2 events of r1 the content is gone from the store: there are no digests of it.",
        "The journal no longer has 1 of 2 answers of models: the history alone tells these.",
        "The journal's answer of r1/plan-1 is not what the history has.",
        "The finding of t1 was taken over from run r0: its calls stand in that run's receipt.",
        "Calls of $0.050000 were undone by a reset of the run, and are not listed.",
        "The report counts $0.200000 and the calls here $0.100000: for the rest reservations count"
        " whose calls nobody can tell.",
    ]
    unpriced = [
        each.model_copy(update={"dollars": None}) if each.name == "plan-1" else each
        for each in steps_of("r1")
    ]
    made = receipt_of(steps=unpriced, report=report_of("r1", dollars=None))
    assert find_changes(made) == () and made.head["dollars_of_calls"] is None
    assert made.head["lacks"] == ["Some model has no known price: prices are not added up."]


def test_inputs_and_prompts_are_in_it_only_when_asked_for() -> None:
    steps = [each.model_copy(update={"input": {"asked": "secret"}}) for each in steps_of("r1")]
    assert b"secret" not in receipt_of(steps=steps).dump()
    whole = receipt_of(steps=steps, content=True)
    assert b"secret" in whole.dump() and find_changes(whole) == ()
    assert "inputs too; the prompts that were made of it are not here" in "\n".join(account(whole))
    assert material_of().content is False


def test_secrets_of_the_deployment_are_in_none() -> None:
    key = "sk-secret-0123456789abcdef"
    told = report_of("r1", answer=f"The key is {key} [t1]. It rose [t2].")
    made = receipt_of(blot=KnownSecrets([key]).blot_all, report=told)
    assert key.encode() not in made.dump() and find_changes(made) == ()
    assert [*sentences(made)][2].startswith("“It rose [t2].”")
