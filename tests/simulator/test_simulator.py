"""The scripted server: as strict as the API, deterministic, honest about being scripted."""

from __future__ import annotations

import asyncio
import json
import os
import re
import signal
import subprocess
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, Literal
from urllib.error import HTTPError
from urllib.request import Request, urlopen

import aiohttp
import anyio
import pytest
from hypothesis import given
from hypothesis import strategies as st

from holdfast.calls.kind import Answer
from holdfast.calls.plan import PlanAnswer, PlanMaterial, plan_prompt, to_plan
from holdfast.contracts import PinnedInput, RoleCard, Usage
from holdfast.deployment.settings import HOME
from holdfast.plans.validity import only_by_tools, problems
from holdfast.replaying.cassette import Cassette
from holdfast.simulator import answers, planning
from holdfast.simulator.answers import answer, call_of
from holdfast.simulator.limiter import Limiter
from holdfast.simulator.script import CALLS, Rule, Script, ScriptError, read_script
from holdfast.simulator.server import Simulator
from holdfast.simulator.wire import mistake
from parameters import rest_long

pytestmark = pytest.mark.anyio

MODEL = "claude-haiku-5-5"
HEADERS = {"Authorization": "Bearer scripted"}
CLAIM = {
    "type": "object",
    "properties": {
        "claim": {"type": "string"},
        "sources": {"type": "array", "items": {"type": "string"}},
    },
    "required": ["claim", "sources"],
    "additionalProperties": False,
}
CLOSED = {
    "type": "object",
    "properties": {"claims": {"type": "array", "items": CLAIM}},
    "required": ["claims"],
    "additionalProperties": False,
}


@pytest.mark.parametrize(
    ("module", "package"), rest_long([("simulator", "aiohttp"), ("holdfast.serving", "psutil")])
)
def test_a_program_without_its_packages_says_in_a_line_how_to_get_them(
    module: str, package: str
) -> None:
    starts = f"runpy.run_module({module!r}, run_name='__main__')"
    code = f"import runpy, sys; sys.modules[{package!r}] = None; {starts}"
    done = subprocess.run(
        (sys.executable, "-c", code), cwd=HOME, capture_output=True, text=True, check=False
    )
    assert done.returncode == 1
    said = f"{package} is not installed for {sys.executable}; run make setup"
    assert done.stderr.startswith(said) and done.stderr.count("\n") == 1, done.stderr


def body(**fields: Any) -> dict[str, Any]:
    messages = [{"role": "user", "content": "Say something."}]
    return {"model": MODEL, "max_tokens": 500, "messages": messages, **fields}


def asks(schema: dict[str, Any], **fields: Any) -> dict[str, Any]:
    return body(output_config={"format": {"type": "json_schema", "schema": schema}}, **fields)


@asynccontextmanager
async def serving(
    script: Script | None = None,
) -> AsyncIterator[tuple[Simulator, aiohttp.ClientSession]]:
    async with (
        Simulator(script) as simulator,
        aiohttp.ClientSession(simulator.url, headers=HEADERS) as session,
    ):
        yield simulator, session


async def post(
    session: aiohttp.ClientSession, request: Any, path: str = "/v1/messages", **options: Any
) -> tuple[int, Any]:
    async with session.post(path, json=request, **options) as response:
        assert response.headers["x-simulator"] == "scripted"
        assert response.headers["request-id"].startswith("req_scripted")
        return response.status, await response.json()


# ---------------------------------------------------------------- the wire


async def test_a_message_has_every_field_of_the_api_and_says_that_it_is_scripted() -> None:
    async with serving() as (_, session):
        status, message = await post(session, body())
    assert status == 200
    assert message["content"][0]["text"].startswith("(scripted)")
    assert message["id"].startswith("msg_scripted")
    assert message["stop_reason"] == "end_turn"
    assert {"type", "role", "model", "stop_sequence", "stop_details", "usage"} <= set(message)


