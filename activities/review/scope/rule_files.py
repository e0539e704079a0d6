"""Find the files in which a repository says how its code is to be written."""

from __future__ import annotations

import re
from pathlib import PurePosixPath

from holdfast.activities.repositories.manifest import Manifest

MOST = 30
"""Files that are named, those nearest to what differs first."""
_NAMES = re.compile(
    r"(?i)(?:claude|agents|gemini|contributing|conventions|hacking|development|maintaining"
    r"|copilot-instructions|(?:[a-z]+[-_])?(?:coding|code|style)[-_]?(?:style|standards?|guide"
    r"|guidelines|conventions)?)(?:\.(?:md|mdx|mdc|rst|txt|adoc))|\.cursorrules|\.windsurfrules"
)
_FOLDERS = re.compile(r"(?:^|/)(?:\.cursor/rules|\.claude/rules|\.github/instructions)/[^/]+$")
_CENTRAL = ("", ".github", "docs", "doc", ".gitlab")
"""Folders whose rules are for all code."""


def find_rule_files(manifest: Manifest) -> tuple[str, ...]:
    """Return the paths of the files with rules for what is in scope: of the whole repository, and
    of each folder above a file in scope.
    """
    above = {
        str(folder) if str(folder) != "." else ""
        for file in manifest.files
        for folder in PurePosixPath(file.path).parents
    }
    found = [
        file.path
        for file in (*manifest.files, *manifest.around)
        if _FOLDERS.search(file.path)
        or (
            _NAMES.fullmatch(file.path.rpartition("/")[2])
            and file.path.rpartition("/")[0] in (*_CENTRAL, *above)
        )
    ]
    return tuple(sorted(found, key=lambda path: (-path.count("/"), path))[:MOST])
