"""What a change did to the definitions of files that ast-grep reads, and what breaks by it where
they are used.
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path

from holdfast.activities.review.uses.matching import Event, match
from holdfast.activities.review.uses.reporting import (
    Breakage,
    Changed,
    Definition,
    Use,
    unfit,
    without_name,
)
from holdfast.activities.review.uses.signatures import Arguments, Parameters, misfit
from holdfast.activities.review.uses.tree import Pair, Tree, Wanted
from holdfast.untrusted.reading import shipped_yaml

DEFINITIONS = ("function", "method", "class", "type", "variable", "constructor")
CONSTRUCTOR = re.compile(r"\.(?:constructor|initialize)$")
ALIKE = 0.8
"""Least similarity, from 0 to 1, of a definition to the one that it was before it was renamed."""
SHORTEST = 4
"""Letters of a method's name that is looked for in all of the tree."""
COMMON_NAMES = Path(__file__).with_name("common_names.yaml")
Events = Mapping[str, Sequence[Event]]


@dataclass(frozen=True)
class Item:
    """A definition that the change has changed."""

    pair: Pair
    old: Event
    new: Event | None
    changed: Changed

    @property
    def name(self) -> str:
        return self.old.text

    @property
    def owner(self) -> str:
        return class_of(self.old)


def class_of(event: Event) -> str:
    """Return the class of a method: in Go the type of its receiver."""
    said = event.said.get("CLASS", "")
    return re.sub(r"\[.*", "", said.strip("()")).split(" ")[-1].lstrip("*") if said else ""


@dataclass
class Compared:
    """What two versions of some files define, and in what they differ."""

    items: list[Item] = field(default_factory=list)
    before: dict[str, list[Event]] = field(default_factory=dict)
    after: dict[str, list[Event]] = field(default_factory=dict)


def compare(tree: Tree, program: str, pairs: Sequence[Pair]) -> Compared:
    """Return what the change did to the definitions of these files."""
    readable = [
        pair.was for pair in pairs if pair.was and tree.text(pair.was, base=True) is not None
    ]
    before = match(tree, program, {path: tree.place(path, base=True) for path in readable}, None)
    there = [pair.now for pair in pairs if pair.now and tree.text(pair.now) is not None]
    after = match(tree, program, {path: tree.place(path) for path in there}, None)
    compared = Compared(before=before, after=after)
    for pair in pairs:
        if pair.was not in before or (pair.now and pair.now not in after):
            continue
        old, new = before[pair.was], after.get(pair.now, [])
        has: dict[tuple[str, str], list[Event]] = {}
        for event in new:
            if event.rule in DEFINITIONS:
                has.setdefault(_key(event), []).append(event)
        had: dict[tuple[str, str], list[Event]] = {}
        for event in old:
            if event.rule in DEFINITIONS:
                had.setdefault(_key(event), []).append(event)
        gone = {name for owner, name in had if not owner and ("", name) not in has}
        for key, events in had.items():
            # What a class had is gone with it.
            if key[0] in gone:
                continue
            item = _item(pair, key, events, has.get(key, []))
            if item is not None:
                compared.items.append(item)
    return compared


def _key(event: Event) -> tuple[str, str]:
    """Return the name of a definition in its class; a constructor is in the class of its name."""
    return event.text if event.rule == "constructor" else class_of(event), event.text


def _item(
    pair: Pair, key: tuple[str, str], had: Sequence[Event], has: Sequence[Event]
) -> Item | None:
    old = had[0]
    new = has[0] if len(has) == 1 and len(had) == 1 else None
    name = key[1] if key[0] in ("", key[1]) else ".".join(key)
    if not has:
        line = place_now(pair, old.line) if pair.now else 1
        return Item(pair, old, None, Changed(pair.path, line, name, "removed", old.rule))
    if new is None:
        return None
    if squeezed(old.said.get("PARAMS", "")) != squeezed(new.said.get("PARAMS", "")):
        return Item(pair, old, new, Changed(pair.now, new.line, name, "signature", old.rule))
    if old.rule != "class" and pair.touches(new.line, max(new.end, new.line)):
        return Item(pair, old, new, Changed(pair.now, new.line, name, "body", old.rule))
    return None


