"""What anybody with access to the server can tell a run by Signals, among everything that happens
to it: no bill ever falls, and no cap is void.
"""

from __future__ import annotations

import json
from dataclasses import replace
from decimal import Decimal
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from test_reducer import EXAMPLES, Chance, limits, plans

from driving import START, Drive
from holdfast.contracts import Bill, Lost, Undone, Usage, seal_word
from holdfast.contracts.signals import PLANNED, RESET, SIGNALS
from holdfast.history.signals import parse_signal
from holdfast.ledger.ledger import Amount, Ledger
from holdfast.rules import reporting
from holdfast.rules.reducer import _may_have_asked
from holdfast.state.events import Event, WasReset

AT = "2026-11-23T06:28:00Z"
NUMBERS: st.SearchStrategy[Any] = st.sampled_from(
    (0, 1, 2, 1.0, -1, 10**9, 10**30, -(10**400), 1e308, True, None, "7", "-7", "x", [], {})
)
DOLLARS = st.sampled_from(
    ("0", "0.5", "1", 1, "-5", -5, "-0", "1e40", "1e-40", "NaN", "-Infinity", 1e400, "10001", None)
)
IDS = st.sampled_from(
    ("work-t0-1", "plan-1", "agent-t1-1", "run.t2.1", "work-t0--1", "bribe-t0-1", "", "x" * 9_000)
)
TIMES = st.sampled_from(
    (AT, "0001-01-01T00:00:00+23:59", "9999-12-31T23:59:59-23:59", "2026-11-23T06:28:00", 0, "x")
)
WORST = Decimal("0.0456")
RESET_BY_US = Undone(
    execution="a",
    at=START,
    lost=(
        Lost(id="plan-1", bill=Bill(calls=1, dollars=Decimal("0.0123"))),
        Lost(id="work-t0-1", bill=Bill(calls=1, dollars=WORST, assumed=WORST)),
    ),
    seal=seal_word("known to nobody else"),
)
"""What `reset` has told the run; everybody can read it."""
SEALS = st.sampled_from((seal_word("own"), seal_word(""), RESET_BY_US.seal, "", "x" * 9_000, 7))
WORDS = st.sampled_from(("own", "", RESET_BY_US.seal, "x" * 9_000, None))
NAMES = st.sampled_from(("a", "b", "a\x1b[2J\n\n", "n" * 9_000, 7, None))


@st.composite
def bills(draw: st.DrawFn) -> dict[str, Any]:
    usage = {name: draw(NUMBERS) for name in draw(st.sets(st.sampled_from([*Usage.model_fields])))}
    every = {
        "calls": NUMBERS,
        "dollars": DOLLARS,
        "assumed": DOLLARS,
        "usage": st.just(usage),
        "earlier": st.booleans(),
        "final": st.booleans(),
    }
    return {name: draw(every[name]) for name in draw(st.sets(st.sampled_from([*every])))}


@st.composite
def told(draw: st.DrawFn) -> object:
    """What a Signal carries: mostly of the right shape."""
    if not draw(st.integers(0, 9)):
        return draw(st.sampled_from((None, 7, [], "reset", {"lost": {}})))
    return {
        "execution": draw(NAMES),
        "team": draw(st.sampled_from(("run.t0.1", "run", ""))),
        "number": draw(NUMBERS),
        "why": draw(NAMES),
        "at": draw(TIMES),
        "by": draw(NAMES),
        "withdrawn": draw(st.booleans()),
        "seal": draw(SEALS),
        "word": draw(WORDS),
        "lost": [{"id": draw(IDS), "bill": draw(bills())} for _ in range(draw(st.integers(0, 2)))],
    }


@st.composite
def told_again(draw: st.DrawFn) -> object:
    """What the reset told, changed by somebody who read it in the run's history."""
    ours = RESET_BY_US.model_dump(mode="json")
    changed = {
        "execution": st.sampled_from(("a", "b")),
        "lost": st.sampled_from(([], ours["lost"], ours["lost"][:1])),
        "withdrawn": st.booleans(),
        "seal": SEALS,
        "word": WORDS,
    }
    return {
        **ours,
        **{name: draw(changed[name]) for name in draw(st.sets(st.sampled_from([*changed])))},
    }


