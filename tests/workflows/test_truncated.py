"""An answer that was cut off at its limit is asked for once more, with twice the room, whatever
kind of call it was; what is cut off twice has failed.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from decimal import Decimal

import pytest

from conftest import Runs
from holdfast.calls import KINDS as CALLS
from holdfast.contracts import Goal, Report, Usage
from holdfast.ports import ModelAnswer, ModelRequest
from parameters import rest_long
from scripted import Line, ScriptedModel, digests, plans, subtask, synthesizes, works

pytestmark = pytest.mark.anyio

KINDS = ("plan", "work", "review", "refine", "replan", "digest", "judge", "synthesize", "critique")


@dataclass
class CutOff(ScriptedModel):
    """Cuts off the first answers of some kinds."""

    left: dict[str, int] = field(default_factory=dict)
    """How often it still does, by kind."""

    async def ask(self, request: ModelRequest) -> ModelAnswer:
        """What is cut off was paid like any other answer."""
        what = self._what(request)
        kind = "work" if what == "t1" else what
        if self.left.get(kind):
            self.left[kind] -= 1
            self.heard.append(what)
            self.requests.append(request)
            usage = Usage(input_tokens=1_000, output_tokens=request.max_output)
            return ModelAnswer(
                text='{"cut', stop_reason="max_tokens", model=request.model, usage=usage
            )
        return await super().ask(request)

    def limits(self, kind: str) -> list[int]:
        """The room that each call of a kind had, in order."""
        wanted = "t1" if kind == "work" else kind
        return [
            request.max_output
            for what, request in zip(self.heard, self.requests, strict=True)
            if what == wanted
        ]


def script() -> dict[str, list[Line]]:
    """A run in which every kind of call is asked."""
    fails = works("", status="failed", why="closed")
    extra = {"op": "add", "subtask": subtask("t9"), "why": "t2 failed"}
    first = subtask("t1", acceptance_criteria="is good")
    return {
        "plan": [plans(first, subtask("t2"), subtask("t3", "t2")) | {"strategy": "select"}],
        "t1": [works("one " * 3_000)] * 3,
        "t2": [fails, fails, fails],
        "t9": [works("nine")],
        "review": [{"verdict": "pass", "why": "good"}] * 3,
        "refine": [{"instruction": "Search again for part t2 of the goal"}],
        "replan": [{"changes": [extra]}],
        "digest": [digests("one")],
        "judge": [{"winner": "none", "why": "alike"}],
        "synthesize": [synthesizes("done")],
        "critique": [{"issues": []}],
    }


async def run(runs: Runs, model: CutOff, **limits: object) -> Report:
    wanted = Goal.model_validate({"text": "Compare", "use_models": True, "limits": limits})
    async with runs.worker(model):
        return await (await runs.start(wanted)).result()


async def test_each_kind_of_call_is_asked_once_more_with_twice_the_room(runs: Runs) -> None:
    """One run in which the first answer of every kind is cut off."""
    model = CutOff(script(), left=dict.fromkeys(KINDS, 1))
    report = await run(runs, model, dollars="50")
    assert model.missed == []
    for kind in KINDS:
        room = CALLS[kind].policy.max_output
        assert model.limits(kind)[:2] == [room, 2 * room], kind
        assert model.limits(kind)[2:] in ([], [room]), kind
    assert report.answer == "done"
    assert report.model_calls == len(model.heard)


@pytest.mark.parametrize("kind", rest_long(KINDS))
async def test_what_is_cut_off_twice_has_failed_and_the_run_goes_on(kind: str, runs: Runs) -> None:
    model = CutOff(script(), left={kind: 2})
    report = await run(runs, model, dollars="50")
    room = CALLS[kind].policy.max_output
    assert model.limits(kind)[:2] == [room, 2 * room]
    assert 4 * room not in model.limits(kind), "the room is doubled once"
    assert report.status in ("complete", "complete_with_gaps")
    assert report.model_calls == len(model.heard)


async def test_without_money_for_twice_the_room_it_is_asked_with_as_much_as_before(
    runs: Runs,
) -> None:
    """The synthesis is what the rest of the cap was kept for; twice of it does not fit."""
    lines = {"plan": [plans(subtask("t1"), subtask("t2"))], "t1": [works("one")]}
    model = CutOff(
        {**lines, "t2": [works("two")], "synthesize": [synthesizes("done")]}, left={"synthesize": 1}
    )
    report = await run(runs, model, dollars="0.45")
    room = CALLS["synthesize"].policy.max_output
    assert model.limits("synthesize") == [room, room] and report.answer == "done"
    assert report.dollars is not None and report.dollars <= Decimal("0.45")
    assert report.model_calls == len(model.heard)
