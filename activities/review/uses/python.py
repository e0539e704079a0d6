"""Python: what a change took away or made to be called otherwise, and who uses it."""

from __future__ import annotations

import ast
import difflib
from collections import Counter
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, field
from typing import TypeAlias

from holdfast.activities.review.uses.python_modules import (
    DYNAMIC_CLASS,
    FUNCTIONS,
    MOST_HOPS,
    SOURCES,
    Module,
    Modules,
    Symbol,
    Target,
    is_dynamic,
    is_plain,
    name_of,
    walk,
)
from holdfast.activities.review.uses.reporting import Breakage, Changed, Found, Use
from holdfast.activities.review.uses.tree import Pair, Tree, Wanted
from holdfast.text import pluralize

LANGUAGE = "Python"
ALIKE = 0.8
"""Least similarity, from 0 to 1, of a definition to the one that it was before it was renamed."""
MISSING = {"ImportError", "ModuleNotFoundError", "Exception", "BaseException", "AttributeError"}
"""Exceptions that whoever catches them expects a name to be absent."""
PATCHES = {"patch", "setattr", "import_string"}
"""Calls whose first argument may name a definition by its full path."""
Function: TypeAlias = ast.FunctionDef | ast.AsyncFunctionDef
Scope: TypeAlias = ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda | ast.ClassDef


@dataclass(frozen=True)
class _Before:
    """A definition as the base has it, and the head if it has it, too."""

    target: Target
    pair: Pair
    old: Symbol
    new: Symbol | None
    of_class: str = ""


@dataclass
class _Reference:
    """A place that means a definition."""

    use: Use
    target: Target
    call: ast.Call | None = None
    by_instance: bool = False
    guarded: bool = False
    """True where a missing name is expected, or the place is for type checkers alone."""
    direct: bool = True
    """False if the name comes by way of another module."""


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
            for each in _references(module, self.modules, self.defined, names, self.gone):
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
        if (
            pair.was != pair.now
            and pair.was not in self.tree.head
            and not self.modules.is_folder(pair.was)
        ):
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
            what, line = "removed", _place_now(pair, old.line)
        elif (
            isinstance(old.node, FUNCTIONS)
            and isinstance(new.node, FUNCTIONS)
            and _arguments(old.node) != _arguments(new.node)
        ):
            what, line = "signature", new.node.lineno
        elif old.kind == new.kind and old.kind != "class" and pair.touches(new.line, new.end):
            what, line = "body", getattr(new.node, "lineno", new.line)
        elif new.kind == "class" and _fields(old) != _fields(new):
            what, line = "signature", getattr(new.node, "lineno", new.line)
        else:
            return
        self.defined[target] = _Before(target, pair, old, new, of_class)
        kind = "method" if of_class and old.kind == "function" else old.kind
        self.changed[target] = Changed(pair.now, line, name, what, kind)  # type: ignore[arg-type]

    def _note(self, each: _Reference) -> None:
        """Remember a use of what changed."""
        target = each.target
        if target in self.changed:
            self.changed[target].add(each.use)
        owner = target[1].rpartition(".")[0]
        if target[1].endswith(".__init__") and (target[0], owner) in self.changed:
            self.changed[target[0], owner].add(each.use)

    def _breakage(self, each: _Reference) -> Iterator[Breakage]:
        if each.guarded or not each.use.sure:
            return
        if each.target[0] in self.gone and not each.target[1]:
            yield from self._without_module(each)
        before = self.defined.get(each.target)
        if before is None:
            return
        if before.new is None:
            yield from self._without_name(each, before)
        elif each.call is not None:
            yield from self._unfit(each, before)

    def _without_module(self, each: _Reference) -> Iterator[Breakage]:
        pair = self.gone[each.target[0]]
        name = _module_name(pair.was)
        moved = f"; it is `{pair.now}` now" if pair.now else ""
        yield _broken(
            each,
            "removed-module",
            f"`{name}` is imported here, and this change removed the module `{pair.was}`{moved}",
            f"Import it from `{pair.now}`"
            if pair.now
            else "Take the import out, or keep the module",
        )

    def _without_name(self, each: _Reference, before: _Before) -> Iterator[Breakage]:
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
        now = self._renamed(before)
        how = {"import": "imported", "call": "called"}.get(each.use.how, "used")
        yield _broken(
            each,
            "removed-member" if before.of_class else "removed-name",
            f"`{name}` is {how} here, and this change removed it from `{path}`"
            f" (line {before.old.line} before)" + (f"; `{now}` is there now" if now else ""),
            f"Use `{now}`" if now else "Take the use out, or keep the definition",
        )

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

    def _unfit(self, each: _Reference, before: _Before) -> Iterator[Breakage]:
        assert each.call is not None
        old, new = before.old, before.new
        assert new is not None
        if not is_plain(old) or not is_plain(new):
            return
        dropped = _drops_first(old, each, before), _drops_first(new, each, before)
        was, now = _parameters(old, dropped[0]), _parameters(new, dropped[1])
        if was is None or now is None or was.misfit(each.call) is not None:
            return
        why = now.misfit(each.call)
        if why:
            name = before.target[1].removesuffix(".__init__")
            line = getattr(new.node, "lineno", new.line)
            yield _broken(
                each,
                "changed-signature",
                f"This call no longer fits `{name}` as the change defines it"
                f" (`{before.target[0]}` line {line}): {why}",
                "Call it by its new parameters, or give the new parameter a default",
            )


