"""What replays touches nothing of the world: the imports of the workflows, and the bans."""

from __future__ import annotations

import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
CONFIG = ROOT / "workflows" / "ruff.toml"
IMPURE = (
    "anthropic",
    "aiohttp",
    "structlog",
    "yaml",
    "pydantic_settings",
    "temporalio.client",
    "deployment.settings",
)
SELDOM = {"anthropic", "detect_secrets", "markdown_it", "requests"}
"""Libraries that take long to load, and that most starts of worker and starter do without."""
BANNED = tomllib.loads(CONFIG.read_text())["lint"]["flake8-tidy-imports"]["banned-api"]
USES = {
    "datetime.timedelta": "from datetime import timedelta\ntimedelta(seconds=1)",
    "datetime.datetime.now": "import datetime\ndatetime.datetime.now(datetime.UTC)",
    "asyncio.sleep": "import asyncio\nasyncio.sleep(1)",
    "asyncio.gather": "import asyncio\nasyncio.gather()",
    "asyncio.TaskGroup": "from asyncio import TaskGroup\nTaskGroup()",
    "asyncio.wait": "import asyncio\nasyncio.wait([])",
}
"""How each banned name would be used; a module is simply imported."""


def python(code: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, timeout=60
    )


def ruff(*arguments: str, code: str = "") -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "ruff", "check", "--no-cache", *arguments],
        cwd=ROOT,
        input=f"{code}\n",
        capture_output=True,
        text=True,
        timeout=60,
    )


def test_importing_the_workflows_loads_no_sdk_and_nothing_that_reads_the_world() -> None:
    loaded = python("import sys, workflows; print('\\n'.join(sys.modules))")
    assert loaded.returncode == 0, loaded.stderr
    modules = loaded.stdout.split()
    assert "workflows.supervisor" in modules
    found = [each for each in modules if each in IMPURE or each.startswith("httpx")]
    assert not found, (
        f"`import workflows` loads {', '.join(found)}. Move the import behind TYPE_CHECKING, or "
        "the code behind a Protocol of activities/seam.py. To see who imports it: "
        "python -X importtime -c 'import workflows'"
    )


@pytest.mark.parametrize("program", ["worker", "cli.main"])
def test_a_program_starts_without_what_few_of_its_runs_need(program: str) -> None:
    loaded = python(f"import sys, {program}; print('\\n'.join(sys.modules))")
    assert loaded.returncode == 0, loaded.stderr
    found = SELDOM.intersection(loaded.stdout.split())
    assert not found, f"`import {program}` loads {', '.join(sorted(found))}: import it where used"


def test_the_names_that_must_not_be_loaded_are_names_of_what_is_installed() -> None:
    """A list that names nothing would forbid nothing."""
    found = python("\n".join(f"import {each}" for each in (*IMPURE, *SELDOM)))
    assert found.returncode == 0, found.stderr


@pytest.mark.parametrize("banned", sorted(BANNED))
def test_each_ban_of_the_workflows_is_alive_and_names_the_remedy(banned: str) -> None:
    found = ruff("--config", str(CONFIG), "-", code=USES.get(banned, f"import {banned}"))
    assert BANNED[banned]["msg"] in found.stdout, found.stdout + found.stderr


def test_opening_a_file_is_banned() -> None:
    found = ruff("--config", str(CONFIG), "-", code="with open('x') as file:\n    file.read()")
    assert "PTH123" in found.stdout


def test_the_workflows_themselves_break_no_ban() -> None:
    found = ruff("workflows")
    assert found.returncode == 0, found.stdout
