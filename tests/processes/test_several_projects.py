"""One worker process that is told of two projects, and commands that are typed in their folders:
on a Temporal server of one's own, and on the embedded one.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import time
from collections.abc import AsyncIterator, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
import yaml
from temporalio.testing import WorkflowEnvironment

from conftest import TEMPORAL
from holdfast.deployment.settings import HOME, PREFIX

pytestmark = [pytest.mark.anyio, pytest.mark.long]
EXAMPLE = HOME / "examples" / "project"
EXAMPLES = Path("playbooks", "style-review", "examples")
TOOL = '''
from holdfast import Here, tool

@tool()
async def long_sentences(here: Here, draft: str) -> str:
    """Say that all is well."""
    return "all of them are short enough"
'''


@pytest.fixture
async def address(anyio_backend: str) -> AsyncIterator[str]:
    """Of a real server on a free port."""
    started = WorkflowEnvironment.start_local(
        dev_server_existing_path=str(TEMPORAL), dev_server_log_level="never"
    )
    async with await started as server:
        yield server.client.service_client.config.target_host


@pytest.fixture
def projects(tmp_path: Path) -> tuple[Path, Path]:
    """The example as it ships, and another one whose tool of the same name says something else."""
    style, terse = tmp_path / "style", tmp_path / "terse"
    for each in (style, terse):
        shutil.copytree(EXAMPLE, each)
    (terse / "tools" / "long_sentences.py").write_text(TOOL)
    (terse / ".env").write_text("HOLDFAST_MODEL_HAIKU=of-terse-alone\n")
    return style, terse


@contextmanager
def simulated(folder: Path) -> Iterator[dict[str, str]]:
    """The variables of an endpoint that answers to the tools of both."""
    script = yaml.safe_load((EXAMPLE / EXAMPLES / "script.yaml").read_text())
    script["rules"] += [
        {"call": "take_turn", "text": "all of them are short enough", "result": "Nothing is long."},
        {"call": "synthesize", "text": "Nothing is long.", "result": "Nothing is long."},
    ]
    (folder / "script.yaml").write_text(yaml.safe_dump(script))
    command = (sys.executable, "-m", "simulator", "--script", str(folder / "script.yaml"))
    served = subprocess.Popen(command, cwd=HOME, text=True, stdout=subprocess.PIPE)
    try:
        assert served.stdout
        lines = [served.stdout.readline().strip().removeprefix("export ") for _ in range(2)]
        yield dict(line.split("=", 1) for line in lines)
    finally:
        served.terminate()
        served.communicate()


@contextmanager
def worker(environment: dict[str, str], log: Path, *folders: Path) -> Iterator[None]:
    named = [part for each in folders for part in ("--project", str(each))]
    with log.open("wb") as output:
        process = subprocess.Popen(
            [sys.executable, str(HOME / "worker.py"), *named], env=environment, stderr=output
        )
    try:
        while "serving shared" not in log.read_text():
            assert process.poll() is None, log.read_text()
            time.sleep(0.2)
        yield
        process.terminate()
        assert process.wait(timeout=60) == 0, log.read_text()
    finally:
        process.kill()
        process.wait()


def reviewed(folder: Path, environment: dict[str, str]) -> subprocess.CompletedProcess[str]:
    """What a review of the example's draft says, typed in a project's folder."""
    draft = f"draft={folder / EXAMPLES / 'draft.md'}"
    asked = ("run", "--playbook", "style-review", "--input", draft, "--yes", "--project", ".")
    return typed(folder, environment, *asked)


def typed(
    folder: Path, environment: dict[str, str], *command: str
) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, str(HOME / "starter.py"), *command],
        cwd=folder,
        env=environment,
        capture_output=True,
        text=True,
        check=False,
        stdin=subprocess.DEVNULL,
    )


def bare(folder: Path) -> dict[str, str]:
    """The environment of a user who has set nothing, with the state below this folder."""
    ours = (PREFIX, "TEMPORAL_", "ANTHROPIC_", "STORE_")
    rest = {name: value for name, value in os.environ.items() if not name.startswith(ours)}
    return rest | {"XDG_STATE_HOME": str(folder / "xdg"), "HOLDFAST_WORKERS": "1"}


def each_says_its_own(found: list[subprocess.CompletedProcess[str]]) -> None:
    style, terse = (" ".join(each.stdout.split()) for each in found[:2])
    assert "They were ordered in January." in style and "Nothing is long." not in style
    assert "Nothing is long." in terse and "January" not in terse


async def test_one_worker_serves_two_projects_each_with_its_own_tool_and_no_other_project(
    address: str, projects: tuple[Path, Path], tmp_path: Path
) -> None:
    style, terse = projects
    stranger = tmp_path / "stranger"
    shutil.copytree(EXAMPLE, stranger)
    common = bare(tmp_path) | {
        "TEMPORAL_ADDRESS": address,
        "STORE_URL": (tmp_path / "store").as_uri(),
        "HOLDFAST_TASK_QUEUE": "shared",
        "HOLDFAST_ALLOWED_ROOTS": str(tmp_path),
    }
    log = tmp_path / "worker.log"
    with simulated(tmp_path) as endpoint, worker(common | endpoint, log, style, terse):
        found = [reviewed(each, common) for each in (style, terse, stranger)]
    assert [each.returncode for each in found] == [0, 0, 2], [each.stderr for each in found]
    each_says_its_own(found)
    assert "does not serve the project 'stranger'; it serves: style, terse" in found[2].stderr
    logged = log.read_text()
    idle = "HOLDFAST_TASK_QUEUE, HOLDFAST_MODEL_HAIKU"
    assert f"terse: no effect, as the worker serves several projects: {idle}" in logged
    assert "of-terse-alone" not in logged


def test_the_embedded_worker_of_two_projects_is_the_same_for_both_and_no_other_sets(
    projects: tuple[Path, Path], tmp_path: Path
) -> None:
    style, _ = projects
    third = tmp_path / "third"
    shutil.copytree(EXAMPLE, third)
    common = bare(tmp_path) | {"HOLDFAST_PROJECTS": os.pathsep.join(map(str, projects))}
    other_set = {"HOLDFAST_PROJECTS": os.pathsep.join(map(str, (style, third)))}
    with simulated(tmp_path) as endpoint:
        common |= endpoint
        found, workers = [], set()
        try:
            for each in projects:
                found.append(reviewed(each, common))
                # Only looks, with another set of projects, in a second shell.
                found.append(typed(tmp_path, common | other_set, "list"))
                records = tmp_path.glob("xdg/holdfast/projects/several-*/endpoint.json")
                workers.add(frozenset(json.loads(at.read_text())["worker_pid"] for at in records))
        finally:
            typed(tmp_path, common | other_set, "down")
            down = typed(tmp_path, common, "down")
    assert [each.returncode for each in found] == [0] * 4, [each.stderr for each in found]
    each_says_its_own(found[::2])
    assert [*map(len, workers)] == [2], "each set has a worker, and no command replaced another's"
    assert "Stopped (pids " in down.stderr
