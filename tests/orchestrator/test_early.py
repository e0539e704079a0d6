"""Subtasks that start while their plan is being written: what may start, what the whole plan keeps
of it, and what it costs to take the rest back.
"""

from __future__ import annotations

import json
import random
from dataclasses import replace
from decimal import Decimal
from typing import Any

import pytest

from driving import BRIEFING, Drive, bill_of, subtask
from holdfast.calls.plan import PlanAnswer, PlanMaterial, stands, to_plan
from holdfast.cli.screen.board import changes, headline
from holdfast.client.documents import as_page
from holdfast.client.reading import Look
from holdfast.contracts import (
    Approval,
    Bill,
    Draft,
    Limits,
    Plan,
    Problem,
    Reply,
    RoleCard,
    Subtask,
    Usage,
)
from holdfast.contracts.orders import Order
from holdfast.history.steps import Steps
from holdfast.ledger.ranges import format_price
from holdfast.rendering import prices
from holdfast.rendering.amounts import money
from holdfast.rendering.html.page import as_html
from holdfast.rendering.html.pictured import Pictured
from holdfast.rendering.html.steering import Live
from holdfast.rendering.report import took
from holdfast.rendering.running import run_view
from holdfast.rendering.status import standing
from holdfast.rules.early import is_anew
from holdfast.rules.reporting import notes, report
from holdfast.rules.steering import refusal
from holdfast.state.events import AgentEnded, Answered, Event, PlanGrew, Trouble, Unanswered
from holdfast.state.moves import Ask, StartAgent
from scripted import plans
from scripted import subtask as scripted

LIMITS = Limits(early=3)
HALF = Decimal("0.5")


def plan_of(*subtasks: Subtask, **fields: Any) -> Plan:
    return Plan(goal="Compare", synthesis_instruction="Answer", subtasks=subtasks, **fields)


def planning(**fields: Any) -> Drive:
    """A run whose planner is writing."""
    drive = Drive(None, **{"limits": LIMITS, **fields})
    assert asked(drive) == ["plan-1"]
    return drive


def grow(drive: Drive, plan: Plan, call: str = "plan-1") -> None:
    drive.put(PlanGrew(call, plan, drive.now))


def asked(drive: Drive) -> list[str]:
    return [each for each in drive.started if each != "prepare"]


def flying(drive: Drive, id: str) -> Ask:
    move = drive.state.flights[id].move
    assert isinstance(move, Ask)
    return move


def answer(drive: Drive, id: str, value: Any) -> None:
    ask = flying(drive, id)
    drive.put(Answered(ask, Reply(value=value, bill=bill_of(ask, HALF))))


def refuse(drive: Drive, id: str, why: str = "subtasks[0] 't1': unknown role") -> None:
    ask = flying(drive, id)
    reply: Reply[Any] = Reply(problem=Problem(kind="invalid", why=why), bill=bill_of(ask, HALF))
    drive.put(Answered(ask, reply))


def lose(drive: Drive, id: str, why: str = "its worker died") -> None:
    ask = flying(drive, id)
    drive.put(Unanswered(ask, Trouble("possibly_billed", why, bill_of(ask))))


def done(text: str = "done") -> Draft:
    return Draft(status="complete", content=text, confidence=90)


def test_what_stands_starts_and_the_whole_plan_goes_on_with_what_it_has() -> None:
    drive = planning()
    plan = plan_of(subtask("t1"), subtask("t2"), subtask("t3", "t1", "t2"))
    grow(drive, plan_of(subtask("t1")))
    assert asked(drive) == ["plan-1", "work-t1-1"]
    grow(drive, plan_of(subtask("t1"), subtask("t2")))
    answer(drive, "work-t1-1", done("early"))
    assert drive.finding("t1").content == "early"
    refused = refusal(drive.state, "skip", Order(subtask_id="t2"))
    assert refused.startswith("the plan is still being written")
    answer(drive, "plan-1", plan)
    answer(drive, "work-t2-1", done())
    assert asked(drive) == ["plan-1", "work-t1-1", "work-t2-1", "work-t3-1"]
    assert not any("taken back" in each for each in notes(drive.state))


def test_the_page_of_a_run_whose_calls_are_all_under_way_says_so() -> None:
    drive = planning()
    grow(drive, plan_of(subtask("t1")))
    made = report(drive.state)
    assert "worst case of calls that are under way or were lost" in prices.paid(made, over=False)


