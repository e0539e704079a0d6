"""The floor: the same calls with asyncio and the SDK, in one process, with nothing durable.

    python -m bench.overhead.floor URL FOLDER

FOLDER has `fixed.json`, what all requests of a call share, and `plans.json`, a list of loads, each
a list of plans. Prints a line for each load when its runs are over: seconds and CPU seconds.
"""

from __future__ import annotations

import asyncio
import json
import sys
import time
from pathlib import Path

from bench.overhead.asking import Model, Step, critique, synthesis, work


async def run(model: Model, plan: list[Step]) -> str:
    """Each subtask starts when those that it needs are done; then synthesis and critique."""
    tasks: dict[str, asyncio.Task[str]] = {}

    async def done(step: Step) -> str:
        return await model.ask(work(step, [await tasks[each] for each in step.after]))

    for step in plan:
        tasks[step.id] = asyncio.create_task(done(step))
    found = await asyncio.gather(*tasks.values())
    answer = await model.ask(synthesis(list(found)))
    await model.ask(critique(answer))
    return answer


async def main(url: str, folder: Path) -> None:
    model = Model(url, folder / "fixed.json")
    for load in json.loads((folder / "plans.json").read_text(encoding="utf-8")):
        plans = [[Step(**step) for step in plan] for plan in load]
        began, spent = time.monotonic(), time.process_time()
        await asyncio.gather(*(run(model, plan) for plan in plans))
        measured = {"seconds": time.monotonic() - began, "cpu": time.process_time() - spent}
        sys.stdout.write(json.dumps(measured) + "\n")
        sys.stdout.flush()


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1], Path(sys.argv[2])))
