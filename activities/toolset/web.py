"""Ask addresses of the public web that a model or a page named, and no others.

A name is looked up once, and what it was found to be is what is connected to: the check stands
where the socket is made, so that neither a name that changes nor an address in numbers gets past.
"""

from __future__ import annotations

import asyncio
import ipaddress
import socket
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from holdfast.activities.toolset.tool import ToolError
from holdfast.deployment.address import is_loopback
from holdfast.text import one_line

if TYPE_CHECKING:
    # Loaded once something is asked: a tenth of what every command's start would cost.
    import aiohttp
    from aiohttp.abc import AbstractResolver
    from yarl import URL

SECONDS = 20.0
"""Time limit of one page, redirects included."""
LONGEST_URL = 2_000
REDIRECTS = 5
CHUNK = 64 * 1024
AGENT = "holdfast (a program that reads pages for its user)"
MOVED = (301, 302, 303, 307, 308)
GLOBAL_V6 = ipaddress.IPv6Network("2000::/3")
"""IPv6 addresses of the public web. NAT64 (64:ff9b::/96, 64:ff9b:1::/48) and the compatible ones
carry an address of version 4 inside; the rest are local, groups, or unassigned.
"""
SPECIAL_V4 = tuple(
    map(
        ipaddress.IPv4Network,
        (
            "0.0.0.0/8",
            "10.0.0.0/8",
            "100.64.0.0/10",
            "127.0.0.0/8",
            "169.254.0.0/16",
            "172.16.0.0/12",
            "192.0.0.0/24",
            "192.0.2.0/24",
            "192.31.196.0/24",
            "192.52.193.0/24",
            "192.88.99.0/24",
            "192.168.0.0/16",
            "192.175.48.0/24",
            "198.18.0.0/15",
            "198.51.100.0/24",
            "203.0.113.0/24",
            "224.0.0.0/4",
            "240.0.0.0/4",
            # In no registry: what Azure tells each of its machines about itself stands here.
            "168.63.129.16/32",
        ),
    )
)
SPECIAL_V6 = tuple(
    map(
        ipaddress.IPv6Network,
        # Protocols with Teredo among them, documentation twice, 6to4, and a sink for names.
        ("2001::/23", "2001:db8::/32", "2002::/16", "2620:4f:8000::/48", "3fff::/20"),
    )
)
"""Both as the registries of IANA have them, iana-ipv4-special-registry and
iana-ipv6-special-registry, with groups (multicast). The list that Python carries differs from one
version to the next, and takes some of these for public in each.
"""


class NotPublic(OSError):
    """An address is not of the public web; nothing was sent to it."""


@dataclass(frozen=True)
class Answer:
    """Answer of an address, after its redirects."""

    url: str
    status: int
    kind: str
    """Media type, such as text/html."""
    charset: str
    content: bytes
    cut: bool
    """True if there was more than the limit."""


def is_public(address: str) -> bool:
    """True if anybody may be sent to an IP address."""
    found = ipaddress.ip_address(address.partition("%")[0])
    if isinstance(found, ipaddress.IPv6Address):
        if found.ipv4_mapped is not None:
            return is_public(str(found.ipv4_mapped))
        return found in GLOBAL_V6 and not any(found in each for each in SPECIAL_V6)
    return not any(found in each for each in SPECIAL_V4)


def open_guarded(info: aiohttp.AddrInfoType) -> socket.socket:
    """Return a socket to this address. Raise NotPublic if nothing may connect to it."""
    family, kind, protocol, _, target = info
    if not is_public(str(target[0])):
        raise NotPublic("this address is not of the public web")
    return socket.socket(family, kind, protocol)


def connector(resolver: AbstractResolver | None = None) -> aiohttp.TCPConnector:
    """Return a connector that makes connections to public addresses only."""
    import aiohttp

    return aiohttp.TCPConnector(
        socket_factory=open_guarded, resolver=resolver, use_dns_cache=False, limit=4
    )


