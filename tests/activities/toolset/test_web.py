"""Only the public web is asked, whatever an address, a name or a redirect says."""

from __future__ import annotations

import asyncio
import contextlib
import gzip
import inspect
import ipaddress
import os
import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from aiohttp import web as served
from aiohttp.abc import AbstractResolver, ResolveResult

from holdfast.activities.toolset import web
from holdfast.activities.toolset.tool import ToolError
from sites import site

pytestmark = pytest.mark.anyio

LIMIT = 100_000
really_public = web.is_public


async def hello(request: served.BaseRequest) -> served.Response:
    return served.Response(text="hello", content_type="text/plain")


@pytest.fixture
def opened(monkeypatch: pytest.MonkeyPatch) -> None:
    """127.0.0.1, and nothing else of this machine, counts as public."""
    monkeypatch.setattr(web, "is_public", lambda each: each == "127.0.0.1" or really_public(each))


INSIDE = [
    "127.0.0.1", "127.8.8.8", "10.0.0.1", "172.16.0.1", "172.31.255.255", "192.168.1.1",
    "169.254.169.254", "100.64.0.1", "0.0.0.0", "224.0.0.1", "239.1.1.1", "255.255.255.255",
    "192.0.2.1", "198.18.0.1", "240.0.0.1", "192.0.0.8", "192.0.0.192", "168.63.129.16",
    "192.88.99.1", "192.88.99.255", "100.100.100.200", "198.19.255.255", "198.51.100.7",
    "203.0.113.7", "192.31.196.1", "192.52.193.1", "192.175.48.1", "0.1.2.3",
    "3fff::1", "3fff:fff:ffff::1", "2001::1", "2001:1::1", "2001:2::1", "2001:20::1",
    "2001:1ff:ffff::1", "2620:4f:8000::1", "100::1", "5f00::1", "4000::1", "1fff::1",
    "::ffff:168.63.129.16", "::ffff:192.0.0.192", "::ffff:c058:6301", "64:ff9b::a83f:8110",
    "64:ff9b:1::a00:1", "64:ff9b:1:ffff::1", "2002:a83f:8110::1", "2002:a00:1::",
    "2001:0:a00:1::", "::10.0.0.1", "0:0:0:0:ffff:0:10.0.0.1",
    "::", "::1", "::ffff:127.0.0.1", "::ffff:10.0.0.1", "::127.0.0.1", "fe80::1",
    "fe80::1%eth0", "fc00::1", "fd00:ec2::254", "ff02::1", "64:ff9b::7f00:1", "64:ff9b:1::1",
    "2002:7f00:1::1", "2001:0:4136:e378::1", "2001:db8::1", "fec0::1",
]  # fmt: skip


def test_addresses_of_no_public_web_are_none() -> None:
    assert [each for each in INSIDE if web.is_public(each)] == []


PUBLIC = [
    "1.1.1.1", "93.184.215.14", "2606:4700:4700::1111", "168.63.129.15", "168.63.129.17",
    "192.0.1.1", "192.88.98.255", "192.88.100.0", "100.63.255.255", "100.128.0.0",
    "223.255.255.255", "2001:200::1", "2001:4860:4860::8888", "2003::1", "3ffe::1",
    "2620:4f::1", "::ffff:1.1.1.1",
]  # fmt: skip


def test_public_addresses_are_public() -> None:
    assert [each for each in PUBLIC if not web.is_public(each)] == []


def on_this_machine() -> list[str]:
    """Each version of Python that is to be had here."""
    names = [f"python3.{minor}" for minor in range(11, 20)]
    places = [Path.home() / ".pyenv" / "versions", *map(Path, os.get_exec_path())]
    found = [each for name in names for place in places for each in place.glob(f"*/bin/{name}")]
    found += [each for name in names for place in places for each in place.glob(name)]
    works = (
        each for each in found if not subprocess.run([each, "-V"], capture_output=True).returncode
    )
    return [*dict.fromkeys(map(str, [sys.executable, *works]))]