async def test_a_stream_has_the_events_of_the_api_in_their_order() -> None:
    request = body(stream=True)
    async with serving() as (_, s), s.post("/v1/messages", json=request) as response:
        assert response.content_type == "text/event-stream"
        text = await response.text()
    names = re.findall(r"^event: (\w+)$", text, re.MULTILINE)
    data = [json.loads(line) for line in re.findall(r"^data: (.*)$", text, re.MULTILINE)]
    assert names == [each["type"] for each in data]
    assert list(dict.fromkeys(names)) == [
        "message_start",
        "ping",
        "content_block_start",
        "content_block_delta",
        "content_block_stop",
        "message_delta",
        "message_stop",
    ]
    assert data[0]["message"]["usage"]["output_tokens"] == 1
    assert data[0]["message"]["stop_reason"] is None


@pytest.mark.parametrize(
    ("wrong", "status", "said"),
    [
        ({"max_tokens": 0}, 400, "max_tokens"),
        ({"max_tokens": 200_000}, 400, "maximum allowed"),
        ({"temperature": 0}, 400, "temperature: Extra inputs are not permitted"),
        ({"model": "claude-9"}, 404, "model: claude-9"),
        ({"messages": []}, 400, "at least one message"),
        ({"messages": [{"role": "user", "content": " "}]}, 400, "non-empty"),
        ({"messages": [{"role": "system", "content": "x"}]}, 400, "messages.0.role"),
        ({"messages": [{"role": "assistant", "content": "{"}]}, 400, "prefill"),
        ({"system": [{"type": "text", "text": ""}]}, 400, "system"),
        ({"system": 3}, 400, "system"),
        ({"tool_choice": {"type": "any"}}, 400, "forced tool use"),
        ({"output_config": {"effort": "huge"}}, 400, "output_config.effort"),
        ({"output_config": {"format": {"type": "json"}}}, 400, "json_schema"),
    ],
)  # fmt: skip
async def test_what_the_api_refuses_is_refused(
    wrong: dict[str, Any], status: int, said: str
) -> None:
    async with serving() as (simulator, session):
        refused, error = await post(session, body(**wrong))
    assert refused == status
    assert said in error["error"]["message"]
    assert simulator.log.report()["requests"] == 0


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"additionalProperties": True}, "additionalProperties"),
        ({"properties": {"n": {"type": "integer", "minimum": 0}}}, "minimum"),
        ({"properties": {"t": {"type": "string", "maxLength": 9}}}, "maxLength"),
    ],
)
async def test_a_schema_that_structured_outputs_refuse_is_refused(
    change: dict[str, Any], said: str
) -> None:
    async with serving() as (_, session):
        status, error = await post(session, asks(CLOSED | change))
    assert status == 400
    assert said in error["error"]["message"]


async def test_a_tool_call_without_its_result_is_refused() -> None:
    call = {"type": "tool_use", "id": "toolu_1", "name": "grep", "input": {}}
    result = {"type": "tool_result", "tool_use_id": "toolu_1", "content": "found"}
    first = {"role": "user", "content": "x"}
    asked = {"role": "assistant", "content": [call]}
    async with serving() as (_, session):
        answered = [first, asked, {"role": "user", "content": [result]}]
        assert (await post(session, body(messages=answered)))[0] == 200
        status, error = await post(session, body(messages=[first, asked, first]))
    assert status == 400
    assert "toolu_1" in error["error"]["message"]


async def test_a_missing_or_wrong_key_is_refused() -> None:
    async with serving(Script(key="right")) as (_, session):
        assert (await post(session, body()))[0] == 401
        assert (await post(session, body(), headers={"Authorization": ""}))[0] == 401
        assert (await post(session, body(), headers={"Authorization": "Bearer right"}))[0] == 200


async def test_a_body_that_is_no_json_and_an_unknown_path_get_the_apis_errors() -> None:
    async with serving() as (_, session):
        async with session.post("/v1/messages", data=b"{") as response:
            assert response.status == 400
            assert (await response.json())["error"]["type"] == "invalid_request_error"
        assert (await post(session, body(), "/v1/complete"))[0] == 404


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=5),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3)
    ),
    max_leaves=8,
)
FIELDS = ("messages", "system", "output_config", "max_tokens", "tool_choice", "model")


@given(st.dictionaries(st.sampled_from(FIELDS), JSON))
def test_no_request_breaks_the_validation(fields: dict[str, Any]) -> None:
    status, said = mistake(body(**fields), (MODEL,))
    assert (status == 0) == (said == "")


