"""What a measurement does to runs from outside, by wire names: constant queries."""

from __future__ import annotations

import asyncio
import logging
from collections import Counter
from contextlib import suppress

# Reading the Web UI's query needs its message to be known.
import temporalio.api.sdk.v1  # noqa: F401
from temporalio.client import (
    Client,
    WorkflowQueryFailedError,
)
from temporalio.runtime import LoggingConfig, Runtime, TelemetryConfig
from temporalio.service import RPCError

from holdfast.certifying.people import ANSWER

QUERIES = ("view", "__temporal_workflow_metadata")
"""Ours, and the one that Temporal's Web UI asks by itself."""
PAUSE_SECONDS = 0.02
"""How long a client pauses between two queries for one run."""


def silence() -> None:
    """Before any client is made: the SDK's native part prints each request that it repeats, and
    asyncio each process that ended while it was being killed.
    """
    logging.getLogger("asyncio").setLevel(logging.ERROR)
    Runtime.set_default(Runtime(telemetry=TelemetryConfig(logging=LoggingConfig(filter="OFF"))))


async def ask(
    client: Client, query: str, run_id: str, answers: Counter[str], pause: float = PAUSE_SECONDS
) -> None:
    """Query a run constantly, forever; count the answers. `pause` is seconds."""
    handle = client.get_workflow_handle(run_id)
    while True:
        with suppress(RPCError, WorkflowQueryFailedError):
            await handle.query(query, rpc_timeout=ANSWER)
            answers[query] += 1
        await asyncio.sleep(pause)
