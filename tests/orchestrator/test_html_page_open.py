"""The page of a run that goes on: its clock, and what is said of what is not over."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from pathlib import Path

import pytest

from drawn import START, row, view
from holdfast.contracts.plans import MapSpec
from holdfast.contracts.view import Question, RunView
from holdfast.rendering.html.page import as_html
from holdfast.rendering.html.pictured import Pictured
from holdfast.rendering.html.refusals import why_not
from holdfast.rendering.html.steering import Live
from holdfast.rendering.html.times import times
from holdfast.text import group_lines
from paged import HISTORIES, recorded, shown

pytestmark = pytest.mark.anyio


def open_run(**fields: object) -> Pictured:
    """One that was heard last a second after its beginning, and is drawn 61 s later."""
    seen: RunView = view(row("t1", seconds=1.0), after=1.0, **fields)
    made = shown(1, findings=[], timings={"makespan": 1.0}, finished=None)
    return Pictured(
        made.report, made.to_type, view=seen, over=False, drawn=START + timedelta(seconds=62)
    )


def test_the_clock_of_a_run_that_goes_on_goes_on() -> None:
    page = as_html(open_run())
    assert "<dt>Time</dt><dd>1 min 02 s<small>so far</small></dd>" in page
    assert "start to end" not in page and ">1 min 02 s</td>" in page


def test_no_footnote_leads_back_to_an_answer_that_there_is_not_yet() -> None:
    page = as_html(replace(shown(3, answer=""), over=False))
    assert 'id="source-1"' in page and 'href="#answer"' not in page


def test_of_a_run_that_waits_it_is_said_since_when() -> None:
    page = as_html(open_run(waiting_since=START + timedelta(seconds=1)))
    assert "<small>so far, 1 min 01 s waiting</small>" in page


def test_a_run_that_waits_for_the_endpoint_says_so_first_with_what_is_tried_next() -> None:
    away = "the endpoint http://a.test cannot be reached since 06:28:00 UTC; it is asked every 30 s"
    page = as_html(open_run(outage=away))
    assert "? waits for the endpoint of the models: " in page and f"The{away[3:]}." in page
    assert "▸ under way" not in page


def test_what_an_open_run_paid_is_not_said_to_be_all_that_it_will() -> None:
    run = shown(3)
    page = as_html(Pictured(run.report, run.to_type, over=False))
    assert "74% of that so far" in page and "it took" not in page
    assert "it took 74% of that" in as_html(run)


async def test_the_chapter_of_times_says_so_far_and_since_when_it_waits() -> None:
    run = await recorded(HISTORIES[0])
    assert run.view is not None and run.report.started is not None
    now = run.view.now
    seen = run.view.model_copy(update={"waiting_since": now})
    report = run.report.model_copy(update={"finished": None})
    shown = replace(run, report=report, view=seen, over=False, drawn=now + timedelta(seconds=60))
    said = str(times(shown))
    assert " so far, 1 min" in said
    assert f"It waits since {now:%Y-%m-%d %H:%M:%S} UTC" in said
    assert "so far" not in str(times(run)) and "waits since" not in str(times(run))


@pytest.mark.parametrize("path", HISTORIES, ids=lambda path: path.stem)
async def test_what_the_page_calls_not_accepted_is_drawn_as_not_accepted(path: Path) -> None:
    run = await recorded(path)
    refused = [each.id for each in run.steps if why_not(each)]
    of_the_legend = 1
    assert str(times(run)).count('<rect class="odd"') == len(refused) + of_the_legend
    assert as_html(run).count('<div class="try refused">') == len(refused)


def test_the_reason_of_a_page_that_nobody_serves_stands_before_everything_else() -> None:
    page = as_html(open_run(), Live(token="t", nonce="n", again="watch run-1 --web"))
    first = page.partition("<body>")[2][:400]
    assert first.startswith('<p id="lost" role="alert" hidden>') and "watch run-1 --web" in first


@pytest.mark.parametrize(("refused", "look"), [(True, "not-done"), (False, "do")])
def test_an_order_that_was_refused_does_not_look_like_one_that_was_carried_out(
    refused: bool, look: str
) -> None:
    page = as_html(open_run(), Live(token="t", nonce="n", said="no such call", refused=refused))
    assert f'<p class="{look}"' in page and ("Not done: " in page) == refused


def test_in_a_run_that_is_over_nothing_waits() -> None:
    made = shown(3, findings=[], gaps=[], status="declined")
    page = as_html(Pictured(made.report, made.to_type))
    assert page.count("not run</span>") == 6 and "waiting</span>" not in page
    under_way = as_html(Pictured(made.report, made.to_type, over=False))
    assert "waiting</span>" in under_way and "not run</span>" not in under_way


def test_what_is_wrong_with_many_subtasks_alike_is_said_once() -> None:
    alike = [f"t{number}: no role 'x'; use one" for number in (1, 2, 3)]
    assert group_lines([*alike, "t4: it is empty", "the plan is: odd"]) == (
        "t1, t2, t3: no role 'x'; use one; t4: it is empty; the plan is: odd"
    )


def test_a_run_with_a_map_under_way_has_forms_for_orders_about_its_rows() -> None:
    plain = open_run()
    assert plain.report.plan is not None
    (first, *rest) = plain.report.plan.subtasks
    mapped = first.model_copy(update={"map": MapSpec(over="tickets", by="records")})
    plan = plain.report.plan.model_copy(update={"subtasks": (mapped, *rest)})
    run = replace(plain, report=plain.report.model_copy(update={"plan": plan}))
    told, without = (as_html(each, live=Live("token", "nonce")) for each in (run, plain))
    for field in ("in-retry-rows", "in-skip-rows", "in-supply-row", "as-supply-row"):
        assert told.count(f'id="{field}"') == 1 and field not in without
    asked = Question(kind="subtask", subtask_id="t1", text="3 of 20 rows failed", rows=True)
    seen = view(row("t1", seconds=1.0), waiting=(asked,))
    assert "go on, or stop" in as_html(replace(run, view=seen), live=Live("token", "nonce"))
    assert "decide about rows" in told and 'name="value"' in told
