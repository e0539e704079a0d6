"""Where tools are tried: what a subtask may see, without a run around it."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from pydantic import JsonValue

from holdfast.activities.repositories.manifest import Manifest
from holdfast.activities.repositories.scratch import Snapshot
from holdfast.activities.toolset.running import call
from holdfast.activities.toolset.tool import Result, Tool, ToolError
from holdfast.contracts import MadeFile, PinnedInput
from holdfast.contracts.made_files import check_name, check_room

WITHHELD = "0f1e2d3c4b5a"
"""A value that the search for secrets found."""


@dataclass
class Bench:
    """A `Here` over bytes and folders of a test."""

    contents: dict[str, bytes] = field(default_factory=dict)
    folders: dict[str, Path] = field(default_factory=dict)
    settings: dict[str, str] = field(default_factory=dict)
    key: str = "run/subtask/call"
    snapshots: dict[str, Snapshot] = field(default_factory=dict)
    scratch: Path = field(default_factory=Path)
    results: dict[str, bytes] = field(default_factory=dict)
    """What was kept, by its handle."""
    findings: dict[str, str] = field(default_factory=dict)
    """Whole findings, by subtask."""
    files: dict[str, bytes] = field(default_factory=dict)
    """What was handed up, by its name."""
    pinned: dict[str, PinnedInput] = field(default_factory=dict)
    told_nothing: list[str] = field(default_factory=list)
    """Inputs that a call opened and told nothing of."""

    @property
    def inputs(self) -> Mapping[str, PinnedInput]:
        files = {
            name: PinnedInput(name=name, kind="file", size=len(each), path=name, digest=sha(each))
            for name, each in self.contents.items()
        }
        folders = {
            name: PinnedInput(name=name, kind="repository", size=0, digest=each.name)
            for name, each in self.folders.items()
        }
        return files | folders | self.pinned

    async def content(self, name: str) -> bytes:
        if name not in self.contents:
            raise ToolError(f"there is no file input {name!r}")
        return self.contents[name]

    async def folder(self, name: str) -> Path:
        if name not in self.folders:
            raise ToolError(f"there is no folder input {name!r}")
        return self.folders[name]

    async def snapshot(self, name: str) -> Snapshot:
        root = await self.folder(name)
        return self.snapshots.get(name, Snapshot(root, Manifest(archive=""), root, root))

    async def withheld(self, name: str) -> Callable[[str], str]:
        return lambda text: text.replace(WITHHELD, "[redacted]")

    def not_read(self, name: str) -> None:
        self.told_nothing.append(name)

    def setting(self, name: str) -> str:
        return self.settings.get(name, "")

    async def keep(self, content: bytes) -> str:
        handle = f"result-{len(self.results) + 1}"
        self.results[handle] = content
        return handle

    async def hand_up(self, name: str, content: bytes) -> MadeFile:
        wrong = check_name(name) or check_room((), name, len(content))
        if wrong:
            raise ToolError(wrong)
        self.files[name] = content
        return MadeFile(name=name, size=len(content), digest=sha(content))

    def finding(self, subtask: str) -> str:
        if subtask not in self.findings:
            raise ToolError(f"no finding of {subtask!r} is longer than what was given")
        return self.findings[subtask]

    async def kept(self, handle: str) -> bytes:
        if handle not in self.results:
            raise ToolError(f"no result is kept as {handle!r}")
        return self.results[handle]

    async def use(self, tool: Tool, **arguments: JsonValue) -> Result:
        """What a model is told of a call, mistakes and limits included."""
        return await call(tool, tool.name, self, arguments)

    async def told(self, tool: Tool, **arguments: JsonValue) -> str:
        """The text of a call that works."""
        result = await self.use(tool, **arguments)
        assert not result.is_error, result.text
        return result.text

    async def refused(self, tool: Tool, **arguments: JsonValue) -> str:
        """The one line of a call that does not."""
        result = await self.use(tool, **arguments)
        assert result.is_error, result.text
        assert "\n" not in result.text and "Traceback" not in result.text
        return result.text


def sha(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()