def squeezed(text: str) -> str:
    return re.sub(r"\s+", "", text)


def place_now(pair: Pair, line: int) -> int:
    """Return the line of the head at which a line of the base stood, or after which it did."""
    shift = 0
    for old, count, new, now in pair.hunks:
        first = old if count else old + 1
        if line < first:
            break
        if line < first + count:
            return max(new, 1)
        shift = (new + now if now else new + 1) - (first + count)
    return max(line + shift, 1)


def renamed(item: Item, compared: Compared) -> str:
    """Return what a removed definition is called now; empty: nobody can tell."""
    had = {(class_of(e), e.text) for e in compared.before.get(item.pair.was, ())}
    said = squeezed(item.old.said.get("PARAMS", "")), squeezed(item.old.said.get("BODY", ""))
    for event in compared.after.get(item.pair.now, ()):
        same = event.rule == item.old.rule and class_of(event) == item.owner
        if not same or (class_of(event), event.text) in had:
            continue
        if squeezed(event.said.get("PARAMS", "")) != said[0]:
            continue
        if is_alike(squeezed(event.said.get("BODY", "")), said[1]):
            return event.text
    return ""


def is_alike(one: str, other: str) -> bool:
    """True if two texts may be the same before and after an edit."""
    if one == other:
        return True
    ratio = difflib.SequenceMatcher(None, one[:4_000], other[:4_000], autojunk=False)
    return ratio.quick_ratio() > ALIKE and ratio.ratio() > ALIKE


def use_of(event: Event, *, sure: bool = True) -> Use:
    how = "import" if event.rule in ("import", "require", "export") else "name"
    how = "call" if "ARGS" in event.said else how
    return Use(event.file, event.line, event.column, how, sure)  # type: ignore[arg-type]


def without_item(item: Item, use: Use, now: str = "", *, member: bool = False) -> Breakage:
    was = Definition(item.pair.was, item.old.line)
    return without_name(use, item.name, was, now, member=member)


def unfit_call(
    tree: Tree,
    item: Item,
    event: Event,
    parameters: tuple[Parameters | None, Parameters | None],
    given: Arguments | None,
    row: str = "",
) -> Iterator[Breakage]:
    """Yield what breaks at a call that fitted the parameters before and does not fit those now."""
    assert item.new is not None
    kept = not tree.touches(event.file, event.line, event.end)
    bodies = [side.said.get("BODY", "") for side in (item.old, item.new)]
    if not (why := misfit(*parameters, given, bodies if kept else ())):
        return
    name = CONSTRUCTOR.sub("", item.changed.name)
    yield unfit(use_of(event), name, Definition(item.pair.now, item.new.line), why, row)


@cache
def _common() -> frozenset[str]:
    return frozenset(shipped_yaml(COMMON_NAMES))


def is_telling(name: str) -> bool:
    """True if a method's name is hardly a library's."""
    return len(name) >= SHORTEST and name not in _common()


def defined_in(events: Events, name: str, *, but: str = "") -> list[Event]:
    return [
        event
        for path, listed in events.items()
        for event in listed
        if event.text == name and event.rule in (*DEFINITIONS, "other") and path != but
    ]


def find_events(
    tree: Tree, program: str, language: str, names: Collection[str], searched: Collection[str] = ()
) -> Events:
    """Return what the files of a language have of these names, by path; `searched`: names of which
    a file must hold one, if not these.
    """
    paths = tree.holding([Wanted(frozenset(searched or names))], (language,))
    return match(tree, program, {path: tree.place(path) for path in paths}, names)


def break_use(
    tree: Tree,
    item: Item,
    event: Event,
    now: str,
    parameters: Callable[[str], Parameters],
    arguments: Callable[[str], Arguments | None],
    *,
    member: bool = False,
) -> Iterator[Breakage]:
    """Yield what breaks at a use of a definition that is gone, or at a call that no longer fits.
    `now` is what the definition is called now.
    """
    if item.new is None:
        yield without_item(item, use_of(event), now, member=member)
    elif "ARGS" in event.said:
        was, new = (parameters(side.said.get("PARAMS", "")) for side in (item.old, item.new))
        yield from unfit_call(tree, item, event, (was, new), arguments(event.said["ARGS"]))
