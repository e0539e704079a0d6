"""Which notices follow from a state: each occurrence once, with an id that nothing else has."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from holdfast.contracts import Goal, Undone
from holdfast.contracts.notices import Notice, Notify
from holdfast.rules import notices
from holdfast.state.events import Notified
from holdfast.state.moves import Stop
from holdfast.state.run import State, first_state

BEGAN = datetime(2026, 11, 24, tzinfo=UTC)
URLS = ("https://one.example/", "https://two.example/")


def state(**fields: Any) -> State:
    goal = Goal(text="Compare", notify=Notify(urls=URLS))
    return replace(first_state("run", goal, BEGAN, "first"), **fields)


def told(state: State) -> tuple[State, list[Notice]]:
    """The notices that are due, and the state once they are sent off."""
    found = []
    while (move := notices.next_notice(state)) is not None:
        found.append(move.notice)
        state = notices.take_off(state, move)
    return state, found


def test_each_occurrence_is_told_once_to_all_addresses() -> None:
    waits, first = told(state(phase="approval", proposed=BEGAN))
    assert [(each.type, each.number, each.urls) for each in first] == [("run.plan_waits", 1, URLS)]
    assert told(waits)[1] == []
    again, second = told(replace(waits, proposed=BEGAN + timedelta(hours=1)))
    assert [each.type for each in second] == ["run.plan_waits"]
    _, last = told(replace(again, phase="closed"))
    assert [(each.type, each.number) for each in last] == [("run.ended", 3)]
    assert len({each.id for each in (*first, *second, *last)}) == 3


def test_money_that_ran_out_is_told_once_whether_the_run_waits_for_more_or_ends() -> None:
    stopped = Stop("budget", "no money")
    short, first = told(state(phase="working", short="no money", short_since=BEGAN))
    assert [each.type for each in first] == ["run.budget_reached"]
    assert told(replace(short, short="", short_since=None, stop=stopped))[1] == []
    assert [each.type for each in told(state(phase="synthesizing", stop=stopped))[1]] == [
        "run.budget_reached"
    ]


def test_what_comes_after_a_reset_is_told_under_an_id_of_its_own() -> None:
    undone = Undone(execution="x", at=BEGAN)
    _, [before] = told(state(phase="closed"))
    _, [after] = told(state(phase="closed", resets=(undone,)))
    assert (before.number, after.number) == (1, 1) and before.id != after.id
    _, [same] = told(state(phase="closed"))
    assert same.id == before.id


def test_a_preview_and_a_run_that_tells_nobody_tell_nothing() -> None:
    goal = Goal(text="Compare")
    assert told(replace(state(phase="closed"), goal=goal))[1] == []
    preview = Goal(text="Compare", plan_only=True, notify=Notify(urls=URLS, on=("waits",)))
    assert told(replace(state(phase="approval", proposed=BEGAN), goal=preview))[1] == []


@pytest.mark.parametrize("on", [("waits",), ("budget",), ()])
def test_only_what_was_asked_for_is_told(on: Any) -> None:
    goal = Goal(text="Compare", notify=Notify(urls=URLS, on=on))
    assert told(replace(state(phase="closed"), goal=goal))[1] == []


def test_what_was_not_delivered_is_a_note_in_a_line() -> None:
    waits, _ = told(state(phase="approval", proposed=BEGAN))
    lost = notices.land(waits, Notified(1, ("two.example answered 500",)))
    assert [*notices.failure_notes(lost)] == [
        "The web hook run.plan_waits was not delivered: two.example answered 500."
    ]
    assert [*notices.failure_notes(waits)] == []
