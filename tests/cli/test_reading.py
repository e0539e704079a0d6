"""JSON, YAML and files that strangers wrote: read within bounds, or refused in one clear line."""

from __future__ import annotations

import errno
import json
import os
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import hypothesis
import pytest
import yaml
from hypothesis import strategies

from holdfast.activities.asking.prices import PriceFileError, read_price_file
from holdfast.activities.catalogue.catalogue import Catalogue
from holdfast.activities.catalogue.files import text_of
from holdfast.activities.catalogue.tools import CatalogueError
from holdfast.cli.screen.exits import Exit
from holdfast.cli.shared.options import check_out
from holdfast.contracts import Plan
from holdfast.errors import Refused
from holdfast.intake import plans
from holdfast.intake.files import read_text
from holdfast.intake.inputs import input_of
from holdfast.untrusted.reading import DEPTH, NotPlain, from_json, from_yaml
from holdfast.untrusted.roots import Outside, open_file, roots_at

BOMB = "a: &a [x, x]\n" + "".join(
    f"{chr(98 + n)}: &{chr(98 + n)} [*{chr(97 + n)}, *{chr(97 + n)}]\n" for n in range(24)
)
MERGES = "a: &a {x: 1}\n" + "".join(
    f"{chr(98 + n)}: &{chr(98 + n)} {{<<: [*{chr(97 + n)}, *{chr(97 + n)}]}}\n" for n in range(24)
)
YAML = {
    "aliases that grow": (BOMB, "anchors and aliases"),
    "merges that grow": (MERGES, "anchors and aliases"),
    "lists in lists": ("[" * 100_000, "levels deep"),
    "rows in rows": ("- " * 50_000, "levels deep"),
    "keys in keys": ("? " * 50_000, "levels deep"),
    "mappings in mappings": ("{a: " * 50_000, "levels deep"),
    "a tag that does not fit": ("a: !!float abc", "tag"),
    "a number of nothing": ("a: !!int ''", "tag"),
    "no moment": ("a: !!timestamp x", "tag"),
    "an object": ("a: !!python/object:os.system x", "tag"),
    "bytes": ("a: !!binary x", "tag"),
    "no truth": ("a: !!bool maybe", "not YAML"),
    "a key twice": ("a: 1\na: 2", "'a' is given twice"),
    "a key that is a list": ("? [a]\n: 1", "a key must be a text"),
    "a key that is a truth": ("yes: 1", "a key must be a text"),
    "two documents": ("a\n---\nb", "not YAML"),
    "half a character": ('"\\ud800"', "half a character"),
    "a NUL": ('"a\\u0000b"', "has a NUL"),
    "a control character": ("\x00", "not YAML"),
    "a colon too many": ("a: b: c", "line 1 column 5"),
}
JSON = {
    "lists in lists": ("[" * 100_000, "levels deep"),
    "closed lists in lists": ("[" * 200 + "]" * 200, "levels deep"),
    "a long number": ("9" * 6_000, "more than 18 digits"),
    "a long fraction": ("1." + "9" * 6_000, "larger or longer"),
    "a huge number": ("1e999", "larger or longer"),
    "not a number": ("NaN", "is not a number"),
    "a key twice": ('{"a": 1, "a": 2}', "'a' is given twice"),
    "half a character": ('{"\\ud800": 1}', "half a character"),
    "nothing": ("", "line 1 column 1"),
}


@pytest.mark.parametrize(
    ("read", "text", "why"),
    [
        *(pytest.param(from_yaml, *YAML[name], id=f"yaml: {name}") for name in YAML),
        *(pytest.param(from_json, *JSON[name], id=f"json: {name}") for name in JSON),
    ],
)
def test_what_is_absurd_is_refused_in_one_line_and_at_once(
    read: Callable[[str], Any], text: str, why: str
) -> None:
    began = time.process_time()
    with pytest.raises(NotPlain, match=why) as refused:
        read(text)
    assert "\n" not in str(refused.value) and len(str(refused.value)) < 300
    assert time.process_time() - began < 5


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("a: 2001-99-99", {"a": "2001-99-99"}),
        ("a: 1:20:30", {"a": "1:20:30"}),
        ("a: 0x1F", {"a": "0x1F"}),
        ("a: 9999999999999999999", {"a": "9999999999999999999"}),
        ("a: [1, -2.5, true, no, ~, '1', .5]", {"a": [1, -2.5, True, False, None, "1", 0.5]}),
        ("a: |\n  b\n  c\n", {"a": "b\nc\n"}),
        ("", None),
        ("<<: {a: 1}", {"<<": {"a": 1}}),
    ],
)
def test_yaml_is_plain_values_and_converts_nothing(text: str, value: object) -> None:
    assert from_yaml(text) == value


