"""What a person may decide about a subtask that is not complete, and what a stop leaves of it."""

from __future__ import annotations

from driving import BRIEFING, Drive, subtask
from holdfast.contracts import Order, PinnedInput, Plan
from holdfast.rendering.running import waiting
from holdfast.rules import steering
from outcomes import AMPLE, end, in_flight

PLAN = Plan(goal="Look", subtasks=(subtask("a", role="scanner"), subtask("b", "a"), subtask("c")))


def undecided() -> Drive:
    """A lens has failed, and a person is asked; another subtask is at work."""
    run = Drive(PLAN, AMPLE, people=True)
    end(run, "examine-a-1", "failed")
    return run


def test_while_one_waits_the_others_go_on_and_then_the_deadline_stands_still() -> None:
    run = undecided()
    assert in_flight(run) == ["work-c-1"] and run.state.work_deadline is not None
    end(run, "work-c-1")
    assert not in_flight(run) and run.state.work_deadline is None
    assert [(each.kind, each.subtask_id) for each in waiting(run.state)] == [("decision", "a")]


def test_a_lens_reads_no_advice_and_is_handed_to_nobody_but_tried_again() -> None:
    run = undecided()
    order = Order(subtask_id="a", text="Look there.", role="analyst")
    assert steering.refusal(run.state, "answer", order).startswith("a reads no advice; retry")
    assert steering.refusal(run.state, "hand", order).startswith("a is done without a model")
    run.person_settles("a", "retry")
    assert "examine-a-2" in in_flight(run)
    end(run, "examine-a-2")
    assert run.finding("a").status == "complete" and "work-b-1" in in_flight(run)


def test_a_role_that_cannot_read_an_input_or_is_unknown_is_not_offered_the_subtask() -> None:
    report = PinnedInput(name="report", kind="file", size=1, digest="d", reader="read_document")
    reads = subtask("a").model_copy(update={"inputs": ("report",)})
    briefing = BRIEFING.model_copy(update={"inputs": (report,)})
    run = Drive(Plan(goal="Look", subtasks=(reads,)), AMPLE, briefing, people=True)
    for number in (1, 2, 3):
        end(run, f"work-a-{number}", "failed")
        while in_flight(run) and in_flight(run)[0].startswith("refine"):
            end(run, in_flight(run)[0])
    order = Order(subtask_id="a", role="scanner")
    assert "no role 'scanner' to hand it to; known: researcher, expert, " in steering.refusal(
        run.state, "hand", order
    )
    order = Order(subtask_id="a", role="expert")
    why = steering.refusal_on_arrival(run.state, "hand", order)
    assert "role 'expert' has no tool that reads it" in why


def test_a_cancel_of_the_run_leaves_what_waited_as_it_was() -> None:
    run = undecided()
    run.cancel()
    end(run, "work-c-1")
    assert run.closed
    assert (run.finding("a").status, run.finding("a").why) == ("failed", "the agent could not")
    assert run.finding("b").status == "skipped"
