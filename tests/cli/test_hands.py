"""`doctor` on the tools of agents: which there are, what they need, and whose they are."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

from activities.catalogue import Catalogue
from activities.toolset.shelf import shipped
from cli.hands import hands
from deployment.settings import Settings

ROLE = "---\nname: reader\ndescription: Reads\ntools: read_file\n---\nYou read.\n"


def catalogue(home: Path) -> Catalogue:
    (home / "roles").mkdir()
    (home / "roles" / "reader.md").write_text(ROLE)
    return Catalogue.load(home)


def test_each_tool_is_named_with_the_roles_that_have_it(tmp_path: Path) -> None:
    told = {each.name: each.detail for each in hands(catalogue(tmp_path), Settings())}
    assert sorted(told) == sorted(shipped())
    assert told["read_file"] == "of reader"
    assert told["search_files"] == "no role has it"


def test_a_key_that_is_not_set_is_named_where_a_role_has_its_tool(tmp_path: Path) -> None:
    tool = replace(shipped()["read_file"], needs=("anthropic_api_key",), effects=True)
    unset = Settings(anthropic_api_key=None)
    (line,) = hands(catalogue(tmp_path), unset, {"read_file": tool})
    assert line.mark == "note"
    assert "changes things outside" in line.detail
    assert "ANTHROPIC_API_KEY not set: roles go on without it" in line.detail
    settings = Settings.model_validate({"anthropic_api_key": "sk-x"})
    (line,) = hands(Catalogue.load(tmp_path), settings, {"read_file": tool})
    assert line.mark == "ok" and "not set" not in line.detail


def test_a_tool_and_a_server_that_ask_a_person_are_said_to(tmp_path: Path) -> None:
    file = tmp_path / "servers.json"
    entry = {"command": "clock"}
    given = {
        "plain": entry,
        "all": entry | {"approval": True},
        "some": entry | {"approval": ["set", "reset"]},
        "wrong": entry | {"approval": "yes"},
    }
    file.write_text(json.dumps({"mcpServers": given}))
    asks = replace(shipped()["read_file"], approval=True)
    settings = Settings(mcp_file=file)
    lines = hands(catalogue(tmp_path), settings, {"read_file": asks})
    told = {each.name: each.detail for each in lines}
    assert told["read_file"] == "of reader; a person approves each call"
    assert told["MCP server plain"] == "no role has a tool of it"
    assert told["MCP server all"].endswith("; a person approves each call")
    assert told["MCP server some"].endswith("; a person approves each call of set, reset")
    assert "cannot be used: approval" in told["MCP server wrong"]
