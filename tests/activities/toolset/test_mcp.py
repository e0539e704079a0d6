"""Tools of MCP servers are tools like any other, and a server that hangs, dies or lies is an error
result: nothing of it is left, and nobody else is cancelled.
"""

from __future__ import annotations

import asyncio
import json
import socket
import sys
from collections.abc import AsyncIterator
from pathlib import Path

import psutil
import pytest
from pydantic import JsonValue

from hands import Bench
from holdfast.activities.toolset import mcp
from holdfast.activities.toolset.mcp import (
    UNKNOWN,
    ServerFailed,
    find_server,
    list_tools,
    make_tool,
)
from holdfast.activities.toolset.running import call
from holdfast.activities.toolset.servers import Server, read_servers
from parameters import rest_long

pytestmark = pytest.mark.anyio

OWN = str(Path(__file__).parents[2] / "support" / "mcp_servers.py")
TIME = str(Path(sys.executable).parent / "mcp-server-time")
ACT = "mcp__own__act"


def own(kind: str) -> Server:
    return Server("own", Path("/"), (sys.executable, OWN, kind), written=f"python {kind}")


@pytest.fixture
def impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(mcp, "SECONDS", 6.0)
    monkeypatch.setattr(mcp, "LISTING_SECONDS", 6.0)


# ---------------------------------------------------------------- a real server


@pytest.mark.long
async def test_a_real_server_offers_its_tools_and_answers(tmp_path: Path) -> None:
    file = tmp_path / ".mcp.json"
    file.write_text(json.dumps({"mcpServers": {"time": {"command": TIME}}}))
    servers = read_servers(file, {})
    found = await list_tools(servers["time"])
    tools = {each.name: each for each in found.tools}
    assert set(tools) == {"mcp__time__get_current_time", "mcp__time__convert_time"}
    assert found.notes == ()
    now = tools["mcp__time__get_current_time"]
    assert "timezone" in json.dumps(now.schema)
    assert now.description.startswith("A tool of the MCP server time, which describes it so:")
    result = await Bench().use(now, timezone="Asia/Tokyo")
    assert not result.is_error
    assert isinstance(result.data, dict) and result.data["timezone"] == "Asia/Tokyo"
    wrong = await Bench().use(now)
    assert wrong.is_error and "arguments: 'timezone' is a required property" in wrong.text


@pytest.mark.long
async def test_a_tool_is_run_by_its_name_alone_in_another_process_than_it_was_offered_in() -> None:
    server = Server("time", Path("/"), (TIME,))
    name = "mcp__time__get_current_time"
    assert find_server(name, {"time": server}) is server
    assert "UTC" in await Bench().told(make_tool(server, name), timezone="Etc/UTC")


# ---------------------------------------------------------------- servers of our own


@pytest.mark.usefixtures("servers_asked_here")
async def test_arguments_arrive_whatever_they_are_called() -> None:
    given: dict[str, JsonValue] = {"here": 1, "name": {"self": [None]}, "tool": "ü", "_": 0}
    result = await call(make_tool(own("good"), ACT), ACT, Bench(), given)
    assert json.loads(result.text) == given


@pytest.mark.long
@pytest.mark.usefixtures("servers_asked_here")
async def test_each_part_of_a_result_is_told_and_what_is_no_text_by_its_size() -> None:
    said = await Bench().told(make_tool(own("picture"), ACT))
    assert said == "{}\n[image, 3 bytes, not shown]\n[file:///notes.txt]\nof the resource"


@pytest.mark.usefixtures("servers_asked_here")
async def test_what_a_server_calls_an_error_is_one() -> None:
    assert await Bench().refused(make_tool(own("fails"), ACT)) == "no such row"


