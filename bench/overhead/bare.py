"""Bare Temporal: the same calls as activities of a workflow, as somebody writes it who knows
Temporal and needs no more than this plan done.
"""

from __future__ import annotations

import asyncio
from contextlib import suppress
from datetime import timedelta

from temporalio import activity, workflow
from temporalio.common import RetryPolicy

with workflow.unsafe.imports_passed_through():
    from bench.overhead.asking import Model, Question, Step, critique, synthesis, work

HEARTBEAT = timedelta(seconds=5)
BEAT_SECONDS = 1.5
"""Later than most calls last: a call that is over by then writes none."""
CALL = timedelta(minutes=5)
SOON = RetryPolicy(initial_interval=timedelta(seconds=0.1))


class Asking:
    """The activity, with the process's model."""

    def __init__(self, model: Model) -> None:
        self._model = model

    @activity.defn
    async def ask(self, question: Question) -> str:
        beating = asyncio.create_task(_beat())
        try:
            return await self._model.ask(question)
        finally:
            beating.cancel()
            with suppress(asyncio.CancelledError):
                await beating


async def _beat() -> None:
    while True:
        await asyncio.sleep(BEAT_SECONDS)
        activity.heartbeat()


@workflow.defn
class BareWorkflow:
    """Each subtask starts when those that it needs are done; then synthesis and critique."""

    @workflow.run
    async def run(self, plan: list[Step]) -> str:
        tasks: dict[str, asyncio.Task[str]] = {}

        async def done(step: Step) -> str:
            found = [await tasks[each] for each in step.after]
            return await self._ask(f"work-{step.id}", work(step, found))

        for step in plan:
            tasks[step.id] = asyncio.create_task(done(step))
        found = await asyncio.gather(*tasks.values())
        answer = await self._ask("synthesize", synthesis(list(found)))
        await self._ask("critique", critique(answer))
        return answer

    async def _ask(self, name: str, question: Question) -> str:
        return await workflow.execute_activity_method(
            Asking.ask,
            question,
            activity_id=name,
            start_to_close_timeout=CALL,
            heartbeat_timeout=HEARTBEAT,
            retry_policy=SOON,
        )


@workflow.defn
class BareRowsWorkflow:
    """Each row is an activity, so many at once."""

    @workflow.run
    async def run(self, rows: int, at_once: int) -> int:
        places = asyncio.Semaphore(at_once)

        async def asked(number: int) -> str:
            async with places:
                step = Step(f"r{number}", f"Look at part {number + 1} of the market R0")
                return await workflow.execute_activity_method(
                    Asking.ask,
                    work(step, []),
                    activity_id=step.id,
                    start_to_close_timeout=CALL,
                    heartbeat_timeout=HEARTBEAT,
                    retry_policy=SOON,
                )

        return len(await asyncio.gather(*map(asked, range(rows))))