def test_what_no_prompt_shows_takes_no_work_back() -> None:
    drive = planning()
    grow(drive, plan_of(subtask("t1")))
    other = {"title": "Another title", "why": "Another reason", "secondary": "writer"}
    answer(drive, "plan-1", plan_of(subtask("t1").model_copy(update=other), subtask("t2")))
    assert drive.state.early.kept == 1 and drive.state.work["t1"].subtask.title == "Another title"


def test_another_form_of_the_answer_takes_no_work_back() -> None:
    drive = planning()
    grow(drive, plan_of(subtask("t1")))
    whole = plan_of(subtask("t1"), subtask("t2"))
    answer(drive, "plan-1", whole.model_copy(update={"synthesis_instruction": "In a table"}))
    assert drive.state.early.kept == 1 and not drive.state.flights["work-t1-1"].cut


def test_the_call_is_the_one_that_the_whole_plan_would_have_asked() -> None:
    early, usual = planning(), planning()
    plan = plan_of(subtask("t1"), subtask("t2"))
    grow(early, plan_of(subtask("t1")))
    answer(usual, "plan-1", plan)
    assert flying(early, "work-t1-1") == flying(usual, "work-t1-1")


@pytest.mark.parametrize(
    "other",
    [
        plan_of(subtask("t1", role="researcher"), subtask("t2")),
        plan_of(subtask("t1"), subtask("t2")).model_copy(update={"goal": "Something else"}),
        plan_of(subtask("t1", "t2"), subtask("t2")),
        plan_of(subtask("t8"), subtask("t9")),
        plan_of(subtask("t1")),
    ],
)
def test_what_the_plan_has_otherwise_is_cut_paid_and_told(other: Plan) -> None:
    drive = planning()
    grow(drive, plan_of(subtask("t1")))
    old = flying(drive, "work-t1-1")
    answer(drive, "plan-1", other)
    assert drive.state.flights["work-t1-1"].cut
    spent = drive.state.ledger.spent.dollars
    bill = bill_of(old, HALF).model_copy(update={"usage": Usage(output_tokens=100)})
    drive.put(Unanswered(old, Trouble("possibly_billed", "cut", bill)))
    paid = drive.state.ledger.spent.dollars - spent
    assert paid == old.amount.dollars * HALF == drive.state.early.dollars
    assert any(
        each.startswith(
            "t1 (Subtask t1) was started before the plan was whole, and taken back ($0."
        )
        and each.endswith(": the whole plan asks otherwise.")
        for each in notes(drive.state)
    )
    fresh = [each for each in drive.state.work.values() if not each.subtask.depends_on]
    assert all(each.flight and not each.paid.calls for each in fresh), "it begins anew, unpaid"


class Followed(Drive):
    """A run whose steps are read along."""

    def _apply(self, event: Event) -> None:
        before = self.state
        super()._apply(event)
        self.__dict__.setdefault("steps", Steps()).take(before, event, self.state)


def test_what_had_answered_and_is_taken_back_is_told_marked_and_counted_apart() -> None:
    drive = Followed(None, limits=LIMITS)
    grow(drive, plan_of(subtask("t1"), subtask("t7")))
    drive.wait(5)
    for name in ("t1", "t7"):
        answer(drive, f"work-{name}-1", done("early"))
    refuse(drive, "plan-1", "t6: unknown role 'nobody'")
    answer(drive, "plan-2", plan_of(subtask("t1", role="researcher"), subtask("t2")))
    assert is_anew(drive.state, flying(drive, "work-t1-2"))
    assert not is_anew(drive.state, flying(drive, "work-t2-1"))
    drive.wait(5)
    answer(drive, "work-t1-2", done("late"))

    why = "the plan before could not be used (t6: unknown role 'nobody'), and the next asks"
    back = drive.state.early.dollars
    whose = "t1 (Subtask t1), t7 (Subtask t7)"
    told = f"{whose} were started before the plan was whole, and taken back ({format_price(back)})"
    assert f"{told}: {why} otherwise." in notes(drive.state)
    made = report(drive.state)
    [share] = [each for each in made.shares if each.kind == "taken_back"]
    assert (share.calls, share.dollars) == (2, back)
    work = [each.calls for each in made.shares if each.kind == "work"]
    assert sum(work) == 2, "one that is done, and one in flight"
    assert f"; {money(back)} into what was begun early and taken back. Tokens: " in prices.paid(
        made
    )

    steps = {each.id: each for each in drive.__dict__["steps"].by_id.values()}
    assert [each for each in steps if steps[each].taken_back] == ["work-t1-1", "work-t7-1"]
    page = as_html(
        Pictured(made, "{} {}".format, (*steps.values(),), run_view(drive.state), over=False)
    )
    marked = "Not accepted: taken back: it had begun before the plan was whole"
    assert page.count(marked) == 2 and "work-t7-1" in page, "also what no subtask of the plan is"
    assert "t1 Subtask t1: 5.0 s at work in 1 steps" in page
    assert "Begun, and taken back: 10 s at work in 2 steps" in page


