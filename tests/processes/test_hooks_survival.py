"""Worker and server killed again and again while runs tell an address of the web how they stand:
no notice is lost, and none comes under another id. Real processes.
"""

from __future__ import annotations

import asyncio
import os
import random
import signal
import sys
from collections import defaultdict
from pathlib import Path
from typing import Any

import pytest
from pydantic import SecretStr
from temporalio.client import WorkflowUpdateFailedError
from temporalio.service import RPCError

from bench.instruments.deployment import Deployment, deployed, parallel
from holdfast.contracts import Approval, Order
from holdfast.contracts.notices import Notify
from hook_receiver import SECRET, Hooks, hook_receiver

pytestmark = [pytest.mark.long, pytest.mark.anyio, pytest.mark.timeout(1_800)]

RUNS = 6
KILLS = 20
"""Four of them of the server; `approve` meets the last ten."""


async def kill(deployment: Deployment, name: str) -> None:
    """Kill -9 one of them, once it runs, and wait until another has taken over."""
    async with asyncio.timeout(120):
        while (before := deployment.pid(name)) is None:  # noqa: ASYNC110
            await asyncio.sleep(0.1)
        try:
            os.kill(before, signal.SIGKILL)
        except ProcessLookupError:
            return
        while deployment.pid(name) in (None, before):  # noqa: ASYNC110
            await asyncio.sleep(0.1)


async def approve(handle: Any) -> None:
    number = 0
    while True:
        try:
            await handle.execute_update("approve", Order(by="ann"), id=f"approve-{number}")
            return
        except RPCError:
            pass
        except WorkflowUpdateFailedError as error:
            # The answer of an approval may die with the server: then the next finds the run ended.
            if "the run is over" in str(error.cause):
                return
            assert "no plan yet" in str(error.cause), error.cause
            number += 1
        await asyncio.sleep(0.5)


async def arrived(hooks: Hooks, type: str, count: int) -> None:
    def there() -> int:
        found = [each.told for each in hooks.got]
        return len({each["data"]["id"] for each in found if each["type"] == type})

    async with asyncio.timeout(600):
        while there() < count:  # noqa: ASYNC110
            await asyncio.sleep(0.2)


async def test_no_hook_is_lost_or_comes_under_another_id_over_twenty_kills(tmp_path: Path) -> None:
    chance = random.Random(27)
    script = {"mark": r"part \d+ of", "rules": []}
    with hook_receiver() as hooks:
        # A receiver that is not always there either.
        hooks.answers = [chance.choice((204, 204, 503)) for _ in range(60)]
        notify = Notify(urls=(hooks.address,))
        secret: dict[str, Any] = {"webhook_secret": SecretStr(SECRET), "webhook_private": True}
        async with deployed(tmp_path, script, **secret) as deployment:
            goal = parallel(2).model_copy(
                update={"notify": notify, "approval": Approval(when="always")}
            )
            handles: list[Any] = []
            for number in range(KILLS):
                if len(handles) < RUNS and number % 3 == 0:
                    while True:
                        try:
                            handles.append(await deployment.start(goal))
                            break
                        except RPCError:
                            await asyncio.sleep(0.5)
                if number == KILLS // 2:
                    approving = [asyncio.create_task(approve(each)) for each in handles]
                await asyncio.sleep(chance.uniform(0.0, 1.5))
                await kill(deployment, "server" if number % 5 == 4 else "worker")
            while len(handles) < RUNS:
                handles.append(await deployment.start(goal))
            await arrived(hooks, "run.plan_waits", RUNS)
            approving += [asyncio.create_task(approve(each)) for each in handles[len(approving) :]]
            await asyncio.gather(*approving)
            reports = [await deployment.result(each) for each in handles]
            await arrived(hooks, "run.ended", RUNS)
    assert all(each.status == "complete" for each in reports)
    ids = defaultdict(set)
    for each in hooks.got:
        told = each.told
        ids[told["data"]["id"], told["type"]].add(each.id)
    wanted = {(each.id, type) for each in handles for type in ("run.plan_waits", "run.ended")}
    assert ids.keys() == wanted, "none lost, and none that never happened"
    assert all(len(each) == 1 for each in ids.values()), "none under another id"
    assert len({id for each in ids.values() for id in each}) == 2 * RUNS
    sys.stderr.write(f"{KILLS} kills, {2 * RUNS} notices, {len(hooks.got)} came\n")
