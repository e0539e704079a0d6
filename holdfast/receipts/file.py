"""The file of a receipt: JSON in ASCII, in the one way in which we write it, a leaf a line.

So whatever is changed in it stands in a line, and the line says in what.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, NoReturn

from holdfast.receipts.tree import canonical
from holdfast.text import visible

MOST_BYTES = 64 * 2**20
MOST_LINES = 500_000
MOST_COUNTERSIGNATURES = 20
HEAD = "receipt"
"""The leaf that says whose receipt it is, who signs it, and which leaves it has."""
_KINDS = {
    "finding": "finding {}",
    "call": "call {}",
    "price": "the price of call {}",
    "order": "order {}",
    "history": "the history of {}",
    "content": "the content of call {}",
    "report": "the report",
    "answer": "the answer",
    HEAD: "the head",
}
_HEX = '"[0-9a-f]{%d}"'
_PAIR = rf"\[{_HEX % 64},{_HEX % 128}\]"
_LINES = (
    ("the version", re.compile(r'\{"holdfast_receipt":1,')),
    ("the root", re.compile(rf'"root":{_HEX % 64},')),
    ("the key", re.compile(rf'"key":{_HEX % 64},')),
    ("the signature", re.compile(rf'"signature":{_HEX % 128},')),
    ("a countersignature", re.compile(rf'"countersignatures":\[(?:{_PAIR}(?:,{_PAIR})*)?\],')),
    ("the leaves", re.compile(r'"leaves":\[')),
)
_VERSION = re.compile(r'\{"holdfast_receipt":([0-9]{1,9}),')
_DIGEST = re.compile("[0-9a-f]{64}")
_NAMED = re.compile(r'\["([^"\\]{1,300})"')
_END = "]}"


class NotReceipt(ValueError):
    """A file that is no receipt as we write one. The message says where, on one line."""


@dataclass(frozen=True)
class Leaf:
    """A named part of a receipt."""

    name: str
    digest: str
    """SHA-256 of its run, its name and what it holds, in hexadecimal digits."""
    holds: Mapping[str, Any]


@dataclass(frozen=True)
class Receipt:
    """What stands in the file."""

    root: str
    key: str
    """The public half of the key that signed the root."""
    signature: str
    leaves: tuple[Leaf, ...]
    countersignatures: tuple[tuple[str, str], ...] = ()
    """The public keys of others who signed the root, each with its signature."""

    @property
    def head(self) -> Mapping[str, Any]:
        """Return what the head holds; empty where there is none."""
        return next((each.holds for each in self.leaves if each.name == HEAD), {})

    def named(self) -> dict[str, Mapping[str, Any]]:
        """Return what each leaf holds, by its name."""
        return {each.name: each.holds for each in self.leaves}

    def of_kind(self, kind: str) -> Iterator[tuple[str, Mapping[str, Any]]]:
        """Yield the leaves of a kind, such as `finding`, by the names that they have in it."""
        for each in self.leaves:
            if each.name.startswith(f"{kind}/"):
                yield each.name.partition("/")[2], each.holds

    def dump(self) -> bytes:
        """Return the content of the file."""
        lines = [
            '{"holdfast_receipt":1,',
            f'"root":{canonical(self.root)},',
            f'"key":{canonical(self.key)},',
            f'"signature":{canonical(self.signature)},',
            f'"countersignatures":{canonical(self.countersignatures)},',
            '"leaves":[',
        ]
        leaves = [canonical([each.name, each.digest, each.holds]) for each in self.leaves]
        return "\n".join((*lines, ",\n".join(leaves), _END, "")).encode("ascii")

    @classmethod
    def load(cls, content: bytes) -> Receipt:
        """Return the receipt in a file. Raise NotReceipt for what `dump` does not write."""
        if len(content) > MOST_BYTES or content.count(b"\n") > MOST_LINES:
            raise NotReceipt("it is larger than any receipt")
        lines = content.split(b"\n")
        places = [*_texts(lines)]
        for number, (what, form) in enumerate(_LINES):
            if number == 0 and (found := _VERSION.fullmatch(places[0])) and found[1] != "1":
                raise NotReceipt(
                    f"line 1 says version {found[1]}, and this holdfast reads version 1: a newer"
                    " one wrote it, or it was changed"
                )
            if number >= len(places) or not form.fullmatch(places[number]):
                raise NotReceipt(f"line {number + 1} is not as in a receipt: {what}")
        if len(places) < len(_LINES) + 3 or places[-1] or places[-2] != _END:
            last = len(places) - (not places[-1])
            raise NotReceipt(f"line {max(last, 1)} is not the end of a receipt")
        head = json.loads("".join((*places[: len(_LINES)], _END)))
        if len(head["countersignatures"]) > MOST_COUNTERSIGNATURES:
            raise NotReceipt(f"it has more than {MOST_COUNTERSIGNATURES} countersignatures")
        rows = places[len(_LINES) : -2]
        leaves = [_leaf(each, number, len(rows)) for number, each in enumerate(rows, 1)]
        lines_of: dict[str, int] = {}
        for number, each in enumerate(leaves, len(_LINES) + 1):
            if (first := lines_of.setdefault(each.name, number)) != number:
                raise NotReceipt(f"line {first} and line {number} are both {words(each.name)}")
        return cls(
            head["root"],
            head["key"],
            head["signature"],
            tuple(leaves),
            tuple((key, signature) for key, signature in head["countersignatures"]),
        )


def words(name: str) -> str:
    """Return the name of a leaf for people."""
    kind, _, rest = name.partition("/")
    said = _KINDS.get(kind, "leaf {}" if rest else f"leaf {kind}")
    return visible(said.replace("{}", rest))[:200]


def _texts(lines: list[bytes]) -> Iterator[str]:
    for number, line in enumerate(lines, 1):
        try:
            yield line.decode("ascii")
        except UnicodeDecodeError as error:
            where = _where(number, line.decode("latin-1"))
            raise NotReceipt(
                f"{where} has a byte that is no ASCII, at column {error.start + 1}"
            ) from None


def _leaf(line: str, number: int, of: int) -> Leaf:
    text = line.removesuffix(",") if number < of else line
    try:
        found = _DECODER.decode(text)
        written = canonical(found)
        if "\\ud" in text:
            json.dumps(found, ensure_ascii=False).encode()
        if written == text and (number < of) == line.endswith(","):
            match found:
                case [str(name), str(digest), dict(holds)] if _DIGEST.fullmatch(digest) and name:
                    return Leaf(name, digest, holds)
            why = "is no leaf: [name, digest, what it holds]"
        else:
            why = "is not canonical: it was written by something else"
    except json.JSONDecodeError as error:
        why = f"is not JSON: column {error.colno}: {error.msg}"
    except UnicodeEncodeError:
        why = "has half a character in it"
    except RecursionError:
        why = "is nested too deep"
    except ValueError as error:
        why = f"is not JSON: {error}"[:150]
    raise NotReceipt(f"{_where(number + len(_LINES), line)} {why}")


def _refuse(name: str) -> NoReturn:
    raise ValueError(f"{name} is no number")


_DECODER = json.JSONDecoder(parse_constant=_refuse)


def _where(number: int, line: str) -> str:
    named = _NAMED.match(line[:400])
    return f"line {number}{f' ({words(named[1])})' if named else ''}"
