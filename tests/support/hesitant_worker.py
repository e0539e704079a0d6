"""The real worker, except that it stops where a test strikes: after an answer was recorded and
before its activity completes, for as long as STATE_DIR/hesitate is there. What stands there is
noted in STATE_DIR/hesitating: `python tests/support/hesitant_worker.py --embedded STATE_DIR`.
"""

from __future__ import annotations

import asyncio
import os
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from holdfast.activities.asking.journal import FileJournal
from holdfast.serving import worker


class HesitantJournal(FileJournal):
    """Records, and then does not come back."""

    def __init__(self, directory: Path) -> None:
        super().__init__(directory)
        self._state = directory.parent

    async def record(self, key: str, answer: str) -> None:
        """Record; while the test wants it, wait to be killed."""
        await super().record(key, answer)
        if (self._state / "hesitate").exists():
            with (self._state / "hesitating").open("a") as noted:
                noted.write(key + "\n")
            await asyncio.Event().wait()


if __name__ == "__main__":
    code = worker.main(make_journal=HesitantJournal)
    os._exit(code)
