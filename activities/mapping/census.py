"""Look at items as they come: their ids, what they show a model, which are broken or repeated.
Blocking, and of each item it keeps no more than two digests.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Container, Iterable, Iterator, Mapping
from dataclasses import dataclass, field

from pydantic import JsonValue

from holdfast.activities.mapping.sources import Names, NotItems, Raw
from holdfast.calls.items import SHOWN_BYTES, is_short
from holdfast.calls.row import TEXT_FIELD, row_prompt
from holdfast.calls.rows import Item
from holdfast.contracts import ItemsFound
from holdfast.contracts.plans import MapUnit
from holdfast.text import one_line
from holdfast.text.mistakes import suggest
from holdfast.untrusted.known_secrets import REDACTED
from holdfast.untrusted.redact import redact

MOST = 100_000
"""Items of any map, whatever its plan says."""
SAMPLES = 5
ID_LETTERS = 200
DIGEST_BYTES = 16
ENTRY_BYTES = len('"": , ')
AROUND_BYTES = len(row_prompt(Item(n=0, id="", place="")))
"""Of the envelope around the fields of an item."""
NAMES_SHOWN = 20


@dataclass
class Census:
    """What the items seen so far are."""

    by: MapUnit
    shown: tuple[str, ...] = ()
    """The fields that a model is shown; empty: all."""
    id: str = ""
    most: int = MOST
    counts_only: bool = False
    """True: nobody is shown the items, so that no secret is taken out."""
    count: int = 0
    broken: int = 0
    repeated: int = 0
    fields: tuple[str, ...] = ()
    sizes: dict[str, int] = field(default_factory=dict)
    largest: dict[str, int] = field(default_factory=dict)
    longest: int = 0
    samples: list[str] = field(default_factory=list)
    note: str = ""
    _ids: dict[bytes, str] = field(default_factory=dict)
    """Where each id stands."""
    _seen: dict[bytes, int] = field(default_factory=dict)
    """The first item of each content."""

    def take(self, raws: Iterable[Raw | Names]) -> list[Item]:
        """Take in some items, and return them as they are asked. Raise NotItems for one that makes
        all of them unusable.
        """
        found = []
        for raw in raws:
            if isinstance(raw, Names):
                self._see(raw.fields)
                self.note = one_line(raw.note)
            else:
                found.append(raw)
        if not self.counts_only:
            found = _without_secrets(found)
        return [self._item(raw) for raw in found]

    def end(self) -> None:
        """Raise NotItems if there is nothing among them that can be asked."""
        if self.count == 0:
            raise NotItems(f"has no {self.by}: there is nothing to do")
        if self.broken == self.count:
            raise NotItems(f"has no {self.by} that can be read: {self.samples[0]}")

    def found(self, *, whole: bool) -> ItemsFound:
        """Return what was found, for whoever plans and prices."""
        return ItemsFound(
            by=self.by,
            count=self.count,
            whole=whole,
            fields=self.fields or tuple(self.sizes),
            bytes=self.sizes,
            most=self.largest,
            longest=self.longest,
            around=AROUND_BYTES,
            broken=self.broken,
            samples=tuple(self.samples),
            repeated=self.repeated,
            note=self.note,
        )

    def shown_bytes(self, item: Item) -> int:
        """Return the bytes that an item shows a model."""
        return AROUND_BYTES + sum(_sizes(item.fields).values())

    def _see(self, names: tuple[str, ...]) -> None:
        self.fields = tuple(one_line(name)[:ID_LETTERS] for name in names)
        wanted = (*self.shown, *([self.id] if self.id else ()))
        for name in wanted if names else ():
            if name not in names:
                shown = ", ".join(self.fields[:NAMES_SHOWN])
                where = "its `id`" if name == self.id and name not in self.shown else "in braces"
                literal = "" if name.isidentifier() else "; for a brace as it is write it twice"
                raise NotItems(
                    f"has no field {one_line(name)[:100]!r} ({where}){suggest(name, names)};"
                    f" its fields: {shown}{literal}"
                )

    def _item(self, raw: Raw) -> Item:
        n, place = self.count, one_line(raw.place)
        self.count += 1
        if self.count > self.most:
            remedy = "raise `most` of the map, or give fewer" if self.most < MOST else "give fewer"
            raise NotItems(
                f"has more than {self.most:,} {self.by}: {place} is one too many; {remedy}"
            )
        fields = raw.fields or {}
        if self.id and (not raw.broken or self.id in fields):
            name = self._id_of(fields, place)
        else:
            name = place
        shown = fields if not self.shown else {each: fields.get(each) for each in self.shown}
        broken = raw.broken
        sizes = {} if broken else _sizes(fields)
        size = sum(sizes.get(each, 0) for each in shown)
        if size > SHOWN_BYTES:
            broken = f"shows a model {size:,} bytes; at most {SHOWN_BYTES:,} are asked"
        if not broken and not any(value not in (None, "", [], {}) for value in shown.values()):
            broken = "has nothing in the fields that a model is shown"
        if broken:
            self.broken += 1
            if len(self.samples) < SAMPLES:
                self.samples.append(f"{place} {broken}")
            beside, long = _split(fields, ())
            return Item(n=n, id=name, place=place, broken=broken, beside=beside, long=long)
        same = self._seen.setdefault(digest_of(shown), n)
        if same != n:
            self.repeated += 1
        else:
            self._measure(sizes)
        beside, long = _split(fields, shown)
        return Item(
            n=n,
            id=name,
            place=place,
            fields=shown,
            beside=beside,
            long=long,
            same_as=None if same == n else same,
        )

    def _measure(self, sizes: dict[str, int]) -> None:
        for name, size in sizes.items():
            self.sizes[name] = self.sizes.get(name, 0) + size
            self.largest[name] = max(self.largest.get(name, 0), size)
        self.longest = max(self.longest, sum(sizes.values()))

    def _id_of(self, fields: dict[str, JsonValue], place: str) -> str:
        given = fields.get(self.id)
        if given is None or given == "":
            raise NotItems(f"{place} has no {one_line(self.id)!r}, which is to name it")
        if isinstance(given, bool | dict | list):
            raise NotItems(f"{place} has neither text nor number in {one_line(self.id)!r}")
        name = one_line(str(given))
        if len(name) > ID_LETTERS:
            raise NotItems(
                f"{place} has {len(name):,} characters in {one_line(self.id)!r}; at most"
                f" {ID_LETTERS} name an item"
            )
        if REDACTED in name:
            return place
        first = self._ids.setdefault(_digest(name), place)
        if first is not place:
            raise NotItems(
                f"{place} has the {one_line(self.id)!r} {redact(name)!r} again, which names {first}"
            )
        return name


def _split(
    fields: Mapping[str, JsonValue], shown: Container[str]
) -> tuple[dict[str, JsonValue], tuple[str, ...]]:
    """Return the short fields beside those that are shown, and the names of the others."""
    others = {name: value for name, value in fields.items() if name not in shown}
    beside = {name: value for name, value in others.items() if is_short(value)}
    return beside, tuple(name for name in others if name not in beside)


def digest_of(shown: dict[str, JsonValue]) -> bytes:
    """Return a digest of what an item shows."""
    return _digest(json.dumps(shown, sort_keys=True, ensure_ascii=False))


def _digest(text: str) -> bytes:
    content = text.encode("utf-8", "surrogatepass")
    return hashlib.blake2b(content, digest_size=DIGEST_BYTES).digest()


def _sizes(fields: Mapping[str, JsonValue]) -> dict[str, int]:
    """Return the bytes of fields in the prompt of their row: a text alone, or entries of JSON."""
    text = fields.get(TEXT_FIELD)
    if len(fields) == 1 and isinstance(text, str):
        return {TEXT_FIELD: _bytes_of(text)}
    return {name: _size(name, value) for name, value in fields.items()}


def _size(name: str, value: JsonValue) -> int:
    return _bytes_of(json.dumps(value, ensure_ascii=False)) + _bytes_of(name) + ENTRY_BYTES


def _bytes_of(text: str) -> int:
    return len(text) if text.isascii() else len(text.encode())


def _without_secrets(raws: list[Raw]) -> list[Raw]:
    """Return the items with what looks like a secret replaced, as in all that models are shown."""
    whole = "\n".join(text for raw in raws for text in _texts(raw.fields))
    # Most have none, and all together are looked through much faster than one by one.
    if redact(whole) == whole:
        return raws
    return [
        raw
        if raw.fields is None
        else Raw(
            raw.place, {name: _redacted(each) for name, each in raw.fields.items()}, raw.broken
        )
        for raw in raws
    ]


def _texts(value: JsonValue) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict):
        for name, each in value.items():
            yield name
            yield from _texts(each)
    elif isinstance(value, list):
        for each in value:
            yield from _texts(each)


def _redacted(value: JsonValue) -> JsonValue:
    if isinstance(value, str):
        return redact(value)
    if isinstance(value, dict):
        return {name: _redacted(each) for name, each in value.items()}
    return [_redacted(each) for each in value] if isinstance(value, list) else value
