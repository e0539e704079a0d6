"""Code of a model in a sandbox of the deployment's own on another machine: what it is sent, and
that one which hangs, dies, floods or lies is an error result.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Callable
from typing import Any

import pytest
from aiohttp import web as served
from pydantic import ValidationError

from hands import Bench
from holdfast.activities.tools import run_python as module
from holdfast.activities.tools.run_python import run_python
from holdfast.activities.toolset import remote
from holdfast.activities.toolset.child import in_child
from holdfast.deployment.settings import Settings
from sites import Site, site

pytestmark = pytest.mark.anyio

KEY = "sandbox-key-1f2e3d4c5b6a"


def bench(here: Site | str, **contents: bytes) -> Bench:
    url = here if isinstance(here, str) else here.url
    settings = {"python_sandbox": url, "python_sandbox_key": KEY}
    return Bench(contents=contents, settings=settings)


def says(answer: Any, status: int = 200) -> Callable[[served.BaseRequest], Awaitable[Any]]:
    async def handle(_: served.BaseRequest) -> served.Response:
        text = answer if isinstance(answer, str) else json.dumps(answer)
        return served.Response(text=text, status=status, content_type="application/json")

    return handle


async def test_code_and_named_inputs_are_sent_with_the_key_and_the_answer_is_the_result() -> None:
    sent: list[Any] = []

    async def run(request: served.BaseRequest) -> served.Response:
        sent.append((request.headers["Authorization"], await request.json()))
        asked = sent[-1][1]
        # The server of this test runs it as this machine would: in the bounded child.
        said = await in_child("run_python.py", json.dumps(asked).encode(), seconds=20)
        return served.Response(body=said, content_type="application/json")

    async with site(run) as here:
        tools = bench(here, rows=b"[1, 2, 39]", other=b"stays here")
        code = "import json\nprint('so')\nsum(json.loads(inputs['rows']))"
        assert await tools.told(run_python, code=code, inputs=["rows"]) == "so\n42"
        failed = await tools.use(run_python, code="1 / 0")
    assert failed.is_error and "ZeroDivisionError" in failed.text
    key, asked = sent[0]
    assert key == f"Bearer {KEY}"
    assert asked == {
        "code": code,
        "inputs": {"rows": "[1, 2, 39]"},
        "seconds": 10.0,
        "memory": module.MEMORY,
    }


async def _hang(_: served.BaseRequest) -> served.Response:
    await asyncio.sleep(60)
    raise AssertionError("nobody waits so long")


async def _drip(request: served.BaseRequest) -> served.StreamResponse:
    response = served.StreamResponse()
    await response.prepare(request)
    while True:
        await response.write(b" ")
        await asyncio.sleep(0.05)


async def _die(request: served.BaseRequest) -> served.Response:
    assert request.transport is not None
    request.transport.abort()
    return served.Response()


async def _flood(request: served.BaseRequest) -> served.StreamResponse:
    response = served.StreamResponse()
    await response.prepare(request)
    while True:
        await response.write(b'{"printed": "' + b"x" * 100_000)


async def _elsewhere(_: served.BaseRequest) -> served.Response:
    return served.Response(status=307, headers={"Location": "http://127.0.0.1:1/"})


@pytest.mark.parametrize(
    ("behaviour", "said"),
    [
        (_hang, "did not answer within 0.5 s"),
        (_drip, "did not answer within 0.5 s"),
        (_die, "cannot be reached"),
        (_flood, "answered more than 4 MiB"),
        (_elsewhere, "refused to run it (status 307)"),
        (says({}, 401), "refused to run it (status 401)"),
        (says("no JSON"), "not a result"),
        (says([1]), "not a result"),
        (says({"printed": {"a": 1}}), "not a result"),
        (says("[" * 100_000), "not a result"),
    ],
)  # fmt: skip
async def test_a_sandbox_that_does_not_answer_as_it_should_is_an_error_result(
    behaviour: Any, said: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    if behaviour in (_hang, _drip):
        monkeypatch.setattr(module, "SECONDS", 0.25)
        monkeypatch.setattr(remote, "WAITING_SECONDS", 0.25)
    async with site(behaviour) as here:
        refused = await bench(here).refused(run_python, code="1")
    assert said in refused and refused.startswith("the Python sandbox of this deployment ")
    assert here.port not in refused and KEY not in refused
    assert len(here.asked) == 1, "it is asked once, and no other place"


async def test_a_sandbox_that_is_not_there_is_an_error_result_and_nothing_runs_here() -> None:
    refused = await bench("http://127.0.0.1:9/").refused(run_python, code="1")
    assert refused.startswith("the Python sandbox of this deployment cannot be reached")


async def test_a_key_that_the_sandbox_repeats_is_in_no_result() -> None:
    async with site(says({"printed": f"the key is {KEY}", "value": KEY.upper()})) as here:
        told = await bench(here).told(run_python, code="1")
    assert told == "the key is [redacted]\n[redacted]"


async def test_no_argument_of_a_model_names_where_code_goes() -> None:
    assert set(run_python.schema["properties"]) == {"code", "inputs"}  # type: ignore[arg-type]


async def test_a_sandbox_of_this_machine_is_asked_by_no_proxy(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async with site(says({"printed": "proxy"})) as proxy, site(says({"printed": "here"})) as here:
        monkeypatch.setenv("http_proxy", proxy.url)
        monkeypatch.delenv("no_proxy", raising=False)
        monkeypatch.delenv("NO_PROXY", raising=False)
        assert await bench(here).told(run_python, code="1") == "here"
    assert proxy.asked == []


@pytest.mark.parametrize(
    "address",
    ["http://sandbox.example/run", "http://10.0.0.5/", "ftp://127.0.0.1/", "sandbox.example",
     "https://user:secret1234@sandbox.example/"],
)  # fmt: skip
def test_code_and_key_leave_the_machine_only_by_tls(address: str) -> None:
    with pytest.raises(ValidationError, match="with https://"):
        Settings(_env_file=None, python_sandbox=address)


@pytest.mark.parametrize(
    "address", ["https://sandbox.example/run", "http://127.0.0.1:8081/", "http://localhost/", ""]
)
def test_this_machine_and_tls_are_taken(address: str) -> None:
    assert Settings(_env_file=None, python_sandbox=address).python_sandbox == address


def test_the_key_of_a_sandbox_is_a_secret_of_the_deployment() -> None:
    assert KEY in Settings(_env_file=None, python_sandbox_key=KEY).secrets
