"""Choose what a repository is compared with: a revision, or the commit where its branch left the
main line, which is found in the repository's own refs, never by asking a server.
"""

from __future__ import annotations

import os
import shutil
import tempfile
from dataclasses import dataclass, replace
from pathlib import Path

from holdfast.activities.repositories.git import Git, GitFailed
from holdfast.activities.repositories.refs import BRANCHES, ORIGIN
from holdfast.activities.repositories.wanted import Wanted
from holdfast.rules.leaving import ALL, CHANGED, SCOPE
from holdfast.text import for_terminal, pluralize
from holdfast.untrusted.process import ProgramStopped, run
from holdfast.untrusted.redact import redact

USUAL = ("main", "master")
NAME_LETTERS = 80
"""Characters of a revision or branch, in a sentence."""
REMEDY = "fetch its whole history (fetch-depth: 0), or give base=REVISION"
SHALLOW = "the clone is shallow"
CONFIG_SECONDS = 5.0
_OWN_CONFIG = ("HOME", "XDG_CONFIG_HOME")


@dataclass(frozen=True)
class Start:
    """The commit to compare with; without one the whole tree is taken, and `why` says why."""

    commit: str = ""
    name: str = ""
    uncommitted: bool = False
    """True if it is the commit that is checked out."""
    why: str = ""
    cut: bool = False
    """True if there is none because the history is cut: the files may be a change, or not."""
    shallow: bool = False
    """True if the clone lacks older commits."""

    def describe(
        self, files: int, renamed: int, deleted: int, changed: int | None, linked: int = 0
    ) -> str:
        """Return what is taken and why, in words: `files` are in scope, `renamed` are otherwise as
        they were, `deleted` are only in the base, `linked` are links now, `changed` differ from the
        commit. Empty if nobody had a choice.
        """
        if not self.commit:
            said = f"the whole tree, {self.why}" if self.why else ""
        else:
            said = self._describe_change(_count(files, renamed, deleted, linked), changed)
        cut = self.shallow and said and SHALLOW not in said
        return f"{said}; {SHALLOW}{f': {REMEDY}' * self.cut}" if cut else said

    def _describe_change(self, count: str, changed: int | None) -> str:
        name = display_name(self.name)
        short = self.commit[:10]
        of = f"{name} ({short})" if name and not self.commit.startswith(name) else short
        if self.uncommitted:
            return f"what is not committed on {of}, {count}"
        rest = {None: "", 0: ", nothing is uncommitted"}.get(
            changed, ", uncommitted changes included"
        )
        return f"what differs from {of}, {count}{rest}"


def _count(files: int, renamed: int, deleted: int, linked: int) -> str:
    """Return `3 files, 1 renamed and 2 deleted`, without what there is none of."""
    kinds = {"": files, " renamed": renamed, " deleted": deleted, " replaced by a link": linked}
    there = [(count, how) for how, count in kinds.items() if count] or [(0, "")]
    (first, how), *more = there
    words = [f"{pluralize(first, 'file')}{how}", *(f"{count:,}{how}" for count, how in more)]
    return " and ".join(filter(None, (", ".join(words[:-1]), words[-1])))


def display_name(name: str) -> str:
    """Return a revision or branch as anybody may see it."""
    return redact(for_terminal(name))[:NAME_LETTERS]


async def find_start(view: Git, wanted: Wanted, head: str, changed: int | None) -> Start:
    """Return what a run compares with. `head` is checked out, and `changed` files differ from it
    (None: not known). Raise BadGoal for a base that does not exist.
    """
    if wanted.base:
        found = Start(await view.commit(wanted.base), wanted.base)
    elif wanted.scope != CHANGED:
        found = Start(why=f"as {SCOPE}={ALL} asks" if wanted.scope == ALL else "")
    elif not head:
        found = Start(why="because there is no commit to compare with")
    else:
        found = await _guess_start(view, head, changed)
        found = replace(found, cut=is_partial(view) and not found.commit)
    return replace(found, shallow=view.view.shallow)


async def _guess_start(view: Git, head: str, changed: int | None) -> Start:
    """Return what is compared with where nobody said it."""
    name = await find_main_line(view)
    if not name and view.view.shallow:
        return Start(why=f"because {SHALLOW} and its main line is not in it: {REMEDY}")
    if not name:
        return Start(
            why="because no main line was found: origin names none, and there is no branch"
            f" {' or '.join(USUAL)}; fetch it, or give base=REVISION"
        )
    try:
        point = await _find_fork_point(view, head, name)
    except GitFailed as error:
        return Start(why=f"because where it left {display_name(name)} could not be found: {error}")
    return _from_point(view, name, point, head, changed)


def _from_point(view: Git, name: str, point: str, head: str, changed: int | None) -> Start:
    main = display_name(name)
    if not point:
        if not view.view.shallow:
            return Start(why=f"because no commit in common with {main} was found")
        reach = f"it does not reach the point where it left {main}"
        return Start(why=f"because {SHALLOW} and {reach}: {REMEDY}")
    if point != head:
        return Start(point, name)
    if changed:
        return Start(head, name, uncommitted=True)
    if changed is None:
        return Start(why="because it is not known what of it is not committed")
    return Start(why=f"because {main} has all of it and nothing is uncommitted")


def is_partial(view: Git) -> bool:
    """True if a clone may lack its main line: it is shallow, or has one branch of origin alone."""
    origins = [ref for ref in view.view.refs if ref.startswith(ORIGIN)]
    return view.view.shallow or (len(origins) == 1 and not view.view.main)


async def find_main_line(view: Git) -> str:
    """Return the name of the main branch: what origin calls so, else `main` or `master`, else what
    this user's Git calls a first branch, else the only branch there is, unless the clone may have
    been asked for that branch alone. Empty: none.
    """
    for name in (view.view.main, *USUAL):
        if name and _refs_of(view, name):
            return name
    name = await _first_branch()
    if name and _refs_of(view, name):
        return name
    if is_partial(view):
        return ""
    branches = [ref for ref in view.view.refs if ref.startswith(BRANCHES)]
    return branches[0].removeprefix(BRANCHES) if len(branches) == 1 else ""


def _refs_of(view: Git, name: str) -> list[str]:
    """Return the main line here and at origin, as far as they exist; if it is checked out, only
    origin's.
    """
    here, there = BRANCHES + name, ORIGIN + name
    found = [ref for ref in (here, there) if ref in view.view.refs]
    if view.view.head == f"ref: {here}" and there in found:
        return [there]
    return found


async def _find_fork_point(view: Git, head: str, name: str) -> str:
    """Return the commit where what is checked out left the main line; of two, the nearer one."""
    nearest = ""
    for ref in _refs_of(view, name):
        point = await view.merge_base(head, view.view.refs[ref])
        if not nearest or (point and await view.merge_base(nearest, point) == nearest):
            nearest = point
    return nearest


async def _first_branch() -> str:
    """Return what the user's own configuration of Git calls a first branch."""
    program = shutil.which("git")
    if program is None:
        return ""
    own = {name: os.environ[name] for name in _OWN_CONFIG if name in os.environ}
    try:
        with tempfile.TemporaryDirectory(prefix="git-") as folder:
            finished = await run(
                [os.path.abspath(program), "config", "--global", "--get", "init.defaultBranch"],
                folder=Path(folder),
                environment={"PATH": os.defpath, "LC_ALL": "C", **own},
                seconds=CONFIG_SECONDS,
            )
    except (ProgramStopped, OSError):
        return ""
    return finished.stdout.decode("utf-8", "replace").strip()[:NAME_LETTERS]
