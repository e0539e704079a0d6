"""The Python door for scripts and notebooks: one call, one report."""

from __future__ import annotations

import asyncio
import sys
from concurrent.futures import ThreadPoolExecutor
from typing import Any, TypeVar, Unpack, overload

from pydantic import BaseModel

from holdfast.client.holdfast import AnswerForm, Holdfast, StartOptions
from holdfast.client.runs import DataReport
from holdfast.contracts import Report
from holdfast.contracts.events import (
    BudgetReached,
    CallWaits,
    EndpointAway,
    PlanWaits,
    QuestionAsked,
)
from holdfast.deployment.invocation import to_type

Data = TypeVar("Data", bound=BaseModel)
WAITS = (PlanWaits, CallWaits, QuestionAsked, BudgetReached, EndpointAway)


@overload
def run(
    goal: str = "", *, answer: type[Data], **options: Unpack[StartOptions]
) -> DataReport[Data]: ...


@overload
def run(
    goal: str = "", *, answer: AnswerForm = None, **options: Unpack[StartOptions]
) -> Report: ...


def run(goal: str = "", *, answer: Any = None, **options: Unpack[StartOptions]) -> Report:
    """Start a run, wait for its end, and return its report. Options as `Holdfast.start`; it works
    inside a notebook, too, where an event loop runs. What the run waits for is told on the standard
    error. When it is interrupted, the run goes on; give an `id` to come back to it with the same
    call.
    """

    async def to_the_end() -> Report:
        async with Holdfast() as hf:
            started = await hf.start(goal, answer=answer, **options)
            shown = to_type("show", started.id)
            try:
                async for event in started:
                    if isinstance(event, WAITS):
                        sys.stderr.write(f"Run {started.id} waits; why: {shown}\n")
            except asyncio.CancelledError:
                sys.stderr.write(f"Run {started.id} goes on: {shown}\n")
                raise
            report: Report = await started.report()
            return report

    if not _is_in_loop():
        return asyncio.run(to_the_end())
    with ThreadPoolExecutor(1) as thread:
        return thread.submit(lambda: asyncio.run(to_the_end())).result()


def _is_in_loop() -> bool:
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return False
    return True
