"""Gather a Python file and the files of its repository that it imports, so that a sandbox can load
their functions. Blocking.
"""

from __future__ import annotations

import posixpath
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

MOST_FILES = 30
MOST_BYTES = 1024 * 1024
"""Of all files together."""
_FROM = re.compile(r"(?m)^\s*from\s+(\.*)([\w.]*)\s+import\b")


def gather(tree: Mapping[str, Path], main: str) -> dict[str, Any]:
    """Return the text of a file of a tree and of those that it and they import names from, by
    `files`, and which file each import means, by `imports` of a file.
    """
    files: dict[str, str] = {}
    imports: dict[str, dict[str, str]] = {}
    left, size = [main], 0
    while left and len(files) < MOST_FILES:
        path = left.pop(0)
        if path in files:
            continue
        content = tree[path].read_bytes()
        size += len(content)
        if size > MOST_BYTES and files:
            break
        files[path] = content.decode("utf-8-sig", "replace")
        named = {(dots, name) for dots, name in _FROM.findall(files[path])}
        found = {dots + name: _resolve(tree, path, len(dots), name) for dots, name in named}
        imports[path] = {name: each for name, each in sorted(found.items()) if each}
        left += imports[path].values()
    return {"main": main, "files": files, "imports": imports}


def _resolve(tree: Mapping[str, Path], path: str, dots: int, name: str) -> str:
    """Return the file that an import means; empty: it is none of this repository. An absolute one
    is looked for in every folder above the file, as its packages lie in one of them.
    """
    folder = posixpath.dirname(path)
    for _ in range(dots - 1):
        folder = posixpath.dirname(folder)
    while True:
        place = posixpath.join(folder, name.replace(".", "/")) if name else folder
        for each in (f"{place}.py", f"{place}/__init__.py".lstrip("/")):
            if each in tree and each != path:
                return each
        if dots or not folder:
            return ""
        folder = posixpath.dirname(folder)