def test_the_page_shows_what_has_begun_of_a_plan_and_offers_no_order_that_is_refused() -> None:
    drive = planning()
    live = Live("token", "nonce")

    def page() -> str:
        look = Look(state=drive.state)
        return as_page(report(drive.state), look, over=False, live=live)

    first = page()
    assert "Nothing is paid yet: no call has its answer." in first and "no answer yet" in first
    assert "o model was asked" not in first
    grow(drive, plan_of(subtask("t1"), subtask("t2")))
    answer(drive, "work-t1-1", done("Early words"))
    early = page()
    assert "Still being written: what has begun of it already." in early
    assert "Subtask t1" in early and "Subtask t2" in early and "Early words" in early
    assert "Tell the run: pause, raise the cap" in early
    answer(drive, "plan-1", plan_of(subtask("t1"), subtask("t2"), subtask("t3")))
    late = page()
    assert "Still being written" not in late and "skip a subtask" in late


def test_whoever_watches_reads_that_work_goes_on_before_the_plan_is_whole() -> None:
    drive = planning()
    before = run_view(drive.state)
    parts = subtask("t1"), subtask("t2")
    grow(drive, plan_of(*parts))
    shown = run_view(drive.state)
    assert standing(shown) == "making a plan · 2 subtasks so far, 2 at work"
    assert changes(before, shown)[0].endswith(
        "the plan is still being written; its first subtasks begin already"
    )
    answer(drive, "work-t1-1", done())
    told = headline(run_view(drive.state), 5)
    assert told.startswith("making a plan · 2 subtasks so far, 1 at work, 1 settled · $")
    refuse(drive, "plan-1", "t6: unknown role 'nobody'")
    anew = "the plan is made anew, as one could not be used: t6: unknown role 'nobody'"
    assert anew in run_view(drive.state).notes
    answer(drive, "plan-2", plan_of(*parts, subtask("t3", "t1")))
    assert "2 of 3 subtasks began while the plan was being written." in took(report(drive.state))
    assert anew not in run_view(drive.state).notes


def test_an_agent_with_tools_starts_early_too_and_is_taken_back_with_its_slice() -> None:
    drive = planning()
    reader = subtask("t1", role="reader")
    grow(drive, plan_of(reader))
    (agent,) = drive.teams
    assert isinstance(agent, StartAgent)
    kept = drive.state
    answer(drive, "plan-1", plan_of(reader, subtask("t2")))
    assert drive.state.work["t1"].flight == agent.id and not drive.state.early.taken
    drive.state, drive.started = kept, [each for each in drive.started if each[0] in "pa"]
    answer(drive, "plan-1", plan_of(subtask("t1"), subtask("t2")))
    drive.put(AgentEnded(agent, None, "cut"))
    assert drive.state.early.dollars == agent.amount.dollars
    assert drive.state.work["t1"].flight == "work-t1-1"


def test_what_was_taken_back_and_never_answers_counts_at_its_reservation() -> None:
    drive = planning()
    grow(drive, plan_of(subtask("t1")))
    old = flying(drive, "work-t1-1")
    answer(drive, "plan-1", plan_of(subtask("t8"), subtask("t9")))
    drive.wait(30)
    assert "work-t1-1" not in drive.state.flights
    assert drive.state.early.dollars == old.amount.dollars


def test_bounds_that_the_planner_writes_last_take_nothing_back() -> None:
    drive = planning()
    grow(drive, plan_of(subtask("t1")))
    bounded = subtask("t1").model_copy(update={"max_output": 2_000, "timeout_seconds": 60})
    answer(drive, "plan-1", plan_of(bounded, subtask("t2")))
    assert not drive.state.early.taken
    assert drive.state.work["t1"].subtask == bounded


