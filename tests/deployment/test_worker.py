"""The worker as a process: what it refuses, and in how many words."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import cast

import pytest
from temporalio.converter import DataConverter
from temporalio.worker._workflow import _WorkflowWorker

from driving import subtask as subtask_of
from holdfast.activities.wiring import build
from holdfast.calling.schedule import options_of
from holdfast.calls import MODEL_KINDS
from holdfast.calls.work import WorkMaterial
from holdfast.contracts import LONGEST_CALL_SECONDS, Call, Goal, Limits
from holdfast.deployment.settings import HOME, Settings
from holdfast.embedded import register_root
from holdfast.embedded.allowed import allowed_roots
from holdfast.ledger.ledger import Amount
from holdfast.ports import Lens
from holdfast.serving import worker
from holdfast.state.moves import Ask, Examine, Flying, Prepare
from holdfast.state.parts import Progress
from holdfast.state.run import State
from holdfast.temporal.connection import Target


def run(*arguments: str, **environment: str) -> subprocess.CompletedProcess[str]:
    clean = {
        name: value
        for name, value in os.environ.items()
        if not name.startswith(("TEMPORAL_", "HOLDFAST_", "ANTHROPIC_", "STORE_"))
    }
    return subprocess.run(
        [sys.executable, "worker.py", *arguments],
        cwd=HOME,
        env=clean | environment,
        capture_output=True,
        text=True,
    )


@pytest.mark.parametrize(
    ("environment", "said"),
    [
        ({"TEMPORAL_ADDRESS": "localhost:1"}, "STORE_URL is not set"),
        *(
            pytest.param(*each, marks=pytest.mark.long)
            for each in (
                (
                    {"STORE_URL": "file:///tmp", "HOLDFAST_PRICE_FILE": "/no/prices.yaml"},
                    "/no/prices.yaml",
                ),
                ({"TEMPORAL_ADDRESS": "localhost:1", "STORE_URL": "ftp://bucket"}, "file:///PATH"),
                ({"HOLDFAST_IDLE_SECONDS": "soon"}, "idle_seconds"),
                ({"STORE_URL": "file:///tmp", "HOLDFAST_STATE_DIR": "/dev/null/s"}, "/dev/null"),
                ({"TEMPORAL_PROFILE": "nobody"}, "nobody"),
            )
        ),
    ],
)
def test_a_wrong_setting_is_one_line_and_exit_code_2(
    environment: dict[str, str], said: str, tmp_path: Path
) -> None:
    done = run(**{"HOLDFAST_STATE_DIR": str(tmp_path), **environment})
    assert done.returncode == 2
    assert said in done.stderr
    assert len(done.stderr.splitlines()) == 1


@pytest.mark.usefixtures("bare_environment")
def test_a_state_directory_where_nothing_was_started_is_refused(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert worker.main(["--embedded", str(tmp_path)]) == 2
    told = capsys.readouterr().err.splitlines()
    assert told == [f"{tmp_path}: nothing was started there; use starter.py up"]


def test_roots_are_those_at_the_workers_start_and_registered_ones_only_beside_our_own_server(
    tmp_path: Path,
) -> None:
    folders = [tmp_path / name for name in ("fixed", "registered", "later")]
    settings = Settings(
        _env_file=None, state_dir=tmp_path / "state", allowed_roots=(folders[0], folders[2])
    )
    for folder in folders[:2]:
        folder.mkdir()
    embedded = allowed_roots(settings, embedded=True)
    own = allowed_roots(settings, embedded=False)
    register_root(settings, folders[1])
    folders[2].mkdir()
    assert [root.path for root in embedded()] == folders[:2]
    assert [root.path for root in own()] == folders[:1]


@pytest.mark.long
@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give a folder away")
def test_no_worker_uses_the_state_directory_of_another_user(tmp_path: Path) -> None:
    os.chown(tmp_path, 65534, 65534)
    done = run(HOLDFAST_STATE_DIR=str(tmp_path), STORE_URL="file:///tmp")
    assert done.returncode == 2 and "belongs to another user" in done.stderr


@pytest.mark.parametrize("endpoint", ["", "http://127.0.0.1:9"])
def test_tiers_are_served_by_a_worker_that_has_an_endpoint(endpoint: str, tmp_path: Path) -> None:
    settings = Settings(_env_file=None, state_dir=tmp_path, anthropic_base_url=endpoint)
    target = Target("localhost:1", store_url=(tmp_path / "store").as_uri())
    tools: dict[str, Lens] = {}
    served = build(settings, target, make_lenses=lambda _store, _scratch: tools)
    assert served.tiers == (("haiku", "sonnet", "opus") if endpoint else ())
    asking_nobody = {each.__name__ for each in (*served.preparing, *served.free)}
    maps = {"open_map", "close_map"}
    assert asking_nobody == {"prepare", "pin_inputs", "examine", "use_tool", "send_notice", *maps}
    assert {"plan", "work", "synthesize"} <= {each.__name__ for each in served.asking}


def test_a_worker_that_drains_waits_for_whatever_the_longest_limits_allow() -> None:
    limits = Limits(subtask_timeout_seconds=LONGEST_CALL_SECONDS)
    work = {"t1": Progress(subtask_of("t1"), tier="sonnet")}
    state = cast(State, SimpleNamespace(goal=Goal(text="g", limits=limits), work=work))
    material = WorkMaterial(subtask=subtask_of("t1"), timeout_seconds=LONGEST_CALL_SECONDS)
    most = 2 * max(kind.policy.max_output for kind in MODEL_KINDS)
    calls = [
        Call(purpose=each.name, kind=each.name, subtask_id="t1", max_output=most)
        for each in MODEL_KINDS
    ]
    # A look at an endpoint hands itself back in time, and depends on how far the run has come.
    asking = [Ask(call, material, Amount()) for call in calls]
    moves: list[Flying] = [Prepare(), Examine("t1", 1, material), *asking]
    options = [options_of(state, move) for move in moves]
    longest = max(each["start_to_close_timeout"] for each in options if each)
    assert longest == worker.GRACE


def test_the_sdk_has_what_is_changed_of_it_without_an_option() -> None:
    """Under other names our changes would do nothing, and nobody would be told."""
    assert {"_with_store_context", "_with_contexts"} <= set(dir(DataConverter))
    assert "_deadlock_timeout_seconds" in _WorkflowWorker.__init__.__code__.co_names
