"""Tell a run of a call in flight: that its answer has begun, and which subtasks of a plan stand. A
run that could not be told loses some seconds, and nothing else.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Coroutine
from contextlib import asynccontextmanager, suppress
from typing import Any

from temporalio import activity
from temporalio.service import RPCError

from holdfast.activities.asking.replies import HEAVY_LETTERS
from holdfast.calls.plan import PlanMaterial, stands
from holdfast.contracts import Call, Plan
from holdfast.contracts.plans import PlanSoFar
from holdfast.contracts.signals import BEGUN, PLANNED
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
    async with _beside(_look(call, material, problem, so_far)):
        yield so_far


@asynccontextmanager
async def telling_begun(call_id: str) -> AsyncIterator[Callable[[], None]]:
    """Yield what is to be called when the answer begins: others wait for no more than that. The end
    of the answer says the same.
    """
    begun = asyncio.Event()

    async def tell() -> None:
        await begun.wait()
        await _tell(BEGUN, call_id)

    async with _beside(tell()):
        yield begun.set


@asynccontextmanager
async def _beside(telling: Coroutine[Any, Any, None]) -> AsyncIterator[None]:
    task = asyncio.create_task(telling)
    try:
        yield
    finally:
        task.cancel()
        with suppress(asyncio.CancelledError, Exception):
            await task


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
        await _tell(PLANNED, PlanSoFar(call=call.id, plan=plan))


async def _tell(signal: str, word: object) -> None:
    info = activity.info()
    run = activity.client().get_workflow_handle(info.workflow_id or "", run_id=info.workflow_run_id)
    with suppress(RPCError):
        await run.signal(signal, word)