def nothing_negative(ledger: Ledger) -> None:
    amounts = [ledger.spent, ledger.held, ledger.kept, ledger.paid, *ledger.reserved.values()]
    assert all(Amount() <= each for each in amounts)
    assert all(value >= 0 for value in ledger.all_usage.model_dump().values())
    assert ledger.assumed >= 0 and ledger.all_assumed >= 0
    assert ledger.all_priced, "each model of these runs has a price"
    assert ledger.all_assumed <= ledger.paid.dollars


class Beset(Drive):
    """A run that is told things; checked after each event."""

    def _apply(self, event: Event) -> None:
        before = self.state.ledger
        super()._apply(event)
        after = self.state.ledger
        nothing_negative(after)
        fresh = after.reserved.keys() - before.reserved.keys()
        if fresh:
            assert after.paid + after.held <= after.cap, "what was lost counts like what was spent"
        own = (each.id for asks in self.asks.values() for each in asks)
        assert all(_may_have_asked(self.state, each) for each in own)

    def tell(self, name: str, words: object) -> None:
        said = parse_signal(name, words, self.now)
        if said is not None:
            assert said.at <= self.now
            # Before it is told, the same words are somebody else's, who may take them back.
            told, before = RESET_BY_US in self.state.resets, self.state.ledger.lost
            self.put(said)
            kept = [each for each in RESET_BY_US.lost if told and each in before]
            assert all(each in self.state.ledger.lost for each in kept), "a true loss stays"


class Besetting(Chance):
    def _step(self) -> None:
        if self.data.draw(st.booleans()) and not self.drive.closed:
            assert isinstance(self.drive, Beset)
            for words in self.data.draw(st.lists(told_again(), max_size=4)):
                self.drive.tell(RESET, words)
            self.drive.tell(self.data.draw(st.sampled_from(SIGNALS)), self.data.draw(told()))
            if RESET_BY_US not in self.drive.state.resets:
                self.drive.put(WasReset(RESET_BY_US))
        super()._step()


@given(st.data())
@EXAMPLES
def test_no_sequence_of_events_and_signals_makes_a_bill_negative_or_a_cap_void(
    data: st.DataObject,
) -> None:
    drive = Beset(data.draw(st.one_of(st.none(), plans(6))), data.draw(limits()))
    Besetting(drive, data, cancels=data.draw(st.booleans())).play()
    report = reporting.report(drive.state)
    assert report.dollars is None or report.dollars >= 0
    assert report.model_calls >= 0 and report.assumed >= 0


def lost(id: str = "work-t1-1", **bill: object) -> dict[str, Any]:
    return {"execution": "e", "at": AT, "lost": [{"id": id, "bill": {"calls": 1, **bill}}]}


@pytest.mark.parametrize(
    "words",
    [
        lost(dollars="-5"),
        lost(assumed="-5"),
        lost(dollars="1e40"),
        lost(dollars="10001"),
        lost(calls=-1),
        lost(calls=10**9),
        lost(usage={"output_tokens": -1}),
        lost(usage={"output_tokens": 10**30}),
        lost(usage={"searches": -1}),
        lost(dollars="1", assumed="1.5"),
        lost(calls=0, dollars="1"),
        lost(calls=0, assumed="0.1"),
        lost(calls=0, dollars=None),
    ],
    ids=json.dumps,
)
def test_amounts_that_no_call_can_have_are_not_heard(words: object) -> None:
    assert parse_signal(RESET, words, START) is None
    assert parse_signal(RESET, lost(dollars="5"), START) is not None


