"""Which languages a repository is written in, and who looks for what is wrong in each."""

from __future__ import annotations

from pathlib import Path

import pytest

from holdfast.activities.repositories.manifest import Manifest, SnapshotFile, file_of
from holdfast.activities.review.analysing.languages import (
    OTHER,
    count_languages,
    language,
    language_names,
    language_of,
)
from holdfast.activities.review.lenses import analysers, readers
from holdfast.contracts import LanguageShare, Sightings
from repositories import Bench, Repository


@pytest.mark.parametrize(
    ("path", "name"),
    [
        ("a.py", "Python"),
        ("types.pyi", "Python"),
        ("web/App.TSX", "TypeScript"),
        ("a.mjs", "JavaScript"),
        ("cmd/main.go", "Go"),
        (".github/workflows/ci.yml", "GitHub workflow"),
        ("docs/.github/workflows/ci.yml", "YAML"),
        (".github/workflows/deep/ci.yml", "YAML"),
        ("action.yaml", "GitHub action"),
        ("deploy/Dockerfile", "Dockerfile"),
        ("Dockerfile.dev", "Dockerfile"),
        ("Dockerfile.md", "Prose"),
        ("Dockerfile.dockerignore", "Data"),
        ("Dockerfile.bak", "Data"),
        ("web.dockerfile.bak", "Data"),
        ("Dockerfile.in", "Data"),
        ("Dockerfile.tpl", "Template"),
        ("Gemfile", "Ruby"),
        ("LICENSE", "Prose"),
        ("package.json", "Data"),
        ("bin/tool", OTHER),
        ("-rf.py", "Python"),
        ("new\nline.go", "Go"),
        ("a.py\n", OTHER),
    ],
)
def test_a_file_tells_its_language_by_name_and_place(path: str, name: str) -> None:
    assert language_of(path) == name


@pytest.mark.parametrize(
    ("first", "name"),
    [
        (b"#!/bin/sh\n", "Shell"),
        (b"#!/usr/bin/env bash", "Shell"),
        (b"#! /usr/bin/env -S node --harmony\n", "JavaScript"),
        (b"#!/opt/python/bin/python3.14 -I\n", "Python"),
        (b"#!/usr/bin/env -S uv run --script\n", "Python"),
        (b"#!\n", OTHER),
        (b"#!/bin/\xff\n", OTHER),
        (b"#!" + b"/" * 500_000, OTHER),
        (b"text\n#!/bin/sh\n", OTHER),
    ],
)
def test_a_file_without_an_ending_tells_its_language_by_its_first_line(
    first: bytes, name: str
) -> None:
    assert language(file_of(b"tool", first)) == name


def test_every_lens_names_languages_that_are_known() -> None:
    assert readers() == {
        name: each.languages
        for name, each in analysers().items()
        if each.languages and each.explore is None
    }
    for lens, reads in readers().items():
        assert set(reads) <= language_names(), lens


def test_each_language_has_its_share_and_those_who_read_it() -> None:
    paths = ("a.go", "b.go", "c.py", "README.md")
    manifest = Manifest(
        archive="", files=tuple(SnapshotFile(path=path, size=1, lines=1) for path in paths)
    )
    assert count_languages(manifest, {"bugs": ("Python",), "smells": ("Python", "Ruby")}) == (
        LanguageShare(name="Go", files=2, percent=50),
        LanguageShare(name="Prose", kind="prose", files=1, percent=25),
        LanguageShare(name="Python", files=1, percent=25, lenses=("bugs", "smells")),
    )
    assert count_languages(Manifest(archive=""), readers()) == ()


@pytest.mark.anyio
async def test_a_lens_hands_on_the_languages_of_what_it_was_given(tmp_path: Path) -> None:
    repository, bench = Repository.at(tmp_path / "repo"), Bench(tmp_path)
    repository.commit({"a.zig": "x\n", "tool": "#!/usr/bin/env python3\nx = missing\n"})
    draft = await bench.look("bugs", repository)
    told = Sightings.model_validate(draft.data).languages
    assert [(each.name, each.percent, "bugs" in each.lenses) for each in told] == [
        ("Python", 50, True),
        ("Zig", 50, False),
    ]
    assert draft.data["files_read"] == 1
