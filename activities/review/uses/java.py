"""Java: what a change took away or made to be called otherwise, by the types that the text around a
use tells.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from holdfast.activities.review.uses.definitions import (
    Compared,
    Events,
    Item,
    break_use,
    class_of,
    compare,
    defined_in,
    find_events,
    renamed,
    use_of,
    without_item,
)
from holdfast.activities.review.uses.matching import Event
from holdfast.activities.review.uses.reporting import Breakage, Found
from holdfast.activities.review.uses.signatures import arguments_of, typed_parameters
from holdfast.activities.review.uses.tree import Tree


def find(tree: Tree, program: str) -> Found:
    pairs = [pair for pair in tree.pairs if pair.language == "Java"]
    if not pairs:
        return Found()
    compared = compare(tree, program, pairs)
    names = {item.name for item in compared.items}
    owners = {item.owner for item in compared.items if item.owner}
    events = find_events(tree, program, "Java", names | owners, names)
    breakages = [each for item in compared.items for each in _java(tree, item, compared, events)]
    return Found([item.changed for item in compared.items], breakages)


def _package(listed: Sequence[Event]) -> str:
    return next(
        (re.sub(r"^package\s+|[;\s]", "", e.text) for e in listed if e.rule == "package"), ""
    )


def _imported(listed: Sequence[Event]) -> dict[str, Event]:
    return {
        re.sub(r"^import\s+(?:static\s+)?|[;\s]", "", e.text): e
        for e in listed
        if e.rule == "import"
    }


def _java(tree: Tree, item: Item, compared: Compared, events: Events) -> Iterator[Breakage]:
    package = _package(compared.before[item.pair.was])
    if item.old.rule == "class":
        yield from _java_class(item, compared, events, package)
        return
    owner = item.name if item.old.rule == "constructor" else item.owner
    full = f"{package}.{owner}".lstrip(".")
    defined = [e for e in defined_in(events, item.name) if e.rule not in ("class",)]
    constructor = item.old.rule == "constructor"
    others = [
        e
        for e in defined
        if (constructor or class_of(e) == owner)
        and e.rule == item.old.rule
        and e.file == item.pair.now
    ]
    sure = not others if item.new is None else len(others) == 1
    unique = not [e for e in defined if e not in others]
    inherits = _extends(compared.after.get(item.pair.now, ()), owner)
    now = renamed(item, compared) if item.new is None else ""
    if constructor and item.new is None:
        return
    for path, listed in events.items():
        imported = _imported(listed)
        if full not in imported and _package(listed) != package and f"{package}.*" not in imported:
            continue
        typed = {e.said["NAME"] for e in listed if e.rule == "declared" and e.text == owner}
        for event in listed:
            if event.rule != "use" or event.text != item.name:
                continue
            on = event.said.get("ON", "")
            if constructor:
                fits = "ARGS" in event.said and not on
            elif not on:
                fits = path == item.pair.now and "ARGS" in event.said and unique
            else:
                fits = (
                    on == owner
                    or on.removeprefix("this.") in typed
                    or on.startswith(f"new {owner}(")
                    or (on == "this" and path == item.pair.now and unique)
                )
            if item.old.rule == "variable":
                fits = on == owner
            if fits or (on and unique):
                item.changed.add(use_of(event, sure=fits and sure))
            if fits and sure and not (inherits and item.new is None):
                yield from break_use(
                    tree, item, event, now, typed_parameters, arguments_of, member=True
                )


def _extends(listed: Sequence[Event], name: str) -> bool:
    """True if a class may have names of another one, or of an annotation that writes code."""
    return any(
        e.rule == "class" and e.text == name and re.search(r"\bextends\b|\bimplements\b", e.shown)
        for e in listed
    )


def _java_class(item: Item, compared: Compared, events: Events, package: str) -> Iterator[Breakage]:
    if item.new is not None:
        return
    full = f"{package}.{item.name}".lstrip(".")
    defined = [e for e in defined_in(events, item.name) if e.rule == "class"]
    here = [e for e in defined if _package(events[e.file]) == package]
    if here:
        return
    now = next(
        (
            f"{_package(listed)}.{item.name}"
            for listed in events.values()
            for e in listed
            if e.rule == "class" and e.text == item.name
        ),
        "",
    )
    now = now or renamed(item, compared)
    for listed in events.values():
        imported = _imported(listed)
        if full in imported:
            use = use_of(imported[full])
            item.changed.add(use)
            yield without_item(item, use, now)
            continue
        if _package(listed) != package or any(
            each.endswith((f".{item.name}", ".*")) for each in imported
        ):
            continue
        for event in listed:
            if event.rule == "use" and event.text == item.name and not defined:
                use = use_of(event)
                item.changed.add(use)
                yield without_item(item, use, now)
