"""Credentials of many services, made up for the test, and what looks like one and is none."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
from detect_secrets.core.plugins.util import get_mapping_from_secret_type_to_class

from bench.review.believed import SHOWN
from holdfast.activities.review.analysers import secrets
from holdfast.untrusted.redact import looks_secret, redact, without_keys
from holdfast.untrusted.secret_shapes import LIBRARY, OURS
from planted_secrets import KINDS, look_alikes, made_up, planted
from repositories import Bench, Repository, remarks_of

pytestmark = pytest.mark.anyio

UNKNOWN = {"connection"}
"""An address with a password is an example as a rule: found, and not shown."""
_LIBRARYS: Any = get_mapping_from_secret_type_to_class()
KNOWN = {name: _LIBRARYS[name]().denylist for name in LIBRARY}
"""Taken before a test searches for secrets in this process, which changes the library's."""


@pytest.fixture
def repository(tmp_path: Path) -> Repository:
    return Repository.at(tmp_path / "repo")


async def shown(repository: Repository, bench: Bench) -> set[str]:
    draft = await bench.look("secrets", repository)
    return {each.file for each in remarks_of(draft) if each.confidence >= SHOWN}


async def test_credentials_of_many_services_are_found_in_code_and_in_settings(
    repository: Repository, tmp_path: Path
) -> None:
    texts = list(planted())
    names = {f"f{n:03}.txt": kind for n, (kind, _) in enumerate(texts)}
    files: dict[str, str | bytes] = {
        name: text for name, (_, text) in zip(names, texts, strict=True)
    }
    repository.commit(files)
    found = await shown(repository, Bench(tmp_path))
    assert {kind for name, kind in names.items() if name not in found} == UNKNOWN
    assert len(found) == len(texts) - 2 * len(UNKNOWN)


async def test_what_only_looks_like_a_credential_is_not_shown(
    repository: Repository, tmp_path: Path
) -> None:
    repository.commit({f"f{n:03}.txt": text for n, text in enumerate(look_alikes())})
    assert await shown(repository, Bench(tmp_path)) == set()


def test_a_credential_is_redacted_in_any_text() -> None:
    for kind in sorted(set(KINDS) - {"private key", "connection", "npm"}):
        value = made_up(kind)
        assert value not in redact(f"it says {value} there"), kind


def test_every_kind_of_ours_has_a_row_of_its_own() -> None:
    assert set(OURS) <= set(secrets.GRADES) and len(OURS) > 30


def test_what_is_redacted_is_what_the_library_knows_and_does_not_need_it() -> None:
    assert len(KNOWN) > 15
    assert {
        name: [f"{'(?i)' * bool(each.flags & re.IGNORECASE)}{each.pattern}" for each in shapes]
        for name, shapes in KNOWN.items()
    } == LIBRARY


def test_a_look_for_all_shapes_together_finds_what_each_alone_does() -> None:
    for text in (*(text for _, text in planted()), *look_alikes()):
        assert looks_secret(text) == (redact(text) != without_keys(text)), text
