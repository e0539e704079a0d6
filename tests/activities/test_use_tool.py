"""One call of a tool: what it brought is kept, and what has effects is not run again."""

from __future__ import annotations

import asyncio
import json
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path

import pytest
from temporalio.testing import ActivityEnvironment

from driving import subtask
from holdfast.activities.asking.journal import FileJournal
from holdfast.activities.repositories.scratch import Snapshots
from holdfast.activities.toolset.servers import Server, read_servers
from holdfast.activities.toolset.tool import Here, Tool, tool
from holdfast.activities.turns.conversation import Told, append, load
from holdfast.activities.turns.workshop import MAY_HAVE_RUN, NO_FILE, NOT_APPROVED, Workshop
from holdfast.activities.use_tool import REASON_LETTERS, Tools, shorten_reason
from holdfast.calls.turn import ToolResult, ToolUse, UseMaterial
from holdfast.calls.work import WorkMaterial
from holdfast.contracts.errors import BlobLost
from holdfast.storage import DirectoryStore

pytestmark = pytest.mark.anyio

OWN = str(Path(__file__).parents[1] / "support" / "mcp_servers.py")
ACT = "mcp__own__act"


class Died(BaseException):
    """The process is gone."""


@dataclass
class Place:
    """A worker's tools, and what was run."""

    folder: Path
    runs: list[str] = field(default_factory=list)
    dies: bool = False
    servers: Callable[[], Mapping[str, Server]] = dict

    def __post_init__(self) -> None:
        self.store = DirectoryStore(self.folder / "store")
        self.journal = FileJournal(self.folder / "journal")

    def tools(self, known: Mapping[str, Tool] | None = None) -> Tools:
        place = self

        async def ran(name: str) -> str:
            place.runs.append(name)
            if place.dies:
                raise Died
            return f"{name} ran"

        @tool()
        async def look(here: Here) -> str:
            """Look."""
            return await ran("look")

        @tool(effects=True, idempotent=False)
        async def send(here: Here, to: str) -> str:
            """Send."""
            return await ran("send")

        @tool(effects=True)
        async def write(here: Here) -> str:
            """Write, the same with the same key."""
            return await ran("write")

        @tool(approval=True)
        async def ask(here: Here) -> str:
            """Ask a person first."""
            return await ran("ask")

        snapshots = Snapshots(self.store, self.folder / "snapshots")
        tools = known or {each.name: each for each in (look, send, write, ask)}
        workshop = Workshop(
            tools, self.store, snapshots, self.journal, self.folder, self.servers, lambda _: ""
        )
        return Tools(workshop.call, self.store, self.journal)

    async def use(
        self, name: str, run: str = "first", *, said: bool = True, approved: bool = False
    ) -> ToolResult:
        """One attempt at a call, on a fresh worker."""
        material = (await made(self, name)).model_copy(update={"approved": approved})
        lost = {} if said else {"transcript": "0" * 64}
        material = material.model_copy(update={"run": run} | lost)
        result: ToolResult = await ActivityEnvironment().run(self.tools().use_tool, material)
        return result

    async def told(self, result: ToolResult) -> str:
        return (await self.store.get(result.digest)).decode()


def arguments(name: str) -> dict[str, str]:
    return {"to": "somebody"} if name == "send" else {}


@pytest.fixture
def place(tmp_path: Path) -> Place:
    return Place(tmp_path)


@pytest.mark.parametrize("name", ["look", "send", "write"])
async def test_a_call_whose_completion_was_lost_is_not_run_again(place: Place, name: str) -> None:
    first = await place.use(name)
    assert await place.use(name) == first
    assert place.runs == [name] and await place.told(first) == f"{name} ran"


@pytest.mark.parametrize("name", ["look", "send"])
async def test_a_store_that_fails_after_the_call_loses_nothing(place: Place, name: str) -> None:
    tools = place.tools()
    kept = tools.store.put

    async def fails(content: bytes) -> str:
        if place.runs:
            raise OSError("no space left on device")
        return await kept(content)

    place.store.put = fails  # type: ignore[method-assign]
    with pytest.raises(OSError, match="no space"):
        await place.use(name)
    place.store.put = kept  # type: ignore[method-assign]
    result = await place.use(name)
    assert place.runs == [name] and await place.told(result) == f"{name} ran"
    assert not result.is_error


