"""Search the web by a provider that the deployment has a key for."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Annotated, Any

from pydantic import Field, JsonValue

from holdfast.activities.toolset.tool import Here, Result, ToolError, tool
from holdfast.activities.toolset.web import call_service
from holdfast.text import one_line

SETTING = "web_search"
BRAVE = "https://api.search.brave.com/res/v1/web/search"
TAVILY = "https://api.tavily.com/search"
ANSWER_BYTES = 4 * 1024 * 1024
MOST = 20
SNIPPET_LETTERS = 600
"""Characters of what a provider says of one page; its title and address have a third of it each."""


@dataclass(frozen=True)
class Question:
    """One HTTP request to a provider."""

    method: str
    url: str
    headers: Mapping[str, str]
    params: Mapping[str, str] | None = None
    json: JsonValue = None


@dataclass(frozen=True)
class Provider:
    """One kind of search service: how it is asked, and where its answers stand."""

    question: Callable[[str, str, int], Question]
    """(its key or address, the query, how many pages are wanted) -> the request."""
    pages: Callable[[Any], Any]
    snippet: str
    """The field of a page that says what stands there."""
    date: str
    """The field of a page that says when it was written, where the provider knows."""


PROVIDERS = {
    "brave": Provider(
        lambda key, query, count: Question(
            "GET", BRAVE, {"X-Subscription-Token": key}, {"q": query, "count": str(count)}
        ),
        lambda answer: answer["web"]["results"],
        "description",
        "page_age",
    ),
    "tavily": Provider(
        lambda key, query, count: Question(
            "POST", TAVILY, {"Authorization": f"Bearer {key}"}, None,
            {"query": query, "max_results": count},
        ),
        lambda answer: answer["results"],
        "content",
        "published_date",
    ),
    "searxng": Provider(
        lambda url, query, _: Question(
            "GET", f"{url.rstrip('/')}/search", {}, {"q": query, "format": "json"}
        ),
        lambda answer: answer["results"],
        "content",
        "publishedDate",
    ),
}  # fmt: skip


@tool(
    seconds=45,
    reads=(),
    needs=(SETTING,),
    sends="the search service that HOLDFAST_WEB_SEARCH names",
    extra="web",
)
async def web_search(
    here: Here,
    query: Annotated[str, Field(min_length=1, max_length=400)],
    count: Annotated[int, Field(ge=1, le=MOST, description="How many pages")] = 10,
) -> Result:
    """Search the web. Each page is told with its title, its address, its date where that is known,
    and a few words of it; read it with web_fetch before you rely on what it says.
    """
    name, _, key = here.setting(SETTING).partition(":")
    provider = PROVIDERS[name]
    question = provider.question(key, query, count)
    status, content = await call_service(
        question.method,
        question.url,
        headers={"Accept": "application/json", **question.headers},
        params=question.params,
        json=question.json,
        most=ANSWER_BYTES,
    )
    if status != 200:
        raise ToolError(f"{name} refused to search (status {status}){MEANING.get(status, '')}")
    pages = _pages(provider, name, content)[:count]
    return Result(
        "\n\n".join(map(_render, pages)) or "No page was found.", data=[{**each} for each in pages]
    )


MEANING = {
    401: ": its key is wrong; whoever runs this deployment must correct it",
    403: ": its key is not allowed to, or its JSON format is not enabled",
    429: ": it was asked too often; try again later, or with fewer searches",
}


def _pages(provider: Provider, name: str, content: bytes) -> list[dict[str, str]]:
    """Return title, address and words of each page. Raise ToolError for an answer of another
    shape.
    """
    try:
        found = [
            {
                "title": one_line(str(each.get("title") or ""))[: SNIPPET_LETTERS // 3],
                "url": one_line(str(each["url"]))[:2_000],
                "date": one_line(str(each.get(provider.date) or ""))[:40],
                "text": one_line(str(each.get(provider.snippet) or ""))[:SNIPPET_LETTERS],
            }
            for each in provider.pages(json.loads(content))
        ]
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
        raise ToolError(f"{name} answered something that is not a list of pages") from error
    return [each for each in found if each["url"].startswith(("http://", "https://"))]


def _render(page: Mapping[str, str]) -> str:
    return "\n".join(filter(None, (page["title"], page["url"], page["date"], page["text"])))
