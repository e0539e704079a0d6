"""Which tiers are slowed down just now, and why: what the server keeps with their task queues."""

from __future__ import annotations

import asyncio
import time
from typing import get_args

from temporalio.client import Client
from temporalio.service import RPCError

from orchestrator.contracts import Tier
from orchestrator.gate import understood
from orchestrator.rate_limits import QueueRate, read_rate

TIERS: tuple[Tier, ...] = get_args(Tier)


async def throttles(client: Client, queue: str) -> tuple[str, ...]:
    """One line for each tier of this deployment that is not at full speed; none when the server
    does not answer. A line stays the same while its cause does.
    """
    try:
        rates = await asyncio.gather(*(read_rate(client, f"{queue}-{tier}") for tier in TIERS))
    except RPCError:
        return ()
    found = zip(TIERS, rates, strict=True)
    return tuple(words(tier, rate) for tier, rate in found if rate.rate is not None)


def words(tier: str, found: QueueRate) -> str:
    """How fast a tier may go, for a person."""
    if found.rate is None:
        return f"{tier} at full speed"
    now = time.time()
    flow = understood(tier, found.rate, found.reason, found.written, now)
    if flow is None:
        why = f": {found.reason}" if found.reason else ""
        return f"{tier} limited to {found.rate:g} calls/s by hand{why}"
    if flow.rate == 0:
        return f"{tier} throttled {flow.until - found.written:.0f} s: {flow.cause}"
    return f"{tier} slowed after a throttle at {flow.measured:g} calls/s"
