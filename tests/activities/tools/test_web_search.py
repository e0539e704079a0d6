"""The web is searched by the provider that is set, and what it answers is held to its shape."""

from __future__ import annotations

import json

import pytest
from aiohttp import web as served
from pydantic import ValidationError

from hands import Bench
from holdfast.activities.tools import web_search as module
from holdfast.activities.tools.web_search import web_search
from holdfast.deployment.settings import Settings
from holdfast.text.mistakes import mistakes
from sites import Handler, site

pytestmark = pytest.mark.anyio

PAGES = [
    {
        "title": "One",
        "url": "https://one.example/",
        "publishedDate": "2026-05-01",
        "content": "about one",
        "description": "of it",
    },
    {"title": None, "url": "https://two.example/", "content": None, "description": None},
    {"title": "Bad", "url": "javascript:alert(1)", "content": "x", "description": "x"},
]


def answers(content: object, status: int = 200) -> Handler:
    async def handle(request: served.BaseRequest) -> served.Response:
        body = content if isinstance(content, bytes) else json.dumps(content).encode()
        return served.Response(body=body, status=status)

    return handle


def bench(setting: str) -> Bench:
    return Bench(settings={"web_search": setting})


async def test_a_searxng_of_ones_own_is_asked_on_this_machine() -> None:
    async with site(answers({"results": PAGES})) as here:
        result = await bench(f"searxng:{here.url}/").use(web_search, query="rate limit & more")
    assert here.asked[0].path == "/search"
    assert dict(here.asked[0].query) == {"q": "rate limit & more", "format": "json"}
    assert result.text == "One\nhttps://one.example/\n2026-05-01\nabout one\n\nhttps://two.example/"
    assert result.data == [
        {
            "title": "One",
            "url": "https://one.example/",
            "date": "2026-05-01",
            "text": "about one",
        },
        {"title": "", "url": "https://two.example/", "date": "", "text": ""},
    ]


async def test_brave_is_asked_with_its_key(monkeypatch: pytest.MonkeyPatch) -> None:
    async with site(answers({"web": {"results": PAGES}})) as here:
        monkeypatch.setattr(module, "BRAVE", f"{here.url}/res")
        said = await bench("brave:key").told(web_search, query="q", count=1)
    (request,) = here.asked
    assert request.headers["X-Subscription-Token"] == "key"
    assert dict(request.query) == {"q": "q", "count": "1"}
    assert said == "One\nhttps://one.example/\nof it"


async def test_tavily_is_asked_with_its_key(monkeypatch: pytest.MonkeyPatch) -> None:
    bodies = []

    async def handle(request: served.BaseRequest) -> served.Response:
        bodies.append(await request.read())
        return served.json_response({"results": PAGES})

    async with site(handle) as here:
        monkeypatch.setattr(module, "TAVILY", here.url)
        await bench("tavily:key").told(web_search, query="q")
    (request,) = here.asked
    assert request.method == "POST" and request.headers["Authorization"] == "Bearer key"
    assert json.loads(bodies[0]) == {"query": "q", "max_results": 10}


@pytest.mark.parametrize(
    ("content", "status", "why"),
    [
        ({}, 401, "its key is wrong"),
        ({}, 403, "not allowed"),
        ({}, 429, "asked too often"),
        ({}, 500, "status 500"),
        (b"", 302, "status 302"),
        (b"<html>", 200, "not a list of pages"),
        ({"results": 7}, 200, "not a list of pages"),
        ({"results": ["x"]}, 200, "not a list of pages"),
        ([], 200, "not a list of pages"),
        (b"[" * 100_000, 200, "not a list of pages"),
        (b" " * 5_000_000, 200, "more than 4 MiB"),
    ],
    ids=str,
)
async def test_what_a_provider_refuses_or_makes_up_is_an_error_in_a_line(
    content: object, status: int, why: str
) -> None:
    async with site(answers(content, status)) as here:
        said = await bench(f"searxng:{here.url}").refused(web_search, query="q")
    assert why in said


async def test_no_page_is_said_and_a_provider_that_is_not_there_too() -> None:
    async with site(answers({"results": []})) as here:
        said = await bench(f"searxng:{here.url}").told(web_search, query="q")
        assert said == "No page was found."
    assert "cannot be reached" in await bench(f"searxng:{here.url}").refused(web_search, query="q")


async def test_its_key_is_in_nothing_that_is_said() -> None:
    async with site(answers({"error": "key-4711"}, 401)) as here:
        said = await bench(f"searxng:{here.url}/?key-4711").refused(web_search, query="q")
    assert "4711" not in said
    assert web_search.needs == ("web_search",)


@pytest.mark.parametrize(
    "value", ["secret-key", "google:key", "brave: ", "searxng:key", "searxng:ftp://x", "tavily:ké"]
)
def test_a_setting_that_names_no_provider_is_refused_without_being_shown(value: str) -> None:
    with pytest.raises(ValidationError) as error:
        Settings(_env_file=None, web_search=value)
    (said,) = mistakes(error.value, "settings")
    assert "brave:KEY" in said or "searxng:http" in said
    assert value not in said


def test_the_key_of_a_provider_is_a_secret_of_the_deployment() -> None:
    assert "key-4711" in Settings(_env_file=None, web_search="brave:key-4711").secrets