async def test_tokens_are_counted_without_being_charged() -> None:
    async with serving() as (simulator, session):
        asked = {name: value for name, value in body().items() if name != "max_tokens"}
        status, counted = await post(session, asked, "/v1/messages/count_tokens")
        assert (await post(session, body(), "/v1/messages/count_tokens"))[0] == 400
        _, message = await post(session, body())
    assert (status, counted["input_tokens"]) == (200, message["usage"]["input_tokens"])
    assert simulator.log.report()["requests"] == 1


async def test_the_models_are_listed_with_their_capabilities() -> None:
    async with serving() as (_, session), session.get("/v1/models") as response:
        listed = (await response.json())["data"]
    assert MODEL in [each["id"] for each in listed]
    assert all(each["capabilities"]["structured_outputs"]["supported"] for each in listed)


# ---------------------------------------------------------------- answers


@pytest.mark.parametrize(("property", "call"), CALLS.items())
def test_every_call_is_told_by_its_property_and_answered_in_its_schema(
    property: str, call: str
) -> None:
    schema = {**CLOSED, "properties": {property: {"type": "string"}}, "required": [property]}
    assert call_of(schema) == call
    assert set(answer(schema, "x", Script(), None)) == {property}


PARTS = {
    part for each in Answer.__subclasses__() for part in each.model_json_schema().get("$defs", ())
}
"""What only stands within another answer."""
ASKED = [
    each
    for each in Answer.__subclasses__()
    if call_of(each.model_json_schema()) and each.__name__ not in PARTS
]


@pytest.mark.parametrize("flaw", [None, "low_confidence", "failed", "escalation"])
def test_every_answer_that_the_project_asks_for_is_filled(flaw: Any) -> None:
    assert len(ASKED) > 10
    for asked in ASKED:
        # What does not fit is an error that names the class.
        filled = answer(asked.model_json_schema(), "x", Script(), Rule(answer=flaw))
        asked.model_validate(filled)


def test_a_scripted_plan_uses_the_roles_inputs_and_limit_of_the_prompt() -> None:
    prompt = (
        "<goal>\nCompare three offers\n</goal>\n\nRoles you may assign:\n"
        "- researcher (haiku): finds\n- writer (sonnet): writes\n\n"
        "Inputs of the goal, by name:\n- offers: file, 900 bytes; it begins:\n…\n\n"
        "At most 4 subtasks."
    )
    filled = answer(PlanAnswer.model_json_schema(), prompt, Script(subtasks=9), None)
    plan = to_plan(PlanAnswer.model_validate(filled))
    assert [subtask.role for subtask in plan.subtasks] == ["researcher", "writer"] * 2
    assert {subtask.inputs for subtask in plan.subtasks} == {("offers",)}
    assert plan.subtasks[-1].depends_on == ("t1", "t2", "t3")
    assert "Compare three offers" in plan.subtasks[0].instruction


def test_a_scripted_plan_gives_each_input_to_a_role_that_can_read_it() -> None:
    read = ("list_files", "read_file")
    roles = [
        RoleCard(name="adviser", description="Advises", tier="haiku"),
        RoleCard(name="clerk", description="Lists. Its tools: none.", tier="haiku", tools=read),
        RoleCard(name="reader", description="Reads", tier="haiku", tools=(*read, "read_document")),
    ]
    digest = "0" * 64
    inputs = [
        PinnedInput(name="notes", kind="text", size=9, digest=digest, preview="x"),
        PinnedInput(name="reports", kind="folder", size=9, digest=digest),
        PinnedInput(name="code", kind="repository", size=9, digest=digest),
        PinnedInput(name="paper", kind="file", size=9, digest=digest, reader="read_document"),
    ]
    prompt = plan_prompt(PlanMaterial(goal="Compare", roles=tuple(roles), inputs=tuple(inputs)))
    filled = answer(PlanAnswer.model_json_schema(), prompt, Script(), None)
    plan = to_plan(PlanAnswer.model_validate(filled))
    assert {each.role: each.inputs for each in plan.subtasks} == {
        "reader": ("notes", "reports", "code", "paper"),
        "clerk": ("notes", "reports", "code"),
        "adviser": ("notes",),
    }
    assert plan.subtasks[0].role == "reader", "a plan of one subtask uses all inputs, too"
    names, unread = [each.name for each in inputs], only_by_tools(inputs)
    assert problems(plan, roles, names, 6, unread=unread) == ()