@pytest.mark.parametrize(
    ("kind", "why"),
    rest_long(
        [
            ("dies", "broke the conversation off"),
            ("floods", "said more than 8 MiB at once"),
            ("noise", "said more than"),
            ("lies", "does not speak MCP as it should"),
        ]
    ),
)
async def test_a_server_that_dies_or_lies_in_a_call_is_an_error_result(kind: str, why: str) -> None:
    said = await Bench().refused(make_tool(own(kind), ACT))
    assert said.startswith(f"the MCP server own {why}")
    assert said.endswith(UNKNOWN)


@pytest.mark.long
@pytest.mark.parametrize("kind", rest_long(["hangs", "wrong-id"]))
async def test_a_server_that_hangs_in_a_call_is_an_error_result(kind: str, impatient: None) -> None:
    said = await Bench().refused(make_tool(own(kind), ACT))
    assert said == f"the MCP server own did not answer within 6 s{UNKNOWN}"


@pytest.mark.long
async def test_a_server_that_never_answers_is_given_up(impatient: None) -> None:
    with pytest.raises(ServerFailed, match="did not answer within 6 s") as error:
        await list_tools(own("silent"))
    assert error.value.told.startswith("the MCP server own (python silent) did not answer")


@pytest.mark.parametrize(
    ("kind", "why"),
    rest_long(
        [
            ("list-dies", "broke the conversation off"),
            ("odd-schema", "does not speak MCP as it should"),
        ]
    ),
)
async def test_a_server_that_does_not_tell_its_tools_is_named_with_its_command(
    kind: str, why: str
) -> None:
    with pytest.raises(ServerFailed, match=why) as error:
        await list_tools(own(kind))
    assert error.value.told.startswith(f"the MCP server own (python {kind}) {why}")


@pytest.mark.long
@pytest.mark.parametrize(
    ("command", "why"),
    rest_long(
        [
            ("/no/such/program", "cannot be started (No such file or directory)"),
            ("/bin/true", "broke the conversation off"),
            ("/bin/cat", "refused: Method not found"),
        ]
    ),
)
async def test_a_program_that_is_no_server_is_named(command: str, why: str) -> None:
    server = Server("other", Path("/"), (command,), written=command)
    with pytest.raises(ServerFailed) as error:
        await list_tools(server)
    assert error.value.told.startswith(f"the MCP server other ({command}) {why}")


@pytest.mark.long
async def test_what_a_server_complained_of_is_told_to_its_operator_only() -> None:
    with pytest.raises(ServerFailed) as error:
        await make_tool(own("complains"), ACT).run(Bench(), {})
    assert "the token is wrong" in error.value.told
    assert "the token is wrong" not in str(error.value)


@pytest.mark.long
async def test_of_a_long_complaint_the_last_words_are_told_whole() -> None:
    words = " ".join(f"word{number:04}" for number in range(200))
    ends = Server("own", Path("/"), (sys.executable, "-c", f"import sys; sys.exit({words!r})"))
    with pytest.raises(ServerFailed) as error:
        await list_tools(ends)
    mark, first, *others = error.value.complaint.split()
    assert mark == "…" and len(first) == len("word0000") and others[-1] == "word0199"


@pytest.mark.usefixtures("servers_asked_here")
async def test_a_tool_that_is_gone_is_said_and_not_called() -> None:
    said = await Bench().refused(make_tool(own("good"), "mcp__own__other"))
    assert said == "the MCP server own has no tool of this name (any more)"


@pytest.mark.long
@pytest.mark.usefixtures("servers_asked_here")
async def test_noise_that_is_no_message_is_passed_over() -> None:
    assert await Bench().told(make_tool(own("deep"), ACT)) == "{}"


@pytest.mark.long
@pytest.mark.usefixtures("servers_asked_here")
async def test_a_long_result_is_kept_up_to_a_bound() -> None:
    bench = Bench()
    await bench.told(make_tool(own("large"), ACT))
    (kept,) = bench.results.values()
    assert kept.endswith(b"[3,000,000 letters in all, the rest was not kept]")


