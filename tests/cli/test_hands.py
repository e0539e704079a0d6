"""`doctor` on the tools of agents: which there are, what they need, and whose they are."""

from __future__ import annotations

import json
import sys
import time
from dataclasses import replace
from pathlib import Path

import pytest

from holdfast.activities.catalogue.catalogue import Catalogue
from holdfast.activities.toolset import mcp
from holdfast.activities.toolset.shelf import outlets_of, shipped_tools
from holdfast.cli.checks.diagnosis import Checkup
from holdfast.cli.checks.hands import check_servers, check_tools
from holdfast.deployment.settings import Settings

ROLE = "---\nname: reader\ndescription: Reads\ntools: read_file\n---\nYou read.\n"


OF_SERVERS = ", read_file, mcp__own__fine, mcp__own__remote, mcp__slow__act, mcp__none__act"
OWN = str(Path(__file__).parents[1] / "support" / "mcp_servers.py")


def catalogue(home: Path) -> Catalogue:
    (home / "roles").mkdir()
    (home / "roles" / "reader.md").write_text(ROLE)
    return Catalogue.load(home)


def test_each_tool_is_named_with_the_roles_that_have_it(tmp_path: Path) -> None:
    told = {each.name: each.detail for each in check_tools(catalogue(tmp_path), Settings())}
    assert sorted(told) == sorted(shipped_tools())
    assert told["read_file"] == "of reader; a role may write Read for it"
    assert told["git_diff"] == "no role has it"
    assert "a role may write Glob or LS for it" in told["list_files"]


def test_a_sandbox_elsewhere_is_named(tmp_path: Path) -> None:
    given = Settings(_env_file=None, python_sandbox="https://sandbox.example/run?token=t0kent0ken")
    told = {each.name: each.detail for each in check_tools(catalogue(tmp_path), given)}
    assert "its code is sent to https://sandbox.example/run, with no key" in told["run_python"]
    assert "t0ken" not in told["run_python"]
    assert "sent to" not in told["web_fetch"]
    found = {each.tool: each.what for each in outlets_of(shipped_tools(), given.key)}
    assert found["run_python"] == "run_python, the sandbox at https://sandbox.example/run"
    assert "run_python" not in {each.tool for each in outlets_of(shipped_tools(), lambda _: "")}


def test_web_tools_that_are_the_endpoints_own_need_no_provider(tmp_path: Path) -> None:
    on = Settings(_env_file=None, endpoint_web=True)
    told = {each.name: each for each in check_tools(catalogue(tmp_path), on)}
    for name in ("web_search", "web_fetch"):
        assert "the endpoint's own (HOLDFAST_ENDPOINT_WEB)" in told[name].detail
        assert "not set" not in told[name].detail and told[name].mark == "ok"
    found = {
        each.tool: each.what for each in outlets_of(shipped_tools(), on.key, endpoint_web=True)
    }
    assert all(found[name].endswith("the endpoint, which asks the web itself") for name in found)
    off = {
        each.name: each for each in check_tools(Catalogue.load(tmp_path), Settings(_env_file=None))
    }
    assert "HOLDFAST_WEB_SEARCH, which is not set here" in off["web_search"].detail
    assert off["web_search"].mark == "note", "it is left out, though no role misses it"


def test_a_key_that_is_not_set_is_named_where_a_role_has_its_tool(tmp_path: Path) -> None:
    tool = replace(shipped_tools()["read_file"], needs=("anthropic_api_key",), effects=True)
    unset = Settings(anthropic_api_key=None)
    (line,) = check_tools(catalogue(tmp_path), unset, {"read_file": tool})
    assert line.mark == "note"
    assert "changes things outside" in line.detail
    assert line.detail.endswith("needs ANTHROPIC_API_KEY, which is not set here: left out")
    settings = Settings.model_validate({"anthropic_api_key": "sk-x"})
    (line,) = check_tools(Catalogue.load(tmp_path), settings, {"read_file": tool})
    assert line.mark == "ok" and "not set" not in line.detail


def test_a_tool_that_asks_a_person_is_said_to(tmp_path: Path) -> None:
    asks = replace(shipped_tools()["read_file"], approval=True)
    (line,) = check_tools(catalogue(tmp_path), Settings(), {"read_file": asks})
    assert line.detail.endswith("; a person approves each call")


