"""Show where the work goes and who knows the code, from the snapshot's Git history.

A hot spot is a file that is changed often and is long: churn times size. Ownership counts commits.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Mapping
from dataclasses import dataclass, field

from holdfast.activities.repositories.manifest import Manifest
from holdfast.activities.review.analysing.lens import Analyser, Grade, Parsed, Sighting
from holdfast.contracts.errors import LensFailed
from holdfast.text import pluralize

FREQUENT = 10
"""Commits that touch a file, from which on it counts as changed often."""
LONG_FILE = 300
"""Lines."""
SOLE_SHARE = 0.9
"""One author's share of a file's commits, from which on nobody else knows the file."""
TEAM = 3
"""Authors of a repository, from which on sole ownership means something."""
MOST = 10
"""Files named for each reason."""

RULES = HOT_SPOT, ONE_OWNER, BUS_FACTOR = "hot-spot", "one-owner", "bus-factor"
GRADES = {
    "hot spot, among the first three": Grade("warning", 80),
    "hot spot": Grade("info", 80),
    "one owner": Grade("info", 80),
    "bus factor of one": Grade("info", 70),
}


@dataclass
class _Work:
    """Counts of one file in the history."""

    lines: int
    changed: int = 0
    authors: Counter[str] = field(default_factory=Counter)

    @property
    def commits(self) -> int:
        return self.authors.total()


def survey(manifest: Manifest) -> Parsed:
    """Find hot spots, files with one owner and the bus factor, of the files in scope. LensFailed if
    the commits could not be read, as in a clone with a filter.
    """
    if manifest.no_history:
        raise LensFailed(manifest.no_history[:300])
    if not manifest.commits:
        return Parsed(read=0)
    work = {file.path: _Work(file.lines) for file in manifest.files}
    team: Counter[str] = Counter()
    for commit in manifest.commits:
        team[commit.author] += 1
        for change in commit.changes:
            if (found := work.get(change.path)) is not None:
                found.authors[commit.author] += 1
                found.changed += change.added + change.deleted
    owned = _sole_owners(work) if len(team) >= TEAM else ()
    sightings = (*_hot_spots(work, len(manifest.commits)), *owned, *_bus_factor(manifest, work))
    return Parsed(sightings, read=len(work), notes=_notes(manifest, team))


def _hot_spots(work: Mapping[str, _Work], commits: int) -> tuple[Sighting, ...]:
    hot = [
        path for path, each in work.items() if each.commits >= FREQUENT and each.lines >= LONG_FILE
    ]
    hot.sort(key=lambda path: (-work[path].commits * work[path].lines, path))
    return tuple(
        Sighting(
            file=path,
            line=0,
            rule=HOT_SPOT,
            message=(
                f"Hot spot: changed by {work[path].commits} of the last {commits} commits"
                f" ({work[path].changed} lines) and {work[path].lines} lines long"
            ),
            grade="hot spot, among the first three" if rank < 3 else "hot spot",
            suggestion="Split off what changes most often; review and test here first",
            weight=work[path].commits * work[path].lines,
        )
        for rank, path in enumerate(hot[:MOST])
    )


def _sole_owners(work: Mapping[str, _Work]) -> tuple[Sighting, ...]:
    owned = []
    for path, each in work.items():
        if each.commits >= FREQUENT:
            author, count = each.authors.most_common(1)[0]
            if count >= SOLE_SHARE * each.commits:
                owned.append((each.commits, path, author, count))
    owned.sort(key=lambda item: (-item[0], item[1]))
    return tuple(
        Sighting(
            file=path,
            line=0,
            rule=ONE_OWNER,
            message=f"{count} of {commits} commits are by {author[:80]}: nobody else knows it",
            grade="one owner",
            suggestion="Let somebody else review or make the next change",
        )
        for commits, path, author, count in owned[:MOST]
    )


def _bus_factor(manifest: Manifest, work: Mapping[str, _Work]) -> tuple[Sighting, ...]:
    """Report if one author wrote most of the files of the repository, so not in a change."""
    owners: defaultdict[str, int] = defaultdict(int)
    for each in work.values():
        if each.authors:
            owners[each.authors.most_common(1)[0][0]] += 1
    if manifest.base or len(owners) < TEAM:
        return ()
    author, count = max(owners.items(), key=lambda item: (item[1], item[0]))
    if count * 2 <= sum(owners.values()):
        return ()
    message = f"{author[:80]} is the main author of {count} of {sum(owners.values())} files"
    return (Sighting("", 0, BUS_FACTOR, message, "bus factor of one"),)


def _notes(manifest: Manifest, team: Counter[str]) -> tuple[str, ...]:
    return (f"{pluralize(len(manifest.commits), 'commit')} by {pluralize(len(team), 'author')}",)


ANALYSER = Analyser(
    name="history",
    looks_for="commits",
    grades=GRADES,
    survey=survey,
    summed=True,
    rules=RULES,
)