@pytest.mark.parametrize("python", on_this_machine())
def test_every_python_draws_the_same_line(python: str) -> None:
    source = Path(web.__file__).read_text("utf-8")
    lists = source[source.index("GLOBAL_V6 =") : source.index("class NotPublic")]
    tried = [str(edge) for each in (*web.SPECIAL_V4, *web.SPECIAL_V6) for edge in edges(each)]
    tried += [f"::ffff:{each}" for each in tried if ":" not in each]
    tried += ["64:ff9b::a00:1", "64:ff9b:1::1", "::1", "5f00::1", "2001:0:a00:1::"]
    code = (
        "from __future__ import annotations\nimport ipaddress, sys\n"
        f"{lists}\n{inspect.getsource(really_public)}\n"
        f"print([is_public(each) for each in {tried!r}])"
    )
    done = subprocess.run([python, "-I", "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == str([really_public(each) for each in tried])


def edges(network: Any) -> Iterator[Any]:
    """The first and the last address of a network, and the neighbours of both."""
    for each in (network.network_address, network.broadcast_address):
        for step in (-1, 0, 1):
            with contextlib.suppress(ipaddress.AddressValueError, ValueError):
                yield each + step


@pytest.mark.parametrize(
    "host", ["127.0.0.1", "localhost", "[::ffff:127.0.0.1]", "0x7f.1", "0.0.0.0"]
)
async def test_this_machine_is_not_asked_by_any_of_its_names(host: str) -> None:
    async with site(hello) as here:
        with pytest.raises(ToolError, match="not of the public web"):
            await web.fetch(here.url.replace("127.0.0.1", host), most=LIMIT)
    assert here.asked == []


@pytest.mark.parametrize("host", ["127.1", "2130706433", "0177.0.0.1"])
async def test_addresses_in_odd_numbers_reach_nothing(host: str) -> None:
    async with site(hello) as here:
        with pytest.raises(ToolError):
            await web.fetch(here.url.replace("127.0.0.1", host), most=LIMIT)
    assert here.asked == []


class Names(AbstractResolver):
    """Says of a name what a test wants it to be."""

    def __init__(self, *addresses: str) -> None:
        self._addresses = addresses
        self.looked_up = 0

    async def resolve(
        self, host: str, port: int = 0, family: socket.AddressFamily = socket.AF_INET
    ) -> list[ResolveResult]:
        self.looked_up += 1
        return [
            ResolveResult(
                hostname=host, host=each, port=port, family=socket.AF_INET, proto=0, flags=0
            )
            for each in self._addresses
        ]

    async def close(self) -> None:
        pass


async def test_a_public_name_that_leads_to_a_private_address_is_not_asked() -> None:
    async with site(hello) as here:
        port = here.port
        names = Names("127.0.0.1")
        with pytest.raises(ToolError, match="not of the public web"):
            await web.fetch(f"http://public.example:{port}/", most=LIMIT, resolver=names)
    assert here.asked == [] and names.looked_up == 1


async def test_a_name_is_looked_up_once_and_what_was_found_is_asked(opened: None) -> None:
    async with site(hello) as here:
        port = here.port
        names = Names("127.0.0.1")
        answer = await web.fetch(f"http://public.example:{port}/", most=LIMIT, resolver=names)
    assert answer.content == b"hello" and names.looked_up == 1


async def test_a_redirect_is_followed_and_where_it_ended_is_told(opened: None) -> None:
    async def move(request: served.BaseRequest) -> served.Response:
        if request.path == "/end":
            return await hello(request)
        raise served.HTTPFound("/end")

    async with site(move) as here:
        answer = await web.fetch(f"{here.url}/start", most=LIMIT)
    assert answer.url == f"{here.url}/end" and answer.content == b"hello"
    assert here.paths == ["/start", "/end"]


@pytest.mark.parametrize(
    ("target", "why"),
    [
        ("http://127.0.0.2:{port}/", "not of the public web"),
        ("//127.0.0.2:{port}/", "not of the public web"),
        ("http://169.254.169.254/latest/meta-data", "not of the public web"),
        ("file:///etc/passwd", "not an address of a page"),
        ("gopher://127.0.0.1/", "not an address of a page"),
        ("http://user:word@127.0.0.1/", "a user or a password"),
        ("http://[", "cannot be reached"),
    ],
)
async def test_a_redirect_into_what_is_not_public_is_not_followed(
    target: str, why: str, opened: None
) -> None:
    async with site(hello, "127.0.0.2") as inside:
        port = inside.port

        async def move(request: served.BaseRequest) -> served.Response:
            return served.Response(status=302, headers={"Location": target.format(port=port)})

        async with site(move) as here:
            with pytest.raises(ToolError, match=why):
                await web.fetch(here.url, most=LIMIT)
        assert len(here.asked) == 1
    assert inside.asked == []


async def test_endless_redirects_end(opened: None) -> None:
    async def move(request: served.BaseRequest) -> served.Response:
        raise served.HTTPFound(f"/{len(here.asked)}")

    async with site(move) as here:
        with pytest.raises(ToolError, match="redirects in a row"):
            await web.fetch(here.url, most=LIMIT)
    assert len(here.asked) == web.REDIRECTS + 1


async def test_a_page_without_end_and_a_bomb_are_cut(opened: None) -> None:
    async def endless(request: served.BaseRequest) -> served.StreamResponse:
        response = served.StreamResponse()
        await response.prepare(request)
        while True:
            await response.write(b"x" * 10_000)

    packed = gzip.compress(bytes(50 << 20))

    async def bomb(request: served.BaseRequest) -> served.Response:
        return served.Response(body=packed, headers={"Content-Encoding": "gzip"})

    for handler in (endless, bomb):
        async with site(handler) as here:
            answer = await web.fetch(here.url, most=LIMIT)
        assert answer.cut and len(answer.content) == LIMIT


async def test_a_server_that_is_silent_or_drips_is_given_up(opened: None) -> None:
    async def silent(request: served.BaseRequest) -> served.Response:
        await asyncio.sleep(60)
        return served.Response()

    async def drips(request: served.BaseRequest) -> served.StreamResponse:
        response = served.StreamResponse()
        await response.prepare(request)
        while True:
            await response.write(b"x")
            await asyncio.sleep(0.05)

    for handler in (silent, drips):
        async with site(handler) as here:
            with pytest.raises(ToolError, match="did not answer within"):
                await web.fetch(here.url, most=LIMIT, seconds=0.5)


@pytest.mark.parametrize(
    "url",
    ["", "page", "//x", "ftp://x/", "javascript:1", "http://", "http:///x", "http://x:99999/",
     "http://u:p@x/", "http://u@x/", "http://" + "x" * 3_000],
)  # fmt: skip
async def test_what_is_no_address_of_a_page_is_refused(url: str) -> None:
    with pytest.raises(ToolError) as error:
        await web.fetch(url, most=LIMIT)
    assert "\n" not in str(error.value) and len(str(error.value)) < 400


async def test_a_proxy_of_the_environment_is_not_a_way_around(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async with site(hello) as proxy:
        monkeypatch.setenv("http_proxy", proxy.url)
        with pytest.raises(ToolError, match="not of the public web"):
            await web.fetch("http://10.0.0.1/", most=LIMIT)
    assert proxy.asked == []


async def test_a_service_of_the_deployment_may_be_on_this_machine_and_moves_nowhere() -> None:
    async def move(request: served.BaseRequest) -> served.Response:
        raise served.HTTPFound("/elsewhere")

    async with site(move) as here:
        status, _ = await web.call_service("GET", here.url, headers={"Key": "secret"}, most=LIMIT)
    assert status == 302 and here.paths == ["/"]
