"""However large a mapped input is, no process holds more than a little of it."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.long

ROWS = 100_000
MEASURED = """
import asyncio, json, resource, sys
from pathlib import Path

from holdfast.calls.rows import Outcome
from mapped import Mapping

async def main(path, folder):
    mapping = Mapping(folder)
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    with open(path, "rb") as file:
        pinned = await mapping.inputs.pin_large("given", path, file)
    work = mapping.work(pinned, "records", id="id")
    found = await mapping.inputs.scan(pinned, [work.subtask])
    opened = await mapping.open(work, items=250)
    opening = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    blobs = []
    for chunk in opened.chunks:
        places = range(chunk.first, chunk.first + chunk.items)
        blobs.append(await mapping.outcomes(*(
            Outcome(n=n, id=str(n), status="complete", result="x" * 200) for n in places
        )))
    table = await mapping.close(work, opened, blobs)
    after = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    child = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss
    print(json.dumps({
        "items": found.count, "complete": table.counts.complete, "child": child,
        "opening": opening - before, "closing": after - before,
    }))

asyncio.run(main(sys.argv[1], Path(sys.argv[2])))
"""


def test_half_a_gigabyte_is_mapped_within_a_hundred_megabytes(tmp_path: Path) -> None:
    given = tmp_path / "given.jsonl"
    with given.open("w") as file:
        for n in range(ROWS):
            file.write(json.dumps({"id": n, "text": f"ticket {n} " + "lorem ipsum " * 420}) + "\n")
    assert given.stat().st_size > 500_000_000
    root = Path(__file__).resolve().parents[3]
    done = subprocess.run(
        [sys.executable, "-c", MEASURED, str(given), str(tmp_path / "kept")],
        env={"PYTHONPATH": f"{root}:{root / 'tests' / 'support'}", "PATH": "/usr/bin:/bin"},
        cwd=root,
        capture_output=True,
        text=True,
        timeout=280,
        check=True,
    )
    said = json.loads(done.stdout.splitlines()[-1])
    assert (said["items"], said["complete"]) == (ROWS, ROWS)
    # KiB above what the program needs anyway; a child begins as a copy of its parent.
    assert said["opening"] < 100_000
    assert said["closing"] < 150_000
    assert said["child"] < 200_000
