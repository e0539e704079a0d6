"""A repository of two states, for a review whose defects are known: written inline in a case of an
eval, or in two folders beside it.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path, PurePosixPath

from holdfast.errors import Refused
from holdfast.intake.example import Messages, build_repository, read_files

State = Path | Mapping[str, str]
"""A folder, or texts by their paths."""
UNTOLD: Messages = ("As it was", "As it is now")
"""Messages of commits that give nothing away."""


def repository_of(before: State, after: State, place: Path) -> Path:
    """Return the repository at this place, whose branch writes the files of `after`; the same to
    the last byte wherever it is made. Refused if it cannot be made.
    """
    return build_repository(place, _texts(before), _texts(after), UNTOLD)


def _texts(state: State) -> Mapping[str, str]:
    texts = read_files(state) if isinstance(state, Path) else state
    if not texts:
        raise Refused("a repository of two states: one has no files; give before and after")
    for name in texts:
        path = PurePosixPath(name)
        if path.is_absolute() or ".." in path.parts or ".git" in path.parts:
            raise Refused(f"a repository of two states: {name!r:.100}: give a path below it")
    return texts
