"""Tell a run which subtasks of its plan stand, while the rest of it is being written."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, suppress

from temporalio import activity
from temporalio.service import RPCError

from holdfast.activities.asking.call import HEAVY_LETTERS
from holdfast.calls.plan import PlanMaterial, stands
from holdfast.contracts import Call, Plan
from holdfast.contracts.plans import PlanSoFar
from holdfast.contracts.signals import PLANNED
from holdfast.ports import SoFar

LOOK_SECONDS = 0.25
"""Between two looks at what has arrived: of a plan that is written faster nothing is told. A look
reads all of it again, a millisecond or two for the longest that is looked at.
"""


@asynccontextmanager
async def telling(
    call: Call, material: PlanMaterial, problem: Callable[[Plan], object]
) -> AsyncIterator[SoFar]:
    """Tell the run of each subtask that stands and in which `problem` finds none, while the block
    asks for the plan with what this yields.
    """
    so_far = SoFar()
    looking = asyncio.create_task(_look(call, material, problem, so_far))
    try:
        yield so_far
    finally:
        looking.cancel()
        # A run that could not be told loses a few seconds, and never its plan.
        with suppress(asyncio.CancelledError, Exception):
            await looking


async def _look(
    call: Call, material: PlanMaterial, problem: Callable[[Plan], object], so_far: SoFar
) -> None:
    text, told = "", 0
    while told < material.early and len(text) < HEAVY_LETTERS:
        await asyncio.sleep(LOOK_SECONDS)
        before, text = text, so_far.read()
        plan = stands(text, material.early) if text != before else None
        if plan is None or len(plan.subtasks) == told:
            continue
        if problem(plan):
            return
        told = len(plan.subtasks)
        await _tell(PlanSoFar(call=call.id, plan=plan))


async def _tell(word: PlanSoFar) -> None:
    info = activity.info()
    run = activity.client().get_workflow_handle(info.workflow_id or "", run_id=info.workflow_run_id)
    with suppress(RPCError):
        await run.signal(PLANNED, word)