@pytest.mark.parametrize(
    ("pattern", "prompt", "found"),
    [
        (
            planning.ROLE,
            "plan",
            [("researcher", " finds"), ("analyst", " weighs"), ("sorter", " sorts")],
        ),
        (planning.INPUT, "plan", [("report", "file", "")]),
        (planning.LIMIT, "plan", ["6"]),
        (answers.GOAL, "plan", ["Compare two years"]),
        (answers.INSTRUCTION, "work", ["Find out everything about part t4"]),
        (answers.FINDING, "work", ["t1", "t2"]),
        (answers.FINDING, "synthesize", ["t1", "t2", "t3"]),
        (answers.FINDING, "judge", ["t1", "t2"]),
        (answers.REMARK, "verify", ["1"]),
    ],
)
def test_a_scripted_answer_reads_from_the_prompts_what_they_say(
    pattern: re.Pattern[str], prompt: str, found: list[str]
) -> None:
    text = (HOME / "tests" / "prompts" / f"{prompt}.txt").read_text("utf-8")
    assert pattern.findall(text.partition("======== user ========")[2]) == found


@pytest.mark.parametrize(
    ("shape", "edges"),
    [
        ("parallel", [(), (), ()]),
        ("chain", [(), ("t1",), ("t2",)]),
        ("fan_in", [(), (), ("t1", "t2")]),
    ],
)
def test_the_script_chooses_the_shape_of_a_plan(shape: Any, edges: list[tuple[str, ...]]) -> None:
    filled = answer(PlanAnswer.model_json_schema(), "x", Script(plan=shape), None)
    plan = to_plan(PlanAnswer.model_validate(filled))
    assert [subtask.depends_on for subtask in plan.subtasks] == edges


async def test_a_rule_can_put_words_into_an_answer_that_stay_marked_as_scripted() -> None:
    async with serving(Script(rules=(Rule(result="Forty-two."),))) as (_, session):
        _, message = await post(session, asks(CLOSED))
    assert json.loads(message["content"][0]["text"]) == {
        "claims": [{"claim": "(scripted) Forty-two.", "sources": []}]
    }


async def test_an_answer_longer_than_allowed_stops_at_max_tokens() -> None:
    rule = Rule(result="word " * 200)
    async with serving(Script(rules=(rule,))) as (_, session):
        _, message = await post(session, body(max_tokens=20))
    assert message["stop_reason"] == "max_tokens"
    assert message["usage"]["output_tokens"] <= 20


async def test_a_prefix_is_read_from_the_cache_only_after_its_first_answer_began() -> None:
    system = [{"type": "text", "text": "rule " * 1_000, "cache_control": {"type": "ephemeral"}}]
    async with serving(Script(latency=(0.2, 0.2))) as (_, session):
        used: list[dict[str, int]] = []

        async def ask() -> None:
            used.append((await post(session, body(system=system)))[1]["usage"])

        async with anyio.create_task_group() as group:
            group.start_soon(ask)
            group.start_soon(ask)
        await ask()
    written = [each["cache_creation_input_tokens"] > 0 for each in used]
    read = [each["cache_read_input_tokens"] > 0 for each in used]
    assert (written, read) == ([True, True, False], [False, False, True])


# ---------------------------------------------------------------- rules


async def statuses(script: Script, *requests: dict[str, Any]) -> list[int]:
    async with serving(script) as (_, session):
        return [(await post(session, request))[0] for request in requests]


async def test_the_first_requests_of_a_rule_meet_it() -> None:
    assert await statuses(Script(rules=(Rule(status=529, first=2),)), *[body()] * 3) == [
        529,
        529,
        200,
    ]


async def test_the_nth_request_of_a_rule_meets_it() -> None:
    assert await statuses(Script(rules=(Rule(status=500, nth=(2,)),)), *[body()] * 3) == [
        200,
        500,
        200,
    ]