# ---------------------------------------------------------------- MCP servers


async def diagnosed(home: Path, servers: str) -> list[Checkup]:
    """What doctor says of the servers of a file, for a role that names some of their tools."""
    file = home / ".mcp.json"
    file.write_text(servers)
    (home / "roles").mkdir()
    role = ROLE.replace(" read_file", f" {OF_SERVERS.removeprefix(', ')}")
    (home / "roles" / "reader.md").write_text(role)
    settings = Settings(_env_file=None, mcp_file=file)
    return [each async for each in check_servers(Catalogue.load(home), settings)]


@pytest.mark.anyio
@pytest.mark.long
async def test_servers_and_their_tools_are_told_with_what_is_wrong_with_each(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(mcp, "LISTING_SECONDS", 6.0)
    kinds = {"own": "schemas", "slow": "silent", "late": "silent"}
    entries: dict[str, object] = {
        name: {"command": sys.executable, "args": [OWN, kind]} for name, kind in kinds.items()
    }
    says = "import sys; sys.exit('a program that says why it ends')"
    entries |= {"ends": {"command": sys.executable, "args": ["-c", says, "--key=very-secret"]}}
    entries |= {"bad": {"command": "x", "args": "y"}, "gone": {"command": "/nowhere/gone"}}
    begun = time.monotonic()
    found = await diagnosed(tmp_path, json.dumps({"mcpServers": entries}))
    assert time.monotonic() - begun < 60
    told = {each.name: (each.mark, each.detail) for each in found}
    mark, own = told["own"]
    assert mark == "ok" and own.endswith("starts and offers 2 tools")
    assert told["mcp__own__fine"] == ("ok", "of reader")
    assert told["mcp__own__slow"] == ("ok", "no role has it")
    assert told["mcp__own__remote"][0] == "note"
    assert (
        "of reader; left out, as it has a schema that stands elsewhere"
        in (told["mcp__own__remote"][1])
    )
    for name in ("slow", "late"):
        assert told[name][0] == "note" and "did not answer within 6 s" in told[name][1]
    assert told["bad"][0] == told["gone"][0] == "note"
    assert "args" in told["bad"][1] and "cannot be started" in told["gone"][1]
    assert "a program that says why it ends" in told["ends"][1]
    assert all("very-secret" not in each.detail for each in found)
    assert "its server does not offer it" in told["mcp__slow__act"][1]
    assert "no such server" in told["mcp__none__act"][1]


@pytest.mark.anyio
async def test_a_file_that_is_none_is_said_and_stops_nothing_else(tmp_path: Path) -> None:
    first, *rest = await diagnosed(tmp_path, "{")
    assert (first.name, first.mark) == ("file", "note")
    assert "is not a file of MCP servers" in first.detail
    assert [each.name for each in rest] == [
        *(name for name in OF_SERVERS.split(", ") if name.startswith("mcp__")),
        "role reader",
    ]


@pytest.mark.anyio
async def test_a_role_that_keeps_no_tool_is_said_to_be_of_no_use(tmp_path: Path) -> None:
    (tmp_path / "roles").mkdir()
    own = {"clerk": "mcp__none__act", "seeker": "web_search, mcp__none__act", "both": "web_search"}
    for name, tools in {**own, "both": f"{own['both']}, read_file", "fine": "read_file"}.items():
        role = ROLE.replace("name: reader", f"name: {name}").replace("read_file", tools)
        (tmp_path / "roles" / f"{name}.md").write_text(role)
    settings = Settings(_env_file=None, mcp_file=tmp_path / ".mcp.json")
    found = [each async for each in check_servers(Catalogue.load(tmp_path), settings)]
    told = {each.name: each.detail for each in found}
    assert "left out" in told["mcp__none__act"]
    cannot = "cannot be used: it has no tool but {}, left out as said above"
    assert {name: why for name, why in told.items() if name.startswith("role ")} == {
        "role both": "goes on without web_search",
        "role clerk": cannot.format("mcp__none__act"),
        "role seeker": cannot.format("web_search, mcp__none__act"),
    }
