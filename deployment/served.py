"""Which tiers nobody serves, in words: said wherever somebody looks at a run that waits for one.

A call waits in its tier's queue for a worker with a model endpoint, and here it is said.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Mapping, Sequence

from temporalio.client import Client
from temporalio.service import RPCError

from deployment.pollers import AGAIN_SECONDS, Seen, at_queue, look

LOOK_SECONDS = 3.0
"""How often a worker looks for its readers, beside the second look."""
VARIABLES = "ANTHROPIC_API_KEY or ANTHROPIC_BASE_URL"
logger = logging.getLogger(__name__)


def queue_of(task_queue: str, tier: str) -> str:
    """The queue of a tier's calls."""
    return f"{task_queue}-{tier}"


def in_words(
    task_queue: str, tiers: Sequence[str], *, embedded: bool, any_worker: bool = True
) -> str:
    """That nobody serves these tiers, why, and what heals it; one line, empty if there are none.
    `any_worker` False: nor the run itself, which says more than its tiers do.
    """
    if not any_worker:
        return (
            "no worker asks for work: one that has died is replaced by any command that reads runs,"
            " one that lives and stays silent by: starter.py down, then: starter.py up"
            if embedded
            else f"no worker asks task queue {task_queue!r} for work; start one: worker.py"
        )
    if not tiers:
        return ""
    names = " and ".join(filter(None, (", ".join(tiers[:-1]), tiers[-1])))
    what = f"nobody serves the {names} tier{'s' * (len(tiers) > 1)}"
    if embedded:
        return (
            f"{what}: the worker has no model endpoint;"
            f" set {VARIABLES} in your shell and run: starter.py up"
        )
    queues = ", ".join(queue_of(task_queue, tier) for tier in tiers)
    return (
        f"{what}: no worker with a model endpoint asks {queues} for work;"
        f" set {VARIABLES} and start one: worker.py"
    )


async def unserved(
    client: Client, task_queue: str, tiers: Sequence[str], *, embedded: bool
) -> tuple[str, ...]:
    """What to tell somebody who watches a run with calls of these tiers in flight: nothing, or a
    line. One request of some milliseconds when all is well; else 3 s, because nobody is called
    missing on one look. Nothing when the server does not answer: that is another trouble.
    """
    try:
        main, lacking = await _lacking(client, task_queue, tiers)
    except RPCError as error:
        logger.info("workers of %s not known: %s", task_queue, error)
        return ()
    line = in_words(task_queue, lacking, embedded=embedded, any_worker=main)
    return (line,) if line else ()


async def _lacking(
    client: Client, task_queue: str, tiers: Sequence[str]
) -> tuple[bool, tuple[str, ...]]:
    """Whether the runs' own queue is served, and which of the tiers are not. RPCError."""
    queues = (task_queue, *(queue_of(task_queue, tier) for tier in tiers))
    before, seen = None, await look(client, queues)
    if not all(_served(queue, seen, None) for queue in queues):
        await asyncio.sleep(AGAIN_SECONDS)
        before, seen = seen, await look(client, queues)
    missing = tuple(tier for tier in tiers if not _served(queue_of(task_queue, tier), seen, before))
    return _served(task_queue, seen, before), missing


def _served(queue: str, seen: Seen, before: Seen | None) -> bool:
    return any(each.alive for each in at_queue(queue, seen, before))


class Lookout:
    """Keeps for a worker's readers which tiers nobody serves just now."""

    def __init__(self, *, embedded: bool) -> None:
        self._embedded = embedded
        self._lines: Mapping[str, str] = {}

    def lines(self) -> Mapping[str, str]:
        """tier -> what is to be said of it. Only reads, so any thread may ask."""
        return self._lines

    async def keep(self, client: Client, task_queue: str, tiers: Sequence[str]) -> None:
        """Look every few seconds, forever."""
        while True:
            try:
                # Whoever asks this process is answered by it: somebody serves the run itself.
                _, lacking = await _lacking(client, task_queue, tiers)
                line = in_words(task_queue, lacking, embedded=self._embedded)
                self._lines = dict.fromkeys(lacking, line)
            except RPCError as error:
                logger.info("workers of %s not known: %s", task_queue, error)
            await asyncio.sleep(LOOK_SECONDS)
