"""Remember which endpoints have ever answered this deployment: one that went away is an outage, one
that never did is most likely a mistake.
"""

from __future__ import annotations

import os
from contextlib import suppress
from pathlib import Path


class Heard:
    """Remembers an address; with a `path` beyond this process, one address a line."""

    def __init__(self, address: str, path: Path | None = None) -> None:
        self._address, self._path = address, path
        self._known = False

    @property
    def known(self) -> bool:
        """True once an answer has come from the address, other than that it has no such path."""
        if not self._known and self._path is not None:
            with suppress(OSError, UnicodeDecodeError):
                self._known = self._address in self._path.read_text("utf-8").splitlines()
        return self._known

    def note(self) -> None:
        """Remember that the address answered. A failure to write costs nothing but the memory."""
        if self.known:
            return
        self._known = True
        if self._path is not None:
            flags = os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_NOFOLLOW
            with suppress(OSError), open(os.open(self._path, flags, 0o600), "a") as file:
                file.write(f"{self._address}\n")
