"""The Python door for scripts and notebooks: one call, one report."""

from __future__ import annotations

import asyncio
from concurrent.futures import ThreadPoolExecutor
from typing import Unpack

from holdfast.client.holdfast import AnswerForm, Holdfast, StartOptions
from holdfast.contracts import Report


def run(goal: str = "", *, answer: AnswerForm = None, **options: Unpack[StartOptions]) -> Report:
    """Start a run, wait for its end, and return its report. Options as `Holdfast.start`; it works
    inside a notebook, too, where an event loop runs. When it is interrupted, the run goes on;
    give an `id` to come back to it with the same call.
    """

    async def to_the_end() -> Report:
        async with Holdfast() as hf:
            return await (await hf.start(goal, answer=answer, **options)).report()

    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return asyncio.run(to_the_end())
    with ThreadPoolExecutor(1) as thread:
        return thread.submit(lambda: asyncio.run(to_the_end())).result()
