"""A tree is not called clean whose links or submodules lead to what nobody read."""

from __future__ import annotations

from pathlib import Path

import pytest

from holdfast.activities.repositories.links import OUTSIDE, UNLISTED
from parameters import rest_long
from repositories import Bench, Repository, remarks_of

pytestmark = [pytest.mark.anyio, pytest.mark.usefixtures("secrets_found_here")]


@pytest.fixture
def repository(tmp_path: Path) -> Repository:
    repository = Repository.at(tmp_path / "repo")
    repository.commit({"app/a.py": "a = 1\n", "docs/b.md": "b\n", ".gitignore": "/built\n"})
    repository.write("built/made.py", "c = 1\n")
    return repository


@pytest.fixture
def bench(tmp_path: Path) -> Bench:
    return Bench(tmp_path)


def add_submodule(repository: Repository, path: str, commit: str) -> None:
    repository.git("update-index", "--add", "--cacheinfo", f"160000,{commit},{path}")
    (repository.path / path).mkdir(parents=True, exist_ok=True)


async def missed(bench: Bench, repository: Repository, base: str = "") -> dict[str, str]:
    manifest = (await bench.snapshot(repository, base)).manifest
    assert manifest.missed_in_all == len(manifest.missed)
    return {each.path: each.why for each in manifest.missed}


@pytest.mark.parametrize(
    ("target", "why"),
    rest_long(
        [
            ("../../outside", OUTSIDE),
            ("/opt/shared/code.py", OUTSIDE),
            ("../built", UNLISTED),
            ("../built/made.py", UNLISTED),
            ("../hop/made.py", UNLISTED),
            ("../not_there/made.py", UNLISTED),
            ("../sub", UNLISTED),
            ("a.py", ""),
            ("../docs", ""),
            ("..", ""),
            ("../up/b.md", ""),
            ("not_there", ""),
            ("link", ""),
            ("/dev/null", ""),
            ("/usr/share/logo.png", ""),
        ],
        first=5,
    ),
)
async def test_a_link_is_a_gap_unless_what_it_leads_to_is_read(
    repository: Repository, bench: Bench, target: str, why: str
) -> None:
    (repository.path / "hop").symlink_to("built")
    (repository.path / "up").symlink_to("docs")
    add_submodule(repository, "sub", "1" * 40)
    repository.git("add", "-A", "hop", "up")
    repository.git("commit", "-q", "-m", "links")
    (repository.path / "app" / "link").symlink_to(target)
    found = await missed(bench, repository, "HEAD")
    assert found == ({"app/link": why} if why else {})
    whole = {"sub/": "a submodule", "hop": UNLISTED}
    assert await missed(bench, repository) == {**whole, **found}


async def test_a_submodule_is_a_gap_of_a_change_that_moves_it_unless_nobody_has_to_read_it(
    repository: Repository, bench: Bench
) -> None:
    repository.commit({"vendor/x.py": "x = 1\n", ".gitattributes": "gen/** linguist-generated\n"})
    for name in ("lib", "vendor/lib", "gen"):
        add_submodule(repository, name, "1" * 40)
    repository.git("commit", "-q", "-m", "modules")
    repository.write("app/a.py", "a = 2\n")
    assert await missed(bench, repository, "HEAD") == {}
    for name in ("lib", "vendor/lib", "gen"):
        add_submodule(repository, name, "2" * 40)
    assert await missed(bench, repository, "HEAD") == {"lib/": "a submodule"}


@pytest.mark.long
async def test_a_module_that_a_link_replaced_is_told_so_and_not_as_removed(
    repository: Repository, bench: Bench
) -> None:
    repository.commit({"app/use.py": "import a\n\nprint(a.a)\n"})
    (repository.path / "app" / "a.py").unlink()
    removed = await bench.look("uses", repository, "HEAD")
    assert [each.rule for each in remarks_of(removed)] == ["removed-module"]
    repository.write("impl/a.py", "b = 1\nc = 2\n")
    (repository.path / "app" / "a.py").symlink_to("../impl/a.py")
    draft = await bench.look("uses", repository, "HEAD")
    assert remarks_of(draft) == []
    notes = draft.data["notes"]
    assert isinstance(notes, list)
    assert "app/a.py was replaced by a link to ../impl/a.py" in notes
    pinned = await bench.pin(repository, "HEAD", models=True)
    assert "1 file and 1 replaced by a link" in pinned.scope
    assert pinned.change is not None
    diff = (await bench.store.get(pinned.change.diff)).decode()
    assert "(app/a.py was replaced by a link to ../impl/a.py)" in diff