# PyYAML writes this end of a line as it is, and reads it as a space.
LETTERS = strategies.characters(codec="utf-8", exclude_characters="\x00\x85")
plain = strategies.recursive(
    strategies.none()
    | strategies.booleans()
    | strategies.integers(-(10**15), 10**15)
    | strategies.text(LETTERS, max_size=20),
    lambda inner: (
        strategies.lists(inner, max_size=4)
        | strategies.dictionaries(strategies.text("abc", min_size=1, max_size=5), inner, max_size=4)
    ),
    max_leaves=20,
)


@hypothesis.given(plain)
def test_what_is_plain_is_read_as_it_was_written(value: object) -> None:
    assert from_json(json.dumps(value)) == value
    assert from_yaml(yaml.safe_dump(value, allow_unicode=True)) == value


@hypothesis.given(
    strategies.text(max_size=200) | strategies.text("[]{}:,-&*!?|>'\"\n #%@a1~", max_size=80)
)
def test_any_text_is_read_or_refused_in_one_line(text: str) -> None:
    for read in (from_json, from_yaml):
        try:
            read(text)
        except NotPlain as error:
            assert "\n" not in str(error)


# ---------------------------------------------------------------- files


def odd_files(folder: Path) -> dict[str, str]:
    """Paths that are not files to read, and what is said of each."""
    os.mkfifo(folder / "pipe")
    (folder / "loop").symlink_to("loop")
    (folder / "latin").write_bytes(b"caf\xe9")
    with (folder / "huge").open("wb") as file:
        file.truncate(1 << 33)
    found = {
        str(folder / "pipe"): "no file to read: not a regular file",
        str(folder): "no file to read: not a regular file",
        str(folder / "loop"): "Too many levels of symbolic links",
        str(folder / "latin"): "no UTF-8 text",
        str(folder / "huge"): "larger than",
        str(folder / "none"): "there is no file",
        str(folder / ("x" * 300)): "cannot be read",
        "/dev/zero": "no file to read: not a regular file",
        "a\0b": "names no file",
    }
    if os.access("/proc/kmsg", os.R_OK):
        found["/proc/kmsg"] = "/proc/kmsg' "
    return found


def test_a_file_that_is_none_is_refused_in_one_line_and_never_waited_for(tmp_path: Path) -> None:
    for path, why in odd_files(tmp_path).items():
        for read in (lambda path: read_text(path, "--file"), plans.read_plan):
            with pytest.raises(Refused) as refused:
                read(Path(path))
            assert why in str(refused.value) and "\n" not in str(refused.value), path


def test_a_price_file_and_a_role_file_are_read_within_the_same_bounds(tmp_path: Path) -> None:
    (tmp_path / "prices").write_text(BOMB)
    with pytest.raises(PriceFileError, match="anchors and aliases"):
        read_price_file(tmp_path / "prices")
    with pytest.raises(PriceFileError, match="not a regular file"):
        read_price_file(Path("/dev/zero"))
    (tmp_path / "roles").mkdir()
    (tmp_path / "roles" / "odd.md").write_text(f"---\n{MERGES}---\nYou are.\n")
    (odd,) = Catalogue.load(tmp_path).unusable_roles
    assert "odd.md: front matter: " in odd.why and "anchors and aliases" in odd.why


def test_a_link_that_leads_to_itself_is_told_alike_by_every_reader_and_python(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    loop = tmp_path / "loop.md"
    loop.symlink_to(loop)

    def told() -> list[str]:
        said = [str(roots_at([loop])[1] == (loop,))]
        for read in (
            lambda: read_text(loop, "--file"),
            lambda: read_price_file(loop),
            lambda: text_of(loop, loop.name),
            lambda: input_of(f"a={loop}", None),
            lambda: open_file(loop, ()),
        ):
            with pytest.raises((Refused, PriceFileError, CatalogueError, Outside)) as error:
                read()
            said.append(str(error.value))
        return said

    now = told()
    assert all("Too many levels" in each for each in now[1:4]), now
    real = Path.resolve

    def as_others_do(path: Path, strict: bool = False) -> Path:
        """Raise what the other half of the supported Pythons raises."""
        try:
            return real(path, strict)
        except RuntimeError:
            raise OSError(errno.ELOOP, os.strerror(errno.ELOOP)) from None
        except OSError as error:
            if error.errno == errno.ELOOP:
                raise RuntimeError("Symlink loop") from None
            raise

    monkeypatch.setattr(Path, "resolve", as_others_do)
    assert told() == now


def test_a_plan_may_be_as_deep_as_any_plan_is(tmp_path: Path) -> None:
    path = tmp_path / "plan.yaml"
    path.write_text("goal: g\nsubtasks:\n- {id: a, title: t, instruction: i, role: writer}\n")
    assert isinstance(plans.read_plan(path), Plan)
    nested: Any = "x"
    for _ in range(DEPTH):
        nested = [nested]
    assert from_json(json.dumps(nested)) == nested
    with pytest.raises(NotPlain):
        from_json(json.dumps([nested]))


def test_a_report_replaces_no_device(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    for path in (Path("/dev/null"), tmp_path / "pipe"):
        with pytest.raises(Exit, match="is not a regular file"):
            check_out(path)
