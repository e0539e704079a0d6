"""The labelled remarks: what a review said of real repositories, and what somebody who read the
code around it says of that, as the repository's maintainer would. Data without anybody's code: a
place, a rule, and a fingerprint of the line.
"""

from __future__ import annotations

import functools
import hashlib
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Literal

import yaml
from pydantic import BaseModel, ConfigDict

HERE = Path(__file__).parent
FOLDER = HERE / "labels"
PRODUCTION = "production"
Verdict = Literal["useful", "true", "false"]
"""A maintainer would act on it; it is so, and nobody would act on it; it is not so."""


class _Record(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class Source(_Record):
    """An archive as its registry publishes it, and how it is fetched."""

    name: str
    version: str
    archive: str
    sha256: str
    fetch: str
    languages: tuple[str, ...]

    @property
    def key(self) -> str:
        """What its folder and its file of labels are called."""
        return f"{self.name}-{self.version}"


class Label(_Record):
    """One remark with its label. `row` is the row of the lens's table that graded it; empty: since
    it was labelled, the rule was narrowed, and does not see it any more.
    """

    path: str
    line: int
    lens: str
    rule: str
    row: str
    fingerprint: str
    kind: str
    label: Verdict
    reason: str


class ChangeLabel(_Record):
    """A sighting that a commit brought, with its label; `line` as it stands in the commit. Of
    `planted` ones the reason names the defect or the look-alike.
    """

    repository: str
    commit: str
    path: str
    line: int
    lens: str
    rule: str
    row: str
    label: Verdict
    reason: str


def fingerprint(path: str, rule: str, line: str) -> str:
    """Return the fingerprint of a remark's place: file and text of the line."""
    said = f"{path}\0{rule}\0{' '.join(line.split())}"
    return hashlib.sha256(said.encode("utf-8", "replace")).hexdigest()[:16]


@functools.cache
def sources() -> tuple[Source, ...]:
    """The repositories, by name."""
    listed = yaml.safe_load((HERE / "sources.yaml").read_text("utf-8"))
    return tuple(Source.model_validate(each) for each in listed)


def of(source: Source) -> Iterator[Label]:
    """The labels of one repository."""
    path = FOLDER / f"{source.key}.jsonl"
    if path.exists():
        for line in path.read_text("utf-8").splitlines():
            yield Label.model_validate(json.loads(line))


@functools.cache
def on_changes() -> tuple[ChangeLabel, ...]:
    """The labels of what commits of public repositories brought, one a commit and message, and of
    what is planted here.
    """
    lines = (HERE / "changes.jsonl").read_text("utf-8").splitlines()
    return tuple(ChangeLabel.model_validate(json.loads(line)) for line in lines)


@functools.cache
def everything() -> tuple[Label, ...]:
    """All labels."""
    return tuple(label for source in sources() for label in of(source))
