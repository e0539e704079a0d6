"""A small repository to show the review on: the files of `examples/shop`, with a branch whose
change has planted defects.

It is the same to the last byte wherever it is made: authors, dates and settings are its own, and
Git reads no configuration of this machine or this user.
"""

from __future__ import annotations

import hashlib
import os
import shutil
import subprocess
import tempfile
from collections.abc import Mapping
from pathlib import Path

from holdfast.deployment.settings import HOME
from holdfast.errors import Refused

SHOP = HOME / "examples" / "shop"
MAIN, BRANCH = "main", "receipts"
UNCOMMITTED = "scripts/cleanup.sh"
"""The file of the change that is in the working tree alone, so that this is seen to count."""
ASSEMBLED: Mapping[str, str] = {"@ACCESS-KEY@": "AKIA" + "".join(("7Q3ZP5XN", "V2LKD6TW"))}
"""Values that look like keys: assembled here, since a scanner would take them for real."""
MARK = "example"
"""A file in `.git` that says of which files the repository was made."""
GIT_SECONDS = 30.0
Messages = tuple[str, str]
SHOPS: Messages = ("The shop takes orders", "Receipts are printed and kept")
"""Of the two commits of the example."""
_OPTIONS = (
    "core.autocrlf=false", "core.fileMode=false", "commit.gpgSign=false", "gc.auto=0",
)  # fmt: skip


def make_repository(folder: Path, source: Path = SHOP) -> Path:
    """Return the example repository in this folder, made if it is missing or was made from other
    files.

    A person's own changes in it stay. Refused if it cannot be made.
    """
    files = {name: read_files(source / name) for name in ("main", "change")}
    if not files["main"]:
        raise Refused(f"the files of the example are missing from {str(source)!r}; install again")
    return build_repository(folder / source.name, files["main"], files["change"])


def build_repository(
    place: Path, before: Mapping[str, str], change: Mapping[str, str], messages: Messages = SHOPS
) -> Path:
    """Return the repository at a place, with a commit of the files `before` and on a branch one
    that writes those of `change`; made if it is missing or was made from other files. Refused if
    it cannot be made.
    """
    program = shutil.which("git")
    if program is None:
        raise Refused("git was not found on PATH; a repository cannot be made without it")
    mark = hashlib.sha256(repr((before, change, messages)).encode()).hexdigest()
    if _marked(place) == mark:
        return place
    place.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=place.parent, prefix=".draft-") as draft:
        fresh = Path(draft) / place.name
        fresh.mkdir()
        _build(fresh, before, change, messages, program)
        (fresh / ".git" / MARK).write_text(mark, encoding="utf-8")
        shutil.rmtree(place, ignore_errors=True)
        fresh.rename(place)
    return place


def read_files(folder: Path) -> dict[str, str]:
    """Return the texts below a folder by path, with placeholders replaced by the values of
    ASSEMBLED.
    """
    texts = {}
    for path in sorted(folder.rglob("*")):
        if path.is_file() and "__pycache__" not in path.parts:
            text = path.read_text(encoding="utf-8")
            for sign, value in ASSEMBLED.items():
                text = text.replace(sign, value)
            texts[path.relative_to(folder).as_posix()] = text
    return texts


def _marked(repository: Path) -> str:
    try:
        return (repository / ".git" / MARK).read_text(encoding="utf-8")
    except (OSError, ValueError):
        return ""


def _build(
    folder: Path,
    before: Mapping[str, str],
    change: Mapping[str, str],
    messages: Messages,
    program: str,
) -> None:
    _git(program, folder, "init", "--quiet", "--template=", f"--initial-branch={MAIN}")
    _write(folder, before)
    _commit(program, folder, messages[0], "Ada", 5)
    _git(program, folder, "checkout", "--quiet", "-b", BRANCH)
    _write(folder, {name: text for name, text in change.items() if name != UNCOMMITTED})
    _commit(program, folder, messages[1], "Grace", 6)
    _write(folder, {name: text for name, text in change.items() if name == UNCOMMITTED})


def _write(folder: Path, files: Mapping[str, str]) -> None:
    for name, text in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8", newline="\n")


def _commit(program: str, folder: Path, message: str, author: str, day: int) -> None:
    _git(program, folder, "add", "--all")
    _git(program, folder, "commit", "--quiet", f"--message={message}", author=author, day=day)


def _git(program: str, folder: Path, *arguments: str, author: str = "Ada", day: int = 1) -> None:
    """Run git in an environment that has nothing of this machine's but the path."""
    date, email = f"2026-01-{day:02}T09:00:00+0000", f"{author.lower()}@shop.example"
    environment = {
        "PATH": os.environ.get("PATH", os.defpath),
        "HOME": str(folder),
        "LC_ALL": "C",
        "GIT_CONFIG_NOSYSTEM": "1",
        "GIT_CONFIG_GLOBAL": os.devnull,
        "GIT_ATTR_NOSYSTEM": "1",
        "GIT_CEILING_DIRECTORIES": str(folder.parent),
    }
    for who in ("AUTHOR", "COMMITTER"):
        named = {"NAME": author, "EMAIL": email, "DATE": date}
        environment |= {f"GIT_{who}_{what}": value for what, value in named.items()}
    options = [part for option in _OPTIONS for part in ("-c", option)]
    try:
        subprocess.run(
            [program, *options, *arguments],
            cwd=folder,
            env=environment,
            check=True,
            timeout=GIT_SECONDS,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            errors="replace",
        )
    except subprocess.CalledProcessError as error:
        said = " ".join((error.stderr or "no reason").split())[:300]
        raise Refused(f"the example could not be made in {str(folder)!r}: {said}") from error
    except subprocess.TimeoutExpired as error:
        raise Refused(f"the example could not be made in {str(folder)!r}: git hangs") from error
