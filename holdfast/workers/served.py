"""Tells wherever somebody looks at a run whether anybody serves runs and their calls.

A call waits in the runs' queue for a worker with a model endpoint, and here it is said.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Mapping, Sequence

from temporalio.client import Client
from temporalio.service import RPCError

from holdfast.workers.pollers import AGAIN_SECONDS, any_alive, list_pollers, look

LOOK_SECONDS = 3.0
"""How often a worker looks for its readers, beside the second look."""
VARIABLES = "ANTHROPIC_API_KEY or ANTHROPIC_BASE_URL"
logger = logging.getLogger(__name__)


def describe_missing(
    task_queue: str, *, embedded: bool, any_worker: bool = True, models: bool = False
) -> str:
    """Return, on one line, that nobody serves runs, or that nobody asks `models`, why, and what to
    do; empty if somebody does.
    """
    if not any_worker:
        return (
            "no worker asks for work: one that has died is replaced by any command that reads runs,"
            " one that lives and stays silent by: starter.py down, then: starter.py up"
            if embedded
            else f"no worker asks task queue {task_queue!r} for work; start one: worker.py"
        )
    if models:
        return ""
    what = "nobody asks the models"
    if embedded:
        return (
            f"{what}: the worker has no model endpoint;"
            f" set {VARIABLES} in your shell and run: starter.py up"
        )
    return (
        f"{what}: no worker with a model endpoint asks task queue {task_queue!r} for work;"
        f" set {VARIABLES} and start one: worker.py"
    )


async def find_unserved(
    client: Client, task_queue: str, *, embedded: bool, models: bool
) -> tuple[str, ...]:
    """Return what to tell somebody who watches a run: one line, or nothing. `models`: True if calls
    are in flight.

    One request of some milliseconds when all is well; else 3 s, because nobody is called missing on
    one look. Nothing when the server does not answer: that is another trouble.
    """
    try:
        runs, calls = await find_served(client, task_queue, models=models)
    except RPCError as error:
        logger.info("workers of %s not known: %s", task_queue, error)
        return ()
    line = describe_missing(
        task_queue, embedded=embedded, any_worker=runs, models=calls or not models
    )
    return (line,) if line else ()


async def find_served(client: Client, task_queue: str, *, models: bool = True) -> tuple[bool, bool]:
    """Return whether somebody carries on the runs of a queue, and whether somebody asks models for
    them, which is not waited for without `models`. RPCError.
    """
    before, seen = None, await look(client, [task_queue])
    if not any_alive(list_pollers(task_queue, seen, calls=models)):
        await asyncio.sleep(AGAIN_SECONDS)
        before, seen = seen, await look(client, [task_queue])
    return (
        any_alive(list_pollers(task_queue, seen, before)),
        any_alive(list_pollers(task_queue, seen, before, calls=True)),
    )


class Lookout:
    """Keeps for a worker's readers whether somebody asks models just now."""

    def __init__(self, *, embedded: bool) -> None:
        self._embedded = embedded
        self._lines: Mapping[str, str] = {}

    def lines(self) -> Mapping[str, str]:
        """Return tier -> what is to be said of it. Only reads, so any thread may ask."""
        return self._lines

    async def keep(self, client: Client, task_queue: str, tiers: Sequence[str]) -> None:
        """Look every few seconds, forever."""
        while True:
            try:
                # Whoever asks this process is answered by it: somebody serves the run itself.
                _, models = await find_served(client, task_queue)
                line = describe_missing(task_queue, embedded=self._embedded, models=models)
                self._lines = dict.fromkeys(tiers, line) if line else {}
            except RPCError as error:
                logger.info("workers of %s not known: %s", task_queue, error)
            await asyncio.sleep(LOOK_SECONDS)
