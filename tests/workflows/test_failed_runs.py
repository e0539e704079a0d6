"""A run that failed fails its workflow, with its report in the failure; every reader has it."""

from __future__ import annotations

from typing import Any

import pytest
from temporalio.client import WorkflowExecutionStatus, WorkflowFailureError
from temporalio.exceptions import ApplicationError

from conftest import Handle, Runs
from holdfast.certifying.deployment import outcome
from holdfast.cli.screen.exits import Code
from holdfast.cli.shared.outcome import exit_code
from holdfast.client.ended import Ended, read_end
from holdfast.client.reading import Look
from holdfast.contracts import Goal, Report
from holdfast.history.fold import Fold
from holdfast.replaying.replay import export
from holdfast.state.events import RUN_FAILED
from holdfast.storage.payloads import find_stored
from scripted import ScriptedModel, ready, subtask, works

pytestmark = pytest.mark.anyio

FAILS = works("", status="failed", why="the source is\nclosed")


def goal(**limits: Any) -> Goal:
    plan = ready(subtask("t1"), subtask("t2", "t1"))
    few = {"tries_per_subtask": 1, "replans": 0, **limits}
    return Goal.model_validate({"text": "Compare", "plan": plan, "use_models": True, "limits": few})


async def failed(runs: Runs, model: ScriptedModel, wanted: Goal) -> tuple[Handle, ApplicationError]:
    async with runs.worker(model):
        handle = await runs.start(wanted)
        with pytest.raises(WorkflowFailureError) as failure:
            await handle.result()
    cause = failure.value.cause
    assert isinstance(cause, ApplicationError)
    return handle, cause


async def read(runs: Runs, handle: Handle) -> Ended:
    """As the starter reads it: from the history alone."""
    fold = Fold(handle.id, runs.client.data_converter)
    async for event in handle.fetch_history_events():
        await fold.take(event)
    status = (await handle.describe()).status
    return read_end(handle.id, Look(status, fold.state, fold.report))


async def test_a_run_that_failed_fails_its_workflow_with_the_report_as_the_failures_detail(
    runs: Runs,
) -> None:
    handle, cause = await failed(runs, ScriptedModel({"t1": [FAILS]}), goal())
    assert (await handle.describe()).status is WorkflowExecutionStatus.FAILED
    assert (cause.type, cause.non_retryable) == (RUN_FAILED, True)
    told = "no subtask was completed: t1: the source is closed; t2: needs t1, which failed"
    assert cause.message == told
    report = await outcome(handle)
    assert (report.status, report.model_calls) == ("failed", 1)
    ended = await read(runs, handle)
    assert (exit_code(ended), ended.report) == (Code.FAILED, report)


@pytest.mark.long
async def test_a_report_above_the_blob_limit_is_kept_whole_outside_of_history(runs: Runs) -> None:
    huge = ("All work and no play. " * 140_000).strip()
    given_back = works(huge, status="escalate", reason="timeout", why="too big")
    wanted = goal(dollars=100, tokens=100_000_000)
    wanted = wanted.model_copy(update={"plan": ready(subtask("t1"))})
    handle, _ = await failed(runs, ScriptedModel({"t1": [given_back]}), wanted)
    report: Report = await outcome(handle)
    assert report.status == "failed"
    assert report.findings[0].content == huge and huge in report.answer
    history = await handle.fetch_history()
    closing = history.events[-1]
    assert len(closing.SerializeToString()) < 10_000
    assert find_stored([closing]), "a clean-up keeps what the failure names"
    assert (await read(runs, handle)).report == report
    assert len(await export(runs.client, handle.id, runs.store)) > len(huge), "an export has it all"


async def test_what_prepare_refuses_still_closes_as_refused(runs: Runs) -> None:
    bad = ready(subtask("t1", role="nobody"))
    async with runs.worker(ScriptedModel({})):
        handle = await runs.start(goal().model_copy(update={"plan": bad}))
        with pytest.raises(WorkflowFailureError):
            await handle.result()
    ended = await read(runs, handle)
    assert (exit_code(ended), ended.report) == (Code.REFUSED, None)