def test_a_plan_that_is_refused_keeps_what_its_repair_has() -> None:
    drive = planning()
    stands = plan_of(subtask("t1"), subtask("t2"))
    grow(drive, plan_of(subtask("t1")))
    refuse(drive, "plan-1")
    assert asked(drive) == ["plan-1", "work-t1-1", "plan-2"]
    grow(drive, stands, "plan-2")
    assert asked(drive)[-1] == "plan-2", "a plan that was refused once is waited for"
    answer(drive, "plan-2", stands)
    assert not drive.state.early.taken
    assert asked(drive)[-1] == "work-t2-1"


def test_without_any_valid_plan_all_is_taken_back_for_the_agent_that_takes_the_goal() -> None:
    drive = planning()
    grow(drive, plan_of(subtask("t1")))
    for number in (1, 2, 3):
        refuse(drive, f"plan-{number}")
    assert drive.state.early.taken == ("t1",)
    assert drive.state.flights["work-t1-1"].cut
    assert drive.state.work["t1"].subtask.instruction == "Compare"
    assert asked(drive)[-1] == "work-t1-2"


def test_a_planner_that_is_lost_may_plan_otherwise_the_second_time() -> None:
    drive = planning(limits=Limits(early=3, dollars=Decimal(4)))
    grow(drive, plan_of(subtask("t1"), subtask("t2")))
    lose(drive, "plan-1")
    grow(drive, plan_of(subtask("t3")), "plan-1")
    assert asked(drive)[-1] == "plan-2", "nobody writes the first plan any more"
    grow(drive, plan_of(subtask("t1"), subtask("t4")), "plan-2")
    assert asked(drive)[-1] == "work-t4-1"
    answer(drive, "plan-2", plan_of(subtask("t1"), subtask("t4")))
    assert drive.state.early.taken == ("t2",)
    assert asked(drive).count("work-t1-1") == 1


def test_what_failed_early_has_the_plan_changed_once_somebody_is_known_to_need_it() -> None:
    drive = planning(limits=LIMITS.model_copy(update={"tries_per_subtask": 1}))
    grow(drive, plan_of(subtask("t1")))
    answer(drive, "work-t1-1", Draft(status="failed", why="there is nothing"))
    assert asked(drive) == ["plan-1", "work-t1-1"]
    answer(drive, "plan-1", plan_of(subtask("t1"), subtask("t2"), subtask("t3", "t1")))
    assert "replan-1" in asked(drive)


def test_a_second_try_waits_for_the_whole_plan() -> None:
    drive = planning()
    grow(drive, plan_of(subtask("t1")))
    answer(drive, "work-t1-1", Draft(status="failed", why="too hard"))
    assert asked(drive)[-1] == "work-t1-1"
    answer(drive, "plan-1", plan_of(subtask("t1"), subtask("t2")))
    assert "work-t1-2" in asked(drive)


def test_a_run_that_is_cancelled_while_it_plans_pays_for_what_had_started() -> None:
    drive = planning()
    grow(drive, plan_of(subtask("t1")))
    drive.cancel()
    assert all(each.cut for each in drive.state.flights.values())
    drive.wait(30)
    assert drive.closed
    assert drive.state.early.taken == ("t1",)
    assert drive.state.ledger.spent.calls == 2


def test_what_was_lost_alone_begins_again_while_its_plan_is_still_being_written() -> None:
    drive = planning(limits=Limits(early=3, dollars=Decimal(9)))
    grow(drive, plan_of(subtask("t1"), subtask("t2")))
    for id in ("work-t1-1", "work-t2-1"):
        lose(drive, id)
    assert asked(drive)[-2:] == ["work-t1-2", "work-t2-2"]


def test_what_was_lost_with_its_planner_begins_again_when_the_next_plan_has_it_so() -> None:
    drive = planning(limits=Limits(early=3, dollars=Decimal(9)))
    grow(drive, plan_of(subtask("t1"), subtask("t2")))
    for id in ("plan-1", "work-t1-1", "work-t2-1"):
        lose(drive, id)
    assert asked(drive)[-1] == "plan-2", "nothing stands yet"
    again = flying(drive, "plan-2").material
    assert isinstance(again, PlanMaterial)
    assert again.begun and [each.id for each in again.begun.subtasks] == ["t1", "t2"]
    other = subtask("t2", role="researcher")
    grow(drive, plan_of(subtask("t1"), other), "plan-2")
    assert asked(drive)[-1] == "work-t1-2", "t2 waits for the whole plan: it is another one there"
    answer(drive, "work-t1-2", done("at last"))
    answer(drive, "plan-2", plan_of(subtask("t1"), other))
    assert drive.finding("t1").content == "at last"
    assert drive.state.early.taken == ("t2",)


