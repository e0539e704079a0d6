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

import worker
from activities import wiring
from activities.catalogue import Catalogue
from activities.catalogue_files import read_role
from activities.toolset import shelf
from activities.toolset.tool import Here, tool

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


def with_writer() -> Catalogue:
    path = STATE / "writer.md"
    path.write_text(WRITER)
    shipped = LOAD()
    return Catalogue({**shipped.roles, "writer": read_role(path, "")}, shipped.playbooks)


LOAD = Catalogue.load
SHIPPED = shelf.shipped()

if __name__ == "__main__":
    for module in (wiring, shelf):
        setattr(module, "shipped", lambda: {**SHIPPED, "put": put})  # noqa: B010
    Catalogue.load = with_writer  # type: ignore[method-assign, assignment]
    code = worker.main()
    os._exit(code)
