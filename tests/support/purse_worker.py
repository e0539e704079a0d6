"""A process that pays calls out of slices of a treasurer, and notes what it pays:

python purse_worker.py ADDRESS QUEUE FILE SEED
"""

from __future__ import annotations

import asyncio
import os
import random
import sys
from decimal import Decimal
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from temporalio.client import Client
from temporalio.contrib.pydantic import pydantic_data_converter

from holdfast.activities.asking import purses
from holdfast.activities.asking.purses import Purses, Refused
from holdfast.contracts.treasury import Caps
from holdfast.temporal.treasury import Treasurer, Unanswered

SILENT_SECONDS = 3


async def pay(own: Purses, file: Path, chance: random.Random) -> None:
    """Pay until the cap is reached. A call is noted before it leaves, and when it is paid."""
    number = 0
    while True:
        number += 1
        key, worst = f"{os.getpid()}-{id(own)}-{number}-{chance.random()}", chance.randint(1, 40)
        try:
            await own.take(key, Decimal(worst) / 100, "anna")
        except Refused as error:
            if error.over:
                return
            await asyncio.sleep(0.1)
            continue
        except Unanswered:
            await asyncio.sleep(0.1)
            continue
        with file.open("a") as notes:
            notes.write(f"sent {key} {worst}\n")
        await asyncio.sleep(chance.uniform(0.05, 0.4))
        paid = chance.randint(0, worst)
        with file.open("a") as notes:
            notes.write(f"paid {key} {paid}\n")
        own.give(key, Decimal(paid) / 100)


async def main(address: str, queue: str, file: Path, seed: int) -> None:
    purses.SILENT_SECONDS, purses.IDLE_SECONDS = SILENT_SECONDS, 1.0
    purses.RENEW_SECONDS = 1.0
    client = await Client.connect(address, data_converter=pydantic_data_converter)
    own = Purses(Treasurer(lambda: client, queue, Caps(day=Decimal(30))))
    chance = random.Random(seed)
    await asyncio.gather(*(pay(own, file, chance) for _ in range(3)))
    await own.close()


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1], sys.argv[2], Path(sys.argv[3]), int(sys.argv[4])))
    os._exit(0)