def test_a_refused_plan_goes_back_with_its_own_words_and_what_has_begun() -> None:
    drive = planning()
    grow(drive, plan_of(subtask("t1")))
    ask = flying(drive, "plan-1")
    wrong = Problem(kind="invalid", why="t2: unknown role", answer='{"subtasks": []}')
    drive.put(Answered(ask, Reply[Plan](problem=wrong, bill=bill_of(ask, HALF))))
    again = flying(drive, "plan-2").material
    assert isinstance(again, PlanMaterial)
    assert again.previous == wrong.answer and again.errors == ("t2: unknown role",)
    assert again.begun and [each.id for each in again.begun.subtasks] == ["t1"]


def test_what_is_assumed_names_a_lost_call_for_the_plan_beside_subtasks() -> None:
    drive = planning()
    grow(drive, plan_of(subtask("t1")))
    for id, told in (("work-t1-1", "t1"), ("plan-1", "plan, t1")):
        unknown = Trouble("possibly_billed", "its worker died", Bill(calls=1))
        drive.put(Unanswered(flying(drive, id), unknown))
        assert any(each.endswith(f"answers were lost ({told}).") for each in notes(drive.state))


def test_a_plan_that_comes_after_its_run_was_cancelled_is_not_why_its_work_was_taken_back() -> None:
    drive = planning()
    parts = subtask("t1"), subtask("t2")
    grow(drive, plan_of(parts[0]))
    drive.cancel()
    answer(drive, "plan-1", plan_of(*parts))
    drive.wait(30)
    assert drive.closed and drive.state.stop
    [told] = [each for each in notes(drive.state) if each.startswith("t1 (Subtask t1) was started")]
    assert told.endswith(
        f"taken back ({format_price(drive.state.early.dollars)}): {drive.state.stop.why}."
    )


EFFECT = RoleCard(
    name="sender", description="sends", tier="haiku", tools=("send",), effects=("send",)
)


@pytest.mark.parametrize(
    ("fields", "stands"),
    [
        ({"limits": Limits()}, subtask("t1")),
        ({"approval": Approval(when="always")}, subtask("t1")),
        ({"approval": Approval(when="above", dollars=Decimal(1))}, subtask("t1")),
        ({"limits": Limits(early=3, dollars=Decimal("0.40"))}, subtask("t1")),
        ({}, subtask("t1", "t0")),
        ({}, subtask("t1", role="department")),
        ({}, subtask("t1", role="scanner")),
        ({}, subtask("t1", role="unknown")),
        ({}, subtask("t1", role="sender")),
        ({}, subtask("t1").model_copy(update={"inputs": ("unknown",)})),
    ],
)
def test_nothing_starts_early(fields: dict[str, Any], stands: Subtask) -> None:
    briefing = BRIEFING.model_copy(update={"roles": (*BRIEFING.roles, EFFECT)})
    drive = planning(briefing=briefing, **fields)
    grow(drive, plan_of(stands))
    assert asked(drive) == ["plan-1"]


def test_no_more_start_early_than_the_limit_says() -> None:
    drive = planning(limits=Limits(early=2))
    grow(drive, plan_of(*(subtask(f"t{number}") for number in range(1, 6))))
    assert asked(drive) == ["plan-1", "work-t1-1", "work-t2-1"]


def test_what_others_tell_of_a_plan_that_nobody_writes_is_ignored() -> None:
    drive = planning()
    grow(drive, plan_of(subtask("t1")), "work-t1-1")
    grow(drive, plan_of(subtask("t1")), "plan-2")
    answer(drive, "plan-1", plan_of(subtask("t2"), subtask("t3")))
    before = drive.state
    grow(drive, plan_of(subtask("t1")))
    assert drive.state == replace(before, now=drive.state.now)


WHOLE = plans(scripted("t1"), scripted("t2", "t1"), scripted("t3", title="Ü \U0001f600"))


def test_of_a_plan_cut_anywhere_only_whole_subtasks_stand() -> None:
    order = ("goal", "strategy", "synthesis_instruction", "roles", "subtasks", "choices", "bounds")
    text = json.dumps({key: WHOLE[key] for key in order}, ensure_ascii=False)
    whole = to_plan(PlanAnswer.model_validate(WHOLE))
    seen = []
    for end in range(len(text) + 1):
        plan = stands(text[:end], 3)
        ids = [each.id for each in plan.subtasks] if plan else []
        assert plan is None or {*plan.subtasks} <= {*whole.subtasks}
        seen += [ids] if ids not in seen else []
    assert seen == [[], ["t1"], ["t1", "t3"]], "t2 waits for another one"


