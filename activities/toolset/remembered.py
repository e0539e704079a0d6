"""Remember the tools that MCP servers last listed, for a run that finds one too slow to answer: in
a private file for each server, which counts only for the very same program.
"""

from __future__ import annotations

import hashlib
import json
import logging
import os
import shutil
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from pydantic import BaseModel, JsonValue, ValidationError

from holdfast.activities.toolset.mcp import Listed
from holdfast.activities.toolset.servers import SCRIPT, Server
from holdfast.embedded import private
from holdfast.errors import EmbeddedError
from holdfast.storage.files import write_whole

logger = logging.getLogger(__name__)

FILE_BYTES = 16 * 1024 * 1024


class ToldTools(BaseModel):
    """The list of a server, whose it is, and when it was made."""

    server: str
    at: datetime
    tools: tuple[dict[str, JsonValue], ...]


@dataclass(frozen=True)
class ToolLists:
    """The lists below a folder of the state directory."""

    folder: Path

    def keep(self, server: Server, tools: Sequence[Listed]) -> None:
        """Remember a server's list; if that fails, it is only not remembered."""
        told = ToldTools(
            server=_identity(server), at=datetime.now(UTC), tools=tuple(map(dict, tools))
        )
        try:
            private.make_folder(self.folder)
            write_whole(self._file(server), told.model_dump_json().encode(), sync=False)
        except (OSError, EmbeddedError) as error:
            logger.warning("the tools of the MCP server %s are not kept: %s", server.name, error)

    def last(self, server: Server) -> ToldTools | None:
        """Return the last list of the very same server; None if there is none."""
        try:
            told = ToldTools.model_validate_json(private.read(self._file(server), FILE_BYTES))
        except (OSError, ValidationError):
            return None
        return told if told.server == _identity(server) else None

    def _file(self, server: Server) -> Path:
        return self.folder / f"{server.name}.json"


def _identity(server: Server) -> str:
    """Return a hash of all that makes a server the one it is: how it is asked, and which files it
    is.
    """
    asked = {
        "command": server.command,
        "environment": dict(server.environment),
        "url": server.url,
        "headers": dict(server.headers),
        "files": [*_files(server)],
    }
    return hashlib.sha256(json.dumps(asked, sort_keys=True).encode()).hexdigest()


def _files(server: Server) -> Iterator[tuple[str, int, int, int]]:
    """Yield the program and the scripts that it is given; data that it works on may change."""
    for place, word in enumerate(server.command):
        if place and not SCRIPT.fullmatch(Path(word).name):
            continue
        path = server.environment.get("PATH", os.environ.get("PATH"))
        found = shutil.which(word, path=path) if place == 0 else str(server.folder / word)
        try:
            real = Path(found or word).resolve(strict=True)
            status = real.stat()
        except (OSError, ValueError):
            continue
        yield str(real), status.st_ino, status.st_size, status.st_mtime_ns