@pytest.mark.parametrize(("name", "again"), [("look", True), ("write", True), ("send", False)])
async def test_after_a_crash_only_what_may_be_repeated_is(
    place: Place, name: str, again: bool
) -> None:
    place.dies = True
    with pytest.raises(Died):
        await place.use(name)
    place.dies = False
    result = await place.use(name)
    assert place.runs == [name] * (1 + again)
    assert result.is_error != again and result.unknown != again
    assert await place.told(result) == (f"{name} ran" if again else MAY_HAVE_RUN)


async def test_a_call_that_is_cut_in_the_middle_is_not_taken_for_one_that_ran(place: Place) -> None:
    environment = ActivityEnvironment()
    begun = asyncio.Event()

    async def waits(here: Here) -> str:
        """Wait."""
        begun.set()
        await asyncio.Event().wait()
        return ""

    tools = place.tools({"look": tool()(waits)})
    material = await made(place, "look")
    running = asyncio.ensure_future(environment.run(tools.use_tool, material))
    await begun.wait()
    environment.cancel()
    with pytest.raises(asyncio.CancelledError):
        await running
    assert not (await place.use("look")).is_error, "nothing was recorded of it"


async def made(place: Place, name: str) -> UseMaterial:
    """A call that the last message of a transcript holds."""
    content = [{"type": "tool_use", "id": "u1", "name": name, "input": arguments(name)}]
    transcript = await append(place.store, await load(place.store, ""), Told(), content)
    work = WorkMaterial(goal="Compare", subtask=subtask("t1", role="reader"), dependencies=())
    return UseMaterial(
        work=work,
        tools=("look", "send", "write", "ask", ACT),
        transcript=transcript,
        use=ToolUse(id="u1", name=name),
        run="first",
    )


async def test_a_call_whose_arguments_are_lost_has_surely_not_run(place: Place) -> None:
    with pytest.raises(BlobLost):
        await place.use("send", said=False)
    assert not place.runs
    assert not list((place.folder / "journal").glob("*.sent"))


async def test_a_run_that_was_reset_finds_its_calls_again_and_another_does_not(
    place: Place,
) -> None:
    await place.use("look", "first")
    await place.use("look", "first")
    await place.use("look", "another")
    assert place.runs == ["look", "look"]


async def test_a_tool_that_asks_runs_only_what_was_approved_whatever_the_run_was_told(
    place: Place,
) -> None:
    result = await place.use("ask")
    assert result.is_error and "a person must approve" in await place.told(result)
    assert place.runs == []
    assert await place.told(await place.use("ask", approved=True)) == "ask ran"


@pytest.mark.long
@pytest.mark.usefixtures("servers_asked_here")
async def test_a_tool_of_a_server_asks_as_its_file_says_when_it_is_called(place: Place) -> None:
    file = place.folder / ".mcp.json"
    entry: dict[str, object] = {"command": sys.executable, "args": [OWN, "good"]}

    async def told(run: str, *, approved: bool = False, **more: object) -> str:
        file.write_text(json.dumps({"mcpServers": {"own": entry | more}}))
        return await place.told(await place.use(ACT, run, approved=approved))

    place.servers = partial(read_servers, file, {})
    assert await told("first") == "{}"
    for approval in (True, ["act"]):
        said = await told(f"second {approval}", approval=approval)
        assert said == NOT_APPROVED
    assert await told("third", approved=True, approval=True) == "{}"
    said = await told("fourth", approval=["atc"])
    assert said == "the MCP server own does not offer atc, which its approval names"
    file.write_text("{")
    assert await place.told(await place.use(ACT, "fifth")) == NO_FILE


def test_why_a_tool_failed_is_one_harmless_line_with_its_beginning_and_its_end() -> None:
    lines = "\n".join(f"  File {each}" for each in range(1_000))
    said = shorten_reason(f"exit code 1\x1b[2J\n{lines}\nZeroDivisionError: division by zero\n")
    assert said.startswith("exit code 1\\x1b[2J File 0") and len(said) <= REASON_LETTERS
    assert said.endswith("ZeroDivisionError: division by zero") and " … " in said
    key = "sk-ant-api03-" + "aB3" * 30
    assert (
        key not in shorten_reason(f"refused with {key}")
        and shorten_reason("no such file") == "no such file"
    )
