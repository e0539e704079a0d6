"""Which commits a review of an event compares, and the review itself.

Lenses cost nothing and look at the whole range each time, so that it is known which of their
remarks are gone. What costs looks at new commits alone.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Collection, Iterable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from decimal import Decimal
from functools import partial
from pathlib import Path
from typing import Any

import anyio.to_thread

from holdfast.activities.repositories.git import Git, GitFailed, open_git
from holdfast.activities.repositories.main_line import find_start
from holdfast.activities.repositories.manifest import display_path
from holdfast.activities.repositories.wanted import Wanted
from holdfast.activities.repositories.working_tree import Comparison, collect
from holdfast.client.holdfast import Holdfast
from holdfast.contracts import Remark, Report, ReviewData
from holdfast.contracts.errors import BadGoal
from holdfast.contracts.remarks import rank_remarks, read_review
from holdfast.doors.github.event import Asked
from holdfast.doors.github.threads import hash_of
from holdfast.errors import Refused, RunFailed
from holdfast.intake.requests import Document, read_request
from holdfast.rules.leaving import CHANGED
from holdfast.untrusted.roots import roots_at

REQUESTER = "github"
INTENT_LETTERS = 20_000
MOST_BYTES = 64 * 1024 * 1024
"""Of files in which the code of agents' remarks is looked for."""
Inputs = dict[str, Any]


@dataclass(frozen=True)
class Range:
    """What is compared with what."""

    head: str
    base: str
    """The commit where the change began; empty: the review finds it, or takes the whole tree."""
    since: str = ""
    """The commit up to which agents have read the change; empty: they read all of it."""
    replaced: str = ""
    """The commit that a forced push replaced, where no clone has that."""


@dataclass(frozen=True)
class Found:
    """What a review came to."""

    report: Report
    range: Range
    read_up_to: str = ""
    """The commit up to which agents have read now; empty: none has."""


async def range_of(repository: Path, asked: Asked, since: str = "") -> Range:
    """Return what is to be compared. Refused where the clone does not have it."""
    async with _git(repository) as git:
        there = await git.head()
        if there != asked.head:
            raise Refused(
                f"{str(repository)!r} has {there[:12] or 'no commit'} checked out, and"
                f" {asked.head[:12]} is to be reviewed; check that out (actions/checkout: ref)"
            )
        if changed := await _find_change(git, there):
            raise Refused(
                f"{changed!r} is not as commit {there[:12]} has it, which is to be judged; check it"
                " out anew, before other steps write there"
            )
        if not asked.base:
            return Range(asked.head, "")
        base = await git.merge_base(asked.base, asked.head)
        if not base and not asked.pull and not git.view.shallow:
            # No clone has what a forced push replaced: then it is the branch that is judged.
            start = await find_start(git, Wanted(scope=CHANGED), asked.head, 0)
            if not start.commit:
                raise Refused(
                    f"no clone has {asked.base[:12]}, which a forced push replaced, and there is no"
                    f" other commit to compare {asked.head[:12]} with; review it with run"
                )
            return Range(asked.head, start.commit, replaced=asked.base)
        if not base:
            raise Refused(
                f"{str(repository)!r} does not have the history from {asked.base[:12]} to"
                f" {asked.head[:12]}; clone all of it (actions/checkout: fetch-depth: 0)"
            )
        # Commits that somebody has rewritten since are no beginning.
        grown = bool(since) and await git.merge_base(since, asked.head) == since
        return Range(asked.head, base, since if grown else "")


async def _find_change(git: Git, commit: str) -> str:
    """Return a file of the working tree that is not as a commit has it; empty if there is none."""
    index, tree = await git.index(), await git.tree(commit)
    staged = (path for path in index.keys() | tree.keys() if index.get(path) != tree.get(path))
    edited = await git.modified()
    # What only has other line ends is no change of its own.
    read = partial(collect, git.layout.tree, edited, Comparison(index, tree))
    same = {*(await anyio.to_thread.run_sync(read)).same}
    edited = [path for path in edited if path not in same]
    changed = [*sorted(staged), *await git.not_looked_at(), *edited, *await git.untracked()]
    first = next(iter(changed), b"")
    return display_path(first)


