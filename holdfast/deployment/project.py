"""The folder of one's own: where it is, whether it is trusted, and what its `holdfast.toml` says.

A folder is found from the current one upwards. Its tools run as the user does, and its settings say
where keys are sent: so one that merely lies on the way, as in a repository of strangers, is used
only once somebody has named it on this machine, by `init` or by `--project`.
"""

from __future__ import annotations

import hashlib
import os
import re
import tomllib
from collections.abc import Collection, Iterable, Mapping
from pathlib import Path
from typing import Any

from platformdirs.unix import Unix
from pydantic import SecretStr, TypeAdapter, ValidationError
from pydantic.fields import FieldInfo

from holdfast.deployment.address import withheld_of
from holdfast.errors import BadSettings
from holdfast.text.mistakes import as_rest, suggest
from holdfast.untrusted.folders import Unreadable, read_named

FILE = "holdfast.toml"
FOLDERS = ("roles", "playbooks", "tools")
PRICES = "prices.yaml"
VARIABLE = "HOLDFAST_PROJECT"
SEVERAL = "HOLDFAST_PROJECTS"
NAME = re.compile(r"[A-Za-z0-9_-][A-Za-z0-9._-]{0,39}")
"""Name of a project in its runs."""
FILE_BYTES = 1024 * 1024
HOOKS, SLACK = "hooks", "slack"
TABLES = (HOOKS, SLACK)
"""What of the file is no setting: tables that only their doors read."""
_MARK = "project"
"""A file in the state folder of a trusted project: which one it is."""


def state_home() -> Path:
    """Return the user's state folder; the same place on macOS, so that what the pages say of it
    holds there, too.
    """
    return Unix("holdfast").user_state_path


def state_of(folder: Path) -> Path:
    """Return where the embedded server of a project keeps its state, unless a setting says so."""
    mark = hashlib.sha256(bytes(folder)).hexdigest()[:8]
    return state_home() / "projects" / f"{name_of(folder)}-{mark}"


def state_of_several(projects: Iterable[Path]) -> Path:
    """Return where the embedded server of a worker of several projects keeps its state: each set
    has a folder of its own, because another set's worker would refuse the runs of some.
    """
    named = b"\0".join(sorted({bytes(each) for each in projects}))
    return state_home() / "projects" / f"several-{hashlib.sha256(named).hexdigest()[:8]}"


def name_of(folder: Path) -> str:
    """Return what a project is called that gives itself no name: its folder's name, made plain."""
    return re.sub(r"[^A-Za-z0-9._-]+", "-", folder.name).strip("-.")[:40] or "project"


def trust(folder: Path) -> None:
    """Remember that somebody on this machine has named this project."""
    state = state_of(folder)
    state.mkdir(mode=0o700, parents=True, exist_ok=True)
    (state / _MARK).write_bytes(_marked(folder) + _identity(folder))


def _marked(folder: Path) -> bytes:
    return bytes(folder) + b"\n"


def _identity(folder: Path) -> bytes:
    """Return a line that stays the same when a folder is moved or renamed in its file system."""
    found = folder.stat()
    return f"{found.st_dev}:{found.st_ino}\n".encode()


def find_moved(folder: Path) -> tuple[Path, Path] | None:
    """Return where this project may have been before it was moved or renamed, and the state folder
    of that place: a project with runs was there and is gone, and was this very folder or has its
    name. None if there is none.
    """
    for mark in sorted((state_home() / "projects").glob(f"*/{_MARK}")):
        place, _, identity = mark.read_bytes().partition(b"\n")
        before = Path(os.fsdecode(place))
        like = identity == _identity(folder) or before.name == folder.name
        has_runs = (mark.parent / "temporal.db").exists()
        if like and has_runs and before != folder and not (before / FILE).exists():
            return before, mark.parent
    return None


def is_trusted(folder: Path) -> bool:
    """True for a folder of this user that somebody on this machine has named as a project."""
    try:
        # Where others may write, a folder that was yours can be somebody else's by now.
        ours = folder.stat().st_uid in (os.geteuid(), 0)
        return ours and (state_of(folder) / _MARK).read_bytes().startswith(_marked(folder))
    except OSError:
        return False


def resolve_named(place: Path) -> Path:
    """Return the absolute folder of a project that somebody named. BadSettings if it is none."""
    try:
        folder = place.expanduser().resolve()
        if _has_settings(folder):
            return folder
    except (OSError, RuntimeError, ValueError):
        pass
    raise BadSettings(
        f"settings: {str(place)!r} is no project, as it holds no {FILE}; make one there with init"
    )


