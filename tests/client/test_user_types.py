"""A user's own file, read by a strict type checker."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from holdfast.deployment.settings import HOME
from pages import snippets

pytestmark = [pytest.mark.long, pytest.mark.timeout(900)]

TYPED = """
from decimal import Decimal

from pydantic import BaseModel

import holdfast
from holdfast import Holdfast, Report, SubtaskEnded


class Rates(BaseModel):
    highest: float


async def highest() -> float:
    async with Holdfast() as hf:
        run = await hf.start("Which rate is the highest?", answer=Rates, dollars=Decimal("0.5"))
        async for event in run.events():
            if isinstance(event, SubtaskEnded):
                print(event.subtask, event.status)
        report = await run.report()
        return report.data.highest if report.data else 0.0


async def again(id: str) -> float:
    async with Holdfast() as hf:
        report = await (await hf.run_of(id, answer=Rates)).report()
        return report.data.highest if report.data else 0.0


def script() -> float:
    report = holdfast.run("Which rate is the highest?", answer=Rates)
    return report.data.highest if report.data else 0.0


async def plain() -> Report:
    async with Holdfast() as hf:
        return await (await hf.start("Which?", inputs={"a": b"1"}, roles=["analyst"])).report()
"""
WRONG = """
from holdfast import Holdfast


async def wrong() -> None:
    async with Holdfast() as hf:
        await hf.start("Which?", dolars=1)
        run = await hf.start("Which?")
        (await run.report()).nothing
"""


def check(folder: Path, **files: str) -> str:
    for name, text in files.items():
        (folder / f"{name}.py").write_text(text)
    command = [
        sys.executable,
        "-m",
        "mypy",
        "--strict",
        "--follow-imports=silent",
        "--cache-dir",
        str(folder / "cache"),
    ]
    done = subprocess.run(
        [*command, *(f"{name}.py" for name in files)],
        cwd=folder,
        capture_output=True,
        text=True,
        check=False,
        env={"MYPYPATH": str(HOME), "PATH": ""},
    )
    return done.stdout


def test_the_files_of_the_pages_and_a_typed_answer_pass_and_a_mistake_does_not(
    tmp_path: Path,
) -> None:
    pages = [*snippets(HOME / "README.md"), *snippets(HOME / "docs" / "from-python.md")]
    files = {Path(each.name).stem: each.text for each in pages if each.language == "python"}
    assert "follow" in files and "ask" in files
    said = check(tmp_path, typed=TYPED, wrong=WRONG, **files)
    assert '"dolars"' in said and '"nothing"' in said, said
    *wrong, end = said.splitlines()
    assert all(each.startswith("wrong.py:") for each in wrong) and " in 1 file " in end, said