@pytest.mark.long
@pytest.mark.usefixtures("servers_asked_here")
async def test_tools_that_no_endpoint_takes_are_left_out_and_said() -> None:
    found = await list_tools(own("odd-tools"))
    assert [each.name for each in found.tools] == ["mcp__own__notes_search", "mcp__own__fine"]
    assert ["same name" in each for each in found.notes] == [True, False, False]
    assert "too long" in found.notes[1] and "30,000" not in found.notes[2]
    for each in found.tools:
        assert "\x1b" not in each.description and len(each.description) < 2_200
    assert await Bench().told(found.tools[0]) == "{}"


@pytest.mark.usefixtures("servers_asked_here")
async def test_a_tool_whose_schema_is_bad_is_left_out_and_none_is_taken_for_harmless() -> None:
    found = await list_tools(own("schemas"))
    assert {(each.effects, each.idempotent) for each in found.tools} == {(True, False)}
    assert [each.name for each in found.tools] == ["mcp__own__fine", "mcp__own__slow"]
    assert {name.removeprefix("mcp__own__"): why for name, why in found.flaws.items()} == {
        "remote": "has a schema that stands elsewhere, which is not fetched",
        "nowhere": "has a schema that cannot be followed (PointerToNowhere)",
        "circle": "has a schema that cannot be followed (RecursionError)",
        "unknown": "has a schema that is none: 'strin' is not valid under any of the given schemas",
        "expression": "has a schema that cannot be followed (no such pattern)",
        "deep": "has a schema of more than 40 levels",
        "long": "has a schema of more than 20,000 letters",
    }


@pytest.mark.long
@pytest.mark.usefixtures("servers_asked_here")
async def test_arguments_that_do_not_fit_a_schema_never_reach_its_server_and_are_said() -> None:
    fine = make_tool(own("schemas"), "mcp__own__fine")
    assert await Bench().told(fine, row=2, names=["a"]) == '{"row": 2, "names": ["a"]}'
    wrong = await Bench().use(fine, row=0, names=["a", 7], other=True)
    assert wrong.is_error and UNKNOWN not in wrong.text
    first, *lines = wrong.text.splitlines()
    assert first == "these arguments do not fit:"
    assert sorted(lines) == [
        "arguments.names[1]: 7 is not of type 'string'",
        "arguments.row: 0 is less than the minimum of 1",
        "arguments: Additional properties are not allowed ('other' was unexpected)",
    ]
    many = await Bench().use(fine, row=1, names=[7] * 50)
    assert len(many.text.splitlines()) == 12 and many.text.endswith("arguments: and more")
    long = await Bench().use(fine, row="x" * 5_000)
    assert len(long.text) < 400


@pytest.mark.long
async def test_an_expression_of_a_server_that_takes_for_ever_is_an_error_of_seconds() -> None:
    slow = make_tool(own("schemas"), "mcp__own__slow")
    async with asyncio.timeout(30):
        said = await Bench().use(slow, text="a" * 60 + "!")
    assert said.is_error and "take more than 2 s to check" in said.text
    assert await Bench().told(slow, text="aaa") == '{"text": "aaa"}'


@pytest.mark.usefixtures("servers_asked_here")
async def test_what_a_server_says_of_its_tools_can_write_no_mark_of_a_prompt() -> None:
    found = await list_tools(own("marks"))
    assert [each.name for each in found.tools] == [ACT]
    told = json.dumps(found.tools[0].spec)
    assert told.count("(/material>") == told.count("(instruction>") == 2 and "<" not in told
    assert "Call run_shell" in told, "what it says is told, as its words"
    (note,) = found.notes
    assert "'orders' has a mark of our prompts" in note


@pytest.mark.long
@pytest.mark.usefixtures("servers_asked_here")
async def test_a_list_without_end_ends_and_offers_each_tool_once() -> None:
    found = await list_tools(own("endless-list"))
    assert [each.name for each in found.tools] == [ACT] and len(found.notes) == 1


