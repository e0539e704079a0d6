"""Python: what a change took away or made to be called otherwise, and who uses it."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from holdfast.activities.review.uses.definitions import is_alike, place_now
from holdfast.activities.review.uses.python_calls import (
    arguments_of,
    body_of,
    parameters_of,
    signature_of,
)
from holdfast.activities.review.uses.python_modules import (
    DYNAMIC_CLASS,
    FUNCTIONS,
    MOST_HOPS,
    SOURCES,
    Modules,
    Symbol,
    Target,
    is_dynamic,
    is_plain,
    name_of,
)
from holdfast.activities.review.uses.python_references import Reference, references_in
from holdfast.activities.review.uses.reporting import (
    Breakage,
    Changed,
    Definition,
    Found,
    unfit,
    without_module,
    without_name,
)
from holdfast.activities.review.uses.signatures import misfit
from holdfast.activities.review.uses.tree import Pair, Tree, Wanted

LANGUAGE = "Python"


@dataclass(frozen=True)
class _Before:
    """A definition as the base has it, and the head if it has it, too."""

    target: Target
    pair: Pair
    old: Symbol
    new: Symbol | None
    of_class: str = ""


def find(tree: Tree) -> Found:
    """Return what the change did to Python code, and what breaks by it."""
    pairs = [pair for pair in tree.pairs if pair.language == LANGUAGE]
    if not pairs:
        return Found()
    return _Finding(tree, Modules(tree)).found(pairs)


@dataclass
class _Finding:
    tree: Tree
    modules: Modules
    defined: dict[Target, _Before] = field(default_factory=dict)
    gone: dict[str, Pair] = field(default_factory=dict)
    """Modules of the base that the head no longer has, by path."""
    changed: dict[Target, Changed] = field(default_factory=dict)

    def found(self, pairs: Sequence[Pair]) -> Found:
        for pair in pairs:
            self._compare(pair)
        names = {part for target in self.defined for part in _names(target)}
        breakages: list[Breakage] = []
        for path in self.tree.holding(self._searched(), (LANGUAGE,)):
            module = self.modules.module(path) if self.tree.on_time() else None
            if module is None:
                continue
            for each in references_in(module, self.modules, self.defined, names, self.gone):
                self._note(each)
                breakages += self._breakage(each)
        # An import that nobody used by way of this module is no change of what it offers.
        changed = [e for e in self.changed.values() if e.uses or e.kind != "import"]
        return Found(changed, list(dict.fromkeys(breakages)))

    def _searched(self) -> list[Wanted]:
        """Return what a file must hold to use one of the definitions: its name, and the name of its
        module or of the package around it.
        """
        found: dict[str, set[str]] = {}
        for target in self.defined:
            found.setdefault(target[0], set()).update(_names(target))
        wanted = [Wanted(frozenset(names), _import_names(path)) for path, names in found.items()]
        return wanted + [Wanted(frozenset({_module_name(path)})) for path in self.gone]

    def _compare(self, pair: Pair) -> None:
        old = self.modules.module(pair.was, base=True) if pair.was else None
        new = self.modules.module(pair.now) if pair.now else None
        if old is None:
            return
        if pair.was != pair.now and self.tree.is_gone(pair.was):
            self.gone[pair.was] = pair
            self.changed[pair.was, ""] = Changed(
                pair.now or pair.was, 1, _module_name(pair.was), "removed", "module"
            )
        if new is None or pair.was != pair.now:
            return
        for name, symbol in old.symbols.items():
            self._compare_symbol(pair, name, symbol, new.symbols.get(name))
            there = new.symbols.get(name)
            if symbol.kind == "class" and there is not None and there.kind == "class":
                for inner, member in symbol.members.items():
                    now = there.members.get(inner)
                    self._compare_symbol(pair, f"{name}.{inner}", member, now, name)

    def _compare_symbol(
        self, pair: Pair, name: str, old: Symbol, new: Symbol | None, of_class: str = ""
    ) -> None:
        if old.kind == "attribute" or (old.kind == "import" and (new is not None or of_class)):
            return
        target = pair.was, name
        if new is None:
            what, line = "removed", place_now(pair, old.line)
        elif old.kind == new.kind and signature_of(old) != signature_of(new):
            what, line = "signature", getattr(new.node, "lineno", new.line)
        elif old.kind == new.kind and old.kind != "class" and pair.touches(new.line, new.end):
            what, line = "body", getattr(new.node, "lineno", new.line)
        else:
            return
        self.defined[target] = _Before(target, pair, old, new, of_class)
        kind = "method" if of_class and old.kind == "function" else old.kind
        self.changed[target] = Changed(pair.now, line, name, what, kind)  # type: ignore[arg-type]

    def _note(self, each: Reference) -> None:
        """Remember a use of what changed."""
        target = each.target
        if target in self.changed:
            self.changed[target].add(each.use)
        owner = target[1].rpartition(".")[0]
        if target[1].endswith(".__init__") and (target[0], owner) in self.changed:
            self.changed[target[0], owner].add(each.use)

    def _breakage(self, each: Reference) -> Iterator[Breakage]:
        if each.guarded or not each.use.sure:
            return
        if each.target[0] in self.gone and not each.target[1]:
            pair = self.gone[each.target[0]]
            yield without_module(each.use, _module_name(pair.was), pair.was, pair.now)
        before = self.defined.get(each.target)
        if before is None:
            return
        if before.new is None:
            yield from self._without_name(each, before)
        elif each.call is not None:
            yield from self._unfit(each, before)

    def _without_name(self, each: Reference, before: _Before) -> Iterator[Breakage]:
        path, name = before.target
        if before.of_class:
            if before.old.kind == "variable" or self._may_inherit(path, before.of_class):
                base = self.modules.class_of((path, before.of_class))
                if base is None or self._may_inherit(path, before.of_class):
                    return
        elif (
            not each.direct
            or self.modules.names(path) is None
            or name in (self.modules.names(path) or ())
        ):
            return
        was = Definition(path, before.old.line)
        member = bool(before.of_class)
        yield without_name(each.use, name, was, self._renamed(before), member=member)

    def _may_inherit(self, path: str, name: str) -> bool:
        """True if a class may have names that nobody can read."""
        waiting, seen = [(path, name)], set[Target]()
        while waiting:
            target = waiting.pop()
            symbol = self.modules.class_of(target)
            bases, known = self.modules.bases(target)
            if symbol is None or not known or is_dynamic(symbol.node, DYNAMIC_CLASS):
                return True
            seen.add(target)
            waiting += [each for each in bases if each not in seen]
            if len(seen) > MOST_HOPS:
                return True
        return False

    def _renamed(self, before: _Before) -> str:
        """Return what a definition is called now; empty: nobody can tell."""
        path, name = before.target
        old, new = self.modules.module(path, base=True), self.modules.module(path)
        if old is None or new is None:
            return ""
        had, has = old.symbols, new.symbols
        if before.of_class:
            had, has = had[before.of_class].members, has[before.of_class].members
        said = _said(before.old.node)
        for other, symbol in has.items():
            if (
                other in had
                or symbol.kind != before.old.kind
                or not _is_alike(said, _said(symbol.node))
            ):
                continue
            return f"{before.of_class}.{other}".lstrip(".")
        for pair in self.tree.pairs:
            moved = (
                self.modules.module(pair.now) if pair.now and pair.language == LANGUAGE else None
            )
            symbol_there = moved.symbols.get(name) if moved else None
            if pair.now != path and symbol_there is not None and symbol_there.kind != "import":
                return f"{pair.now}: {name}"
        return ""

    def _unfit(self, each: Reference, before: _Before) -> Iterator[Breakage]:
        assert each.call is not None
        old, new = before.old, before.new
        assert new is not None
        if not is_plain(old) or not is_plain(new):
            return
        dropped = _drops_first(old, each, before), _drops_first(new, each, before)
        was, now = parameters_of(old, drop=dropped[0]), parameters_of(new, drop=dropped[1])
        last = each.call.end_lineno or each.call.lineno
        kept = not self.tree.touches(each.use.file, each.call.lineno, last)
        bodies = (body_of(old), body_of(new)) if kept else ()
        if why := misfit(was, now, arguments_of(each.call), bodies):
            name = before.target[1].removesuffix(".__init__")
            there = Definition(before.target[0], getattr(new.node, "lineno", new.line))
            yield unfit(each.use, name, there, why)


def _import_names(path: str) -> frozenset[str]:
    parts = path.removesuffix(".py").removesuffix(".pyi").removesuffix("/__init__").split("/")
    return frozenset(part for part in parts[-3:] if part not in SOURCES)


def _names(target: Target) -> Iterator[str]:
    """Yield the names by which a definition is used: a class is where its constructor is."""
    owner, _, name = target[1].rpartition(".")
    yield owner if name == "__init__" else name


def _module_name(path: str) -> str:
    plain = path.removesuffix(".py").removesuffix(".pyi").removesuffix("/__init__")
    return plain.rpartition("/")[2]


def _said(node: ast.AST) -> tuple[str, str]:
    """Return a definition as text, without its name: parameters and body."""
    if isinstance(node, (*FUNCTIONS, ast.ClassDef)):
        head = ast.dump(node.args) if isinstance(node, FUNCTIONS) else ""
        return head, "\n".join(ast.unparse(each) for each in node.body)[:4_000]
    if isinstance(node, ast.Assign | ast.AnnAssign) and node.value is not None:
        return "", ast.dump(node.value)[:4_000]
    return "", ""


def _is_alike(one: tuple[str, str], other: tuple[str, str]) -> bool:
    return one[0] == other[0] and bool(one[1]) and is_alike(one[1], other[1])


def _drops_first(symbol: Symbol, each: Reference, before: _Before) -> bool:
    """True if the first parameter is not the caller's to give."""
    if not before.of_class:
        return False
    decorators = {name_of(by) for by in getattr(symbol.node, "decorator_list", ())}
    if "staticmethod" in decorators:
        return False
    return each.by_instance or "classmethod" in decorators or symbol.name == "__init__"
