"""What servers offer to the roles of a run: each is asked once, at the same time, and not for long;
what one of them does keeps nothing from the roles of the others.
"""

from __future__ import annotations

import asyncio
import inspect
import json
import sys
from dataclasses import replace
from functools import partial
from pathlib import Path

import pytest

from holdfast.activities.model_endpoint import ModelEndpoint
from holdfast.activities.toolset import mcp
from holdfast.activities.toolset import offering as offering_module
from holdfast.activities.toolset.offering import Offering
from holdfast.activities.toolset.remembered import ToolLists
from holdfast.activities.toolset.servers import Server, read_servers
from holdfast.activities.toolset.serving import FromServers, RolesHere, add_offers, offer_nothing
from holdfast.activities.toolset.shelf import outlets_of, shipped_tools
from holdfast.activities.wiring import build
from holdfast.contracts import RoleCard
from holdfast.contracts.policies import PREPARE_SECONDS
from holdfast.deployment.settings import HOME, Settings
from holdfast.storage.directory import DirectoryStore
from holdfast.temporal.connection import Target

pytestmark = [pytest.mark.long, pytest.mark.anyio]

OWN = str(Path(__file__).parents[2] / "support" / "mcp_servers.py")
ACT = "mcp__{}__act"


def offering(folder: Path, **kinds: str) -> Offering:
    """Servers of these kinds, by name, each with a secret in its arguments."""
    entries = {
        name: {"command": sys.executable, "args": [OWN, kind, "--token=secret"]}
        for name, kind in kinds.items()
    }
    file = folder / ".mcp.json"
    file.write_text(json.dumps({"mcpServers": entries}))
    return of_file(file)


def of_file(file: Path) -> Offering:
    folder = file.parent
    remembered = ToolLists(folder / "told")
    return Offering(partial(read_servers, file, {}), DirectoryStore(folder / "store"), remembered)


def test_servers_have_half_of_the_time_in_which_a_run_is_prepared() -> None:
    assert offering_module.ALL_SECONDS <= PREPARE_SECONDS / 2
    assert mcp.MOST_LISTING_SECONDS + mcp.CLIENT_SECONDS < offering_module.ALL_SECONDS


@pytest.mark.parametrize(
    ("page", "said"),
    [
        ("docs/tools.md", "has {}, without computing time, to list its tools"),
        ("docs/tools.md", "{} for the list of its tools"),
        ("docs/commands.md", "each has {}, as in a run"),
    ],
)
def test_pages_say_how_long_a_server_has_as_errors_say_it(page: str, said: str) -> None:
    assert said.format(f"{mcp.LISTING_SECONDS:g} s") in (HOME / page).read_text("utf-8")


