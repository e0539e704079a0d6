"""The MCP servers of this deployment, as `.mcp.json` names them: programs and addresses that its
operator trusts to run, and whose words nobody trusts.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from difflib import get_close_matches
from pathlib import Path
from typing import Literal
from urllib.parse import urlsplit

from pydantic import BaseModel, ConfigDict, ValidationError

from holdfast.deployment import extras
from holdfast.deployment.variables import FILE_BYTES, fill
from holdfast.text import one_line
from holdfast.text.mistakes import mistakes
from holdfast.untrusted.folders import Unreadable, read_named

NAME = re.compile(r"[a-zA-Z0-9-]+(?:_[a-zA-Z0-9-]+)*")
"""A server's name: two underscores separate it from the name of its tool."""
NAME_LETTERS = 30
PLACE_LETTERS = 100
NEARLY = 0.8
"""Least similarity, from 0 to 1, of a misspelt field to the one that was meant."""
PYTHON = re.compile(r"python[\d.]*")
MODULE = re.compile(r"[A-Za-z_][\w.]{0,59}")
SCRIPT = re.compile(r"[\w.-]{1,60}\.(?:py|js|mjs|cjs|ts|sh|rb)")


class BadServers(ValueError):
    """The file as a whole cannot be used; the message is the whole line."""


@dataclass(frozen=True)
class Server:
    """One MCP server: a command to start, or an address."""

    name: str
    folder: Path
    """Working directory of the command: the folder of the file."""
    command: tuple[str, ...] = ()
    environment: Mapping[str, str] = field(default_factory=dict)
    url: str = ""
    headers: Mapping[str, str] = field(default_factory=dict)
    approval: bool | tuple[str, ...] = False
    """True if a person must approve each call of its tools, or the names of those tools, as they
    stand in `mcp__SERVER__TOOL`.
    """
    written: str = ""
    """Its command or address as the file has it, for its operator alone."""
    place: str = ""
    """Public description: a program with the script or module that it runs, but no
    other argument, or a host.
    """
    flaw: str = ""
    """Why it cannot be used as it is written; empty: it can."""

    def asks(self, tool: str) -> bool:
        """True if a person must approve each call of this tool."""
        return self.approval if isinstance(self.approval, bool) else tool in self.approval


class _Given(BaseModel):
    """A server as the file has it; what other programs keep there is ignored."""

    model_config = ConfigDict(extra="ignore", strict=True)

    type: Literal["stdio", "http", "streamable-http"] | None = None
    command: str = ""
    args: list[str] = []
    env: dict[str, str] = {}
    url: str = ""
    headers: dict[str, str] = {}
    approval: bool | list[str] = False
    """Ours alone: other programs have questions of their own."""


class _File(BaseModel):
    model_config = ConfigDict(extra="ignore", strict=True)

    mcpServers: dict[str, object] = {}


def read_servers(path: Path, environment: Mapping[str, str]) -> Mapping[str, Server]:
    """Return the servers of a file, by name; none if there is no such file. `${NAME}` and
    `${NAME:-else}` stand for variables of the environment. Raise BadServers if the file cannot be
    used. A server that is written wrongly has its `flaw`, and stops no other; without the library
    that speaks to servers each has that one.
    """
    if not path.exists():
        return {}
    try:
        found = _File.model_validate_json(read_named(path, FILE_BYTES))
    except Unreadable as error:
        raise BadServers(f"{path.name}: {error}; put it right or move it away") from error
    except ValidationError as error:
        wrong = mistakes(error, "the file")[0]
        raise BadServers(f"{str(path)!r} is not a file of MCP servers: {wrong}") from error
    servers = {
        name: _server(name, entry, path.parent, environment)
        for name, entry in found.mcpServers.items()
    }
    if lacking := extras.lacking("mcp"):
        return {name: replace(each, flaw=f"it {lacking}") for name, each in servers.items()}
    return servers


def _server(name: str, given: object, folder: Path, environment: Mapping[str, str]) -> Server:
    if not NAME.fullmatch(name) or len(name) > NAME_LETTERS:
        letters = f"up to {NAME_LETTERS} letters, digits, - and single _"
        return Server(name, folder, flaw=f"its name must be made of {letters}")
    if wrong := _find_misspelt(given):
        return Server(name, folder, flaw=wrong)
    try:
        entry = _Given.model_validate(given)
        return _fill_in(name, entry, folder, environment)
    except ValidationError as error:
        return Server(name, folder, flaw=one_line(mistakes(error, "it")[0]))
    except KeyError as error:
        return Server(name, folder, flaw=f"it needs the variable {error.args[0]}, which is not set")


def _fill_in(name: str, entry: _Given, folder: Path, environment: Mapping[str, str]) -> Server:
    """Return the server with its variables filled in. Raise KeyError naming one that is not set."""

    def given(text: str) -> str:
        return fill(text, environment)

    if bool(entry.command) == bool(entry.url):
        return Server(name, folder, flaw="give it either a `command` or a `url`")
    if (entry.type or "") in ("http", "streamable-http") and not entry.url:
        return Server(name, folder, flaw="a server of type http has a `url`")
    if entry.url and not given(entry.url).startswith(("http://", "https://")):
        return Server(name, folder, flaw="its `url` must begin with http:// or https://")
    return Server(
        name,
        folder,
        command=tuple(map(given, (entry.command, *entry.args))) if entry.command else (),
        environment={each: given(value) for each, value in entry.env.items()},
        url=given(entry.url),
        written=" ".join((entry.command, *entry.args)) if entry.command else entry.url,
        place=_place(entry, given(entry.url)),
        headers={each: given(value) for each, value in entry.headers.items()},
        approval=entry.approval if isinstance(entry.approval, bool) else tuple(entry.approval),
    )


def _place(entry: _Given, url: str) -> str:
    """Return the program as the file has it, with what it runs if that is surely no secret; of an
    address neither user nor path, which may be secrets.
    """
    if entry.command:
        runs = _runs(Path(entry.command).name, entry.args)
        return f"the local program {one_line(entry.command)[:PLACE_LETTERS]}{runs}"
    try:
        host = urlsplit(url).hostname
    except ValueError:
        host = None
    return f"the host {one_line(host or 'of no name')[:PLACE_LETTERS]}"


def _runs(program: str, arguments: Sequence[str]) -> str:
    """Return what tells two servers of one program apart: the name of its script, or Python's
    module.
    """
    first, second = (*arguments, "", "")[:2]
    if PYTHON.fullmatch(program) and first == "-m" and MODULE.fullmatch(second):
        return f" -m {second}"
    script = Path(first).name
    return f" {script}" if SCRIPT.fullmatch(script) and "=" not in first else ""


def _find_misspelt(given: object) -> str:
    """Return a complaint about a field that is nearly one of ours: what it was to say would not
    hold.
    """
    fields = [*_Given.model_fields]
    for name in given if isinstance(given, dict) else ():
        near = get_close_matches(str(name), fields, n=1, cutoff=NEARLY)
        if near and name not in fields:
            return f"it has no field {one_line(str(name))[:PLACE_LETTERS]}; write {near[0]}"
    return ""
