"""The real worker with slow tools in place of the analysers: `python tests/support/slow_worker.py
--embedded STATE_DIR`. Each call is written to STATE_DIR/calls when it starts and when it ends.
"""

from __future__ import annotations

import asyncio
import os
import sys
from collections.abc import Mapping
from functools import partial
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from holdfast.calls.work import WorkMaterial
from holdfast.contracts import Draft
from holdfast.ports import Lens, Store
from holdfast.serving import worker

SLOW = float(os.environ.get("SLOW_SECONDS", "4"))
SECONDS = {
    "bugs": 0.1,
    "security": SLOW,
    "performance": 0.1,
    "secrets": SLOW,
    "complexity": SLOW,
    "history": 2.0,
}
"""Two that are finished and some that are not, whenever somebody strikes."""


def slow_tools(_store: Store, scratch: Path) -> Mapping[str, Lens]:
    return {name: partial(_slow, name, scratch.parent / "calls") for name in SECONDS}


async def _slow(name: str, calls: Path, _material: WorkMaterial) -> Draft:
    _note(calls, f"start {name}")
    await asyncio.sleep(SECONDS[name])
    _note(calls, f"end {name}")
    return Draft(content=f"{name} looked at it", data={"remarks": []})


def _note(calls: Path, line: str) -> None:
    # One short append is whole or absent, whatever happens to this process.
    descriptor = os.open(calls, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
    os.write(descriptor, (line + "\n").encode())
    os.close(descriptor)


if __name__ == "__main__":
    code = worker.main(make_lenses=slow_tools)
    os._exit(code)
