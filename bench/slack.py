"""What Slack's door does with messages that are delivered again, and how long a button takes.

    python -m bench.slack [DELIVERIES] [PRESSES]

One message is delivered so often, half of the times at once and half one after the other; then so
many plans are approved by their button, one after the other. Before the door stands a stand-in of
Slack on this machine, behind it a server, a worker and scripted answers in this process.
"""

from __future__ import annotations

import asyncio
import json
import logging
import os
import statistics
import sys
import time
from pathlib import Path

import structlog

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "tests" / "support"))

from bench.instruments.tables import head, row
from holdfast.contracts.search import RUNS
from slack_deployed import Standing, standing
from slack_stand_in import BOT_USER

DELIVERED = ("delivered", "runs started", "messages in its thread", "acknowledged, s", "worst")
PRESSED = (
    "approved by a button",
    "the history has it, s",
    "worst",
    "the thread shows it, s",
    "worst",
)
COLUMNS = (DELIVERED, PRESSED)


async def deliver(stand: Standing, often: int) -> tuple[str, ...]:
    """Deliver one message so often."""
    said = stand.slack.write(f"<@{BOT_USER}> Which rates changed?")
    took: list[float] = []

    async def once(retry: int) -> None:
        began = time.perf_counter()
        await stand.slack.event(said, retry)
        took.append(time.perf_counter() - began)

    half = often // 2
    await asyncio.gather(*map(once, range(half)))
    for retry in range(half, often):
        await once(retry)
    ts = said["event"]["ts"]
    await stand.slack.until(lambda: len(stand.slack.thread(ts)) > 1)
    await asyncio.sleep(3)
    runs = (await stand.hf.connection.client.count_workflows(RUNS)).count
    shown = len(stand.slack.thread(ts))
    return (str(often), str(runs), str(shown), *_cut(took))


async def press(stand: Standing, often: int) -> tuple[str, ...]:
    """Approve so many plans."""
    ordered: list[float] = []
    shown: list[float] = []
    for _ in range(often):
        said = stand.slack.write(f"<@{BOT_USER}> Which rates changed?")
        await stand.slack.event(said)
        ts = said["event"]["ts"]

        def board(has: str, ts: str = ts) -> object:
            found = stand.slack.part(ts, "board")
            return found[0] if found and has in json.dumps(found[0]) else None

        waiting = await stand.slack.until(lambda board=board: board("holdfast_approve"))
        # What the pace of updates owes is over.
        await asyncio.sleep(4)
        run = await stand.hf.run_of(waiting["metadata"]["event_payload"]["run"])
        began = time.perf_counter()
        await stand.slack.interact(stand.slack.press(waiting, "approve"))
        async for event in run:
            if event.kind == "order_taken":
                ordered.append(time.perf_counter() - began)
                break
        await stand.slack.until(lambda board=board: board("approved the plan"))
        shown.append(time.perf_counter() - began)
        await run.report()
    return (str(often), *_cut(ordered), *_cut(shown))


def _cut(took: list[float]) -> tuple[str, str]:
    return f"{statistics.median(took):.2f}", f"{max(took):.2f}"


async def main(deliveries: int, presses: int) -> None:
    logging.disable()
    structlog.configure(wrapper_class=structlog.make_filtering_bound_logger(logging.CRITICAL))
    async with standing({}) as stand:
        sys.stdout.write(f"{os.cpu_count()} cores, load {os.getloadavg()[0]:.1f}\n\n")
        sys.stdout.write(head(DELIVERED) + row(await deliver(stand, deliveries)) + "\n")
        sys.stdout.write(head(PRESSED) + row(await press(stand, presses)))


if __name__ == "__main__":
    given = [*map(int, sys.argv[1:])]
    asyncio.run(main(*(given + [1_000, 20][len(given) :])))
