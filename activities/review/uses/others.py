"""Go, Java and Ruby: what a change took away or made to be called otherwise, and who uses it, by
names that mean one thing: in a package, or in the whole tree.
"""

from __future__ import annotations

import difflib
import posixpath
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path

import yaml

from holdfast.activities.review.uses.matching import Event, match
from holdfast.activities.review.uses.reporting import Breakage, Changed, Found, Use
from holdfast.activities.review.uses.signatures import (
    Arguments,
    Parameters,
    go_arguments,
    go_parameters,
    java_arguments,
    java_parameters,
    ruby_arguments,
    ruby_parameters,
)
from holdfast.activities.review.uses.tree import Pair, Tree, Wanted

DEFINITIONS = ("function", "method", "class", "type", "variable", "constructor")
CONSTRUCTOR = re.compile(r"\.(?:constructor|initialize)$")
ALIKE = 0.8
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
        body = squeezed(event.said.get("BODY", ""))
        if body == said[1] or _alike(body, said[1]):
            return event.text
    return ""


def _alike(one: str, other: str) -> bool:
    ratio = difflib.SequenceMatcher(None, one[:4_000], other[:4_000], autojunk=False)
    return ratio.quick_ratio() > ALIKE and ratio.ratio() > ALIKE


def use_of(event: Event, *, sure: bool = True) -> Use:
    how = "import" if event.rule in ("import", "require", "export") else "name"
    how = "call" if "ARGS" in event.said else how
    return Use(event.file, event.line, event.column, how, sure)  # type: ignore[arg-type]


def without_name(item: Item, use: Use, now: str = "", *, member: bool = False) -> Breakage:
    how = {"import": "imported", "call": "called"}.get(use.how, "used")
    return Breakage(
        use.file,
        use.line,
        "removed-member" if member else "removed-name",
        f"`{item.name}` is {how} here, and this change removed it from `{item.pair.was}`"
        f" (line {item.old.line} before)" + (f"; `{now}` is there now" if now else ""),
        f"Use `{now}`" if now else "Take the use out, or keep the definition",
        use.column,
    )


def without_module(use: Use, was: str, now: str) -> Breakage:
    return Breakage(
        use.file,
        use.line,
        "removed-module",
        f"`{was}` is imported here, and this change removed it"
        + (f"; it is `{now}` now" if now else ""),
        f"Import `{now}`" if now else "Take the import out, or keep the file",
        use.column,
    )


def unfit(item: Item, use: Use, why: str, row: str = "changed-signature") -> Breakage:
    assert item.new is not None
    name = CONSTRUCTOR.sub("", item.changed.name)
    return Breakage(
        use.file,
        use.line,
        "changed-signature",
        f"This call no longer fits `{name}` as the change defines it"
        f" (`{item.pair.now}` line {item.new.line}): {why}",
        "Call it by its new parameters, or keep the old ones",
        use.column,
        row,
    )


def misfit(was: Parameters | None, now: Parameters | None, given: Arguments | None) -> str:
    """Return why a call that fitted does not fit any more; empty: it does, or did not before."""
    if was is None or now is None or given is None or was.misfit(given):
        return ""
    return now.misfit(given)


@cache
def _common() -> frozenset[str]:
    return frozenset(yaml.safe_load(COMMON_NAMES.read_text("utf-8")))


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


# Go ---------------------------------------------------------------------------------------------


def find_go(tree: Tree, program: str) -> Found:
    pairs = [pair for pair in tree.pairs if pair.language == "Go"]
    if not pairs:
        return Found()
    compared = compare(tree, program, pairs)
    names = {item.name for item in compared.items}
    paths = tree.holding([Wanted(frozenset(names))], ("Go",))
    events = match(tree, program, {path: tree.place(path) for path in paths}, names)
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
            use = use_of(event, sure=sure)
            item.changed.add(use)
            if not sure:
                continue
            if item.new is None:
                yield without_name(item, use, now, member=member)
            elif "ARGS" in event.said:
                was, new = (
                    go_parameters(item.old.said.get("PARAMS", "")),
                    go_parameters(item.new.said.get("PARAMS", "")),
                )
                if why := misfit(was, new, go_arguments(event.said["ARGS"])):
                    yield unfit(item, use, why)


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


# Java -------------------------------------------------------------------------------------------


def find_java(tree: Tree, program: str) -> Found:
    pairs = [pair for pair in tree.pairs if pair.language == "Java"]
    if not pairs:
        return Found()
    compared = compare(tree, program, pairs)
    names = {item.name for item in compared.items}
    owners = {item.owner for item in compared.items if item.owner}
    paths = tree.holding([Wanted(frozenset(names))], ("Java",))
    events = match(tree, program, {path: tree.place(path) for path in paths}, names | owners)
    breakages = [each for item in compared.items for each in _java(item, compared, events)]
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


