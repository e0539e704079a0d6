"""Planted defects: small files of ours with a change that brings each defect, and look-alikes that
are none. They are reviewed as a change against a clean base, as a review is mostly asked for.
"""

from __future__ import annotations

import base64
import hashlib
import tempfile
from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

import yaml
from pydantic import BaseModel, ConfigDict

from bench.review.believed import SHOWN
from bench.review.labels import HERE
from bench.review.looking import committed, remarks_of
from holdfast.contracts import Remark

FOLDER = HERE / "planted"


class Change(BaseModel):
    """What one defect, or one look-alike, adds to a file. `finds`: lines, one of which is to be
    remarked, each by how it begins.
    """

    model_config = ConfigDict(extra="forbid", frozen=True)

    name: str
    file: str
    adds: str
    finds: tuple[str, ...] = ()


class Garden(BaseModel):
    """The planted defects of one language, and the files before."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    language: str
    base: dict[str, str] = {}
    defects: tuple[Change, ...]
    look_alikes: tuple[Change, ...]


@dataclass(frozen=True)
class Seen:
    """What the review showed of one change."""

    language: str
    change: Change
    rules: tuple[str, ...]

    @property
    def is_defect(self) -> bool:
        """True if it was to be found."""
        return bool(self.change.finds)


def gardens() -> list[Garden]:
    """Every language's."""
    return [
        Garden.model_validate(yaml.safe_load(_with_secrets(path.read_text("utf-8"))))
        for path in sorted(FOLDER.glob("*.yaml"))
    ]


async def reviewed(garden: Garden) -> list[Seen]:
    """What a review of the change shows of each defect and of each look-alike."""
    with tempfile.TemporaryDirectory(prefix="bench-planted-") as folder:
        tree = Path(folder) / "tree"
        before = garden.base or {"README": "A shop.\n"}
        for name, text in before.items():
            _write(tree / name, text)
        committed(tree)
        changes = (*garden.defects, *garden.look_alikes)
        texts = dict(before)
        first: list[int] = []
        for change in changes:
            text = texts.get(change.file, "")
            text = f"{text}\n\n" if text else ""
            first.append(text.count("\n") + 1)
            texts[change.file] = text + change.adds
            _write(tree / change.file, texts[change.file])
        remarks = await remarks_of(tree, "HEAD")
    return list(_seen(garden, changes, first, remarks))


def _seen(
    garden: Garden, changes: Sequence[Change], first: Sequence[int], remarks: Iterable[Remark]
) -> Iterable[Seen]:
    by_file: defaultdict[str, list[Remark]] = defaultdict(list)
    for remark in remarks:
        if remark.confidence >= SHOWN:
            by_file[remark.file].append(remark)
    for change, start in zip(changes, first, strict=True):
        lines = change.adds.split("\n")
        wanted = {
            start + index
            for index, line in enumerate(lines)
            if not change.finds or any(line.strip().startswith(each) for each in change.finds)
        }
        rules = [each.rule for each in by_file[change.file] if each.line in wanted]
        yield Seen(garden.language, change, tuple(dict.fromkeys(rules)))


def _write(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, "utf-8")


def _with_secrets(text: str) -> str:
    """The text with secrets that are put together here: no scanner takes our files for a leak."""
    for name, value in _secrets().items():
        text = text.replace("{{" + name + "}}", value)
    return text


def _secrets() -> dict[str, str]:
    letters = base64.b64encode(hashlib.sha512(b"planted").digest()).decode().replace("/", "a")
    letters = letters.replace("+", "b").replace("=", "")
    key = "RSA " + "PRIVATE KEY"
    lines = "\n      ".join(letters[at : at + 42] for at in (0, 20, 40))
    return {
        "github": "gh" + "p_" + letters[:36],
        "aws-id": "AK" + "IA" + letters[:40].upper()[:16],
        "aws-secret": letters[:40],
        "stripe": "sk_" + "live_" + letters[:24],
        "password": letters[:9] + "7q" + letters[20:25],
        "pem": f"-----BEGIN {key}-----\n      {lines}\n      -----END {key}-----",
    }