def _import_names(path: str) -> frozenset[str]:
    parts = path.removesuffix(".py").removesuffix(".pyi").removesuffix("/__init__").split("/")
    return frozenset(part for part in parts[-3:] if part not in SOURCES)


def _names(target: Target) -> Iterator[str]:
    """Yield the names by which a definition is used: a class is where its constructor is."""
    owner, _, name = target[1].rpartition(".")
    yield owner if name == "__init__" else name


def _broken(each: _Reference, rule: str, message: str, suggestion: str) -> Breakage:
    return Breakage(each.use.file, each.use.line, rule, message, suggestion, each.use.column)


def _module_name(path: str) -> str:
    plain = path.removesuffix(".py").removesuffix(".pyi").removesuffix("/__init__")
    return plain.rpartition("/")[2]


def _place_now(pair: Pair, line: int) -> int:
    """Return the line of the head after which a line of the base stood."""
    shift = 0
    for old, count, new, now in pair.hunks:
        if line < old + (not count):
            break
        if line < old + count:
            return max(new, 1)
        shift = (new + max(now, 0) + (not now)) - (old + count + (not count))
    return max(line + shift, 1)


def _arguments(node: Function) -> str:
    listed = [
        (kind, each.arg)
        for kind in ("posonlyargs", "args", "kwonlyargs")
        for each in getattr(node.args, kind)
    ]
    stars = [each and each.arg for each in (node.args.vararg, node.args.kwarg)]
    defaults = len(node.args.defaults), [each is None for each in node.args.kw_defaults]
    return repr((listed, stars, defaults, type(node).__name__))


def _said(node: ast.AST) -> tuple[str, str]:
    """Return a definition as text, without its name: parameters and body."""
    if isinstance(node, (*FUNCTIONS, ast.ClassDef)):
        head = ast.dump(node.args) if isinstance(node, FUNCTIONS) else ""
        return head, "\n".join(ast.unparse(each) for each in node.body)[:4_000]
    if isinstance(node, ast.Assign | ast.AnnAssign) and node.value is not None:
        return "", ast.dump(node.value)[:4_000]
    return "", ""


def _is_alike(one: tuple[str, str], other: tuple[str, str]) -> bool:
    if one[0] != other[0] or not one[1]:
        return False
    if one[1] == other[1]:
        return True
    ratio = difflib.SequenceMatcher(None, one[1], other[1], autojunk=False)
    return ratio.quick_ratio() > ALIKE and ratio.ratio() > ALIKE


