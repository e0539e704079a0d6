"""Private files that are there whole or not at all."""

from __future__ import annotations

import errno
import os
import stat
from pathlib import Path

import pytest

from holdfast.storage.files import create, drafted, write_whole


def full(_: int) -> None:
    raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))


def test_a_file_is_replaced_in_one_step_and_is_private(tmp_path: Path) -> None:
    path = tmp_path / ("n" * 250)
    path.write_text("before")
    path.chmod(0o644)
    write_whole(path, b"after")
    assert path.read_bytes() == b"after" and stat.S_IMODE(path.stat().st_mode) == 0o600
    assert list(tmp_path.iterdir()) == [path]


def test_what_cannot_be_written_leaves_the_earlier_file_and_nothing_else(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "file"
    path.write_text("before")
    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(OSError, match="No space left"):
        write_whole(path, b"after")
    with pytest.raises(OSError, match="No space left"):
        create(tmp_path / "new", b"content")
    assert path.read_text() == "before" and list(tmp_path.iterdir()) == [path]


def test_nothing_is_created_where_something_is_not_even_through_a_link(tmp_path: Path) -> None:
    (tmp_path / "link").symlink_to(tmp_path / "nowhere")
    (tmp_path / "file").write_text("before")
    for name in ("link", "file"):
        with pytest.raises(FileExistsError):
            create(tmp_path / name, b"after")
    assert not (tmp_path / "nowhere").exists() and (tmp_path / "file").read_text() == "before"


def test_a_draft_that_is_not_put_in_place_goes_away(tmp_path: Path) -> None:
    with drafted(tmp_path / "file", b"content") as draft:
        assert draft.read_bytes() == b"content" and draft.suffix == ".draft"
    assert not list(tmp_path.iterdir())
