"""A worker that is killed with -9 in the middle of a run costs no span and makes none twice: what a
backend has afterwards is what the history has. Real processes, the real exporter.
"""

from __future__ import annotations

import asyncio
import subprocess
from pathlib import Path

import pytest
from test_survival import RUN_ID, SECONDS, history, starter, struck

from holdfast.deployment.settings import Settings
from holdfast.embedded import down, status
from holdfast.temporal.connection import connect
from receiver import Received, receiver
from tracing import counted

pytestmark = pytest.mark.long

SUBTASKS = 6
"""Of the code review: one for each lens."""


def until_closed_is_sent(received: Received, settings: Settings) -> None:
    """Return once the state directory has noted that the run's spans were taken."""

    async def sent() -> None:
        endpoint = status(settings).endpoint
        assert endpoint
        client = await connect(endpoint.target)
        execution = (await client.get_workflow_handle(RUN_ID).describe()).run_id
        for _ in range(300):
            noted = settings.state_dir / "spans.json"
            if noted.exists() and str(execution) in noted.read_text():
                return
            await asyncio.sleep(0.1)
        raise AssertionError(f"{len(received.spans)} spans came, and nobody noted them")

    asyncio.run(sent())


def test_a_run_whose_worker_is_killed_has_as_many_spans_as_its_history_has_steps(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    repository = tmp_path / "repository"
    repository.mkdir()
    (repository / "code.py").write_text("print('hello')\n")
    who = ["-c", "user.name=A", "-c", "user.email=a@b.example"]
    for command in (["init", "-q"], ["add", "."], [*who, "commit", "-qm", "One file"]):
        subprocess.run(["git", *command], cwd=repository, check=True)
    settings = Settings(_env_file=None, state_dir=tmp_path / "state")
    with receiver() as received:
        monkeypatch.setenv("OTEL_EXPORTER_OTLP_ENDPOINT", received.address)
        goal = ("run", "--playbook", "code-review", "--input", f"repo={repository}", "--id", RUN_ID)
        running = starter(settings.state_dir, *goal)
        try:
            struck(settings, running, "worker")
            running.communicate(timeout=SECONDS)
            assert running.returncode == 0
            until_closed_is_sent(received, settings)
            events = history(settings).events
        finally:
            running.kill()
            running.communicate()
            down(settings)
    begun = [each.activity_task_started_event_attributes for each in events]
    assert max(each.attempt for each in begun) == 2, "something was done again"
    steps = counted(events) + SUBTASKS + 1
    ids = [each.span_id for each in received.spans]
    assert len(ids) == len(set(ids)) == steps + 1, "the command that started it has one, too"
    (above,) = (each for each in received.spans if each.name == "holdfast run")
    (run,) = (each for each in received.spans if each.name == "invoke_workflow")
    assert (run.trace_id, run.parent_span_id) == (above.trace_id, above.span_id)