async def test_each_body_can_fail_once() -> None:
    script = Script(rules=(Rule(status=429, first=1, per_body=True),))
    one, two = body(), body(max_tokens=7)
    assert await statuses(script, one, two, one, two) == [429, 429, 200, 200]


async def test_rules_choose_by_call_text_and_model() -> None:
    rules = (
        Rule(call="digest", status=500),
        Rule(text="tea", status=503),
        Rule(model="claude-opus-5-5", status=529),
    )
    tea = [{"role": "user", "content": "Is there tea?"}]
    requests = (asks(CLOSED), body(messages=tea), body(model="claude-opus-5-5"), body())
    assert await statuses(Script(rules=rules), *requests) == [500, 503, 529, 200]


async def test_the_same_seed_gives_the_same_requests_the_same_fate() -> None:
    requests = [body(max_tokens=100 + number) for number in range(30)]
    script = Script(rules=(Rule(probability=0.5, status=503),))
    first = await statuses(script, *requests)
    assert await statuses(script, *reversed(requests)) == first[::-1]
    assert {200, 503} == set(first)
    assert await statuses(script.model_copy(update={"seed": 1}), *requests) != first


async def test_beyond_its_rate_the_server_says_when_to_come_back() -> None:
    async with serving(Script(rate=0.5)) as (simulator, session):
        assert (await post(session, body()))[0] == 200
        async with session.post("/v1/messages", json=body()) as response:
            assert response.status == 429
            assert response.headers["retry-after"] == "2"
    assert simulator.log.report()["statuses"] == {"200": 1, "429": 1}


@pytest.mark.parametrize("refusal", [429, 529])
async def test_a_server_answers_so_many_calls_of_a_model_at_once(
    refusal: Literal[429, 529],
) -> None:
    script = Script(in_flight=2, refusal=refusal, latency=(0.3, 0.3))
    async with serving(script) as (simulator, session):
        other = body(model="claude-opus-5-5")
        calls = [post(session, each) for each in (body(), body(), body(), other)]
        ends = sorted(status for status, *_ in await asyncio.gather(*calls))
        assert ends == [200, 200, 200, refusal]
        # A place is free again when its answer has left.
        assert (await post(session, body()))[0] == 200
    assert simulator.log.report()["refused"] == 1


@given(st.lists(st.floats(0, 5), min_size=1, max_size=50), st.floats(0.1, 20), st.integers(1, 5))
def test_no_more_calls_are_admitted_than_rate_and_burst_allow(
    gaps: list[float], rate: float, burst: int
) -> None:
    limiter, now, admitted = Limiter(), 0.0, 0
    for gap in gaps:
        now += gap
        admitted += limiter.admit(rate, burst, now) == 0
    assert 1 <= admitted <= burst + rate * now + 1e-6


@given(st.floats(0.05, 20), st.integers(1, 5))
def test_who_comes_back_as_asked_is_admitted(rate: float, burst: int) -> None:
    limiter = Limiter()
    while not (wait := limiter.admit(rate, burst, 100.0)):
        pass
    assert limiter.admit(rate, burst, 100.0 + wait) == 0


# ---------------------------------------------------------------- the log


async def test_the_log_counts_duplicates_tokens_and_dollars_of_what_was_admitted() -> None:
    async with serving(Script(rules=(Rule(status=529, nth=(2,)),))) as (simulator, session):
        for request in (body(), body(), body(), body(max_tokens=9)):
            await post(session, request)
        async with session.get("/simulator/log") as response:
            log = await response.json()
        assert (log["requests"], log["admitted"], log["refused"]) == (4, 3, 1)
        assert (log["distinct"], log["duplicates"]) == (2, 1)
        assert Usage(**log["usage"]) == simulator.log.usage
        assert float(log["dollars"]) > 0
        async with session.post("/simulator/reset") as response:
            assert response.status == 200
        assert simulator.log.report()["requests"] == 0


async def test_a_lost_answer_is_charged_and_a_refused_call_is_not() -> None:
    for rule, charged in (
        (Rule(status=504), 1),
        (Rule(fault="html_502"), 1),
        (Rule(status=500), 0),
    ):
        script = Script(rules=(rule,))
        async with serving(script) as (simulator, s), s.post("/v1/messages", json=body()):
            pass
        assert simulator.log.report()["admitted"] == charged


