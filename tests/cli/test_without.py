"""What a playbook's run goes without is said before a run begins, by `run` and by `start`."""

from __future__ import annotations

import asyncio
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from holdfast.activities.catalogue.catalogue import Catalogue
from holdfast.cli.commands.runs import run, start
from holdfast.cli.shared import without
from holdfast.contracts import Goal, Plan
from holdfast.deployment.settings import HOME, Settings
from holdfast.errors import Refused
from holdfast.intake.goals import Wish, goal_of


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The shipped roles and playbooks, to be changed; a ticket, and an endpoint that is set."""
    for name in ("roles", "playbooks"):
        shutil.copytree(HOME / name, tmp_path / name)
    (tmp_path / "ticket.md").write_text("It does not start")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("ANTHROPIC_BASE_URL", "http://127.0.0.1:1")
    monkeypatch.delenv("HOLDFAST_WEB_SEARCH", raising=False)
    return tmp_path


def claims(home: Path, *names: str) -> Catalogue:
    """The catalogue in which these roles of tech-support claim the same case."""
    for name in names:
        path = home / "playbooks" / "tech-support" / "roles" / f"{name}.md"
        path.write_text(path.read_text().replace("cases: [", "cases: [a broken thing, "))
    return Catalogue.load(home)


@pytest.mark.parametrize("command", [run.command, start.command])
@pytest.mark.parametrize(
    ("playbook", "given", "said"),
    [
        ("tech-support", "ticket", "role documenter: documenter.md: cases: role 'escalator'"),
        ("competitive-intelligence", "competitors", "tool web_search, of market-researcher: "),
    ],
)
def test_what_a_playbook_goes_without_is_said_before_anything_is_asked(
    home: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    command: Callable[..., int],
    playbook: str,
    given: str,
    said: str,
) -> None:
    loaded = claims(home, "documenter", "escalator")
    monkeypatch.setattr(Catalogue, "of", lambda _: loaded)
    for module in (run, start):
        monkeypatch.setattr(module, "with_span", lambda *_: 0)
    assert command(playbook=playbook, inputs=[f"{given}=ticket.md"], embedded=True) == 0
    heard = " ".join(capsys.readouterr().err.split())
    assert f"Goes without {said}" in heard


SEARCHER = """---
name: market-researcher
description: Finds facts about one company in a register, each with its date and its source.
model: haiku
tools: {tools}
---
You look things up.
"""


@pytest.mark.parametrize(
    ("tools", "servers", "said"),
    [
        (
            "mcp__register__find, mcp__register__get",
            "",
            "role market-researcher, which has no tool but mcp__register__find,"
            " mcp__register__get: there is no such server in .mcp.json; see: ",
        ),
        (
            "read_file, mcp__register__find",
            "",
            "tool mcp__register__find, of market-researcher: there is no such server in .mcp.json",
        ),
        (
            "read_file, mcp__register__find",
            '{"mcpServers": {"register": {"comand": "x"}}}',
            "tool mcp__register__find, of market-researcher: the MCP server register cannot be",
        ),
        (
            "read_file, mcp__register__find",
            "[]",
            "tool mcp__register__find, of market-researcher: '",
        ),
        (
            "web_search, mcp__register__find",
            '{"mcpServers": {"register": {"command": "/no/such/program"}}}',
            "tool web_search, of market-researcher: it needs HOLDFAST_WEB_SEARCH, which is not set",
        ),
    ],
)
def test_tools_of_servers_are_looked_at_and_a_role_that_keeps_none_is_named(
    home: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    tools: str,
    servers: str,
    said: str,
) -> None:
    role = home / "playbooks" / "competitive-intelligence" / "roles" / "market-researcher.md"
    role.write_text(SEARCHER.format(tools=tools))
    (home / ".mcp.json").write_text(servers or "{}")
    loaded = Catalogue.load(home)
    settings = Settings(mcp_file=home / ".mcp.json")
    goal = Goal(text="Compare", playbook="competitive-intelligence", use_models=True)
    without.say_without(goal, loaded, settings, embedded=True)
    heard = " ".join(capsys.readouterr().err.split())
    assert f"Goes without {said}" in heard
    assert heard.count("Goes without") == 1, "of a server that may be there, nothing is said"


def test_a_playbook_none_of_whose_roles_can_be_used_is_refused(home: Path) -> None:
    loaded = claims(home, "documenter", "escalator", "troubleshooter")
    wish = Wish(playbook="tech-support", inputs=("ticket=ticket.md",))
    with pytest.raises(Refused) as refused:
        asyncio.run(goal_of(wish, loaded, Settings(), embedded=True))
    line = str(refused.value)
    assert "playbook 'tech-support' cannot be used: none of its roles can be used: " in line
    assert line.count("claims 'a broken thing', too") == 3 and "\n" not in line


@pytest.mark.parametrize(
    ("playbook", "planned", "heard"),
    [("", False, True), ("tech-support", False, True), ("code-review", False, False),
     ("", True, False)],
)  # fmt: skip
def test_a_broken_common_role_is_said_where_a_planner_would_choose_among_roles(
    home: Path, capsys: pytest.CaptureFixture[str], playbook: str, planned: bool, heard: bool
) -> None:
    (home / "roles" / "odd.md").write_text("---\nname: odd\ndescripton: x\n---\nYou read.\n")
    plan = Plan(goal="g", subtasks=()) if planned else None
    goal = Goal(text="Look", playbook=playbook, plan=plan, use_models=True)
    without.say_without(goal, Catalogue.load(home), Settings(), embedded=True)
    said = " ".join(capsys.readouterr().err.split())
    assert ("Goes without role odd: odd.md: " in said) == heard
