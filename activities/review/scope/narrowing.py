"""Mark remarks that a review does not list, by the repository's settings or because they are known.
They are not dropped, so that the answer can count them.
"""

from __future__ import annotations

from collections.abc import Collection

from holdfast.activities.toolset.globs import name_pattern
from holdfast.contracts import Narrowing, Remark

KNOWN = "known"
THRESHOLD = "threshold"
RULE = "rule "
SLASH = ord("/")


class Narrower:
    """Marks remarks by what a repository's settings take out, and by what is known."""

    def __init__(self, narrowing: Narrowing, known: Collection[str]) -> None:
        self._narrowing = narrowing
        self._known = frozenset(known)
        self._globs = [(glob, name_pattern(glob.rstrip("/"))) for glob in narrowing.paths_out]
        self._files: dict[str, str] = {}

    def why_hidden(self, remark: Remark) -> str:
        """Return why a remark is not listed: `path GLOB`, `rule NAME`, KNOWN or THRESHOLD; empty:
        it is listed.
        """
        if why := self._path(remark.file):
            return why
        for name in (remark.rule, f"{remark.lens}:{remark.rule}"):
            if name in self._narrowing.rules_off:
                return f"{RULE}{name}"
        if remark.confidence < self._narrowing.threshold:
            return THRESHOLD
        return KNOWN if remark.fingerprint and remark.fingerprint in self._known else ""

    def takes_out(self, file: str) -> bool:
        """True if a pattern of the settings is about this file."""
        return bool(self._path(file))

    def _path(self, file: str) -> str:
        if file and file not in self._files:
            path = file.encode("utf-8", "surrogateescape")
            # A pattern of a folder means all that is below it.
            whole = [path[:end] for end, each in enumerate(path) if each == SLASH] + [path]
            found = (glob for glob, each in self._globs if any(map(each.search, whole)))
            self._files[file] = f"path {glob}" if (glob := next(found, "")) else ""
        return self._files.get(file, "")