# ---------------------------------------------------------------- by hand


SCRIPT = """
latency: [0.2, 0.4]
latencies: {plan: 1}
rate: 5
rules:
  - {call: work, first: 2, status: 529}
  - {text: compare, nth: [3], fault: drop_mid_stream}
  - {probability: 0.1, per_body: true, first: 1, status: 429, headers: {retry-after: "1"}}
"""


def test_a_script_is_read_from_yaml(tmp_path: Path) -> None:
    file = tmp_path / "script.yaml"
    file.write_text(SCRIPT)
    script = read_script(file)
    assert script.latency_of("plan", None) == (1, 1)
    assert [rule.status or rule.fault for rule in script.rules] == [529, "drop_mid_stream", 429]


@pytest.mark.parametrize(
    ("text", "named"),
    [
        ("rules: [{statu: 500}]", "rules.0.statu"),
        ("rules: [{call: works}]", "works"),
        ("latency: -1", "latency"),
        ("{", "cannot be read"),
    ],
)
def test_a_bad_script_is_refused_with_the_place(tmp_path: Path, text: str, named: str) -> None:
    file = tmp_path / "script.yaml"
    file.write_text(text)
    with pytest.raises(ScriptError, match=named):
        read_script(file)


def by_hand(*arguments: str) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-W", "error", "-m", "simulator", *arguments],
        cwd=Path(__file__).parents[2],
        env={**os.environ, "PYTHONUNBUFFERED": "1"},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


@pytest.mark.long
def test_by_hand_it_prints_what_to_export_and_leaves_quietly() -> None:
    with by_hand("--port", "0") as process:
        assert process.stdout is not None
        lines = [process.stdout.readline() for _ in range(2)]
        process.send_signal(signal.SIGINT)
        _, complaints = process.communicate()
    assert re.fullmatch(r"export ANTHROPIC_BASE_URL=http://127\.0\.0\.1:\d+\n", lines[0])
    assert lines[1] == "export ANTHROPIC_API_KEY=scripted-key\n"
    assert (process.returncode, complaints) == (0, "")


@pytest.mark.long
def test_by_hand_a_bad_script_is_one_line_and_exit_code_two(tmp_path: Path) -> None:
    with by_hand("--script", str(tmp_path / "absent.yaml")) as process:
        _, complaints = process.communicate()
    assert process.returncode == 2
    assert complaints.count("\n") == 1
    assert "absent.yaml" in complaints


@pytest.mark.long
def test_by_hand_it_answers_from_a_cassette_and_says_what_is_not_on_it(tmp_path: Path) -> None:
    answer = {"model": MODEL, "stop_reason": "end_turn", "usage": {"output_tokens": 2}}
    cassette = Cassette(settings={"HOLDFAST_CAPABILITIES": "none"})
    cassette.record(body(), {**answer, "content": [{"type": "text", "text": "As recorded."}]})
    cassette.write(file := tmp_path / "kept.yaml")
    other = body(messages=[{"role": "user", "content": "Say nothing."}])
    with by_hand("--cassette", str(file)) as process:
        assert process.stdout is not None
        url, _, named = (process.stdout.readline() for _ in range(3))
        ask = f"{url.partition('=')[2].strip()}/v1/messages"
        headers = {"x-api-key": "k", "content-type": "application/json"}
        with urlopen(Request(ask, json.dumps(body()).encode(), headers)) as found:
            said = json.load(found)
        with pytest.raises(HTTPError) as refused:
            urlopen(Request(ask, json.dumps(other).encode(), headers))
        with refused.value as failure:
            why = json.load(failure)["error"]["message"]
        process.send_signal(signal.SIGINT)
        _, complaints = process.communicate()
    assert (said["content"][0]["text"], said["usage"]["output_tokens"]) == ("As recorded.", 2)
    assert named == "export HOLDFAST_CAPABILITIES=none\n"
    assert (refused.value.code, process.returncode) == (400, 1)
    assert why == "not on the cassette: -Say something. | +Say nothing."
    assert "-Say something.\n+Say nothing.\n" in complaints
