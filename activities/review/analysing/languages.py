"""Tell which languages a snapshot is written in, and which lenses look for defects in each, so that
an answer can name what nobody looked at. The languages are data, in `languages.yaml`.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from fnmatch import fnmatchcase
from functools import cache
from pathlib import Path, PurePosixPath
from typing import Any

from holdfast.activities.repositories.manifest import Manifest, SnapshotFile
from holdfast.contracts import LanguageShare
from holdfast.untrusted.reading import shipped_yaml

DATA = Path(__file__).with_name("languages.yaml")
OTHER = "other"
"""The language of a file that no row knows."""


@dataclass(frozen=True)
class _Rows:
    """The data, turned round: from what a file shows to the name of its language."""

    places: Mapping[str, str]
    names: Mapping[str, str]
    stems: Mapping[str, str]
    endings: Mapping[str, str]
    programs: Mapping[str, str]
    kinds: Mapping[str, str]


@cache
def _rows() -> _Rows:
    data: dict[str, dict[str, Any]] = shipped_yaml(DATA)

    def turned(what: str) -> dict[str, str]:
        return {key: name for name, row in data.items() for key in row.get(what, ())}

    return _Rows(
        places=turned("places"),
        names=turned("names"),
        stems=turned("stems"),
        endings=turned("endings"),
        programs=turned("programs"),
        kinds={name: row.get("kind", "code") for name, row in data.items()},
    )


def language_names() -> frozenset[str]:
    return frozenset(_rows().kinds)


def is_code(path: str) -> bool:
    """True if a file is in a language in which somebody could find defects, as far as known."""
    return _rows().kinds.get(language_of(path), "code") == "code"


def language_of(path: str, program: str = "") -> str:
    """Return the language of a file by its place, its name, its ending or the program that its
    first line names, in that order; OTHER if none tells.
    """
    rows, pure = _rows(), PurePosixPath(path)
    for pattern, language in rows.places.items():
        if fnmatchcase(path, pattern) and path.count("/") == pattern.count("/"):
            return language
    stem, _, rest = pure.name.partition(".")
    return (
        rows.names.get(pure.name)
        or rows.endings.get(pure.suffix.lower().removeprefix("."))
        or (rows.stems.get(stem) if rest else None)
        or rows.programs.get(program.rstrip("0123456789."))
        or OTHER
    )


def language(file: SnapshotFile) -> str:
    return language_of(file.path, file.program)


def count_languages(
    manifest: Manifest, readers: Mapping[str, tuple[str, ...]]
) -> tuple[LanguageShare, ...]:
    """Return each language of the files in scope, the most common first, with its share of them and
    the lenses that look for defects in it. `readers` says of each lens which languages it reads.
    """
    counts = Counter(language(file) for file in manifest.files)
    kinds = _rows().kinds
    return tuple(
        LanguageShare(
            name=name,
            kind=kinds.get(name, OTHER),
            files=count,
            percent=round(100 * count / counts.total()),
            lenses=tuple(sorted(lens for lens, reads in readers.items() if name in reads)),
        )
        for name, count in sorted(counts.items(), key=lambda item: (-item[1], item[0]))
    )
