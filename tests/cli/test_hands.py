"""`doctor` on the tools of agents: which there are, what they need, and whose they are."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from activities.catalogue import Catalogue
from activities.toolset.reaching import reaches
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


def test_a_sandbox_elsewhere_is_named(tmp_path: Path) -> None:
    given = Settings(_env_file=None, python_sandbox="https://sandbox.example/run?token=t0kent0ken")
    told = {each.name: each.detail for each in hands(catalogue(tmp_path), given)}
    assert "its code is sent to https://sandbox.example/run, with no key" in told["run_python"]
    assert "t0ken" not in told["run_python"]
    assert "sent to" not in told["web_fetch"]
    found = {each.tool: each.where for each in reaches(given, {"clock": None})}  # type: ignore[dict-item]
    assert found == {
        "web_fetch": "the public web",
        "run_python": "the sandbox at https://sandbox.example/run",
        "mcp__clock__": "the MCP server clock",
    }


def test_web_tools_that_are_the_endpoints_own_need_no_provider(tmp_path: Path) -> None:
    on = Settings(_env_file=None, endpoint_web=True)
    told = {each.name: each for each in hands(catalogue(tmp_path), on)}
    for name in ("web_search", "web_fetch"):
        assert "the endpoint's own (HOLDFAST_ENDPOINT_WEB)" in told[name].detail
        assert "not set" not in told[name].detail and told[name].mark == "ok"
    found = {each.tool: each.where for each in reaches(on, {}, endpoint_web=True)}
    assert found == dict.fromkeys(found, "the endpoint, which asks the web itself")
    off = {each.name: each for each in hands(Catalogue.load(tmp_path), Settings(_env_file=None))}
    assert "HOLDFAST_WEB_SEARCH not set" in off["web_search"].detail


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