async def codes_of(
    repository: Path, span: Range, paths: Collection[str]
) -> dict[str, frozenset[str]]:
    """Return the hashes of the lines of these files of the head. Of one that is not there they are
    those of all that the change brings: it may only be called otherwise now.
    """
    if not paths:
        return {}
    async with _git(repository) as git:
        tree = await git.tree(span.head)
        before = await git.tree(span.base) if span.base else {}
        named = {path: tree.get(path.encode("utf-8", "surrogateescape")) for path in paths}
        new = {each.hash for path, each in tree.items() if before.get(path) != each}
        wanted = {each.hash for each in named.values() if each}
        wanted |= set() if all(named.values()) else new
        blobs = await git.blobs(sorted(wanted), MOST_BYTES)
    codes = {
        name: frozenset(map(hash_of, text.decode("utf-8", "replace").splitlines()))
        for name, text in blobs.items()
    }
    brought = frozenset().union(*(codes[each] for each in new & codes.keys()))
    return {
        path: codes.get(each.hash, brought) if each else brought for path, each in named.items()
    }


@asynccontextmanager
async def _git(repository: Path) -> AsyncIterator[Git]:
    """Open git over the clone as over any stranger's repository. Refused if it is none."""
    try:
        async with open_git(repository, roots_at([repository])[0]) as git:
            yield git
    except BadGoal as error:
        raise Refused(error.message) from error
    except GitFailed as error:
        raise Refused(f"{str(repository)!r}: {error}") from error


async def review(
    hf: Holdfast, repository: Path, asked: Asked, span: Range, dollars: Decimal | None, models: bool
) -> Found:
    """Review a range: lenses all of it, agents what they have not read of it yet."""
    inputs: Inputs = {"repo": str(repository)}
    inputs |= {"base": span.base} if span.base else {}
    inputs |= {"scope": "all"} if asked.whole else {}
    if not models:
        return Found(await _run(hf, inputs), span)
    paid = {**inputs, "prove": "no"} | _intent(asked)
    if not span.since:
        report = await _run(hf, paid, dollars=dollars, models=True)
        return Found(report, span, _read(report, span.head))
    free = await _run(hf, inputs)
    if span.since == span.head:
        return Found(free, span, span.head)
    again = await _run(hf, {**paid, "base": span.since}, dollars=dollars, models=True)
    return Found(joined(free, again), span, _read(again, span.head) or span.since)


def _intent(asked: Asked) -> Inputs:
    """Return what the change is for, in its author's words, as an input for agents."""
    said = asked.pull.intent.strip()[:INTENT_LETTERS] if asked.pull else ""
    return {"intent": Document.of(said.encode(), "intent.md").model_dump()} if said else {}


async def _run(hf: Holdfast, inputs: Inputs, **more: Any) -> Report:
    given = {name: str(each) if isinstance(each, Decimal) else each for name, each in more.items()}
    wanted = {"playbook": "code-review", "inputs": inputs, **given}
    request = read_request({name: each for name, each in wanted.items() if each}, "github")
    report = await (await hf.start_request(request, requester=REQUESTER)).report()
    if read_review(report) is None:
        raise RunFailed(f"run {report.run_id} ended as {report.status}, without a review")
    return report


def _read(report: Report, head: str) -> str:
    """Return the head if agents have read up to it."""
    review = read_review(report) or ReviewData()
    return head if review.agents and not review.failed and report.status == "complete" else ""


def joined(free: Report, paid: Report) -> Report:
    """Return the report of the lenses with what agents found in the new commits."""
    ours, theirs = (read_review(each) or ReviewData() for each in (free, paid))
    added = _new(theirs.remarks, ours.remarks)
    lenses = {*ours.looked_at}
    together = ours.model_copy(
        update={
            "remarks": tuple(rank_remarks([*ours.remarks, *added])),
            "unconfirmed": theirs.unconfirmed,
            "by_verdict": theirs.by_verdict,
            "agents": theirs.agents,
            "cut_of_agents": theirs.cut_of_agents,
            # Of the same lens the larger range has said it.
            "failed": (*ours.failed, *(each for each in theirs.failed if each not in lenses)),
        }
    )
    status = free.status if paid.status == "complete" else paid.status
    data = {**free.data, **together.model_dump(mode="json")}
    return free.model_copy(
        update={"data": data, "status": status, "gaps": (*free.gaps, *paid.gaps)}
    )


def _new(remarks: Iterable[Remark], known: Iterable[Remark]) -> list[Remark]:
    """Return what agents say and nobody has said of the same place."""
    places = {(each.file, each.line, each.message) for each in known}
    return [
        each
        for each in remarks
        if each.by_agent and (each.file, each.line, each.message) not in places
    ]
