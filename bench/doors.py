"""How fast the door over HTTP answers `GET /runs/ID` with many runs in the namespace.

    python -m bench.doors [RUNS] [REVIEWED]

Of the runs REVIEWED are reviews of a small repository that have ended; nobody serves the others, so
that they cost no worker. All are on an embedded server of its own.
"""

from __future__ import annotations

import asyncio
import logging
import os
import random
import statistics
import subprocess
import sys
import tempfile
import time
from decimal import Decimal
from pathlib import Path

import httpx2
import structlog

from holdfast import Holdfast
from holdfast.client.connecting import opened
from holdfast.contracts import Goal
from holdfast.contracts.search import WORKFLOW
from holdfast.deployment.settings import Settings
from holdfast.doors.http.serving import Listening, bind, guarded, make_server
from holdfast.doors.tokens import Scopes, Tokens
from holdfast.embedded import down
from holdfast.intake.connection import Connection

ASKED = 500


async def main(runs: int, reviewed: int) -> None:
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        repository = folder / "repository"
        _make(repository)
        settings = Settings(
            _env_file=None, project=None, state_dir=folder / "state", allowed_roots=(repository,)
        )
        try:
            async with opened(settings, embedded=True) as connection:
                await _measure(connection, repository, runs, reviewed)
        finally:
            down(settings)


async def _measure(connection: Connection, repository: Path, runs: int, reviewed: int) -> None:
    idle = [f"idle-{number}" for number in range(runs - reviewed)]
    for each in idle:
        goal = Goal(text="Nobody serves this")
        await connection.client.start_workflow(WORKFLOW, goal, id=each, task_queue="nobody")
    where = Listening(rate=10_000)
    tokens = Tokens(connection.settings)
    headers = {"Authorization": f"Bearer {tokens.add('bench', Scopes(dollars=Decimal(1)))}"}
    app, _ = guarded(connection, where, tokens)
    bound = bind(where)
    server = make_server(app, where)
    serving = asyncio.create_task(server.serve(sockets=[bound]))
    async with httpx2.AsyncClient(base_url=where.address(bound), headers=headers) as client:
        ended = []
        for _ in range(reviewed):
            body = {"playbook": "code-review", "inputs": {"repo": str(repository)}}
            began = (await client.post("/runs", json=body, timeout=60)).json()
            run = await Holdfast.on(connection).run_of(began["id"])
            await run.report()
            ended.append(run.id)
        say(f"{runs} runs, {os.cpu_count()} cores, load {os.getloadavg()[0]:.1f}")
        await _report(client, "one that has ended", ended)
        await _report(client, "one that has not begun", idle)
        await _report(client, "the list of 100", None)
    server.should_exit = True
    await serving


async def _report(client: httpx2.AsyncClient, what: str, ids: list[str] | None) -> None:
    for at_once in (1, 8):
        turn = asyncio.Semaphore(at_once)
        paths = [
            "/runs" if ids is None else f"/runs/{random.choice(ids)}"
            for _ in range(ASKED if ids else ASKED // 10)
        ]
        took = await asyncio.gather(*(_ask(client, path, turn) for path in paths))
        cuts = statistics.quantiles(took, n=20)
        say(f"{what}, {at_once} at once: p50 {cuts[9]:.0f} ms, p95 {cuts[18]:.0f} ms")


async def _ask(client: httpx2.AsyncClient, path: str, turn: asyncio.Semaphore) -> float:
    """Return the milliseconds of one answer."""
    async with turn:
        began = time.perf_counter()
        answer = await client.get(path, timeout=60)
        took = (time.perf_counter() - began) * 1000
    assert answer.status_code == 200, answer.text
    return took


def say(line: str) -> None:
    sys.stdout.write(f"{line}\n")
    sys.stdout.flush()


def _make(repository: Path) -> None:
    repository.mkdir()
    (repository / "a.py").write_text("def f(x: str) -> object:\n    return eval(x)\n")
    identity = ("-c", "user.name=bench", "-c", "user.email=bench@example.com")
    for command in (("init", "-q"), ("add", "."), (*identity, "commit", "-qm", "one")):
        subprocess.run(["git", *command], cwd=repository, check=True)


if __name__ == "__main__":
    # An access log of thousands of lines is no result.
    structlog.configure(wrapper_class=structlog.make_filtering_bound_logger(logging.ERROR))
    given = [int(each) for each in sys.argv[1:]]
    asyncio.run(main(*(given or [1_000, 20])))
