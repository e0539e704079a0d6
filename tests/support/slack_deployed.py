"""A door to the stand-in of Slack, in front of a deployment with scripted answers."""

from __future__ import annotations

import asyncio
import tempfile
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from temporalio.runtime import Runtime

from holdfast.client.holdfast import Holdfast
from holdfast.doors.slack.serving import Secrets, serve
from holdfast.telemetry.logs import runtime
from holdfast.testing import deployed
from slack_stand_in import ADA, APP_TOKEN, BOT_TOKEN, SECRET, Slack, slack

FILE = """
[slack.{channel}]
people = ["{ada}"]
dollars = 2
raise_to = 10
"""


@dataclass(frozen=True)
class Standing:
    """An open door: what is before it, and what behind."""

    slack: Slack
    hf: Holdfast


@asynccontextmanager
async def standing(script: Mapping[str, Any]) -> AsyncIterator[Standing]:
    """Have a door by Socket Mode for as long as the block lasts."""
    # A worker of the SDK's own runtime says too seldom that it lives.
    Runtime.set_default(runtime())
    with tempfile.TemporaryDirectory() as name:
        async with slack() as workspace:
            said = FILE.format(channel=workspace.channel, ada=ADA)
            (Path(name) / "holdfast.toml").write_text(said)
            async with deployed(script, project=name) as deployment:
                secrets, told = Secrets(BOT_TOKEN, APP_TOKEN, SECRET), asyncio.Event()
                serving = asyncio.create_task(
                    serve(
                        deployment.hf.connection,
                        secrets,
                        None,
                        lambda _: told.set(),
                        f"{workspace.address}/api/",
                    )
                )
                try:
                    await told.wait()
                    yield Standing(workspace, deployment.hf)
                finally:
                    serving.cancel()
                    await asyncio.gather(serving, return_exceptions=True)