@dataclass(frozen=True)
class _Parameters:
    """What a call of a definition may hand over."""

    positional: tuple[str, ...]
    """Names of those that may stand without one; for those that only may, `*name`."""
    needed: int
    """How many of these have no default."""
    keyword: tuple[str, ...] = ()
    keyword_needed: tuple[str, ...] = ()
    more: bool = False
    more_keywords: bool = False

    def misfit(self, call: ast.Call) -> str | None:
        """Return why a call does not fit, empty if nobody can tell; None: it fits."""
        if any(isinstance(each, ast.Starred) for each in call.args) or any(
            each.arg is None for each in call.keywords
        ):
            return ""
        given = {each.arg or "" for each in call.keywords}
        count = len(call.args)
        if count > len(self.positional) and not self.more:
            return self._describe_excess(count, given)
        for name in self.positional[:count]:
            if name in given:
                return f"`{name}` is given twice"
        missing = [
            name.lstrip("*") for name in self.positional[count : self.needed] if name not in given
        ]
        missing += [name for name in self.keyword_needed if name not in given]
        if missing:
            return f"it needs `{'`, `'.join(missing)}`"
        unknown = sorted(given - {*self.positional, *self.keyword})
        if unknown and not self.more_keywords:
            return f"it has no parameter `{'`, `'.join(unknown)}`"
        return None

    def _describe_excess(self, count: int, given: Collection[str]) -> str:
        """Return why so many arguments without a name are too many, and which must be named now."""
        most = len(self.positional)
        said = f"it takes {pluralize(most, 'positional argument')} at most, and gets {count}"
        if not most:
            said = f"it takes no positional argument, and gets {count}"
        named = [name for name in self.keyword if name not in given]
        # Of fewer nobody can tell which one the surplus was.
        if len(named) < count - most:
            return said
        return f"{said}; {' and '.join(f'`{each}`' for each in named)} must be named"


def _parameters(symbol: Symbol, drop: bool) -> _Parameters | None:
    node = symbol.node
    if isinstance(node, ast.ClassDef):
        return _fields_of(symbol)
    if not isinstance(node, FUNCTIONS):
        return None
    args = node.args
    listed = [f"*{each.arg}" for each in args.posonlyargs] + [each.arg for each in args.args]
    needed = len(listed) - len(args.defaults)
    if drop:
        if not listed:
            return None
        listed, needed = listed[1:], max(needed - 1, 0)
    keyword = tuple(each.arg for each in args.kwonlyargs)
    required = tuple(
        each.arg
        for each, default in zip(args.kwonlyargs, args.kw_defaults, strict=True)
        if default is None
    )
    return _Parameters(
        tuple(listed), needed, keyword, required, args.vararg is not None, args.kwarg is not None
    )


def _fields(symbol: Symbol) -> _Parameters | None:
    return _fields_of(symbol) if symbol.kind == "class" else None


def _fields_of(symbol: Symbol) -> _Parameters | None:
    """Return the parameters of a dataclass without bases; None: it is none, or one that nobody can
    read.
    """
    node = symbol.node
    if not isinstance(node, ast.ClassDef) or node.bases or "__init__" in symbol.members:
        return None
    by = [each for each in node.decorator_list if name_of(each) == "dataclass"]
    if not by or any(
        isinstance(each, ast.Call) and any(k.arg in ("init", "kw_only") for k in each.keywords)
        for each in by
    ):
        return None
    names: list[str] = []
    needed = 0
    for each in node.body:
        if not isinstance(each, ast.AnnAssign) or not isinstance(each.target, ast.Name):
            continue
        kind = ast.unparse(each.annotation)
        if "ClassVar" in kind:
            continue
        if "InitVar" in kind or "KW_ONLY" in kind:
            return None
        default = each.value
        if isinstance(default, ast.Call) and name_of(default.func) == "field":
            said = {k.arg: k.value for k in default.keywords}
            if "init" in said or "kw_only" in said or None in said:
                return None
            default = said.get("default") or said.get("default_factory")
        names.append(each.target.id)
        if default is None:
            needed = len(names)
    return _Parameters(tuple(names), needed)


def _drops_first(symbol: Symbol, each: _Reference, before: _Before) -> bool:
    """True if the first parameter is not the caller's to give."""
    if not before.of_class:
        return False
    decorators = {name_of(by) for by in getattr(symbol.node, "decorator_list", ())}
    if "staticmethod" in decorators:
        return False
    return each.by_instance or "classmethod" in decorators or symbol.name == "__init__"


# How a file is read ----------------------------------------------------------------------------


def _references(
    module: Module,
    modules: Modules,
    wanted: Collection[Target],
    names: set[str],
    gone: Collection[str],
) -> Iterator[_Reference]:
    """Yield the places of a file that mean one of the wanted definitions, by one of the names."""
    try:
        reader = _Reader(module, modules, wanted, names, gone)
        yield from reader.references()
    except RecursionError:
        modules.tree.unread.add(module.path)


