"""A critical that is proved and mended, from a shell and with a worker that is killed meanwhile:
the patch is one that git applies, and nothing that ran is left or told twice. Real processes.
"""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
import tempfile
from contextlib import suppress
from pathlib import Path
from typing import Any

import psutil
import pytest

from bench.instruments.deployment import deployed
from holdfast.certifying.deployment import simulated
from holdfast.contracts import Goal, GoalInput
from holdfast.contracts.remarks import read_review
from holdfast.deployment.settings import HOME, Settings
from holdfast.embedded import down
from repositories import Repository

pytestmark = [pytest.mark.long, pytest.mark.anyio]

PAGES = (
    "from shop.sizes import most\n\n\ndef pages(total: int) -> int:\n"
    "    return -(-total // most())\n"
)
BASE: dict[str, str | bytes] = {
    "shop/pages.py": PAGES,
    "shop/sizes.py": "def most() -> int:\n    return 3\n",
}
HEAD: dict[str, str | bytes] = {
    "shop/pages.py": PAGES.replace("-(-total // most())", "total // most()")
}
LOST = {
    "file": "shop/pages.py",
    "line": 5,
    "code": "    return total // most()",
    "message": "The last, partly filled page is lost.",
    "suggestion": "",
    "rule": "wrong-bound",
    "severity": "critical",
    "confidence": 90,
}
SOUGHT = "Find where the code does something else than it says."
"""The first words of the role whose agent reports it; all others report nothing."""
PATCH = {
    "why": "It rounds up.",
    "old": "    return total // most()",
    "new": "    return -(-total // most())",
}


def script(text: str) -> dict[str, Any]:
    """What the models answer; `text` is the script that proves the critical."""
    proof = {"why": "7 need a third.", "shows": "7 are 2 pages.", "script": text}
    none = {"status": "complete", "confidence": 90, "sources": [], "why": "", "reason": ""}
    return {
        "rules": [
            {"text": SOUGHT, "fields": {**none, "result": {"remarks": [LOST]}}},
            {"text": "<role>", "fields": {**none, "result": {"remarks": []}}},
            {"call": "prove", "fields": {**proof, "fails_with": "AssertionError"}},
            {"call": "fix", "fields": PATCH},
        ]
    }


def changed(folder: Path) -> Repository:
    repository = Repository.at(folder)
    repository.commit(BASE)
    repository.git("switch", "-q", "-c", "change")
    repository.commit(HEAD, message="Simpler pages")
    return repository


async def test_from_a_shell_the_patch_of_a_proved_critical_is_one_that_git_applies(
    tmp_path: Path,
) -> None:
    repository = changed(tmp_path / "repository")
    base = repository.git("rev-parse", "HEAD~1")
    patch = tmp_path / "fix.patch"
    command = [
        *(sys.executable, str(HOME / "starter.py"), "run", "--playbook", "code-review"),
        *("--input", f"repo={repository.path}", "--input", f"base={base}", "--models"),
        *("--fix", str(patch)),
    ]
    async with simulated(tmp_path, script("assert pages(7) == 3, pages(7)")) as endpoint:
        settings = {
            "PATH": os.environ["PATH"],
            "HOME": str(tmp_path),
            "XDG_STATE_HOME": str(tmp_path),
            "ANTHROPIC_BASE_URL": endpoint.url,
            "ANTHROPIC_API_KEY": "scripted",
        }
        try:
            done = await asyncio.to_thread(
                subprocess.run, command, env=settings, capture_output=True, text=True, check=False
            )
        finally:
            down(Settings(_env_file=None, state_dir=tmp_path / "holdfast"))
    assert done.returncode == 0, done.stderr
    assert "Run and compared" in done.stdout, done.stdout
    repository.git("apply", "--check", str(patch))
    repository.git("apply", str(patch))
    assert (repository.path / "shop/pages.py").read_text() == PAGES


async def test_a_worker_killed_inside_a_proof_leaves_nothing_and_the_proof_is_told_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    scratch = tmp_path / "scratch"
    scratch.mkdir()
    monkeypatch.setenv("TMPDIR", str(scratch))
    monkeypatch.setattr(tempfile, "tempdir", None)
    repository = changed(tmp_path / "repository")
    given = GoalInput(name="repo", kind="repository", value=str(repository.path))
    goal = Goal(text="Review", playbook="code-review", inputs=(given,), use_models=True)
    slow = "n = 0\nwhile n < 8_000_000:\n    n += 1\nassert pages(7) == 3, pages(7)"
    async with deployed(tmp_path, script(slow), allowed_roots=(tmp_path,)) as deployment:
        handle = await deployment.start(goal)
        while not (proving := proofs_below(deployment.pid("worker"))):  # noqa: ASYNC110 - a process
            await asyncio.sleep(0.05)
        deployment.kill_worker()
        gone, left = await asyncio.to_thread(psutil.wait_procs, proving, 60)
        report = await deployment.result(handle)
    assert report.status == "complete", report.gaps
    data = read_review(report)
    assert data is not None
    (critical,) = [each for each in data.remarks if each.severity == "critical"]
    assert critical.proof is not None and critical.proof.verdict == "proved", critical.proof
    assert report.answer.count("Run and compared") == 1
    assert gone and not left
    assert [each.name for each in scratch.iterdir() if each.name.startswith("tool-")] == []


def proofs_below(worker: int | None) -> list[psutil.Process]:
    """The processes of a proof that is being run, the sandbox's own included."""
    if worker is None:
        return []
    # Any of them may end between two looks.
    with suppress(psutil.NoSuchProcess, psutil.ZombieProcess):
        for child in psutil.Process(worker).children():
            if any("prove_python" in each for each in child.cmdline()) and child.children():
                return [child, *child.children(recursive=True)]
    return []
