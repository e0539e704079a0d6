"""JavaScript and TypeScript: what a change took away or made to be called otherwise, and who uses
it.
"""

from __future__ import annotations

import posixpath
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from holdfast.activities.review.uses.definitions import (
    Compared,
    Events,
    Item,
    class_of,
    compare,
    defined_in,
    is_telling,
    renamed,
    unfit_call,
    use_of,
    without_item,
)
from holdfast.activities.review.uses.javascript_modules import (
    PARSED,
    Exports,
    Import,
    bound_in,
    exports_of,
    imports_of,
    resolve,
)
from holdfast.activities.review.uses.matching import Event, match
from holdfast.activities.review.uses.reporting import Breakage, Changed, Found, Use, without_module
from holdfast.activities.review.uses.signatures import script_arguments, script_parameters
from holdfast.activities.review.uses.tree import Pair, Tree, Wanted

LANGUAGES = ("JavaScript", "TypeScript", "Vue", "Svelte")
MOST_HOPS = 5


def find(tree: Tree, program: str) -> Found:
    """Return what the change did to scripts, and what breaks by it."""
    pairs = [pair for pair in tree.pairs if pair.language in PARSED]
    if not pairs:
        return Found()
    return _Finding(tree, program).found(pairs)


@dataclass
class _Finding:
    tree: Tree
    program: str
    compared: Compared = field(default_factory=Compared)
    events: Events = field(default_factory=dict)
    exports: dict[str, Exports] = field(default_factory=dict)
    items: dict[tuple[str, str], Item] = field(default_factory=dict)
    """Changed exports, by file and name there."""
    gone: dict[str, Pair] = field(default_factory=dict)

    def found(self, pairs: Sequence[Pair]) -> Found:
        tree = self.tree
        self.compared = compare(tree, self.program, pairs)
        self.gone = {pair.was: pair for pair in pairs if pair.was and tree.is_gone(pair.was)}
        names = self._exported(pairs) | {item.name for item in self.compared.items}
        names |= {item.owner for item in self.compared.items if item.name == "constructor"}
        stems = {_stem(path) for path in self.gone} | {_stem(path) for path, _ in self.items}
        paths = [path for path in tree.holding([Wanted(frozenset(names | stems))], LANGUAGES)]
        paths = [path for path in paths if tree.head[path].language in PARSED]
        self.events = self._match(paths, names)
        locals_ = {
            each.local
            for path in paths
            for each in self._wanted(path)
            if each.local not in ("", *names)
        }
        if locals_:
            self.events = self._match(paths, names | locals_)
        breakages = [each for path in paths for each in self._in_file(path)]
        breakages += [each for item in self.compared.items for each in self._methods(item)]
        changed = [item.changed for item in self.compared.items]
        changed += [each.changed for each in self.items.values() if each.changed not in changed]
        return Found(changed, list(dict.fromkeys(breakages)))

    def _match(self, paths: Sequence[str], names: set[str]) -> Events:
        readable = [path for path in paths if self.tree.text(path) is not None]
        return match(
            self.tree, self.program, {path: self.tree.place(path) for path in readable}, names
        )

    def _exported(self, pairs: Sequence[Pair]) -> set[str]:
        """Find the exports that the change took away or changed; return their names."""
        by_local = {
            (item.pair.was, item.name): item for item in self.compared.items if not item.owner
        }
        for pair in pairs:
            if not pair.was or pair.was != pair.now:
                continue
            if pair.was not in self.compared.before or pair.now not in self.compared.after:
                continue
            old_text = self.tree.text(pair.was, base=True) or ""
            old = exports_of(self.compared.before[pair.was], old_text)
            new = self._exports(pair.now)
            for name in old.names:
                local = old.own.get(name, "")
                item = by_local.get((pair.was, local or name))
                if name in new.names or (name == "default" and new.opaque):
                    if item is not None and item.new is not None and new.own.get(name) == local:
                        self.items[pair.now, name] = item
                elif not new.opaque and not self._from_star(pair.now, name):
                    self.items[pair.now, name] = (
                        item if item and item.new is None else _vanished(pair, name, self.compared)
                    )
        return {name for _, name in self.items if name != "default"}

    def _exports(self, path: str) -> Exports:
        if path not in self.exports:
            text = self.tree.text(path)
            listed = self.compared.after.get(path)
            if listed is None:
                places = {path: self.tree.place(path)} if text is not None else {}
                listed = match(self.tree, self.program, places, None).get(path, [])
            self.exports[path] = exports_of(listed, text or "")
        return self.exports[path]

    def _from_star(self, path: str, name: str, hops: int = 0) -> bool:
        """True if a star export brings a name, or may."""
        for source in self._exports(path).stars:
            there = resolve(source, path, self.tree.head)
            if not there or hops > MOST_HOPS:
                return True
            exports = self._exports(there)
            if exports.opaque or name in exports.names or self._from_star(there, name, hops + 1):
                return True
        return False

    def _origin(self, path: str, name: str) -> tuple[str, str]:
        """Follow a name through re-exports to the changed export that it is."""
        for _ in range(MOST_HOPS):
            if (path, name) in self.items or path not in self.tree.head:
                break
            exports = self._exports(path)
            if name in exports.passed:
                source, inner = exports.passed[name]
            elif name not in exports.own and len(exports.stars) == 1:
                source, inner = exports.stars[0], name
            else:
                break
            there = resolve(source, path, self.tree.head)
            if not there:
                break
            path, name = there, inner
        return path, name

    def _wanted(self, path: str) -> Iterator[Import]:
        """Yield the imports of a file that lead to a changed export."""
        for each in imports_of(self.events.get(path, ())):
            there = resolve(each.source, path, self.tree.head)
            leads = there and each.inner and self._origin(there, each.inner) in self.items
            if leads or (there and any(file == there for file, _ in self.items)):
                yield each

    def _in_file(self, path: str) -> Iterator[Breakage]:
        listed = self.events.get(path, [])
        bound = bound_in(listed)
        seen = set[tuple[int, str]]()
        for each in imports_of(listed):
            there = resolve(each.source, path, self.tree.head)
            was = there or resolve(each.source, path, self.tree.base)
            if was in self.gone and not there:
                if (each.event.line, was) not in seen:
                    seen.add((each.event.line, was))
                    yield without_module(self._use(each), was, was, self.gone[was].now)
            elif there and each.inner and each.inner != "*":
                yield from self._of_import(each, there, listed, bound)
            elif there and each.inner == "*":
                yield from self._of_module(each, there, listed, bound)
        yield from self._of_itself(path, listed, bound)

    def _use(self, each: Import) -> Use:
        column = each.event.column if each.line == each.event.line else 0
        return Use(each.event.file, each.line, column, "import")

    def _of_import(
        self, each: Import, there: str, listed: Sequence[Event], bound: set[str]
    ) -> Iterator[Breakage]:
        target = self._origin(there, each.inner)
        item = self.items.get(target)
        if item is None:
            return
        item.changed.add(self._use(each))
        if item.new is None:
            if target == (there, each.inner):
                yield without_item(item, self._use(each), renamed(item, self.compared))
            return
        if not each.local or each.local in bound:
            return
        for event in listed:
            if event.rule == "use" and event.text == each.local and "ON" not in event.said:
                item.changed.add(use_of(event))
                yield from self._unfit(item, event)

    def _of_module(
        self, each: Import, there: str, listed: Sequence[Event], bound: set[str]
    ) -> Iterator[Breakage]:
        if each.local in bound:
            return
        for event in listed:
            if event.rule != "use" or event.said.get("ON") != each.local:
                continue
            target = self._origin(there, event.text)
            item = self.items.get(target)
            if item is None:
                continue
            item.changed.add(use_of(event))
            if item.new is None and target == (there, event.text):
                yield without_item(item, use_of(event), renamed(item, self.compared))
            elif item.new is not None:
                yield from self._unfit(item, event)

    def _of_itself(self, path: str, listed: Sequence[Event], bound: set[str]) -> Iterator[Breakage]:
        """Yield what breaks in a changed file by what it defines itself."""
        for item in self.compared.items:
            if item.pair.now != path or item.new is None or item.owner or item.name in bound:
                continue
            for event in listed:
                if event.rule == "use" and event.text == item.name and "ON" not in event.said:
                    item.changed.add(use_of(event))
                    yield from self._unfit(item, event)

    def _unfit(self, item: Item, event: Event) -> Iterator[Breakage]:
        if "ARGS" not in event.said or item.new is None:
            return
        sides = [item.old, item.new]
        if item.old.rule == "class" or not all("PARAMS" in side.said for side in sides):
            return
        listed = self.compared.after.get(item.pair.now, ())
        if any(each.rule == "overload" and each.text == item.name for each in listed):
            return
        was, now = (script_parameters(e.said["PARAMS"], e.said.get("BODY", "")) for e in sides)
        typed = self.tree.head[event.file].language == "TypeScript"
        row = "" if typed else "changed-signature untyped"
        given = script_arguments(event.said["ARGS"])
        yield from unfit_call(self.tree, item, event, (was, now), given, row)

    def _methods(self, item: Item) -> Iterator[Breakage]:
        """Yield what breaks by a method of a class, if no other thing in the tree is called so."""
        if not item.owner:
            return
        if item.name == "constructor":
            yield from self._constructor(item)
            return
        defined = [
            e
            for e in defined_in(self.events, item.name)
            if (class_of(e), e.file) != (item.owner, item.pair.now)
        ]
        sure = not defined and is_telling(item.name)
        inherits = any(
            e.rule == "class" and e.text == item.owner and "extends" in e.shown
            for e in self.compared.after.get(item.pair.now, ())
        )
        now = renamed(item, self.compared) if item.new is None else ""
        for listed in self.events.values():
            for event in listed:
                if event.rule != "use" or event.text != item.name or "ON" not in event.said:
                    continue
                own = event.said["ON"] == "this" and event.file == item.pair.now
                use = use_of(event, sure=sure)
                item.changed.add(use)
                if not sure or not (own or self._knows(event.file, item)):
                    continue
                if item.new is None and not inherits:
                    yield without_item(item, use, now, member=True)
                elif item.new is not None:
                    yield from self._unfit(item, event)

    def _constructor(self, item: Item) -> Iterator[Breakage]:
        if item.new is None:
            return
        for path, listed in self.events.items():
            locals_ = (
                {item.owner}
                if path == item.pair.now
                else {
                    each.local
                    for each in imports_of(listed)
                    if each.inner not in ("", "*") and self._leads_to(each, path, item)
                }
            )
            bound = bound_in(listed)
            for event in listed:
                if event.rule == "use" and event.text in locals_ - bound and "ARGS" in event.said:
                    item.changed.add(use_of(event))
                    yield from self._unfit(item, event)

    def _leads_to(self, each: Import, path: str, item: Item) -> bool:
        there = resolve(each.source, path, self.tree.head)
        if not there:
            return False
        file, name = self._origin(there, each.inner)
        if file != item.pair.now:
            return False
        return self._exports(file).own.get(name) == item.owner

    def _knows(self, path: str, item: Item) -> bool:
        """True if a file imports from the one that a class is in, or names the class."""
        text = self.tree.text(path) or ""
        return re.search(rf"\b{re.escape(item.owner)}\b", text) is not None or any(
            resolve(each.source, path, self.tree.head) == item.pair.now
            for each in imports_of(self.events[path])
        )


def _stem(path: str) -> str:
    name = posixpath.basename(path).partition(".")[0]
    return posixpath.basename(posixpath.dirname(path)) if name == "index" else name


def _vanished(pair: Pair, name: str, compared: Compared) -> Item:
    """Return an export that is gone as the definition of its name."""
    listed = compared.before[pair.was]
    event = next((e for e in listed if e.text == name and e.rule != "other"), None)
    if event is None:
        about = next(
            (e for e in listed if e.rule in ("export", "exports") and name in e.text), None
        )
        line = about.line if about else 1
        event = Event("variable", pair.was, name, line, 1, line, "")
    return Item(pair, event, None, Changed(pair.now, 1, name, "removed", "export"))
