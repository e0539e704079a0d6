"""Ruby: what a change took away or made to be called otherwise, by names that mean one thing in the
whole tree.
"""

from __future__ import annotations

import posixpath
import re
from collections.abc import Iterator, Mapping

from holdfast.activities.review.uses.definitions import (
    Compared,
    Events,
    Item,
    compare,
    defined_in,
    find_events,
    is_telling,
    renamed,
    unfit_call,
    use_of,
    without_item,
)
from holdfast.activities.review.uses.matching import Event
from holdfast.activities.review.uses.reporting import Breakage, Found, without_module
from holdfast.activities.review.uses.signatures import ruby_arguments, ruby_parameters
from holdfast.activities.review.uses.tree import Pair, Tree

CALLBACKS = re.compile(
    r"^(before|after|around)_\w+$|^(validate|helper_method|send|public_send|method)$"
)


def find(tree: Tree, program: str) -> Found:
    pairs = [pair for pair in tree.pairs if pair.language == "Ruby"]
    if not pairs:
        return Found()
    compared = compare(tree, program, pairs)
    names = {item.name for item in compared.items}
    searched = names - {"initialize"} | {
        item.owner for item in compared.items if item.name == "initialize"
    }
    gone = {pair.was: pair for pair in pairs if pair.was and tree.is_gone(pair.was)}
    stems = {posixpath.basename(path).removesuffix(".rb") for path in gone}
    events = find_events(tree, program, "Ruby", names | searched | {"new"}, searched | stems)
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
        yield without_module(use_of(event), hit, hit, gone[hit].now)


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
                yield without_item(item, use, now, member=not is_class)
            elif "ARGS" in event.said or ("ON" in event.said and not is_class):
                new = ruby_parameters(item.new.said.get("PARAMS", ""))
                was = ruby_parameters(item.old.said.get("PARAMS", ""))
                takes = bool(was.keyword or was.more_keywords)
                given = ruby_arguments(event.said.get("ARGS", ""), takes)
                yield from unfit_call(tree, item, event, (was, new), given)
