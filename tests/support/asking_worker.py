"""The real worker with one role more: a writer whose tool asks a person before each call. Each run
of the tool is noted in STATE_DIR/runs; as long as STATE_DIR/hold is there, it comes to a halt
inside: `python tests/support/asking_worker.py --embedded STATE_DIR`.
"""

from __future__ import annotations

import asyncio
import os
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from furnished import furnish
from holdfast.activities.toolset.tool import Here, tool
from holdfast.serving import worker

WRITER = """---
name: writer
description: Writes page after page
model: haiku
tools: put
---
You write.
"""
STATE = Path(sys.argv[sys.argv.index("--embedded") + 1])


@tool(effects=True, idempotent=False, approval=True)
async def put(here: Here, text: str) -> str:
    """Put a text where others read it."""
    with (STATE / "runs").open("a") as noted:
        noted.write(f"{text}\n")
    if (STATE / "hold").exists():
        await asyncio.Event().wait()
    return f"{text} is there"


if __name__ == "__main__":
    furnish(STATE, "writer", WRITER, put)
    code = worker.main()
    os._exit(code)
