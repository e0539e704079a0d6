"""Slack's door as a process of its own, to be killed: `python slack_process.py ADDRESS QUEUE STORE
PROJECT STATE API`. It says a line when it stands.
"""

from __future__ import annotations

import asyncio
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from holdfast.deployment.settings import Settings
from holdfast.doors.slack.serving import Secrets, serve
from holdfast.intake.connection import Connection
from holdfast.temporal.connection import Target, connect
from slack_stand_in import APP_TOKEN, BOT_TOKEN, SECRET


async def main(address: str, queue: str, store: str, project: str, state: str, api: str) -> None:
    settings = Settings(_env_file=None, project=Path(project), state_dir=Path(state))
    target = Target(address, task_queue=queue, store_url=store, embedded=False)
    connection = Connection(settings, target, await connect(target, 20))
    secrets = Secrets(BOT_TOKEN, APP_TOKEN, SECRET)

    def tell(line: str) -> None:
        sys.stdout.write(f"{line}\n")
        sys.stdout.flush()

    await serve(connection, secrets, None, tell, api)


if __name__ == "__main__":
    asyncio.run(main(*sys.argv[1:]))
