"""Run a call of a tool among the inputs of its subtask, and nothing else."""

from __future__ import annotations

import hashlib
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from temporalio import activity

from holdfast.activities.repositories.scratch import Snapshot, Snapshots
from holdfast.activities.review.lenses import SCANS
from holdfast.activities.toolset import running
from holdfast.activities.toolset.mcp import find_server, make_tool
from holdfast.activities.toolset.servers import BadServers, Server
from holdfast.activities.toolset.tool import Tool, ToolError
from holdfast.activities.turns.conversation import find_arguments
from holdfast.calls.turn import OF_SERVERS, UseMaterial
from holdfast.contracts import MadeFile, PinnedInput
from holdfast.contracts.errors import PossiblyBilled
from holdfast.contracts.made_files import check_name, check_room, merge_files
from holdfast.ports import Journal, Store

HANDLE_LETTERS = 16
SCAN_SECONDS = 30.0
"""How long the search for secrets may take, if no lens has made it in this process."""
Called = tuple[str, bool, bool, tuple[MadeFile, ...], tuple[str, ...]]
MAY_HAVE_RUN = (
    "This call was begun before, and its worker died: whether it has taken effect is not known. It"
    " was not run again. Find out before you repeat it."
)
NOT_APPROVED = (
    "This call was not made: by now a person must approve each call of this tool, and this run was"
    " prepared before that was said. Go on without it."
)
NO_FILE = (
    "This call was not made: what the file of MCP servers says cannot be read just now. Go on"
    " without it."
)


@dataclass(frozen=True)
class Surroundings:
    """Implements `Here` for one call."""

    key: str
    inputs: Mapping[str, PinnedInput]
    store: Store
    snapshots: Snapshots
    journal: Journal
    scratch: Path
    settings: Callable[[str], str]
    made: tuple[MadeFile, ...]
    """Files that the agent made before this call."""
    findings: Mapping[str, str] = field(default_factory=dict)
    """Whole findings that stand in fewer words in the agent's prompt, by subtask."""
    handed_up: list[MadeFile] = field(default_factory=list)
    """Files made by this call."""
    opened: set[str] = field(default_factory=set)
    """Inputs that this call has opened to tell of what they hold."""

    async def content(self, name: str) -> bytes:
        pinned = self._input(name)
        if pinned.is_folder:
            raise ToolError(f"{name!r} is a folder; list_files shows what is in it")
        return await self.store.get(pinned.digest)

    async def folder(self, name: str) -> Path:
        return (await self.snapshot(name)).root

    async def snapshot(self, name: str) -> Snapshot:
        pinned = self._input(name)
        if not pinned.is_folder:
            raise ToolError(f"{name!r} is a file, and no folder")
        return await self.snapshots.open(pinned.digest)

    async def withheld(self, name: str) -> Callable[[str], str]:
        if name not in self.inputs or self.inputs[name].change is None:
            return str
        snapshot = await self.snapshots.open(self.inputs[name].digest)
        redactor = await SCANS.redactor(snapshot, time.monotonic() + SCAN_SECONDS)
        return redactor.blot

    def not_read(self, name: str) -> None:
        self.opened.discard(name)

    def setting(self, name: str) -> str:
        return self.settings(name)

    async def keep(self, content: bytes) -> str:
        digest = await self.store.put(content)
        handle = hashlib.sha256(f"{_agent()} {digest}".encode()).hexdigest()[:HANDLE_LETTERS]
        await self.journal.record(_kept(handle), digest)
        return handle

    async def hand_up(self, name: str, content: bytes) -> MadeFile:
        before = merge_files(self.made, self.handed_up)
        wrong = check_name(name) or check_room(before, name, len(content))
        if wrong:
            raise ToolError(wrong)
        file = MadeFile(name=name, size=len(content), digest=await self.store.put(content))
        self.handed_up.append(file)
        return file

    def finding(self, subtask: str) -> str:
        if subtask not in self.findings:
            known = ", ".join(self.findings) or "none"
            raise ToolError(
                f"subtask {subtask!r:.60} has no finding that is longer than what you were given;"
                f" there are: {known}"
            )
        return self.findings[subtask]

    async def kept(self, handle: str) -> bytes:
        digest = await self.journal.answer(_kept(handle))
        if digest is None:
            raise ToolError(f"no result of yours has the handle {handle!r:.60}")
        return await self.store.get(digest)

    def _input(self, name: str) -> PinnedInput:
        if name not in self.inputs:
            known = ", ".join(sorted(self.inputs)) or "none"
            raise ToolError(f"there is no input {name!r:.100}; there are: {known}")
        self.opened.add(name)
        return self.inputs[name]


@dataclass(frozen=True)
class Workshop:
    """The tools of a worker, and what they work with. Implements `CallTool`."""

    tools: Mapping[str, Tool]
    store: Store
    snapshots: Snapshots
    journal: Journal
    scratch: Path
    servers: Callable[[], Mapping[str, Server]]
    """The servers as their file has them now. Raise BadServers if the file cannot be used."""
    settings: Callable[[str], str]

    async def call(self, material: UseMaterial, key: str) -> Called:
        """Return the text that the model is shown, whether it is an error, whether it is unknown
        what the call has done, the files that it made, and the names of the inputs that it read.
        """
        name = material.use.name
        try:
            tool = self._tool(name) if name in material.tools else None
        except BadServers:
            return NO_FILE, True, False, (), ()
        if tool is not None and tool.approval and not material.approved:
            return NOT_APPROVED, True, False, (), ()
        # Before the mark: what cannot be read has surely not run.
        arguments = await find_arguments(self.store, material.transcript, material.use.id)
        if tool is not None and tool.effects and not tool.idempotent:
            try:
                await self.journal.mark_sent(key)
            except PossiblyBilled:
                return MAY_HAVE_RUN, True, True, (), ()
        here = Surroundings(
            key=key,
            inputs={pinned.name: pinned for pinned in material.work.inputs},
            store=self.store,
            snapshots=self.snapshots,
            journal=self.journal,
            scratch=self.scratch,
            settings=self.settings,
            made=material.made,
            findings=material.findings,
        )
        result = await running.call(tool, name, here, arguments)
        unknown = result.unsure and tool is not None and tool.effects
        # What a call that failed had made is of no use to anybody who reads why it failed.
        made = () if result.is_error else tuple(here.handed_up)
        opened = () if result.is_error else tuple(sorted(here.opened))
        return result.text, result.is_error, unknown, made, opened

    def _tool(self, name: str) -> Tool | None:
        """Return a tool of ours, or of a server that this worker knows."""
        if not name.startswith(OF_SERVERS):
            return self.tools.get(name)
        server = find_server(name, self.servers())
        return None if server is None else make_tool(server, name)


def _agent() -> str:
    """Return the name under which all segments of an agent share what they kept: their runs are
    named after its subtask.
    """
    info = activity.info()
    assert info.workflow_id is not None, "tools run for workflows"
    return f"{info.workflow_namespace}/{info.workflow_id.rpartition('.')[0]}"


def _kept(handle: str) -> str:
    return f"{_agent()}/kept/{handle}"