async def fetch(
    url: str, *, most: int, resolver: AbstractResolver | None = None, seconds: float = SECONDS
) -> Answer:
    """Return the first `most` bytes of a page. Raise ToolError, in a line, if it does not come, or
    if any address on the way is not public.
    """
    import aiohttp

    session = aiohttp.ClientSession(
        connector=connector(resolver),
        trust_env=False,
        cookie_jar=aiohttp.DummyCookieJar(),
        headers={"User-Agent": AGENT, "Accept": "text/html, text/*;q=0.9, */*;q=0.5"},
    )
    try:
        async with asyncio.timeout(seconds), session:
            return await _follow(session, check_url(url), most)
    except TimeoutError:
        raise ToolError(f"{_quote_url(url)} did not answer within {seconds:g} s") from None
    except (aiohttp.ClientError, OSError, ValueError) as error:
        raise ToolError(f"{_quote_url(url)} {explain(error)}") from None


def check_url(url: str) -> URL:
    """Return the address of a page. Raise ToolError if it is not one, or carries a password."""
    from yarl import URL

    if len(url) > LONGEST_URL:
        raise ToolError(f"an address has at most {LONGEST_URL:,} letters")
    try:
        found = URL(url)
    except ValueError:
        raise ToolError(f"{_quote_url(url)} is not an address of a page") from None
    if found.scheme not in ("http", "https") or not found.host:
        raise ToolError(
            f"{_quote_url(url)} is not an address of a page; give it with http:// or https://"
        )
    if found.user is not None or found.password is not None:
        raise ToolError("an address with a user or a password in it is not asked")
    return found


async def _follow(session: aiohttp.ClientSession, url: URL, most: int) -> Answer:
    from yarl import URL

    for _ in range(REDIRECTS + 1):
        # By hand, so that each place on the way is checked as the first one was.
        async with session.get(url, allow_redirects=False) as response:
            target = response.headers.get("Location", "")
            if response.status not in MOVED or not target:
                return await _read(response, most)
            url = check_url(str(url.join(URL(target))))
    raise ToolError(
        f"more than {REDIRECTS} redirects in a row, the last one to {_quote_url(str(url))}"
    )


async def _read(response: aiohttp.ClientResponse, most: int) -> Answer:
    content = bytearray()
    async for part in response.content.iter_chunked(CHUNK):
        content += part
        if len(content) > most:
            break
    return Answer(
        url=str(response.url),
        status=response.status,
        kind=response.content_type,
        charset=response.charset or "",
        content=bytes(content[:most]),
        cut=len(content) > most,
    )


def explain(error: Exception) -> str:
    """Return why an address was not reached, for whoever named it."""
    if leads_inside(error):
        return "leads to an address that is not of the public web, and is not asked"
    return f"cannot be reached ({type(error).__name__})"


def leads_inside(error: Exception) -> bool:
    """True if an address was not reached because it is not of the public web."""
    causes: list[BaseException | None] = [error, error.__cause__, error.__context__]
    causes += [getattr(error, "os_error", None)]
    return any(isinstance(each, NotPublic) for each in causes)


def _quote_url(url: str) -> str:
    line = one_line(url)
    return repr(line if len(line) <= 200 else f"{line[:200]}…")


async def call_service(
    method: str,
    url: str,
    *,
    headers: Mapping[str, str],
    most: int,
    params: Mapping[str, str] | None = None,
    json: object = None,
    seconds: float = SECONDS,
    named: str = "",
) -> tuple[int, bytes]:
    """Return status and content of a service that the deployment itself names, perhaps on its own
    machine, and has a key for. No redirect is followed, as the key would go along, and no proxy is
    asked for this machine. Raise ToolError if it cannot be reached, or says more than `most` bytes;
    `named` is what a model knows it by, else its host.
    """
    import aiohttp
    from yarl import URL

    name, direct = named or URL(url).host, is_loopback(url)
    try:
        async with (
            asyncio.timeout(seconds),
            aiohttp.ClientSession(
                cookie_jar=aiohttp.DummyCookieJar(), trust_env=not direct
            ) as session,
            session.request(
                method, url, headers=headers, params=params, json=json, allow_redirects=False
            ) as response,
        ):
            answer = await _read(response, most)
    except TimeoutError:
        raise ToolError(f"{name} did not answer within {seconds:g} s") from None
    except (aiohttp.ClientError, OSError, ValueError) as error:
        raise ToolError(f"{name} cannot be reached ({type(error).__name__})") from None
    if answer.cut:
        raise ToolError(f"{name} answered more than {most >> 20} MiB")
    return answer.status, answer.content
