"""Which worker serves: a setting reaches it, and some make it another one."""

from __future__ import annotations

import os
from collections.abc import Iterator
from decimal import Decimal
from pathlib import Path
from typing import Any, Literal, get_args, get_type_hints

import pytest
from pydantic import SecretStr

from holdfast.deployment.settings import HOME, Settings
from holdfast.embedded.identity import model_environment, worker_environment

MARKED = {
    "price_file", "capabilities", "web_search", "mcp_file", "endpoint_web", "python_sandbox",
    "python_sandbox_key", "project", "webhook_secret", "webhook_private",
}  # fmt: skip
"""Of the settings of models, those whose names do not say it."""


def other(name: str) -> Any:
    """Of a setting, a value that is not its default."""
    found = [value for kind, value in OF_KINDS.items() if kind in _kinds(ANNOTATIONS[name])]
    assert found, f"{name}: say in OF_KINDS what else it could be"
    return found[0]


def _kinds(annotation: Any) -> Iterator[Any]:
    yield annotation
    for each in get_args(annotation):
        yield from _kinds(each)


ANNOTATIONS = get_type_hints(Settings)
OF_KINDS: dict[Any, Any] = {
    Literal["all", "runs", "tools"]: "tools",
    tuple[Path, ...]: (Path("/one"), Path("/two")),
    Path: Path("/one"),
    SecretStr: SecretStr("brave:key"),
    Decimal: Decimal("2.5"),
    str: "http://127.0.0.1:9",
    bool: True,
    int: 61,
}
OTHERS = {
    **{name: other(name) for name in Settings.model_fields},
    "capabilities": "schemas",
    "log_level": "DEBUG",
    "test_command": "pytest {test}",
    "webhook_secret": SecretStr("whsec_" + "A" * 32),
    "rate": "haiku=61/min",
    "in_flight": "haiku=61",
    "health": "127.0.0.1:9",
    "metrics_address": "0.0.0.0",
    "project": HOME / "examples" / "project",
    "projects": (HOME / "examples" / "project",),
    "project_name": "reports",
}


@pytest.fixture(autouse=True)
def nothing_set(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in Settings.model_fields:
        monkeypatch.delenv(Settings.variable(name), raising=False)


def test_every_setting_of_a_starter_is_that_of_its_worker(monkeypatch: pytest.MonkeyPatch) -> None:
    others = {**OTHERS, "projects": ()}
    ours = Settings(_env_file=None, **others)
    for name, value in worker_environment(ours).items():
        monkeypatch.setenv(name, value)
    assert Settings(_env_file=None) == ours
    assert ours == Settings(_env_file=None).model_copy(update=others)


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
    assert changed == Settings.is_of_models(name)
    assert changed or not (name in MARKED or name.startswith(("anthropic_", "model_", "most_")))


def test_a_worker_without_an_endpoint_is_like_any_other_without_one() -> None:
    assert model_environment(Settings(_env_file=None, model_haiku="small"), "salt") == ""


def test_a_worker_is_another_one_when_the_file_of_servers_says_something_else(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / ".mcp.json"
    ours = Settings(_env_file=None, anthropic_api_key=SecretStr("any"), mcp_file=file)

    def mark(text: str = "", **variables: str) -> str:
        if text:
            file.write_text(text)
        for name, value in variables.items():
            monkeypatch.setenv(name, value)
        return model_environment(ours, "salt")

    monkeypatch.delenv("A_TOKEN", raising=False)
    free = '{"mcpServers": {"own": {"command": "x", "args": ["${A_TOKEN}"]}}}'
    found = [mark(), mark(free), mark(free.replace('"x"', '"x", "approval": true'))]
    found += [mark(A_TOKEN="one"), mark(A_TOKEN="two")]
    assert len({*found}) == len(found)
    assert mark(ANOTHER="three") == found[-1]
    monkeypatch.delenv("A_TOKEN")
    assert mark(free) == found[1]
