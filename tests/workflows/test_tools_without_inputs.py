"""What agents of the shipped roles can do without anything to read: calculate, query a table that
stands in their prompt, format, and look things up on the web.
"""

from __future__ import annotations

import json
from typing import Any

import pytest
from aiohttp import web as served

from conftest import Runs
from holdfast.activities.asking.prices import Prices
from holdfast.activities.claude.adapter import Claude
from holdfast.activities.toolset.serving import serve
from holdfast.contracts import Capabilities, Goal, GoalInput, Report
from holdfast.deployment.settings import Settings
from holdfast.ports import ModelRequest
from holdfast.simulator.script import Part, Rule, Script
from holdfast.simulator.server import Simulator
from scripted import ScriptedModel, calls, plans, ready, subtask, synthesizes, works
from shipped import shipped_catalogue
from sites import site

pytestmark = pytest.mark.anyio
SALES = "region,amount\n" + "".join(f"North,{each}.10\nSouth,{each}.20\n" for each in range(100))
PAGE = {
    "title": "Rates",
    "url": "https://rates.example/2026",
    "content": "The rate is 4 %.",
    "publishedDate": "2026-05-01",
}


def goal(*inputs: GoalInput, **fields: Any) -> Goal:
    base = {"text": "Which region sold more?", "use_models": True, "inputs": inputs}
    return Goal.model_validate({**base, **fields})


async def run(runs: Runs, wanted: Goal, model: ScriptedModel, **more: Any) -> Report:
    """A run with the roles as they ship."""
    report = await runs.run(wanted, model, catalogue=shipped_catalogue(), **more)
    assert report.status == "complete", report.gaps
    return report


def tools_of(request: ModelRequest) -> set[str]:
    return {str(each["name"]) for each in request.tools} - {"read_result"}


def results(model: ScriptedModel, place: int) -> str:
    return json.dumps(model.requests[place].messages[-1]["content"])


async def test_an_analyst_with_a_csv_in_its_prompt_queries_it_and_calculates(runs: Runs) -> None:
    (runs.folder / "sales.csv").write_text(SALES)
    given = GoalInput(name="sales", kind="file", value=str(runs.folder / "sales.csv"))
    sql = "select region, sum(amount::decimal(10,2)) total from sales group by 1 order by 1"
    looks = calls(
        ("query_data", {"sources": ["sales"], "sql": sql}),
        ("calculate", {"expression": "4970 - 4960"}),
        ("run_python", {"code": "print(len(inputs['sales'].splitlines()))", "inputs": ["sales"]}),
    )
    model = ScriptedModel(
        {
            # Of an input with so many rows a planner is asked whether to map it.
            "plan": [{**plans(subtask("t1", role="analyst", inputs=["sales"])), "maps": []}],
            "t1": [looks, works("South, by 10.")],
            "synthesize": [synthesizes("South [t1].")],
        }
    )
    report = await run(runs, goal(given), model)
    planner, first = model.requests[0], model.requests[1]
    (menu,) = [line for line in planner.prompt.splitlines() if line.startswith("- analyst ")]
    assert "Its tools: calculate, run_python; query_data for inputs that they read." in menu
    assert tools_of(first) == {"calculate", "run_python", "query_data"}
    assert SALES.splitlines()[5] in json.dumps(first.messages), "it is enclosed all the same"
    said = results(model, 2)
    assert "North,4960.00" in said and "South,4970.00" in said and "201" in said
    assert report.findings[0].tool_calls == 3 and not report.findings[0].failed_calls


@pytest.mark.long
async def test_an_analyst_without_any_input_calculates_and_may_answer_at_once(runs: Runs) -> None:
    model = ScriptedModel(
        {
            "t1": [calls(("calculate", {"expression": "17 * 23"})), works("391")],
            "t2": [works("2")],
            "synthesize": [synthesizes("391 [t1], 2 [t2].")],
        }
    )
    plan = ready(subtask("t1"), subtask("t2"))
    report = await run(runs, goal(plan=plan), model)
    agents = [each for each in model.requests if each.tools]
    assert all(tools_of(each) == {"calculate", "run_python"} for each in agents)
    assert [(each.turns, each.tool_calls) for each in report.findings] == [(2, 1), (1, 0)]
    assert {each.max_output for each in agents} == {8_000}, "as much as one call would have"


async def test_a_researcher_with_nothing_to_read_is_asked_once(runs: Runs) -> None:
    model = ScriptedModel({"t1": [works("one")], "synthesize": [synthesizes("One [t1].")]})
    plan = ready(subtask("t1", role="researcher"))
    report = await run(runs, goal(plan=plan), model)
    assert not model.requests[0].tools and report.findings[0].turns == 0


