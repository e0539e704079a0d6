"""Which worker serves: a setting reaches it, and some make it another one."""

from __future__ import annotations

import os
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
from pydantic import SecretStr

from deployment.embedded.identity import model_environment, worker_environment
from deployment.settings import Settings

OTHERS: dict[str, Any] = {
    "state_dir": Path("/state"),
    "store_url": "file:///store",
    "task_queue": "queue",
    "allowed_roots": (Path("/one"), Path("/two")),
    "anthropic_api_key": SecretStr("key"),
    "anthropic_base_url": "http://127.0.0.1:9",
    "model_haiku": "small",
    "model_sonnet": "middle",
    "model_opus": "large",
    "price_file": Path("/prices.yaml"),
    "capabilities": "full",
    "web_search": SecretStr("brave:other"),
    "mcp_file": Path("/servers.json"),
    "idle_seconds": 61,
    "keep_megabytes": 61,
    "most_dollars_run": Decimal("0"),
    "most_dollars_day": Decimal("2.5"),
    "log_level": "DEBUG",
    "web_ui": "http://127.0.0.1:8",
    "build_id": "build",
}
"""Of each setting, what is not its default."""


@pytest.fixture(autouse=True)
def nothing_set(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in Settings.model_fields:
        monkeypatch.delenv(Settings.variable(name), raising=False)


def test_every_setting_of_a_starter_is_that_of_its_worker(monkeypatch: pytest.MonkeyPatch) -> None:
    assert OTHERS.keys() == Settings.model_fields.keys()
    ours = Settings(_env_file=None, **OTHERS)
    for name, value in worker_environment(ours).items():
        monkeypatch.setenv(name, value)
    assert Settings(_env_file=None) == ours
    assert ours == Settings(_env_file=None).model_copy(update=OTHERS)


def test_no_setting_of_the_workers_shell_outlives_that_its_starter_has_none(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    bare = Settings(_env_file=None)
    monkeypatch.setitem(os.environ, "HOLDFAST_MOST_DOLLARS_DAY", "5")
    assert worker_environment(bare)["HOLDFAST_MOST_DOLLARS_DAY"] == ""


@pytest.mark.parametrize("name", Settings.model_fields)
def test_a_worker_is_another_one_when_what_it_asks_is_another(name: str) -> None:
    given: dict[str, Any] = {"anthropic_api_key": SecretStr("any")}
    ours = Settings(_env_file=None, **given)
    theirs = Settings(_env_file=None, **given | {name: OTHERS[name]})
    changed = model_environment(ours, "salt") != model_environment(theirs, "salt")
    of_models = name.startswith(("anthropic_", "model_", "most_dollars_")) or name in (
        "price_file",
        "capabilities",
        "web_search",
        "mcp_file",
    )
    assert changed == of_models


def test_a_worker_without_an_endpoint_is_like_any_other_without_one() -> None:
    assert model_environment(Settings(_env_file=None, model_haiku="small"), "salt") == ""
