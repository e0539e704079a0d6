"""Runs where only the core is installed: tries every command, tool, reader, lens and server, and
prints what each says as JSON. It knows nothing of pytest, which is not installed there.
"""

from __future__ import annotations

import asyncio
import json
import os
import sys
from collections.abc import Mapping
from pathlib import Path

import repositories
from hands import Bench
from holdfast.activities.review.lenses import analysers
from holdfast.activities.toolset.mcp import ServerFailed, list_tools
from holdfast.activities.toolset.servers import read_servers
from holdfast.activities.toolset.shelf import find_lacking, shipped_tools
from holdfast.activities.toolset.tool import Tool
from holdfast.cli.commands.care.doctor import check_extras
from holdfast.cli.main import main, program
from holdfast.contracts.errors import LensFailed
from holdfast.deployment.settings import Settings
from holdfast.telemetry.otel.exporting import MISSING

ARGUMENTS: Mapping[str, tuple[str, ...]] = {
    "run": ("--playbook", "code-review", "--input", "repo=repo"),
    "start": ("--playbook", "code-review", "--input", "repo=repo"),
    "baseline": ("--input", "repo=repo"),
    "compare": ("a", "b"),
    "decline": ("a", "1"),
    "answer": ("a", "t1", "yes"),
    "supply": ("a", "t1", "x.md"),
    "retry": ("a", "t1"),
    "hand": ("a", "t1", "analyst"),
    "skip": ("a", "t1"),
    "raise": ("a", "--limits", "dollars=2"),
    "reset": ("a",),
    "replay": ("none.json",),
    "verify": ("none.json",),
    "countersign": ("none.json", "--key-file", "none.pem"),
    "completion": ("bash",),
    "schema": ("goal",),
    "init": ("mine",),
    "token": ("list",),
    "schedule": ("list",),
    "template": ("list",),
    "certify": ("code-review",),
    "eval": ("judge",),
    "what-if": ("--role", "analyst", "--tier", "haiku"),
    "github": ("--pull", "1", "--repository", "a/b"),
    **dict.fromkeys(
        (
            "demo",
            "list",
            "inbox",
            "up",
            "down",
            "deploy",
            "doctor",
            "budget",
            "codec-server",
            "clean",
            "mcp",
            "serve",
            "slack",
        ),
        (),
    ),
}
"""What each command is given; those that are not named get the id of a run."""
DOCUMENTS = {
    "a.pdf": b"%PDF-1.7\n",
    "a.docx": b"PK\x03\x04 word/document.xml",
    "a.xlsx": b"PK\x03\x04 xl/workbook.xml",
    "a.pptx": b"PK\x03\x04 ppt/presentation.xml",
    "a.html": b"<html><p>words</p></html>",
    "a.csv": b"a,b\n1,2\n",
    "a.md": b"# Words\n",
}


def said_by(*command: str) -> tuple[int, str]:
    """Exit code and words of a command, run in a process of its own."""
    read, write = os.pipe()
    child = os.fork()
    if child == 0:
        os.close(read)
        os.dup2(write, 1)
        os.dup2(write, 2)
        # Those of this process may be files, which a process that was forked cannot take over.
        sys.stdout, sys.stderr = os.fdopen(1, "w"), os.fdopen(2, "w")
        code = main(command)
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(code)
    os.close(write)
    with os.fdopen(read, encoding="utf-8") as pipe:
        said = pipe.read()
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), said


def commands() -> dict[str, tuple[int, str]]:
    names = [str(each.name) for each in program().registered_commands]
    found = {name: said_by(name, *ARGUMENTS.get(name, ("a",))) for name in names}
    return {**found, "watch --web": said_by("watch", "a", "--web")}


async def used(tool: Tool, bench: Bench, **arguments: str | list[str]) -> str:
    return (await bench.use(tool, **arguments)).text  # type: ignore[arg-type]


async def tools() -> dict[str, str]:
    """What each tool that lacks something says when it is called all the same, and calculations."""
    shelf, bench = shipped_tools(), Bench(contents=dict(DOCUMENTS))
    elsewhere = Bench(settings={"python_sandbox": "https://sandbox.example"})
    return {
        "calculate": await used(shelf["calculate"], bench, expression="(1 + 2) * 3"),
        "calculate with units": await used(shelf["calculate"], bench, expression="3 km / 20 min"),
        "query_data": await used(shelf["query_data"], bench, sources=["a.csv"]),
        "run_python": await used(shelf["run_python"], bench, code="1 + 1"),
        "run_python elsewhere": await used(shelf["run_python"], elsewhere, code="1 + 1"),
        "web_fetch": await used(shelf["web_fetch"], bench, url="https://example.com"),
        "web_search": await used(shelf["web_search"], bench, query="words"),
    }


async def readers() -> dict[str, str]:
    bench, tool = Bench(contents=dict(DOCUMENTS)), shipped_tools()["read_document"]
    return {name: await used(tool, bench, file_path=name) for name in DOCUMENTS}


async def lenses(repository: repositories.Repository) -> dict[str, str]:
    """What each lens says of a repository with a file that repeats a key."""
    bench, found = repositories.Bench(repository.path.parent), {}
    for name in analysers():
        try:
            found[name] = (await bench.look(name, repository)).content
        except LensFailed as error:
            found[name] = str(error)
    return found


async def servers(folder: Path) -> str:
    file = folder / ".mcp.json"
    file.write_text(json.dumps({"mcpServers": {"own": {"command": "cat"}}}))
    try:
        await list_tools(read_servers(file, {})["own"])
    except ServerFailed as error:
        return str(error)
    return ""


async def probe(folder: Path, repository: repositories.Repository) -> dict[str, object]:
    shelf, settings = shipped_tools(), Settings(web_search="brave:key")
    left_out = {
        name: find_lacking(each, settings, endpoint_web=False) for name, each in shelf.items()
    }
    return {
        "left out": {name: why for name, why in left_out.items() if why},
        "tools": await tools(),
        "readers": await readers(),
        "lenses": await lenses(repository),
        "servers": await servers(folder),
        "spans": MISSING,
        "extras": {each.name: [each.mark, each.detail] for each in check_extras()},
    }


if __name__ == "__main__":
    here = Path.cwd()
    repository = repositories.Repository.at(here / "repo")
    repository.commit({"a.yaml": "a: 1\na: 2\n"})
    told = {"commands": commands(), **asyncio.run(probe(here, repository))}
    told["example"] = (Settings().state_dir / "demo").exists()
    print(json.dumps(told))  # noqa: T201