def find_several() -> tuple[Path, ...]:
    """Return the projects that HOLDFAST_PROJECTS names, each once and in one order, whichever it is
    written in; BadSettings as `resolve_named`.
    """
    given = filter(None, os.environ.get(SEVERAL, "").split(os.pathsep))
    return tuple(sorted({resolve_named(Path(each)) for each in given}))


def find_project(trusted: Collection[Path] = ()) -> Path | None:
    """Return the project that HOLDFAST_PROJECT names, or the first from the current folder upwards;
    None if there is none, or if that variable is set to nothing.

    BadSettings for one that is on the way and that nobody has named on this machine.
    """
    given = os.environ.get(VARIABLE)
    if given is not None:
        return resolve_named(Path(given)) if given else None
    try:
        here = Path.cwd().resolve()
    except OSError:
        return None
    folder = next((each for each in (here, *here.parents) if _has_settings(each)), None)
    if folder is None or folder in trusted or is_trusted(folder):
        return folder
    raise BadSettings(
        f"settings: {str(folder / FILE)!r} could run code of its own, and nobody has named that"
        f" project on this machine: add --project {folder} once if you trust it, or set"
        f" {VARIABLE}= to go on without it"
    )


def _has_settings(folder: Path) -> bool:
    # A link that leads nowhere, too: that it cannot be read is said, not passed over.
    return (folder / FILE).is_file() or (folder / FILE).is_symlink()


def read_values(folder: Path, fields: Mapping[str, FieldInfo]) -> dict[str, Any]:
    """Return what `holdfast.toml` sets, by the name of the setting. BadSettings names the file and
    the first mistake in it; what it holds is not repeated. It also names a folder of the project
    that is none.
    """
    for each in (folder / name for name in FOLDERS):
        if os.path.lexists(each) and not each.is_dir():
            raise BadSettings(f"settings: {str(each)!r} is not a folder; move it away")
    given = _load(folder)
    for name, value in given.items():
        if name not in TABLES and (wrong := _wrong(name, value, fields)):
            raise BadSettings(f"settings: {folder / FILE}: {wrong}")
    # Empty is not set, as of a variable.
    return {name: value for name, value in given.items() if name not in TABLES and value != ""}


def read_tables(folder: Path, kind: str) -> dict[str, Any]:
    """Return the tables of a door that `holdfast.toml` has, by name. BadSettings as above."""
    found = _load(folder).get(kind, {})
    if not isinstance(found, dict):
        raise BadSettings(f"settings: {folder / FILE}: {kind}: write each as [{kind}.NAME]")
    return found


def _load(folder: Path) -> dict[str, Any]:
    file = folder / FILE
    try:
        return tomllib.loads(read_named(file, FILE_BYTES))
    except Unreadable as error:
        raise BadSettings(f"settings: {error}") from error
    except (ValueError, RecursionError) as error:
        # Beside what is no TOML: a number or a nesting that Python does not read.
        raise BadSettings(f"settings: {file}: no TOML: {as_rest(str(error))}") from error


def _wrong(name: str, value: object, fields: Mapping[str, FieldInfo]) -> str:
    """Return why a key cannot stand in the file; empty if it can."""
    known = [each for each in fields if can_stand(each, fields[each])]
    if name == _MARK:
        return f"{name}: no effect, as the file is in that folder; remove it"
    if name == "projects":
        return f"{name}: no effect here; set {SEVERAL} in the environment"
    if name not in fields:
        plain = name.lower().removeprefix("holdfast_")
        near = f" (did you mean {plain!r}?)" if plain in known else suggest(plain, known)
        return f"nothing reads {name}{near or '; known: ' + ', '.join(known)}"
    if is_secret(fields[name]) or (isinstance(value, str) and withheld_of(value)):
        return f"{name} holds a secret, and this file is shared: put it into .env beside it"
    if value == "":
        return ""
    if isinstance(value, str) and not value.isprintable():
        return f"{name}: holds a control character; leave it out"
    kind = fields[name].annotation
    if isinstance(value, bool) and kind is not bool:
        return f"{name}: true and false say nothing here; give a value"
    try:
        TypeAdapter(fields[name].rebuild_annotation()).validate_python(value)
    except ValidationError as error:
        return f"{name}: {as_rest(error.errors()[0]['msg'].removeprefix('Value error, '))}"
    return ""


def can_stand(name: str, field: FieldInfo) -> bool:
    """True for a setting that `holdfast.toml` may hold."""
    return name not in (_MARK, "projects") and not is_secret(field)


def is_secret(field: FieldInfo) -> bool:
    """True for a setting that must not stand in a file that is shared."""
    return SecretStr in (field.annotation, *getattr(field.annotation, "__args__", ()))
