"""A child that reads strangers' bytes is bounded by us, whatever its libraries do."""

from __future__ import annotations

import asyncio
import os
from contextlib import aclosing
from pathlib import Path

import pytest

from holdfast.activities.toolset.child import ChildFailed, in_child, lines_of_child

pytestmark = pytest.mark.anyio


async def run(folder: Path, code: str, request: bytes = b"", **bounds: int) -> bytes:
    script = folder / "script.py"
    script.write_text("import os, sys, time\ndef main(request):\n    " + code)
    return await in_child(script, request, **{"seconds": 20, **bounds})


async def test_it_answers_and_what_it_prints_is_no_part_of_it(tmp_path: Path) -> None:
    said = await run(tmp_path, "print('noise'); os.write(2, b'x'); return request[::-1]", b"abc")
    assert said == b"cba"


@pytest.mark.parametrize(
    ("code", "why"),
    [
        ("return b'x' * (2 << 30)", "needed more than 1024 MiB of memory"),
        ("raise ValueError('/home/secret')", r"could not be read \(ValueError\)"),
        ("os.abort()", "break down"),
        ("return os.write(9, b'')", r"could not be read \(OSError\)"),
        ("return b'x' * (33 << 20)", "wrote more than 32 MiB"),
        ("return main(request)", r"could not be read \(RecursionError\)"),
    ],
)
async def test_a_child_that_breaks_its_bounds_or_down_is_an_error_in_one_line(
    tmp_path: Path, code: str, why: str
) -> None:
    with pytest.raises(ChildFailed, match=why) as error:
        await run(tmp_path, code)
    assert "secret" not in str(error.value) and "\n" not in str(error.value)


async def test_a_child_that_computes_or_sleeps_for_ever_is_killed_with_its_children(
    tmp_path: Path,
) -> None:
    told = tmp_path / "pids"
    fork = f"os.mkdir({str(told)!r} + str(os.fork())); time.sleep(600)"
    with pytest.raises(ChildFailed, match="took longer than 1 s"):
        await run(tmp_path, fork, seconds=1)
    pids = [int(each.name.removeprefix("pids")) for each in tmp_path.glob("pids*")]
    assert len(pids) == 2
    for pid in filter(None, pids):
        for _ in range(100):
            if not alive(pid):
                break
            await asyncio.sleep(0.05)
        assert not alive(pid)


def alive(pid: int) -> bool:
    """Whether a process runs: one that was killed and waits to be collected does not."""
    stat = Path(f"/proc/{pid}/stat")
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return not stat.exists() or stat.read_text().rpartition(") ")[2][0] != "Z"


async def test_a_child_writes_no_file_unless_it_may(tmp_path: Path) -> None:
    target = tmp_path / "made"
    code = (
        f"os.write(os.open({str(target)!r}, os.O_CREAT | os.O_WRONLY), b'abc'); return b'written'"
    )
    with pytest.raises(ChildFailed, match="OSError"):
        await run(tmp_path, code)
    assert target.read_bytes() == b""
    assert await run(tmp_path, code, writes=10) == b"written"


async def test_a_child_sees_neither_our_modules_nor_our_environment(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ANTHROPIC_API_KEY", "sk-secret")
    monkeypatch.setenv("PYTHONPATH", str(Path(__file__).parents[3]))
    said = await run(tmp_path, "return str(sorted(os.environ)).encode()")
    assert b"HOME" in said and b"KEY" not in said and b"PYTHONPATH" not in said
    with pytest.raises(ChildFailed, match="ModuleNotFoundError"):
        await run(tmp_path, "import holdfast.activities; return b''")


async def test_cancelling_ends_the_child(tmp_path: Path) -> None:
    folder = tmp_path / "pid"
    task = asyncio.create_task(
        run(tmp_path, f"os.mkdir({str(folder)!r} + str(os.getpid())); time.sleep(600)", seconds=60)
    )
    for _ in range(1_000):
        await asyncio.sleep(0.02)
        if found := [*tmp_path.glob("pid*")]:
            break
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert not alive(int(found[0].name.removeprefix("pid")))


async def lines(folder: Path, code: str, **bounds: int) -> list[bytes]:
    script = folder / "script.py"
    script.write_text("import os, sys, time\ndef main(request):\n    " + code)
    async with aclosing(lines_of_child(script, b"", **{"seconds": 20, **bounds})) as blocks:
        return [line async for block in blocks for line in block.split(b"\n")]


async def test_lines_come_whole_and_what_went_wrong_behind_them_is_no_line(tmp_path: Path) -> None:
    code = "yield from (b'%d\\n' % n for n in range(100_000)); yield b'end'"
    said = await lines(tmp_path, code)
    assert (len(said), said[0], said[-1]) == (100_001, b"0", b"end")
    with pytest.raises(ChildFailed, match=r"could not be read \(ValueError\)"):
        await lines(tmp_path, "yield b'one\\n'; raise ValueError('x')")
    with pytest.raises(ChildFailed, match="needed more than 1024 MiB"):
        await lines(tmp_path, "yield b'one\\n'; yield b'x' * (2 << 30)")
    with pytest.raises(ChildFailed, match="took longer than 1 s") as late:
        await lines(tmp_path, "yield b'one\\n'; time.sleep(600)", seconds=1)
    assert late.value.late


async def test_a_child_whose_lines_nobody_wants_any_more_is_dead(tmp_path: Path) -> None:
    script = tmp_path / "script.py"
    script.write_text(
        "import os\ndef main(request):\n"
        "    yield b'%d\\n' % os.getpid()\n    while True: yield b'x' * 1000 + b'\\n'"
    )
    async with aclosing(lines_of_child(script, b"", seconds=20)) as blocks:
        async for block in blocks:
            pid = int(block.split(b"\n")[0])
            break
    assert not Path(f"/proc/{pid}").exists()
