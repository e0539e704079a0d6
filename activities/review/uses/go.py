"""Go: what a change took away or made to be called otherwise, by names that mean one thing in a
package, or methods that mean one thing in the whole tree.
"""

from __future__ import annotations

import posixpath
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
    is_telling,
    renamed,
    use_of,
)
from holdfast.activities.review.uses.matching import Event
from holdfast.activities.review.uses.reporting import Breakage, Found
from holdfast.activities.review.uses.signatures import go_arguments, parameters_of
from holdfast.activities.review.uses.tree import Tree


def find(tree: Tree, program: str) -> Found:
    pairs = [pair for pair in tree.pairs if pair.language == "Go"]
    if not pairs:
        return Found()
    compared = compare(tree, program, pairs)
    events = find_events(tree, program, "Go", {item.name for item in compared.items})
    breakages = [each for item in compared.items for each in _go(tree, item, compared, events)]
    return Found([item.changed for item in compared.items], breakages)


def _go(tree: Tree, item: Item, compared: Compared, events: Events) -> Iterator[Breakage]:
    folder = posixpath.dirname(item.pair.was)
    member = item.old.rule == "method"
    package = _import_path(tree, folder)
    defined = defined_in(events, item.name)
    if member:
        elsewhere = [
            each for each in defined if (class_of(each), each.file) != (item.owner, item.pair.now)
        ]
        sure = not elsewhere and is_telling(item.name)
    else:
        same = [
            each
            for each in defined
            if posixpath.dirname(each.file) == folder
            and each.rule != "method"
            and each.rule != "other"
        ]
        sure = not same if item.new is None else len(same) == 1
    now = renamed(item, compared) if item.new is None else ""
    for path, listed in events.items():
        bound = any(each.rule == "binding" and each.text == item.name for each in listed)
        for event in listed:
            if event.rule != "use" or event.text != item.name:
                continue
            if member:
                fits = "ON" in event.said
            elif posixpath.dirname(path) == folder and "ON" not in event.said:
                fits = not bound and not _is_test_package(listed)
            else:
                fits = bool(package) and event.said.get("ON", "") in _aliases(listed, package)
            if not fits:
                continue
            item.changed.add(use_of(event, sure=sure))
            if sure:
                yield from break_use(
                    tree, item, event, now, parameters_of, go_arguments, member=member
                )


def _import_path(tree: Tree, folder: str) -> str:
    """Return the path by which a Go package is imported; empty: no module has it."""
    at = folder
    while True:
        text = _go_mod(tree, f"{at}/go.mod".lstrip("/"))
        if text:
            module = re.search(r"(?m)^module\s+\"?([^\s\"]+)", text)
            return f"{module[1]}/{folder[len(at) :].strip('/')}".rstrip("/") if module else ""
        if not at:
            return ""
        at = posixpath.dirname(at)


def _go_mod(tree: Tree, path: str) -> str:
    return (tree.text(path) or "") if path in tree.head else ""


def _aliases(listed: Sequence[Event], package: str) -> set[str]:
    found = set()
    for event in listed:
        if event.rule == "import":
            alias, _, path = event.text.rpartition('"')[0].rpartition('"')
            if path == package:
                found.add(alias.strip() or package.rpartition("/")[2])
    return found


def _is_test_package(listed: Sequence[Event]) -> bool:
    return any(each.rule == "package" and each.text.endswith("_test") for each in listed)