@pytest.mark.parametrize("id", ["bribe-1", "work-t1-", "work", "", "another.t1.1"])
def test_calls_that_are_none_of_the_run_are_not_counted(id: str) -> None:
    drive = Drive(None)
    bill = Bill(calls=1, dollars=Decimal(1))
    undone = Undone(execution="e", at=START, lost=(Lost(id=id, bill=bill),))
    drive.put(WasReset(undone))
    assert drive.state.ledger.lost == () and drive.state.resets == ()


@pytest.mark.parametrize("unpriced", [False, True])
def test_a_lost_call_without_a_price_counts_where_models_have_none(unpriced: bool) -> None:
    drive = Drive(None)
    goal = drive.state.goal.model_copy(update={"unpriced": unpriced})
    drive.state = replace(drive.state, goal=goal)
    bill = Bill(calls=1, dollars=None)
    drive.put(WasReset(Undone(execution="e", at=START, lost=(Lost(id="work-t1-1", bill=bill),))))
    assert drive.state.ledger.all_priced is not unpriced
    assert any("of unknown price" in each for each in drive.state.notes) is not unpriced


def test_no_run_was_reset_before_it_began() -> None:
    drive = Drive(None)
    drive.put(WasReset(was_reset(at=START.replace(year=1))))
    assert [each.at for each in drive.state.resets] == [drive.state.started]


def was_reset(**told: object) -> Undone:
    return RESET_BY_US.model_copy(update=told)


@pytest.mark.parametrize(
    "lie",
    [
        was_reset(lost=(), withdrawn=True),
        was_reset(lost=(), withdrawn=True, seal="", word=RESET_BY_US.seal),
        was_reset(lost=(), seal=seal_word("own")),
        was_reset(lost=(), seal=""),
    ],
    ids=["withdrawn", "its seal for a word", "nothing was lost", "of no seal"],
)
def test_what_a_reset_lost_stays_in_the_bill_whatever_others_say_of_it(lie: Undone) -> None:
    drive = Drive(None)
    drive.put(WasReset(RESET_BY_US))
    before = drive.state.ledger
    for _ in range(2):
        drive.put(WasReset(lie))
    assert drive.state.ledger == before and RESET_BY_US in drive.state.resets
    notes = [each for each in drive.state.notes if "never took place" in each]
    assert len(notes) == lie.withdrawn, "noted once"


def test_who_said_the_same_and_takes_it_back_takes_back_nothing_of_others() -> None:
    drive = Drive(None)
    elsewhere = was_reset(execution="another", seal=seal_word("own"))
    drive.put(WasReset(RESET_BY_US))
    for each in (was_reset(seal=seal_word("own")), elsewhere):
        drive.put(WasReset(each))
        drive.put(WasReset(Undone(execution="a", at=START, withdrawn=True, word="own")))
    assert drive.state.ledger.lost == RESET_BY_US.lost
    assert drive.state.resets == (RESET_BY_US,)


def test_who_reset_a_run_is_one_short_line() -> None:
    said = parse_signal(RESET, {"execution": "e", "at": AT, "by": "a\n\nb" * 900}, START)
    assert isinstance(said, WasReset)
    assert said.undone.by.startswith("a ba b") and len(said.undone.by) == 100
    said = parse_signal(RESET, {"execution": "e", "at": AT, "by": "a\x1b[2J"}, START)
    assert isinstance(said, WasReset) and said.undone.by == "a\\x1b[2J"


@pytest.mark.parametrize(
    "fields",
    [{"id": ""}, {"id": "a\nb"}, {"id": "../x"}, {"id": "x" * 33}, {"max_output": -100_000},
     {"max_output": 10**9}, {"timeout_seconds": -1}],
)  # fmt: skip
def test_subtasks_that_no_planner_of_ours_tells_are_not_heard(fields: dict[str, Any]) -> None:
    true = {"id": "t1", "title": "T", "instruction": "Look", "role": "writer"}
    word = {"call": "plan-1", "plan": {"goal": "G", "subtasks": [true]}}
    assert parse_signal(PLANNED, word, START) is not None
    word["plan"] = {"goal": "G", "subtasks": [true | fields]}
    assert parse_signal(PLANNED, word, START) is None
