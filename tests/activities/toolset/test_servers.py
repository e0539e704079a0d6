"""The file of MCP servers is read as other programs write it, and one mistake stops one server."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from holdfast.activities.toolset.servers import BadServers, Server, read_servers

VARIABLES = {"TOKEN": "t-1", "HOST": "example.org", "EMPTY": ""}


def read(folder: Path, **servers: object) -> dict[str, Server]:
    file = folder / ".mcp.json"
    file.write_text(json.dumps({"mcpServers": servers, "other": 1}))
    return dict(read_servers(file, VARIABLES))


def test_without_a_file_there_are_no_servers(tmp_path: Path) -> None:
    assert read_servers(tmp_path / ".mcp.json", {}) == {}


def test_a_command_and_an_address_are_read_with_their_variables_filled_in(tmp_path: Path) -> None:
    found = read(
        tmp_path,
        time={"command": "uvx", "args": ["time", "--token=${TOKEN}"], "env": {"A": "${EMPTY:-b}"}},
        web={"type": "http", "url": "https://${HOST}/mcp", "headers": {"Key": "k ${TOKEN}"}},
    )
    assert found["time"] == Server(
        "time",
        tmp_path,
        command=("uvx", "time", "--token=t-1"),
        environment={"A": "b"},
        written="uvx time --token=${TOKEN}",
        place="the local program uvx",
    )
    assert found["web"] == Server(
        "web",
        tmp_path,
        url="https://example.org/mcp",
        headers={"Key": "k t-1"},
        written="https://${HOST}/mcp",
        place="the host example.org",
    )


@pytest.mark.parametrize(
    ("entry", "place"),
    [
        (
            {"command": "/opt/${TOKEN}/tool", "args": ["--key=k"]},
            "the local program /opt/${TOKEN}/tool",
        ),
        (
            {"command": "python3.11", "args": ["/srv/ann/clock.py", "s3cret.py"]},
            "the local program python3.11 clock.py",
        ),
        (
            {"command": ".venv/bin/python", "args": ["-m", "mcp_server_time", "--key=k"]},
            "the local program .venv/bin/python -m mcp_server_time",
        ),
        ({"command": "python", "args": ["-m", "${TOKEN}"]}, "the local program python"),
        ({"command": "python", "args": ["-I", "clock.py"]}, "the local program python"),
        ({"command": "tool", "args": ["-m", "k3y"]}, "the local program tool"),
        ({"command": "tool", "args": ["--key=k.py"]}, "the local program tool"),
        ({"command": "tool", "args": ["k3y"]}, "the local program tool"),
        ({"command": "a\n\x1b[31mb" + "c" * 500}, "the local program a \\x1b[31mb" + "c" * 89),
        ({"url": "https://user:pass@host.example/p/${TOKEN}?key=k"}, "the host host.example"),
        ({"url": "http://[::1"}, "the host of no name"),
    ],
)
def test_what_a_server_is_can_be_told_without_a_secret(
    tmp_path: Path, entry: dict[str, object], place: str
) -> None:
    assert read(tmp_path, it=entry)["it"].place == place


@pytest.mark.parametrize(
    ("entry", "flaw"),
    [
        ({"command": "x", "env": {"A": "${NONE}"}}, "needs the variable NONE"),
        ({}, "either a `command` or a `url`"),
        ({"command": "x", "url": "http://x"}, "either a `command` or a `url`"),
        ({"type": "http", "command": "x"}, "has a `url`"),
        ({"type": "sse", "url": "http://x"}, "type:"),
        ({"url": "file:///x"}, "must begin with http"),
        ({"command": "x", "args": "y"}, "args:"),
        ({"command": 7}, "command:"),
        ({"comand": "x"}, "it has no field comand; write command"),
        ({"command": "x", "aproval": True}, "it has no field aproval; write approval"),
        ("x", "it:"),
        (None, "it:"),
    ],
)
def test_a_server_that_is_written_wrongly_says_so_and_stops_no_other(
    entry: object, flaw: str, tmp_path: Path
) -> None:
    found = read(tmp_path, bad=entry, good={"command": "x"})
    assert flaw in found["bad"].flaw
    assert found["good"].flaw == "" and found["good"].command == ("x",)


def test_fields_of_other_programs_are_passed_over(tmp_path: Path) -> None:
    theirs = {"disabled": False, "autoApprove": ["x"], "alwaysAllow": [], "timeout": 9, "cwd": "/"}
    theirs |= {"transport": "stdio", "envFile": ".env", "description": "A clock.", "enabled": True}
    assert read(tmp_path, it={"command": "x", **theirs})["it"].flaw == ""


@pytest.mark.parametrize("name", ["", "a__b", "_a", "a_", "a b", "a/b", "ä", "x" * 31])
def test_a_name_that_no_tool_can_begin_with_is_a_flaw(name: str, tmp_path: Path) -> None:
    assert "its name must" in read(tmp_path, **{name: {"command": "x"}})[name].flaw


@pytest.mark.parametrize("text", ["", "[]", "{", '{"mcpServers": []}', "\x00"])
def test_a_file_that_is_none_is_refused_in_a_line(text: str, tmp_path: Path) -> None:
    file = tmp_path / ".mcp.json"
    file.write_text(text)
    with pytest.raises(BadServers) as error:
        read_servers(file, {})
    assert "\n" not in str(error.value) and ".mcp.json" in str(error.value)