def _java(item: Item, compared: Compared, events: Events) -> Iterator[Breakage]:
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
            use = use_of(event, sure=fits and sure)
            if fits or (on and unique):
                item.changed.add(use)
            if not use.sure:
                continue
            if item.new is None:
                if not inherits:
                    yield without_name(item, use, now, member=True)
            elif "ARGS" in event.said:
                was, new = (
                    java_parameters(item.old.said.get("PARAMS", "")),
                    java_parameters(item.new.said.get("PARAMS", "")),
                )
                if why := misfit(was, new, java_arguments(event.said["ARGS"])):
                    yield unfit(item, use, why)


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
            yield without_name(item, use, now)
            continue
        if _package(listed) != package or any(
            each.endswith((f".{item.name}", ".*")) for each in imported
        ):
            continue
        for event in listed:
            if event.rule == "use" and event.text == item.name and not defined:
                use = use_of(event)
                item.changed.add(use)
                yield without_name(item, use, now)


# Ruby -------------------------------------------------------------------------------------------

CALLBACKS = re.compile(
    r"^(before|after|around)_\w+$|^(validate|helper_method|send|public_send|method)$"
)


def find_ruby(tree: Tree, program: str) -> Found:
    pairs = [pair for pair in tree.pairs if pair.language == "Ruby"]
    if not pairs:
        return Found()
    compared = compare(tree, program, pairs)
    names = {item.name for item in compared.items}
    searched = names - {"initialize"} | {
        item.owner for item in compared.items if item.name == "initialize"
    }
    gone = {pair.was: pair for pair in pairs if pair.was and pair.was not in tree.head}
    stems = {posixpath.basename(path).removesuffix(".rb") for path in gone}
    paths = tree.holding([Wanted(frozenset(searched | stems))], ("Ruby",))
    events = match(
        tree, program, {path: tree.place(path) for path in paths}, names | searched | {"new"}
    )
    breakages = [each for item in compared.items for each in _ruby(tree, item, compared, events)]
    for path, listed in events.items():
        for event in listed:
            if event.rule == "import":
                breakages += _required(tree, path, event, gone)
    return Found([item.changed for item in compared.items], breakages)


def _required(tree: Tree, path: str, event: Event, gone: Mapping[str, Pair]) -> Iterator[Breakage]:
    said = re.match(r"(require|require_relative)[\s(]+['\"]([\w./-]+)['\"]", event.text)
    if said is None:
        return
    if said[1] == "require_relative":
        wanted = [posixpath.normpath(posixpath.join(posixpath.dirname(path), said[2]))]
    else:
        wanted = [posixpath.normpath(posixpath.join(root, said[2])) for root in ("lib", "app", "")]
    files = [f"{each.removesuffix('.rb')}.rb" for each in wanted]
    hit = next((each for each in files if each in gone), "")
    if hit and not any(each in tree.head for each in files):
        yield without_module(use_of(event), hit, gone[hit].now)


def _ruby(tree: Tree, item: Item, compared: Compared, events: Events) -> Iterator[Breakage]:
    constructor = item.name == "initialize"
    name = item.owner if constructor else item.name
    defined = defined_in(events, name)
    is_class = item.old.rule in ("class", "variable")
    symbols = [
        e
        for listed in events.values()
        for e in listed
        if e.rule == "symbol" and e.text.strip(":") == name
    ]
    dynamic = [e for e in symbols if not CALLBACKS.match(e.said.get("CALLED", ""))]
    text = (tree.text(item.pair.now) or "") if item.pair.now else ""
    if constructor:
        sure = len([e for e in defined if e.rule == "class"]) == 1
    elif item.new is None:
        sure = not defined and (is_class or (is_telling(name) and not dynamic))
        sure = (
            sure
            and not item.old.said.get("SUPER")
            and not re.search(r"method_missing|define_method|const_missing", text)
        )
    else:
        sure = len(defined) == 1 and not dynamic and is_telling(name)
    now = renamed(item, compared) if item.new is None else ""
    for path, listed in events.items():
        bound = {e.text for e in listed if e.rule == "binding"}
        for event in listed:
            hook = event.rule == "symbol" and event in symbols and event not in dynamic
            if not hook and (
                event.rule != "use" or event.text != (("new") if constructor else name)
            ):
                continue
            if constructor and not re.search(
                rf"(^|::){re.escape(name)}$", event.said.get("ON", "")
            ):
                continue
            if not hook and "ON" not in event.said and name in bound:
                continue
            if (
                is_class
                and item.old.rule == "variable"
                and event.said.get("ON", "").rpartition("::")[2] not in ("", item.owner)
            ):
                continue
            use = use_of(event, sure=sure)
            item.changed.add(use)
            if not sure:
                continue
            if item.new is None:
                if not is_class and path != item.pair.now and "ON" not in event.said and not hook:
                    continue
                yield without_name(item, use, now, member=not is_class)
            elif "ARGS" in event.said or ("ON" in event.said and not is_class):
                new = ruby_parameters(item.new.said.get("PARAMS", ""))
                was = ruby_parameters(item.old.said.get("PARAMS", ""))
                takes = bool(was.keywords or was.open)
                given = ruby_arguments(event.said.get("ARGS", ""), takes)
                if why := misfit(was, new, given):
                    yield unfit(item, use, why)
