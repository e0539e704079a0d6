"""Code of a model computes in a sandbox, and reaches nothing outside it."""

from __future__ import annotations

import asyncio
from pathlib import Path

import psutil
import pytest

from hands import Bench
from holdfast.activities.tools import run_python as module
from holdfast.activities.tools.run_python import run_python
from parameters import rest_long

pytestmark = pytest.mark.anyio


async def test_it_says_what_was_printed_and_the_value_of_the_last_expression() -> None:
    code = "import json\nrows = json.loads(inputs['rows'])\nprint(len(rows))\nsum(rows)"
    bench = Bench(contents={"rows": b"[1, 2, 39]"})
    assert await bench.told(run_python, code=code, inputs=["rows"]) == "3\n42"


async def test_code_without_output_says_so() -> None:
    assert "printed nothing" in await Bench().told(run_python, code="x = 1")


async def test_a_text_that_is_no_utf8_is_read_as_latin1() -> None:
    bench = Bench(contents={"old": b"M\xfcller"})
    assert await bench.told(run_python, code="inputs['old'][1]", inputs=["old"]) == "'ü'"


async def test_the_same_code_draws_the_same_numbers() -> None:
    """A call is run again after a crash."""
    code = "import random; random.random()"
    assert await Bench().told(run_python, code=code) == await Bench().told(run_python, code=code)


async def test_what_it_saves_is_handed_up_and_said_before_all_that_it_prints() -> None:
    bench = Bench(contents={"rows": b"b,a"})
    code = "save('a.csv', 'old')\nsave('a.csv', inputs['rows'])\nsave('b.md', 'ü')\nprint('x')"
    said = await bench.told(run_python, code=code, inputs=["rows"])
    assert said == "a.csv is handed up (3 bytes).\nb.md is handed up (2 bytes).\nx"
    assert bench.files == {"a.csv": b"b,a", "b.md": "ü".encode()}


async def test_a_file_that_may_not_be_is_an_error_that_names_it_in_a_line() -> None:
    for name in ("../a.csv", "a.html", ""):
        assert repr(name) in await Bench().refused(run_python, code=f"save({name!r}, 'x')")


@pytest.mark.parametrize(
    ("code", "why"),
    rest_long(
        [
            ("1 / 0", "ZeroDivisionError"),
            ("no syntax here", "separated by newlines"),
            ("9**9**9", "memory limit exceeded"),
            ("'x' * 10**10", "memory limit exceeded"),
            ("f'{1:>9999999999}'", "MemoryError"),
            ("[i for i in range(10**9)]", "MemoryError"),
            ("def f(): return f()\nf()", "RecursionError"),
            ("while True: print('x' * 1000)", "MemoryError"),
            ("import time; time.sleep(1000)", "sleep limit exceeded"),
            ("open('/etc/passwd').read()", "PermissionError"),
            ("open('/tmp/made', 'w').write('x')", "PermissionError"),
            ("import os; os.environ['HOME']", "not supported"),
            ("import os; os.system('id')", "AttributeError"),
            ("import subprocess", "ModuleNotFoundError"),
            ("import socket", "ModuleNotFoundError"),
            ("().__class__.__mro__[1].__subclasses__()", "AttributeError"),
            ("__import__('os')", "NameError"),
        ],
        first=3,
    ),
)
async def test_what_breaks_out_or_takes_too_much_is_an_error_that_names_it(
    code: str, why: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    # What prints too much is told so at the end of its time; nothing else comes near to it, however
    # busy the machine is.
    monkeypatch.setattr(module, "SECONDS", 3.0 if "print(" in code else 20.0)
    result = await Bench().use(run_python, code=code)
    assert result.is_error and why in result.text
    assert len(result.text.encode()) <= 20_000


@pytest.mark.parametrize(
    "code",
    rest_long(
        [
            "while True: pass",
            "while True:\n try:\n  while True: pass\n except BaseException: pass",
            "try:\n while True: pass\nfinally:\n while True: pass",
        ]
    ),
)
async def test_endless_code_is_ended(code: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "SECONDS", 0.5)
    result = await Bench().use(run_python, code=code)
    assert result.is_error and "time limit exceeded" in result.text


async def test_a_long_value_is_cut_with_its_length() -> None:
    bench = Bench()
    await bench.told(run_python, code="'x' * 1_000_000")
    (kept,) = bench.results.values()
    assert kept.endswith(b"(1000002 letters)") and len(kept) < 110_000


async def test_inputs_that_are_too_long_together_are_refused(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(module, "HANDED_IN", 5)
    bench = Bench(contents={"a": b"abc", "b": b"def"})
    assert "6 letters" in await bench.refused(run_python, code="1", inputs=["a", "b"])
    assert "begins with no input" in await bench.refused(run_python, code="1", inputs=["c"])


async def test_cancelling_leaves_no_process_of_the_sandbox() -> None:
    ours = psutil.Process()
    task = asyncio.create_task(Bench().use(run_python, code="while True: pass"))
    sandbox: list[psutil.Process] = []
    for _ in range(1_000):
        await asyncio.sleep(0.02)
        below = ours.children(recursive=True)
        sandbox = [each for each in below if Path(each.name()).name.startswith("monty")]
        if sandbox:
            break
    assert sandbox
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    _, alive = psutil.wait_procs(sandbox, timeout=10)
    # Of one that has ended its number may stay, until whoever took it over asks for it.
    assert not [each for each in alive if each.status() != psutil.STATUS_ZOMBIE]