@pytest.mark.parametrize(
    "before",
    [
        "Here it is:\n```json\n",
        'A plan for {all} of it, not {"any": 1}: ',
        '<think>{"goal": "none", "subtasks": []}</think>',
    ],
)
def test_thoughts_a_sentence_or_a_fence_before_a_plan_keep_nothing_from_starting(
    before: str,
) -> None:
    text = json.dumps(WHOLE)
    first = stands(before + text[: text.find('"choices"')] + '"choices"', 1)
    assert first is not None and [each.id for each in first.subtasks] == ["t1"]
    assert stands(f"<think>Perhaps {text}", 1) is None, "it is only a thought"


def test_the_last_subtask_has_more_to_come_until_something_follows_all_of_them() -> None:
    """Without a form the fields may be in any order."""
    last = {key: WHOLE[key] for key in WHOLE if key != "subtasks"}
    text = json.dumps({**last, "subtasks": WHOLE["subtasks"]})
    for end in range(len(text)):
        plan = stands(text[:end], 3)
        assert plan is None or [each.id for each in plan.subtasks] == ["t1"]


def test_a_subtask_that_is_all_of_a_plan_does_not_stand() -> None:
    one = {**WHOLE, "subtasks": WHOLE["subtasks"][:1], "choices": []}
    text = json.dumps({key: one[key] for key in one if key != "bounds"})
    assert stands(text, 3) is None
    assert stands(text.replace('"choices"', '"chosen"'), 3) is None


def test_a_plan_that_is_refused_for_good_leaves_the_money_for_one_agent() -> None:
    drive = planning(limits=Limits(early=3, dollars=Decimal("0.6")))
    for number in (1, 2, 3):
        grow(drive, plan_of(subtask("t1"), subtask("t2")), f"plan-{number}")
        ask = flying(drive, f"plan-{number}")
        reply: Reply[Any] = Reply(problem=Problem(kind="invalid", why="no"), bill=bill_of(ask))
        drive.put(Answered(ask, reply))
    assert asked(drive)[-1] == "work-t1-1" and not drive.closed


NO_PLANS = (
    *("", "no JSON", "[1, 2", "{", "\ud83d{", '"subtasks"', "[" * 9_999),
    *('{"subtasks": 7', '{"subtasks": [1, 2, 3', '{"subtasks": ' + "[" * 9_999),
    *('{"subtasks": [{}, {"id": "t1"}], "choices": [', '{"choices": 1, "subtasks": {"a": 1}}'),
)


@pytest.mark.parametrize("text", NO_PLANS)
def test_what_is_no_plan_has_nothing_that_stands(text: str) -> None:
    assert stands(text, 3) is None


@pytest.mark.parametrize("seed", range(30))
def test_whatever_comes_in_whatever_order_the_run_ends_within_its_cap(seed: int) -> None:
    """The drive checks the ledger, the shares and the siblings after each event."""
    chance = random.Random(seed)
    drive = planning(limits=Limits(early=chance.randint(1, 4), dollars=Decimal(3)))
    parts = [
        subtask(f"t{number}", role=chance.choice(["analyst", "researcher"]))
        for number in range(1, 5)
    ]
    for _ in range(400):
        if drive.closed:
            break
        ids = [each for each in drive.state.flights if flying(drive, each)]
        plan = next((each for each in ids if each.startswith("plan")), "")
        if plan and chance.random() < 0.5:
            shown = chance.sample(parts, chance.randint(1, 4))
            grow(drive, plan_of(*shown), plan)
            continue
        id = chance.choice(ids) if ids else ""
        if not id or chance.random() < 0.1:
            drive.wait(chance.choice([1, 12]))
        elif chance.random() < 0.15:
            lose(drive, id)
        elif chance.random() < 0.02:
            drive.cancel()
        elif id.startswith("plan"):
            good = plan_of(*chance.sample(parts, chance.randint(2, 4)))
            refuse(drive, id) if chance.random() < 0.3 else answer(drive, id, good)
        elif id.startswith("work"):
            failed = Draft(status="failed", why="no")
            answer(drive, id, failed if chance.random() < 0.2 else done())
        else:
            lose(drive, id)
    assert drive.closed
    assert not drive.state.flights and not drive.state.early.back