async def test_a_writer_puts_in_the_exact_text_that_its_formatter_returns(runs: Runs) -> None:
    wrong = {"form": "markdown", "columns": ["city", "price"], "rows": [["Ulm", 4], ["Bonn"]]}
    right = {**wrong, "rows": [["Ulm", 4], ["Bonn | Rhine", 5.5]]}
    table = "| city | price |\n| --- | --- |\n| Ulm | 4 |\n| Bonn \\| Rhine | 5.5 |"
    model = ScriptedModel(
        {
            "t1": [
                calls(("format_data", wrong)),
                calls(("format_data", right), prefix="v"),
                works(table),
            ],
            "synthesize": [synthesizes("As in [t1].")],
        }
    )
    report = await run(runs, goal(plan=ready(subtask("t1", role="writer"))), model)
    assert tools_of(model.requests[0]) == {"format_data"}
    assert "rows[1] and the columns differ in length: 1 and 2" in results(model, 1)
    assert json.dumps(table)[1:-1] in results(model, 2).replace("\\\\\\\\|", "\\\\|")
    assert report.findings[0].content == table


# ---------------------------------------------------------------- the web


def looked_up(url: str) -> dict[str, Any]:
    found = {"title": "Rates", "snippet": "4 %", "url": url, "date": "2026-05-01"}
    data = {"query": "the rate", "results": [found], "not_found": ["the rate of 2027"]}
    return works(data, sources=[url])


async def test_a_free_goal_is_answered_from_pages_that_a_search_gave(
    runs: Runs, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def answer(_: served.BaseRequest) -> served.Response:
        return served.json_response({"results": [PAGE]})

    url = PAGE["url"]
    model = ScriptedModel(
        {
            "plan": [plans(subtask("t1", role="web-researcher"))],
            "t1": [calls(("web_search", {"query": "rate"})), looked_up(url)],
            "synthesize": [synthesizes(f"4 %, says {url} [t1].")],
        }
    )
    async with site(answer) as here:
        monkeypatch.setenv("HOLDFAST_WEB_SEARCH", f"searxng:{here.url}")
        report = await run(runs, goal(), model)
    (menu,) = [each for each in model.requests[0].prompt.splitlines() if "web-researcher" in each]
    assert "Its tools: web_search, web_fetch. Its finding is JSON: query, results" in menu
    assert url in results(model, 2) and "2026-05-01" in results(model, 2)
    found = report.findings[0]
    assert found.data["results"] == [
        {"title": "Rates", "snippet": "4 %", "url": url, "date": "2026-05-01"}
    ]
    assert found.sources == (url,) and url in report.answer


async def test_it_searches_with_the_endpoints_own_tools_where_it_has_them(runs: Runs) -> None:
    async def of_endpoint() -> Capabilities:
        return Capabilities(caching=True, web=True)

    asked: list[ModelRequest] = []
    prices = Prices.of(Settings(_env_file=None))

    class Recorded(Claude):
        async def ask(self, request: ModelRequest) -> Any:
            asked.append(request)
            return await super().ask(request)

    rules = (
        Rule(call="plan", plan=(Part(role="web-researcher"),)),
        Rule(call="take_turn", searches=2),
    )
    async with Simulator(Script(seed=7, rules=rules)) as simulator:
        model = Recorded(key="scripted", base_url=simulator.url, price=prices.price)
        report = await runs.run(
            goal(),
            model,
            catalogue=shipped_catalogue(),
            capabilities=of_endpoint,
            endpoint_web=True,
        )
        await model.aclose()
    assert report.status == "complete", report.gaps
    (turn,) = [each for each in asked if each.tools]
    kinds = {each["name"]: each.get("type", "ours") for each in turn.tools}
    assert kinds["web_search"].startswith("web_search_") and kinds["web_fetch"] != "ours"
    assert report.usage.searches == 2


def test_a_planner_is_offered_it_only_where_the_deployment_can_search_or_fetch() -> None:
    roles = shipped_catalogue().roles
    (card,) = [roles["web-researcher"].card]
    whys = {"web_search": "needs HOLDFAST_WEB_SEARCH", "web_fetch": "needs holdfast[web]"}

    def offered(*lacking: str) -> tuple[str, ...]:
        gone = {name: whys[name] for name in lacking}
        found = serve([card], (), card.tools, gone, use_models=True)
        return tuple(name for each in found.roles for name in each.tools)

    assert offered() == card.tools
    assert offered("web_search") == ("web_fetch", "read_result")
    assert offered("web_search", "web_fetch") == ()
