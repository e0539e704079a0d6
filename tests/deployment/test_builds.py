"""Builds that runs are pinned to: what a worker is, what it says of itself, and what `deploy`
refuses.
"""

from __future__ import annotations

import asyncio
import logging
from datetime import timedelta
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from temporalio.common import VersioningBehavior
from temporalio.service import RPCError, RPCStatusCode

from holdfast import __version__
from holdfast.cli.commands.server import deploy
from holdfast.cli.main import main
from holdfast.contracts.search import SEARCH_ATTRIBUTES
from holdfast.deployment import build
from holdfast.deployment.settings import Settings
from holdfast.serving.health import Health
from holdfast.serving.worker import deployment_of
from holdfast.workers.versions import Version, complain, deployment_name, describe_own


def settings(**given: Any) -> Settings:
    return Settings(_env_file=None, **given)


def test_a_build_is_the_code_and_nothing_else(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def built(**more: Any) -> str:
        build._digest_code.cache_clear()
        return build.build_of(settings(pin_runs=True, **more))

    monkeypatch.setattr(build, "PACKAGE", tmp_path)
    code, role = tmp_path / "workflows" / "run.py", tmp_path / "roles" / "a.md"
    for each in (code, role):
        each.parent.mkdir()
        each.write_text("one")
    first = built()
    role.write_text("two")
    again = built(model_haiku="another", project_name="mine")
    code.write_text("two")
    assert first == again != built()
    assert first.startswith(f"{__version__}-")
    assert built(build_id="r17") == "r17"
    build._digest_code.cache_clear()


def test_without_pinned_runs_a_build_is_the_version() -> None:
    assert build.build_of(settings()) == __version__


def test_runs_stay_on_a_build_only_where_that_is_set() -> None:
    free, pinned = (deployment_of("a.queue", "one", pinned=each) for each in (False, True))
    assert not free.use_worker_versioning
    assert pinned.use_worker_versioning
    assert pinned.default_versioning_behavior == VersioningBehavior.PINNED
    assert pinned.version.deployment_name == deployment_name("a.queue") == "a-queue"


@pytest.mark.parametrize(
    ("found", "level", "line"),
    [
        ([], logging.INFO, ""),
        ([Version("one", "current", 100)], logging.INFO, "build one takes new runs"),
        ([Version("one", "draining", open=2)], logging.INFO, "is draining"),
        ([Version("one", "draining")], logging.INFO, "is drained: no open run needs it"),
        ([Version("one", "drained")], logging.INFO, "is drained: no open run needs it"),
        ([Version("one", "inactive")], logging.WARNING, "no build takes new runs"),
        (
            [Version("one", "inactive"), Version("two", "current", 100)],
            logging.INFO,
            "it takes new runs after",
        ),
    ],
)
def test_a_worker_says_what_has_become_of_its_build(
    found: list[Version], level: int, line: str
) -> None:
    told = describe_own("one", found)
    assert told[0] == level and line in told[1] and bool(told[1]) == bool(line)


def test_runs_that_nobody_can_finish_and_new_ones_that_nobody_takes_are_named() -> None:
    alone = Version("one", "draining", open=3, workers=0)
    assert complain([alone, Version("two", "current", 100, workers=1)]) == (
        "one has 3 open and no worker; start one of it again",
    )
    (line,) = complain([Version("one", "inactive", workers=1)])
    assert line.startswith("no build takes new runs, which wait")
    assert not complain([Version("one", "draining", open=3, workers=None), Version("b", "current")])


@pytest.mark.usefixtures("bare_environment")
@pytest.mark.parametrize(
    ("line", "said"),
    [
        (["deploy"], "deploy is for a server of your own"),
        (["deploy", "a b"], "'a b' is no build id"),
        (["deploy", "--percent", "5"], "--percent needs the BUILD"),
        (["deploy", "one", "--attributes"], "give BUILD without it"),
    ],
)
def test_deploy_refuses_what_it_cannot_do_on_one_line(
    line: list[str], said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(line) == 2
    assert said in " ".join(capsys.readouterr().err.split())


@pytest.mark.anyio
async def test_a_worker_is_live_before_it_is_ready_and_ready_until_it_drains() -> None:
    whys: list[str | RPCError] = [
        "it starts",
        RPCError("gone", RPCStatusCode.UNAVAILABLE, b""),
        "",
    ]

    async def why() -> str:
        found = whys.pop(0)
        if isinstance(found, RPCError):
            raise found
        return found

    health = Health(why)
    server = await health.listen("127.0.0.1:0")
    port = server.sockets[0].getsockname()[1]

    async def ask(path: str, method: str = "GET") -> str:
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        writer.write(f"{method} {path} HTTP/1.1\r\nHost: x\r\n\r\n".encode())
        said = (await reader.read()).decode()
        writer.close()
        return said

    async with server:
        assert "200 OK" in await ask("/live")
        assert "503" in (said := await ask("/ready")) and "it starts" in said
        health._until = 0
        assert "the server does not answer: gone" in await ask("/ready")
        health._until = 0
        assert "200 OK" in await ask("/ready") and not whys
        assert "200 OK" in await ask("/ready"), "the server is not asked each time"
        assert "404" in await ask("/metrics") and "404" in await ask("/live", "POST")
        health.drain()
        assert "it drains" in await ask("/ready") and "200 OK" in await ask("/live")


class Server:
    """Has two of our search attributes, and makes others or refuses to."""

    def __init__(self, refusal: RPCError | None = None) -> None:
        self.names = {"HoldfastStatus", "HoldfastPlan"}
        self.operator_service = self
        self.refusal = refusal

    async def list_search_attributes(self, request: Any) -> Any:
        return SimpleNamespace(custom_attributes=dict.fromkeys(self.names))

    async def add_search_attributes(self, request: Any, timeout: timedelta) -> None:
        if self.refusal:
            raise self.refusal
        self.names |= {*request.search_attributes}


@pytest.mark.usefixtures("bare_environment")
@pytest.mark.parametrize(
    ("refusal", "code", "said"),
    [
        (None, 0, "Made in namespace ours: HoldfastPlaybook, HoldfastDollars,"),
        (
            RPCError("not allowed", RPCStatusCode.PERMISSION_DENIED, b""),
            1,
            "the server makes none: not allowed; on Temporal Cloud: tcld namespace"
            ' search-attributes add --namespace ours --search-attribute "HoldfastPlaybook=Keyword"',
        ),
    ],
)
def test_search_attributes_that_are_missing_are_made_or_it_is_said_how(
    refusal: RPCError | None,
    code: int,
    said: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    server = Server(refusal)

    async def connected(target: Any, seconds: float) -> Server:
        return server

    monkeypatch.setattr(deploy, "connect", connected)
    for name, value in {
        "TEMPORAL_ADDRESS": "localhost:1",
        "TEMPORAL_NAMESPACE": "ours",
        "STORE_URL": (tmp_path / "store").as_uri(),
    }.items():
        monkeypatch.setenv(name, value)
    assert main(["deploy", "--attributes"]) == code
    assert said in " ".join(capsys.readouterr().err.split())
    assert (server.names == {*SEARCH_ATTRIBUTES}) == (refusal is None)
    if refusal is None:
        assert main(["deploy", "--attributes"]) == 0
        assert "has all 6 search attributes" in " ".join(capsys.readouterr().err.split())
