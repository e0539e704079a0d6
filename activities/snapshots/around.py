"""Read what stands around a change: the files of the head that are as the base has them, those
first that tell how the code works. Never in the way of what is in scope.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from holdfast.activities.repositories.manifest import display_path
from holdfast.activities.repositories.output import TreeEntry
from holdfast.activities.repositories.working_tree import Comparison, collect
from holdfast.activities.review.analysing.languages import OTHER, is_code, language_of
from holdfast.activities.review.scope.attributes import Attributes
from holdfast.activities.review.scope.kinds import is_written, kind_of
from holdfast.activities.snapshots.changes import claims
from holdfast.contracts import FileKind
from holdfast.untrusted.folders import Folder

AROUND_BYTES = 64 * 1024 * 1024
AROUND_FILES = 20_000
RULES = re.compile(
    rb"(?i)(?:^|/)(?:claude|agents|contributing|readme|code_?style|style_?guide)[^/]*\Z"
    rb"|(?:^|/)\.(?:cursorrules|editorconfig|github/copilot-instructions\.md)\Z"
    rb"|(?:^|/)docs?/.*\.(?:md|rst|txt)\Z"
)
"""Matches files that say how the code is to be written, and what it is for."""


@dataclass
class Around:
    """Texts by raw path, and the files that would be among them and are not: what nobody wrote, and
    what is beyond a bound.
    """

    files: dict[bytes, bytes] = field(default_factory=dict)
    kinds: dict[bytes, FileKind] = field(default_factory=dict)
    cut: int = 0


def read_around(
    root: Folder,
    index: Mapping[bytes, TreeEntry],
    same: Iterable[bytes],
    renamed: Mapping[bytes, bytes],
    attributes: Attributes,
) -> Around:
    """Return the files among `same` that somebody wrote, and those that were only renamed.
    Blocking.
    """
    around = Around(dict(renamed))
    ranks: dict[int, list[bytes]] = defaultdict(list)
    for path in same:
        if is_written(kind_of(display_path(path), b"", attributes)):
            ranks[_rank(path)].append(path)
        else:
            around.cut += 1
    left = AROUND_BYTES - sum(map(len, renamed.values()))
    for _, paths in sorted(ranks.items()):
        room = max(AROUND_FILES - len(around.files), 0)
        found = collect(root, paths[:room], Comparison(index, None), max(left, 0), claims=claims)
        around.files |= found.files
        around.cut += len(paths[room:]) + len(found.missed)
        left -= found.size
    for path, text in list(around.files.items()):
        kind = kind_of(path.decode(), text, attributes)
        if is_written(kind) or path in renamed:
            around.kinds[path] = kind
        else:
            del around.files[path]
            around.cut += 1
    return around


def _rank(path: bytes) -> int:
    if RULES.search(path):
        return 0
    name = display_path(path)
    return 1 if language_of(name) != OTHER and is_code(name) else 2