class _Reader:
    """One file of the head: which name means what where."""

    def __init__(
        self,
        module: Module,
        modules: Modules,
        wanted: Collection[Target],
        names: set[str],
        gone: Collection[str],
    ) -> None:
        self.module, self.modules, self.wanted, self.gone = module, modules, wanted, gone
        self.path = module.path
        self.parents: dict[ast.AST, ast.AST] = {}
        self.imports: dict[str, set[tuple[str, int, str]]] = {}
        self.stored: Counter[str] = Counter()
        self.nodes = list(self._connected(module.tree))
        for node in self.nodes:
            self._learn(node)
        self.names = names | {
            local
            for local, sources in self.imports.items()
            if any(inner in names for _, _, inner in sources)
        }
        self._types: dict[ast.AST, dict[str, Target]] = {}

    def _connected(self, root: ast.AST) -> Iterator[ast.AST]:
        """Yield the nodes of the file, each after the one that it is below."""
        for node in walk(root):
            for name in node._fields:
                value = getattr(node, name, None)
                for child in value if isinstance(value, list) else (value,):
                    if isinstance(child, ast.AST) and child._fields:
                        self.parents[child] = node
            yield node

    def _learn(self, node: ast.AST) -> None:
        match node:
            case ast.Import(names=names):
                for each in names:
                    local = each.asname or each.name.partition(".")[0]
                    source = (each.name if each.asname else local, 0, "")
                    self.imports.setdefault(local, set()).add(source)
            case ast.ImportFrom(names=names):
                for each in names:
                    source = (node.module or "", node.level, each.name)
                    self.imports.setdefault(each.asname or each.name, set()).add(source)
            case ast.Name(id=name, ctx=ast.Store() | ast.Del()):
                # A name in a class is no name of its methods.
                if not isinstance(self._scope(node), ast.ClassDef):
                    self.stored[name] += 1
            case ast.arg(arg=name):
                self.stored[name] += 1
            case ast.ExceptHandler(name=str(name)):
                self.stored[name] += 1
            case (
                ast.FunctionDef(name=name)
                | ast.AsyncFunctionDef(name=name)
                | ast.ClassDef(name=name)
            ):
                if not isinstance(self.parents.get(node), ast.ClassDef):
                    self.stored[name] += 1
            case ast.MatchAs(name=str(name)) | ast.MatchStar(name=str(name)):
                self.stored[name] += 1

    def _scope(self, node: ast.AST) -> ast.AST | None:
        """Return the nearest function, lambda or class around a node."""
        at = self.parents.get(node)
        while at is not None and not isinstance(at, (*FUNCTIONS, ast.Lambda, ast.ClassDef)):
            at = self.parents.get(at)
        return at

    def references(self) -> Iterator[_Reference]:
        for node in self.nodes:
            match node:
                case ast.Name(id=name, ctx=ast.Load()):
                    if name in self.names:
                        yield from self._means(node)
                case ast.Attribute(attr=name):
                    if name in self.names and not isinstance(node.ctx, ast.Store):
                        yield from self._means(node)
                case ast.ImportFrom():
                    yield from self._imported_from(node)
                case ast.Import():
                    yield from self._imported(node)
                case ast.Call(func=func, args=[ast.Constant(value=str(text)), *_]):
                    if name_of(func) in PATCHES:
                        yield from self._named(node, text)

    def _imported_from(self, node: ast.ImportFrom) -> Iterator[_Reference]:
        dotted = node.module or ""
        source = self.modules.find(dotted, node.level, self.path)
        was = source or self.modules.find(dotted, node.level, self.path, base=True)
        if was in self.gone and not source:
            yield self._reference(node, (was, ""), "import")
            return
        for each in node.names:
            inner = f"{dotted}.{each.name}".lstrip(".")
            below = self.modules.find(inner, node.level, self.path)
            below_was = below or self.modules.find(inner, node.level, self.path, base=True)
            has = source and each.name in (self.modules.names(source) or {each.name})
            if below_was in self.gone and not below and (not source or not has):
                yield self._reference(each, (below_was, ""), "import")
            elif source:
                direct = (source, each.name)
                final = direct if direct in self.wanted else self.modules.origin(*direct)
                if final in self.wanted:
                    found = self._reference(each, final, "import")
                    found.direct = final == direct
                    yield found

    def _imported(self, node: ast.Import) -> Iterator[_Reference]:
        for each in node.names:
            if self.modules.find(each.name, 0, self.path):
                continue
            was = self.modules.find(each.name, 0, self.path, base=True)
            if was in self.gone:
                yield self._reference(each, (was, ""), "import")

    def _means(self, node: ast.Attribute | ast.Name) -> Iterator[_Reference]:
        called = self.parents.get(node)
        call = called if isinstance(called, ast.Call) and called.func is node else None
        target, by_instance = self._target(node)
        if call is not None and (target[0], f"{target[1]}.__init__") in self.wanted:
            yield self._reference(node, (target[0], f"{target[1]}.__init__"), "call", call, True)
        if target in self.wanted:
            yield self._reference(node, target, "call" if call else "name", call, by_instance)

    def _named(self, node: ast.Call, text: str) -> Iterator[_Reference]:
        dotted, _, name = text.rpartition(".")
        source = self.modules.find(dotted, 0, self.path) if dotted else ""
        if source and (source, name) in self.wanted:
            yield self._reference(node.args[0], (source, name), "name")

    def _target(self, node: ast.expr) -> tuple[Target, bool]:
        """Return what an expression means, and whether it is reached by an instance."""
        nothing = ("", ""), False
        if isinstance(node, ast.Name):
            return self._meaning(node), False
        if not isinstance(node, ast.Attribute):
            return nothing
        owner = self._class_of(node.value)
        if owner[0]:
            return self._member(owner, node.attr), True
        where, _ = self._target(node.value)
        if not where[0]:
            return self._dotted(node), False
        if where[1] and "." not in where[1] and self.modules.class_of(where):
            return self._member(where, node.attr), False
        return self.modules.attribute(where, node.attr), False

    def _dotted(self, node: ast.Attribute) -> Target:
        """Return what `a.b.c` means where `import a.b` stands."""
        parts: list[str] = []
        at: ast.expr = node
        while isinstance(at, ast.Attribute):
            parts.append(at.attr)
            at = at.value
        if not isinstance(at, ast.Name) or at.id not in self.imports or self.stored[at.id]:
            return "", ""
        names = [at.id, *reversed(parts)]
        source = self.modules.find(".".join(names[:-1]), 0, self.path)
        return self.modules.origin(source, names[-1]) if source else ("", "")

    def _meaning(self, node: ast.Name) -> Target:
        """Return what a name means, if it means one thing in all of the file."""
        name = node.id
        sources = self.imports.get(name, set())
        if sources:
            if self.stored[name] or len(sources) > 1:
                return "", ""
            dotted, level, inner = next(iter(sources))
            source = self.modules.find(dotted, level, self.path)
            if inner:
                if source and (source, inner) in self.wanted:
                    return source, inner
                below = self.modules.find(f"{dotted}.{inner}".lstrip("."), level, self.path)
                if below and not (source and inner in (self.modules.names(source) or ())):
                    return below, ""
                return self.modules.origin(source, inner) if source else ("", "")
            return source, ""
        symbol = self.module.symbols.get(name)
        if symbol is not None and symbol.sure and self.stored[name] == 1:
            return self.path, name
        return "", ""

    def _member(self, owner: Target, name: str) -> Target:
        """Return where a member of a class is defined, following its bases."""
        waiting, seen = [owner], set[Target]()
        while waiting and len(seen) <= MOST_HOPS:
            at = waiting.pop(0)
            seen.add(at)
            symbol = self.modules.class_of(at)
            here = at[0], f"{at[1]}.{name}"
            if symbol is None:
                return "", ""
            if name in symbol.members or here in self.wanted:
                return here
            bases, _ = self.modules.bases(at)
            waiting += [each for each in bases if each not in seen]
        return "", ""

    def _class_of(self, node: ast.expr) -> Target:
        """Return the class of an expression's value, as far as the code around it tells."""
        match node:
            case ast.Name(id=name):
                scope = self._scope(node)
                while scope is not None:
                    if isinstance(scope, FUNCTIONS):
                        found = self._types_in(scope)
                        if name in found:
                            return found[name]
                    scope = self._scope(scope)
                return self._types_in(self.module.tree).get(name, ("", ""))
            case ast.Call(func=func):
                where, _ = self._target(func)
                return where if where[1] and self.modules.class_of(where) else ("", "")
        return "", ""

    def _types_in(self, scope: ast.AST) -> dict[str, Target]:
        """Return the classes of local names that are bound once in a function or the file."""
        if scope in self._types:
            return self._types[scope]
        found = self._types[scope] = {}
        stored: Counter[str] = Counter()
        values: dict[str, Target] = {}
        if isinstance(scope, FUNCTIONS):
            values |= self._given(scope, stored)
        waiting: list[ast.AST] = list(ast.iter_child_nodes(scope))
        while waiting:
            node = waiting.pop()
            if isinstance(node, (*FUNCTIONS, ast.Lambda, ast.ClassDef)):
                continue
            waiting += ast.iter_child_nodes(node)
            if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
                stored[node.id] += 1
            match node:
                case ast.Assign(targets=[ast.Name(id=name)], value=ast.Call(func=func)):
                    where, _ = self._target(func)
                    if where[1] and self.modules.class_of(where):
                        values[name] = where
        found |= {name: where for name, where in values.items() if stored[name] == 1}
        return found

    def _given(self, scope: Function, stored: Counter[str]) -> dict[str, Target]:
        """Return the classes of a function's parameters, by `self` and by annotations."""
        values: dict[str, Target] = {}
        listed = [*scope.args.posonlyargs, *scope.args.args, *scope.args.kwonlyargs]
        for each in listed:
            stored[each.arg] += 1
            if each.annotation is not None:
                where = self._annotated(each.annotation)
                if where[0]:
                    values[each.arg] = where
        owner = self.parents.get(scope)
        decorators = {name_of(by) for by in scope.decorator_list}
        if isinstance(owner, ast.ClassDef) and listed and "staticmethod" not in decorators:
            symbol = self.module.symbols.get(owner.name)
            if symbol is not None and symbol.node is owner and symbol.sure:
                values[listed[0].arg] = self.path, owner.name
        return values

    def _annotated(self, node: ast.expr) -> Target:
        match node:
            case ast.BinOp(left=left, op=ast.BitOr(), right=ast.Constant(value=None)):
                return self._annotated(left)
            case ast.Subscript(value=value, slice=inner) if name_of(value) == "Optional":
                return self._annotated(inner)
            case ast.Name() | ast.Attribute():
                where, _ = self._target(node)
                return where if where[1] and self.modules.class_of(where) else ("", "")
        return "", ""

    def _reference(
        self,
        node: ast.AST,
        target: Target,
        how: str,
        call: ast.Call | None = None,
        by_instance: bool = False,
    ) -> _Reference:
        line: int = (
            getattr(node, "end_lineno", 1)
            if isinstance(node, ast.Attribute)
            else getattr(node, "lineno", 1)
        )
        column: int = getattr(node, "col_offset", 0) + 1
        use = Use(self.path, line, column, how)  # type: ignore[arg-type]
        return _Reference(use, target, call, by_instance, self._is_guarded(node))

    def _is_guarded(self, node: ast.AST) -> bool:
        """True if a missing name is expected here, or nothing runs."""
        at: ast.AST | None = node
        while at is not None:
            above = self.parents.get(at)
            match above:
                case ast.Try(body=body, handlers=handlers) if at in body:
                    caught = {
                        name_of(each) for handler in handlers for each in _listed(handler.type)
                    }
                    if caught & MISSING or any(handler.type is None for handler in handlers):
                        return True
                case ast.If(test=test) if at is not test:
                    if name_of(test) == "TYPE_CHECKING" or "hasattr" in ast.dump(test):
                        return True
                    if "version_info" in ast.dump(test):
                        return True
                case ast.With(items=items):
                    said = " ".join(ast.dump(each.context_expr) for each in items)
                    if "raises" in said or "suppress" in said:
                        return True
            at = above
        return False


def _listed(node: ast.expr | None) -> list[ast.expr]:
    if isinstance(node, ast.Tuple):
        return list(node.elts)
    return [node] if node is not None else []