@pytest.mark.long
async def test_a_server_and_what_it_started_are_ended_with_the_call() -> None:
    said = await Bench().told(make_tool(own("children"), ACT))
    await gone(*map(int, said.split()))


async def gone(*pids: int) -> None:
    for _ in range(200):
        if not any(map(alive, pids)):
            return
        await asyncio.sleep(0.05)
    raise AssertionError(f"of {pids} some are alive")


def alive(pid: int) -> bool:
    try:
        return psutil.Process(pid).status() != psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return False


async def test_cancelling_a_call_ends_the_server() -> None:
    task = asyncio.create_task(Bench().use(make_tool(own("hangs"), ACT)))
    found: list[psutil.Process] = []
    for _ in range(1_000):
        await asyncio.sleep(0.02)
        below = psutil.Process().children(recursive=True)
        if found := [each for each in below if OWN in _command(each)]:
            break
    assert found
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    await gone(*(each.pid for each in found))


def _command(process: psutil.Process) -> list[str]:
    try:
        return process.cmdline()
    except psutil.Error:
        return []


async def test_a_server_gets_its_own_variables_and_none_of_our_keys(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("ANTHROPIC_API_KEY", "sk-ours")
    server = Server(
        "own", Path("/"), (sys.executable, OWN, "environment"), environment={"TOKEN": "theirs"}
    )
    said = json.loads((await Bench().use(make_tool(server, ACT))).text)
    assert said["TOKEN"] == "theirs" and "PATH" in said
    assert "sk-ours" not in said.values()


async def test_a_server_with_a_flaw_is_said_and_never_started() -> None:
    server = Server("own", Path("/"), (sys.executable, OWN, "good"), flaw="give it a `url`")
    said = await Bench().refused(make_tool(server, ACT))
    assert said == "the MCP server own cannot be used: give it a `url`"


@pytest.mark.parametrize("name", ["read_file", "mcp__", "mcp__other__x", "mcp_own_act", "mcp"])
async def test_a_name_of_no_server_leads_to_none(name: str) -> None:
    assert find_server(name, {"own": own("good")}) is None


# ---------------------------------------------------------------- over HTTP


@pytest.fixture
async def address() -> AsyncIterator[str]:
    """The address of a server of the library, in a process of its own."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    process = await asyncio.create_subprocess_exec(
        sys.executable, OWN, "http", str(port), stderr=asyncio.subprocess.DEVNULL
    )
    for _ in range(400):
        try:
            _, writer = await asyncio.open_connection("127.0.0.1", port)
        except OSError:
            await asyncio.sleep(0.05)
            continue
        writer.close()
        break
    yield f"http://127.0.0.1:{port}/mcp"
    if process.returncode is None:
        process.kill()
    await process.wait()


@pytest.mark.long
async def test_a_server_over_http_answers_floods_and_dies(address: str) -> None:
    server = Server("own", Path("/"), url=address, written=address)
    tools = {each.name: each for each in (await list_tools(server)).tools}
    assert set(tools) == {"mcp__own__add", "mcp__own__flood", "mcp__own__die"}
    assert await Bench().told(tools["mcp__own__add"], a=2, b=40) == "42"
    said = await Bench().refused(tools["mcp__own__flood"])
    assert said.startswith("the MCP server own ")
    assert (await Bench().refused(tools["mcp__own__die"])).endswith(UNKNOWN)
    said = await Bench().refused(tools["mcp__own__add"], a=1, b=1)
    assert said == "the MCP server own cannot be reached"


@pytest.mark.long
async def test_an_address_of_no_mcp_server_is_said() -> None:
    server = Server("own", Path("/"), url="http://127.0.0.1:9/mcp", written="http://…")
    with pytest.raises(ServerFailed, match="cannot be reached"):
        await list_tools(server)
