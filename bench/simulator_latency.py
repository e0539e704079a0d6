"""What the simulator adds to a scripted latency while many calls are in flight.

    python -m bench.simulator_latency [CALLS AT ONCE]

The server runs in a process of its own; the figures include this client's own work.
"""

from __future__ import annotations

import asyncio
import itertools
import json
import statistics
import sys
import tempfile
import time
from pathlib import Path

import aiohttp

from bench.failures import REQUEST
from holdfast.activities.claude.wire import shape

LATENCY = 1.0
ROUNDS = 5


async def main(at_once: int) -> None:
    script = Path(tempfile.mkdtemp()) / "script.yaml"
    script.write_text(f"latency: {LATENCY}\n")
    server = await asyncio.create_subprocess_exec(
        sys.executable, "-m", "simulator", "--script", str(script), stdout=asyncio.subprocess.PIPE
    )
    assert server.stdout is not None
    url = (await server.stdout.readline()).decode().strip().partition("=")[2]
    body = json.dumps(shape(REQUEST, REQUEST.capabilities)).encode()
    connector = aiohttp.TCPConnector(limit=0)
    headers = {"Authorization": "Bearer scripted", "content-type": "application/json"}
    async with aiohttp.ClientSession(url, connector=connector, headers=headers) as session:
        callers = (_caller(session, body, number / at_once) for number in range(at_once))
        added = sorted(itertools.chain.from_iterable(await asyncio.gather(*callers)))
    server.terminate()
    await server.wait()
    for name, share in (("median", 0.5), ("95 %", 0.95), ("99 %", 0.99)):
        sys.stdout.write(f"{name}: {added[int(share * (len(added) - 1))]:.1f} ms added\n")
    sys.stdout.write(f"mean: {statistics.mean(added):.1f} ms over {len(added)} calls\n")


async def _caller(session: aiohttp.ClientSession, body: bytes, offset: float) -> list[float]:
    """One after another; milliseconds added to each call but the first, which connects."""
    await asyncio.sleep(offset * LATENCY)
    added = []
    for _ in range(ROUNDS):
        began = time.perf_counter()
        async with session.post("/v1/messages", data=body) as response:
            await response.read()
        added.append((time.perf_counter() - began - LATENCY) * 1_000)
    return added[1:]


if __name__ == "__main__":
    asyncio.run(main(int(sys.argv[1]) if len(sys.argv) > 1 else 500))
