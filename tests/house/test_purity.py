"""What replays touches nothing of the world: what importing the workflows loads, and the bans. Who
may import whom is import-linter's, in pyproject.toml.
"""

from __future__ import annotations

import importlib.util
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

from parameters import rest_long

ROOT = Path(__file__).resolve().parents[2]
CONFIGS = {
    "workflows": ROOT / "workflows" / "ruff.toml",
    "holdfast": ROOT / "holdfast" / "pure.toml",
}
IMPURE = (
    "anthropic",
    "aiohttp",
    "structlog",
    "yaml",
    "pydantic_settings",
    "temporalio.client",
    "holdfast.deployment.settings",
)
SELDOM = {"anthropic", "detect_secrets", "markdown_it", "requests"}
"""Libraries that take long to load, and that most starts of worker and starter do without."""
USES = {
    "datetime.timedelta": "from datetime import timedelta\ntimedelta(seconds=1)",
    "datetime.datetime.now": "import datetime\ndatetime.datetime.now(datetime.UTC)",
    "asyncio.sleep": "import asyncio\nasyncio.sleep(1)",
    "asyncio.gather": "import asyncio\nasyncio.gather()",
    "asyncio.TaskGroup": "from asyncio import TaskGroup\nTaskGroup()",
    "asyncio.wait": "import asyncio\nasyncio.wait([])",
    "pathlib.Path": "from pathlib import Path",
}
"""How each banned name would be used; a module is simply imported."""


def python(code: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, timeout=60
    )


def test_importing_the_workflows_loads_no_sdk_and_nothing_that_reads_the_world() -> None:
    loaded = python("import sys, holdfast.workflows; print('\\n'.join(sys.modules))")
    assert loaded.returncode == 0, loaded.stderr
    modules = loaded.stdout.split()
    assert "holdfast.workflows.supervisor" in modules
    found = [each for each in modules if each in IMPURE or each.startswith("httpx")]
    assert not found, (
        f"`import holdfast.workflows` loads {', '.join(found)}. Move the import behind"
        " TYPE_CHECKING, or the code behind a Protocol of holdfast/ports.py. To see who imports"
        " it: python -X importtime -c 'import holdfast.workflows'"
    )


@pytest.mark.parametrize("program", rest_long(["holdfast.cli.main", "holdfast.serving.worker"]))
def test_a_program_starts_without_what_few_of_its_runs_need(program: str) -> None:
    loaded = python(f"import sys, {program}; print('\\n'.join(sys.modules))")
    assert loaded.returncode == 0, loaded.stderr
    found = SELDOM.intersection(loaded.stdout.split())
    assert not found, f"`import {program}` loads {', '.join(sorted(found))}: import it where used"


def test_the_names_that_must_not_be_loaded_are_names_of_what_is_installed() -> None:
    """A list that names nothing would forbid nothing."""
    assert [each for each in (*IMPURE, *SELDOM) if importlib.util.find_spec(each) is None] == []


@pytest.mark.parametrize("room", CONFIGS)
def test_each_ban_of_what_replays_is_alive_and_names_the_remedy(room: str) -> None:
    config = CONFIGS[room]
    bans = tomllib.loads(config.read_text())["lint"]["flake8-tidy-imports"]["banned-api"]
    uses = "\n".join(USES.get(name, f"import {name}") for name in bans)
    opens = "with open('x') as file:\n    file.read()\n"
    found = subprocess.run(
        [sys.executable, "-m", "ruff", "check", "--no-cache", "--config", str(config), "-"],
        cwd=ROOT,
        input=f"{uses}\n{opens}",
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert [name for name, ban in bans.items() if ban["msg"] not in found.stdout] == []
    assert "PTH123" in found.stdout, "a file is opened"
