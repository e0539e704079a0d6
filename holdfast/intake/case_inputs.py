"""The inputs of a case of an eval: their paths begin at its suite's folder, and lead nowhere beyond
what it belongs to, as suites may come from others.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

from holdfast.errors import Refused
from holdfast.intake.inputs import LITERAL

FOLDER = "evals"
"""The folder of suites in a project, and in what ships."""


def whole_paths(inputs: object, folder: Path, where: str) -> object:
    """Return inputs with whole paths. Refused, naming the case, if one leads outside."""
    if not isinstance(inputs, dict):
        return inputs
    made = {
        name: {state: _whole_path(each, folder) for state, each in given.items()}
        if is_planted(given)
        else _whole_path(given, folder)
        for name, given in inputs.items()
    }
    home = folder.parent.parent if folder.parent.name == FOLDER else folder
    places = {os.path.realpath(each) for each in (folder, home)}
    for name, given in made.items():
        for path in _read_of(given):
            if not _is_below(path, places):
                raise Refused(
                    f"{where}: inputs.{name}: {path!r:.200} leads outside {str(home)!r};"
                    " put a copy beside the suite"
                )
    return made


def is_planted(given: object) -> bool:
    """True for a repository of two states, each a folder or texts by their paths."""
    return isinstance(given, dict) and {*given} == {"before", "after"}


def _whole_path(given: object, folder: Path) -> object:
    if not isinstance(given, str) or given.startswith(LITERAL):
        return given
    try:
        return str((folder / Path(given).expanduser()).absolute())
    except RuntimeError:
        return str((folder / given).absolute())  # `~name` of nobody here: a file like others


def _read_of(given: object) -> Iterator[str]:
    """Yield the paths that an input names; of a state of a repository, also the links in it, which
    are followed.
    """
    if isinstance(given, str) and not given.startswith(LITERAL):
        yield given
    elif is_planted(given):
        assert isinstance(given, dict)
        for state in filter(lambda each: isinstance(each, str), given.values()):
            yield state
            for folder, folders, files in os.walk(state):
                paths = (os.path.join(folder, each) for each in (*folders, *files))
                yield from filter(os.path.islink, paths)


def _is_below(path: str, places: set[str]) -> bool:
    try:
        leads = Path(os.path.realpath(path))
    except (OSError, ValueError):  # a NUL in it: said where it is looked for
        return True
    return any(leads.is_relative_to(each) for each in places)
