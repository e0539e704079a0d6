"""What a run tells addresses of the web: each occurrence once, signed, without its content."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable
from typing import Any

import pytest
from test_steering import tell

from conftest import Runs, seen
from holdfast.contracts import Goal, Limits
from holdfast.contracts.notices import Delivery
from holdfast.replaying.replay import replay
from holdfast.workflows import WORKFLOWS
from hook_receiver import SECRET, Hooks, hook_receiver, unwrap
from scripted import ScriptedModel, plans, ready, subtask, synthesizes, works

pytestmark = pytest.mark.anyio

PLAN = ready(subtask("t1"))
SENDS: dict[str, Any] = {"webhook_secret": SECRET, "webhook_private": True}


def goal(hooks: Hooks, **fields: object) -> Goal:
    notify = {"urls": [hooks.address], **({"on": on} if (on := fields.pop("on", None)) else {})}
    base = {"text": "Compare three engines", "use_models": True, "plan": PLAN, "notify": notify}
    return Goal.model_validate({**base, **fields})


def model() -> ScriptedModel:
    return ScriptedModel({"t1": [works("one")], "synthesize": [synthesizes("done")]})


async def until(met: Callable[[], object]) -> None:
    async with asyncio.timeout(30):
        while not met():  # noqa: ASYNC110
            await asyncio.sleep(0.02)


async def notifier(runs: Runs, number: int = -1) -> str:
    """The workflow of a notice of the last run."""
    history = await runs.handles[-1].fetch_history()
    children = [
        each.start_child_workflow_execution_initiated_event_attributes.workflow_id
        for each in history.events
        if each.HasField("start_child_workflow_execution_initiated_event_attributes")
    ]
    return children[number]


async def delivery(runs: Runs, number: int = -1) -> Delivery:
    handle = runs.client.get_workflow_handle(await notifier(runs, number), result_type=Delivery)
    found: Delivery = await handle.result()
    assert await replay(await handle.fetch_history(), WORKFLOWS, runs.store) == ()
    return found


async def test_a_run_tells_that_its_plan_waits_and_that_it_has_ended(runs: Runs) -> None:
    script = ScriptedModel(
        {"plan": [plans(subtask("t1"))], "t1": [works("one")], "synthesize": [synthesizes("x")]}
    )
    with hook_receiver() as hooks:
        async with runs.worker(script, **SENDS):
            handle = await runs.start(
                goal(hooks, plan=None, approval={"when": "always"}), skipping=False
            )
            await until(lambda: hooks.got)
            assert hooks.types == ["run.plan_waits"]
            await tell(handle, "approve", by="ann")
            await handle.result()
            assert (await delivery(runs)).failures == ()
    assert hooks.types == ["run.plan_waits", "run.ended"]
    first, last = hooks.got
    assert first.id != last.id and first.id.startswith("msg_")
    told = last.told
    assert told == {
        "type": "run.ended",
        "timestamp": told["timestamp"],
        "data": {"id": handle.id, "event": 2},
    }
    assert "engines" not in last.body.decode()


async def test_the_sdk_of_anthropic_reads_a_hook_by_the_same_headers(runs: Runs) -> None:
    with hook_receiver() as hooks:
        async with runs.worker(model(), **SENDS):
            await runs.start(goal(hooks))
            await runs.handles[-1].result()
            await delivery(runs)
    (hook,) = hooks.got
    assert unwrap(hook).type == "run.ended"
    with pytest.raises(Exception, match="signature"):
        unwrap(hook, "whsec_AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA")


async def test_a_run_is_over_before_its_last_hook_which_is_tried_again_with_the_same_id(
    runs: Runs,
) -> None:
    with hook_receiver() as hooks:
        hooks.answers = [503, 302, 500]
        async with runs.worker(model(), **SENDS):
            report = await (await runs.start(goal(hooks))).result()
            assert report.status == "complete"
            assert (await delivery(runs)).failures == ()
    assert len(hooks.got) == 4 and len({each.id for each in hooks.got}) == 1


async def test_each_waiting_question_is_told_once_and_the_budget_too(runs: Runs) -> None:
    script = ScriptedModel(
        {
            "t1": [works("", status="failed", why="the source is gone")] * 2,
            "synthesize": [synthesizes("done")],
        }
    )
    with hook_receiver() as hooks:
        async with runs.worker(script, **SENDS):
            limits = {"tries_per_subtask": 1, "replans": 0}
            wanted = goal(hooks, ask_people=True, limits=limits)
            handle = await runs.start(wanted, skipping=False)
            await seen(handle, lambda each: bool(each.waiting))
            await until(lambda: hooks.got)
            await tell(handle, "pause", by="ann")
            await tell(handle, "resume", by="ann")
            await tell(handle, "supply", subtask_id="t1", text="It is forty.", by="ann")
            await handle.result()
            await delivery(runs)
    assert hooks.types == ["run.question", "run.ended"]


async def test_a_run_without_money_tells_that_it_waits_for_more(runs: Runs) -> None:
    limits = Limits(model_calls=2, concurrency=1)
    plan = ready(subtask("t1", role="writer"), subtask("t2", role="writer"))
    script = ScriptedModel({"t1": [works("one")], "synthesize": [synthesizes("done")]})
    with hook_receiver() as hooks:
        async with runs.worker(script, **SENDS):
            wanted = goal(hooks, plan=plan, limits=limits, wait_for_raise=True, on=["budget"])
            handle = await runs.start(wanted, skipping=False)
            await until(lambda: hooks.got)
            assert hooks.types == ["run.budget_reached"]
            await handle.cancel()
            with pytest.raises(Exception, match="failed"):
                await handle.result()
    assert len(hooks.got) == 1


async def test_a_cancelled_run_tells_that_it_has_ended(runs: Runs) -> None:
    script = ScriptedModel({"t1": [asyncio.Event()]})
    with hook_receiver() as hooks:
        async with runs.worker(script, **SENDS):
            handle = await runs.start(goal(hooks), skipping=False)
            await until(lambda: "t1" in script.heard)
            await handle.cancel()
            with pytest.raises(Exception, match="failed"):
                await handle.result()
            await delivery(runs)
    assert hooks.types == ["run.ended"]


async def test_a_hook_that_may_not_be_sent_is_a_note_and_the_run_completes(runs: Runs) -> None:
    with hook_receiver() as hooks:
        async with runs.worker(model(), webhook_secret=SECRET):
            https = hooks.address.replace("http:", "https:")
            wanted = goal(
                hooks, notify={"urls": [hooks.address, https]}, approval={"when": "always"}
            )
            handle = await runs.start(wanted, skipping=False)
            refused = (await delivery_of_first(runs)).failures
            await tell(handle, "approve", by="ann")
            report = await handle.result()
    assert hooks.got == []
    assert refused == (
        "is not https; HOLDFAST_WEBHOOK_PRIVATE=true allows http, and addresses inside a net",
        "127.0.0.1 is not an address of the public web",
    )
    assert report.status == "complete"
    assert sum("run.plan_waits was not delivered" in each for each in report.notes) == 2


async def delivery_of_first(runs: Runs) -> Delivery:
    await seen(runs.handles[-1], lambda each: each.phase == "approval")
    return await delivery(runs, 0)


async def test_nothing_goes_unsigned(runs: Runs) -> None:
    with hook_receiver() as hooks:
        async with runs.worker(model(), webhook_private=True):
            await (await runs.start(goal(hooks))).result()
            (why,) = (await delivery(runs)).failures
    assert hooks.got == []
    assert why == "HOLDFAST_WEBHOOK_SECRET is not set for the worker, and nothing goes unsigned"


async def test_a_receiver_that_wants_no_more_is_not_asked_again(runs: Runs) -> None:
    with hook_receiver() as hooks:
        hooks.answers = [410]
        async with runs.worker(model(), **SENDS):
            await (await runs.start(goal(hooks))).result()
            assert (await delivery(runs)).failures == ("127.0.0.1 answered 410: it wants no more",)
    assert len(hooks.got) == 1


@pytest.mark.long
async def test_it_is_given_up_after_three_days_and_the_run_is_not_kept(runs: Runs) -> None:
    with hook_receiver() as hooks:
        hooks.answers = [500] * 1_000
        async with runs.worker(model(), **SENDS):
            report = await (await runs.start(goal(hooks))).result()
            assert report.status == "complete"
            (why,) = (await delivery(runs)).failures
    assert "answered 500" in why
    assert 10 < len(hooks.got) < 40


async def test_no_secret_stands_in_any_history(runs: Runs) -> None:
    with hook_receiver() as hooks:
        async with runs.worker(model(), **SENDS):
            await (await runs.start(goal(hooks))).result()
            await delivery(runs)
        for id in (runs.handles[-1].id, await notifier(runs)):
            history = await runs.client.get_workflow_handle(id).fetch_history()
            assert SECRET.removeprefix("whsec_") not in json.dumps(history.to_json())