async def test_servers_that_hang_are_asked_side_by_side_and_keep_nothing_from_other_roles(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(mcp, "LISTING_SECONDS", 2.0)
    asking, most = 0, 0

    async def count(server: Server) -> mcp.Offered:
        nonlocal asking, most
        asking += 1
        most = max(most, asking)
        try:
            return await mcp.list_tools(server)
        finally:
            asking -= 1

    monkeypatch.setattr(offering_module, "list_tools", count)
    here = offering(tmp_path, good="good", one="silent", two="silent", three="silent")
    wanted = {
        "reader": [ACT.format("good"), ACT.format("one")],
        "writer": [ACT.format("one"), ACT.format("two"), ACT.format("three")],
        "judge": [ACT.format("good")],
    }
    told = await here.offer_to(wanted)
    assert most == 4
    assert told["reader"].specs == told["judge"].specs and told["judge"].absent == {}
    specs = json.loads(await here.store.get(told["reader"].specs))
    assert [*specs] == [ACT.format("good")]
    assert told["reader"].size > 0 and told["writer"].specs == ""
    assert told["reader"].absent[ACT.format("one")] == (
        f"the MCP server one did not answer within 2 s (the local program {sys.executable}"
        " mcp_servers.py)"
    )
    assert len(told["writer"].absent) == 3
    assert "secret" not in repr(told)


def own(folder: Path, kind: str, argument: str) -> Offering:
    """One server of a kind, which is given this argument."""
    entry = {"command": sys.executable, "args": [OWN, kind, argument]}
    file = folder / ".mcp.json"
    file.write_text(json.dumps({"mcpServers": {"own": entry}}))
    return of_file(file)


async def told_by(here: Offering) -> FromServers:
    return (await here.offer_to({"reader": [ACT.format("own")]}))["reader"]


async def test_a_server_that_computes_is_waited_for_longer_than_one_that_is_silent(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(mcp, "LISTING_SECONDS", 2.0)
    monkeypatch.setattr(offering_module, "GOES", 1)
    told = await told_by(own(tmp_path, "computes", "6"))
    assert told.specs and told.absent == {} and told.unreached == ()


async def test_a_server_that_computes_for_ever_is_given_up(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(mcp, "LISTING_SECONDS", 2.0)
    monkeypatch.setattr(mcp, "MOST_LISTING_SECONDS", 4.0)
    told = await told_by(own(tmp_path, "computes", "600"))
    assert "did not answer within 4 s" in told.absent[ACT.format("own")]
    assert told.unreached == (ACT.format("own"),)


async def test_a_server_that_was_late_once_is_asked_once_more(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(mcp, "LISTING_SECONDS", 2.0)
    told = await told_by(own(tmp_path, "silent-once", str(tmp_path / "asked")))
    assert told.specs and told.recalled == ()


async def test_a_server_that_is_late_is_taken_at_what_the_same_program_told_last(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(mcp, "LISTING_SECONDS", 2.0)
    late = tmp_path / "late"
    here = own(tmp_path, "silent-with", str(late))
    before = await told_by(here)
    (kept,) = here.remembered.folder.iterdir()
    assert kept.stat().st_mode & 0o777 == 0o600 and kept.parent.stat().st_mode & 0o777 == 0o700
    late.touch()
    after = await told_by(here)
    assert after.specs == before.specs and after.absent == {} and after.unreached == ()
    (line,) = after.recalled
    assert "the MCP server own did not answer within 2 s" in line
    assert line.endswith("UTC stands") and str(late) not in line
    card = RoleCard(name="reader", description="x", tools=(ACT.format("own"),))
    served = await add_offers(RolesHere((card,), {}, {}), None, here.offer_to)
    assert [each.what for each in served.omissions(None)] == ["a new list of tools"]
    # Another program under the same name has told nothing yet.
    monkeypatch.setattr(mcp, "LISTING_SECONDS", 1.0)
    other = await told_by(own(tmp_path, "silent", str(late)))
    assert other.specs == "" and other.unreached == (ACT.format("own"),)


@pytest.mark.parametrize("change", ["arguments", "script", "environment"])
def test_a_list_is_only_recalled_for_the_very_same_program(tmp_path: Path, change: str) -> None:
    script = tmp_path / "server.py"
    script.write_text("1")
    server = Server("own", tmp_path, (sys.executable, "server.py"))
    remembered = ToolLists(tmp_path / "told")
    remembered.keep(server, [{"wire": "act"}])
    told = remembered.last(server)
    assert told is not None and told.tools == ({"wire": "act"},)
    match change:
        case "arguments":
            server = replace(server, command=(*server.command, "--other"))
        case "script":
            script.write_text("12")
        case "environment":
            server = replace(server, environment={"A": "b"})
    assert remembered.last(server) is None


async def test_a_server_is_asked_once_whatever_number_of_roles_name_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked = []

    async def count(server: object) -> mcp.Offered:
        asked.append(server)
        await asyncio.sleep(0)
        return mcp.Offered(())

    monkeypatch.setattr("holdfast.activities.toolset.offering.list_tools", count)
    here = offering(tmp_path, own="good")
    told = await here.offer_to({f"role{number}": [ACT.format("own")] for number in range(20)})
    assert len(asked) == 1 and len(told) == 20


async def test_the_file_of_servers_is_read_whenever_somebody_asks(tmp_path: Path) -> None:
    here = offering(tmp_path, own="good")
    assert not here.asks(ACT.format("own"))
    file = tmp_path / ".mcp.json"
    before = file.read_text()
    entries = json.loads(before)["mcpServers"]
    entries = {"other": entries["own"] | {"approval": True}}
    file.write_text(json.dumps({"mcpServers": entries}))
    assert here.asks(ACT.format("other")) and not here.asks(ACT.format("own"))
    told = (await here.offer_to({"reader": [ACT.format("own"), ACT.format("other")]}))["reader"]
    assert [*told.absent] == [ACT.format("own")]
    assert [each.tool for each in here.outlets()] == ["mcp__other__"]
    file.write_text("{")
    told = (await here.offer_to({"reader": [ACT.format("other")]}))["reader"]
    assert "is not a file of MCP servers" in told.absent[ACT.format("other")]
    file.write_text(before)
    assert (await here.offer_to({"reader": [ACT.format("own")]}))["reader"].absent == {}


async def test_what_is_wrong_with_a_tool_or_its_name_is_said_where_it_is_missed(
    tmp_path: Path,
) -> None:
    here = offering(tmp_path, own="schemas")
    names = [ACT.format("other"), ACT.format("own"), "mcp__own__remote", "mcp__own__fine"]
    told = (await here.offer_to({"reader": names}))["reader"]
    assert told.absent == {
        names[0]: "there is no such server in the file of MCP servers",
        names[1]: "the MCP server own does not offer it",
        names[2]: "as the MCP server own describes it,"
        " it has a schema that stands elsewhere, which is not fetched",
    }
    assert [*json.loads(await here.store.get(told.specs))] == names[3:]


async def test_what_several_roles_go_without_for_one_reason_is_one_line() -> None:
    cards = [
        RoleCard(name=name, description="x", tools=(*map(ACT.format, "ab"), "read_file"))
        for name in ("reader", "writer")
    ]
    here = await add_offers(RolesHere(tuple(cards), {}, {}), None, offer_nothing)
    assert [each.tools for each in here.roles] == [("read_file",), ("read_file",)]
    (line,) = here.omissions(None)
    assert line.what == "tools mcp__a__act, mcp__b__act"
    assert line.why == "no MCP server is known here; reader and writer go on without"
    assert here.missing == {} and FromServers().absent == {}


async def test_a_briefing_names_where_tools_of_its_roles_send_words_and_nothing_else(
    tmp_path: Path,
) -> None:
    here = offering(tmp_path, own="good", idle="good")
    file = tmp_path / "far.json"
    far = {"url": "https://u:p@far.example/m?k"}
    file.write_text(json.dumps({"mcpServers": {"far": far, "bad": {"command": 7}}}))
    others = of_file(file)
    near = here.read()["own"]
    outlets = (*outlets_of(shipped_tools(), lambda _: ""), *here.outlets(), *others.outlets())
    tools = (ACT.format("own"), ACT.format("far"), "web_fetch", "read_file", "query_data")
    role = RoleCard(name="reader", description="x", tools=tools)
    found = RolesHere((role,), {}, {}).reached(outlets)
    assert [each.what for each in found] == [
        "web_fetch, any address of the public web that the agent names",
        f"MCP server own, {near.place}",
        "MCP server far, the host far.example",
    ]


async def test_a_worker_knows_where_its_tools_send_words(tmp_path: Path) -> None:
    offering(tmp_path, own="good")
    settings = Settings(_env_file=None, state_dir=tmp_path, mcp_file=tmp_path / ".mcp.json")
    target = Target("", store_url=(tmp_path / "store").as_uri(), embedded=False)
    prepare, *_ = build(settings, target, endpoint=ModelEndpoint()).preparing
    told = [each.tool for each in inspect.unwrap(prepare).__self__.outlets()]
    assert told == ["web_fetch", "web_search", "mcp__own__"]
