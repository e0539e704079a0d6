"""What replays touches nothing of the world: what importing the workflows loads, and the bans. Who
may import whom is import-linter's, in pyproject.toml.
"""

from __future__ import annotations

import ast
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

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
BANNED = {
    (room, name): ban["msg"]
    for room, config in CONFIGS.items()
    for name, ban in tomllib.loads(config.read_text())["lint"]["flake8-tidy-imports"][
        "banned-api"
    ].items()
}
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


@pytest.mark.parametrize("program", ["holdfast.serving.worker", "holdfast.cli.main"])
def test_a_program_starts_without_what_few_of_its_runs_need(program: str) -> None:
    loaded = python(f"import sys, {program}; print('\\n'.join(sys.modules))")
    assert loaded.returncode == 0, loaded.stderr
    found = SELDOM.intersection(loaded.stdout.split())
    assert not found, f"`import {program}` loads {', '.join(sorted(found))}: import it where used"


def test_the_names_that_must_not_be_loaded_are_names_of_what_is_installed() -> None:
    """A list that names nothing would forbid nothing."""
    found = python("\n".join(f"import {each}" for each in (*IMPURE, *SELDOM)))
    assert found.returncode == 0, found.stderr


@pytest.mark.parametrize(("room", "banned"), sorted(BANNED))
def test_each_ban_of_what_replays_is_alive_and_names_the_remedy(room: str, banned: str) -> None:
    found = ruff("--config", str(CONFIGS[room]), "-", code=USES.get(banned, f"import {banned}"))
    assert BANNED[room, banned] in found.stdout, found.stdout + found.stderr


@pytest.mark.parametrize("room", CONFIGS)
def test_opening_a_file_is_banned(room: str) -> None:
    code = "with open('x') as file:\n    file.read()"
    assert "PTH123" in ruff("--config", str(CONFIGS[room]), "-", code=code).stdout


@pytest.mark.parametrize("room", CONFIGS)
def test_what_replays_breaks_no_ban(room: str) -> None:
    found = ruff(room)
    assert found.returncode == 0, found.stdout


def test_what_starts_a_run_prints_nothing_and_the_command_line_may() -> None:
    printed = {
        room: "T201"
        in ruff("--stdin-filename", f"holdfast/{room}/any.py", "-", code="print('x')").stdout
        for room in ("intake", "cli")
    }
    assert printed == {"intake": True, "cli": False}


# ---------------------------------------------------------------- ends and stores

ENDING = {"SystemExit", "exit", "quit", "_exit", "abort"}
"""What ends a process, whichever module it is taken from."""


def ends_by(code: str) -> set[str]:
    """By which names a module's code ends its process, or could."""
    said: set[str] = set()
    for node in ast.walk(ast.parse(code)):
        if isinstance(node, ast.Name):
            said.add(node.id)
        elif isinstance(node, ast.Attribute):
            said.add(node.attr)
        elif isinstance(node, ast.alias):
            said.add(node.name)
    return said & ENDING


@pytest.mark.parametrize(
    ("code", "name"),
    [
        ("raise SystemExit(2)", "SystemExit"),
        ("exit(2)", "exit"),
        ("import os\nos._exit(2)", "_exit"),
        ("from os import abort as stop", "abort"),
    ],
)
def test_the_end_of_a_process_is_seen_however_it_is_written(code: str, name: str) -> None:
    assert ends_by(code) == {name}


def test_what_starts_a_run_ends_no_process_but_leaves_that_to_whoever_asked() -> None:
    found = {
        str(path.relative_to(ROOT)): sorted(names)
        for path in (ROOT / "holdfast" / "intake").rglob("*.py")
        if (names := ends_by(path.read_text(encoding="utf-8")))
    }
    assert not found, f"raise Refused, which says what is wrong and knows no exit code: {found}"


def test_a_store_is_made_by_one_function_so_that_another_kind_can_come() -> None:
    shipped = [path.relative_to(ROOT) for path in ROOT.rglob("*.py") if ".venv" not in path.parts]
    making = [
        str(each)
        for each in shipped
        if each.parts[0] != "tests" and "DirectoryStore(" in (ROOT / each).read_text()
    ]
    assert making == ["holdfast/storage/__init__.py"], "the others use `store_at`"
