"""A page of the web is read as text, whatever it holds, and never from a private address."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from aiohttp import web as served

from hands import Bench
from holdfast.activities.tools import web_fetch as module
from holdfast.activities.tools.web_fetch import web_fetch
from holdfast.activities.toolset import web
from sites import Handler, site

pytestmark = pytest.mark.anyio

PAGE = """<!doctype html><html><head><title>T</title><style>x{}</style></head><body>
<h1>Rate limits</h1><p>At most 5. See <a href="/more?a=1#part">more</a>, <a href="#top">top</a>,
<a href="javascript:x()">code</a> and <a href="http://[">bad</a>.</p>
<script>steal()</script><p hidden>hidden words</p></body></html>"""


@pytest.fixture(autouse=True)
def opened(monkeypatch: pytest.MonkeyPatch) -> None:
    """127.0.0.1, and nothing else of this machine, counts as public."""
    really: Callable[[str], bool] = web.is_public
    monkeypatch.setattr(web, "is_public", lambda each: each == "127.0.0.1" or really(each))


def answers(body: bytes | str, kind: str = "text/html", status: int = 200) -> Handler:
    content = body.encode() if isinstance(body, str) else body

    async def handle(request: served.BaseRequest) -> served.Response:
        return served.Response(body=content, status=status, headers={"Content-Type": kind})

    return handle


async def fetch(handler: Handler) -> tuple[str, bool]:
    """What a model is told of a page, and whether as an error."""
    async with site(handler) as here:
        result = await Bench().use(web_fetch, url=f"{here.url}/page")
    return result.text.replace(here.url, "http://site"), result.is_error


async def test_a_page_is_text_with_its_address_and_where_its_links_lead() -> None:
    text, failed = await fetch(answers(PAGE))
    assert not failed
    assert text == (
        "[http://site/page]\n# Rate limits\n"
        "At most 5. See more <http://site/more?a=1>, top, code and bad."
    )


@pytest.mark.parametrize(
    ("body", "kind", "said"),
    [
        ("plain", "text/plain", "plain"),
        ('{"a": 1}', "application/json", '{"a": 1}'),
        ("<rss/>", "application/rss+xml", "<rss/>"),
        ("Müller".encode("latin-1"), "text/plain", "Müller"),
        ("Müller".encode("latin-1"), "text/html; charset=latin-1", "Müller"),
        ("Müller", "text/plain; charset=no-such", "Müller"),
        ("", "text/html", "There is no text on this page."),
    ],
)
async def test_text_of_any_kind_and_encoding_is_shown(
    body: bytes | str, kind: str, said: str
) -> None:
    assert await fetch(answers(body, kind)) == (f"[http://site/page]\n{said}", False)


@pytest.mark.parametrize(
    ("body", "kind", "status", "why"),
    [
        (b"\x89PNG", "image/png", 200, "which is not text"),
        (b"MZ", "application/octet-stream", 200, "which is not text"),
        ("gone", "text/html", 404, "status 404"),
        ("ask", "text/html", 503, "status 503"),
        ("<div>" * 200_000, "text/html", 200, "nested more than"),
        (b"%PDF-1.7 broken", "application/pdf", 200, "not a PDF that can be read"),
    ],
    ids=str,
)
async def test_what_cannot_be_read_is_an_error_in_a_line(
    body: bytes | str, kind: str, status: int, why: str
) -> None:
    text, failed = await fetch(answers(body, kind, status))
    assert failed and why in text and "\n" not in text


async def test_of_a_page_without_end_the_beginning_is_read(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "PAGE_BYTES", 1 << 20)
    text, failed = await fetch(answers(b"<p>word</p>" * 200_000))
    assert not failed
    assert text.startswith("[http://site/page, the first 1 MiB of it]\nword\nword\n")


async def test_many_links_and_long_ones_cost_little() -> None:
    link = f'<a href="/{"x" * 400}">l</a>'
    text, failed = await fetch(answers(f'<a href="/{"y" * 5_000}">long</a>' + link * 10_000))
    assert not failed and "yyy" not in text


async def test_a_private_address_is_refused_with_the_reason() -> None:
    said = await Bench().refused(web_fetch, url="http://169.254.169.254/latest/meta-data")
    assert "not of the public web" in said
