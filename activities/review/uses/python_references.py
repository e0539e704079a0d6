"""Python: the places of a file that mean one of some definitions."""

from __future__ import annotations

import ast
from collections import Counter
from collections.abc import Collection, Iterator
from dataclasses import dataclass
from typing import TypeAlias

from holdfast.activities.review.uses.python_modules import (
    FUNCTIONS,
    MOST_HOPS,
    Module,
    Modules,
    Target,
    name_of,
    walk,
)
from holdfast.activities.review.uses.reporting import Use

MISSING = {"ImportError", "ModuleNotFoundError", "Exception", "BaseException", "AttributeError"}
"""Exceptions that whoever catches them expects a name to be absent."""
PATCHES = {"patch", "setattr", "import_string"}
"""Calls whose first argument may name a definition by its full path."""
Function: TypeAlias = ast.FunctionDef | ast.AsyncFunctionDef


@dataclass
class Reference:
    """A place that means a definition."""

    use: Use
    target: Target
    call: ast.Call | None = None
    by_instance: bool = False
    guarded: bool = False
    """True where a missing name is expected, or the place is for type checkers alone."""
    direct: bool = True
    """False if the name comes by way of another module."""


def references_in(
    module: Module,
    modules: Modules,
    wanted: Collection[Target],
    names: set[str],
    gone: Collection[str],
) -> Iterator[Reference]:
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

    def references(self) -> Iterator[Reference]:
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

    def _imported_from(self, node: ast.ImportFrom) -> Iterator[Reference]:
        dotted = node.module or ""
        source = self.modules.find(dotted, node.level, self.path)
        was = source or self.modules.find(dotted, node.level, self.path, base=True)
        if was in self.gone and not source and not self.modules.is_folder(was):
            yield self._reference(node, (was, ""), "import")
            return
        for each in node.names:
            inner = f"{dotted}.{each.name}".lstrip(".")
            below = self.modules.find(inner, node.level, self.path)
            below_was = below or self.modules.find(inner, node.level, self.path, base=True)
            has = source and each.name in (self.modules.names(source) or {each.name})
            if below_was in self.gone and not below and (not source or not has):
                yield self._reference(each, (below_was, ""), "import")
            elif was in self.gone and not source and not below and each.name != "*":
                # A folder is there still, and has what is in it, but no names of its own.
                yield self._reference(each, (was, ""), "import")
            elif source:
                direct = (source, each.name)
                final = direct if direct in self.wanted else self.modules.origin(*direct)
                if final in self.wanted:
                    found = self._reference(each, final, "import")
                    found.direct = final == direct
                    yield found

    def _imported(self, node: ast.Import) -> Iterator[Reference]:
        for each in node.names:
            if self.modules.find(each.name, 0, self.path):
                continue
            was = self.modules.find(each.name, 0, self.path, base=True)
            if was in self.gone and not self.modules.is_folder(was):
                yield self._reference(each, (was, ""), "import")

    def _means(self, node: ast.Attribute | ast.Name) -> Iterator[Reference]:
        called = self.parents.get(node)
        call = called if isinstance(called, ast.Call) and called.func is node else None
        target, by_instance = self._target(node)
        if call is not None and (target[0], f"{target[1]}.__init__") in self.wanted:
            yield self._reference(node, (target[0], f"{target[1]}.__init__"), "call", call, True)
        if target in self.wanted:
            yield self._reference(node, target, "call" if call else "name", call, by_instance)

    def _named(self, node: ast.Call, text: str) -> Iterator[Reference]:
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
    ) -> Reference:
        line: int = (
            getattr(node, "end_lineno", 1)
            if isinstance(node, ast.Attribute)
            else getattr(node, "lineno", 1)
        )
        column: int = getattr(node, "col_offset", 0) + 1
        use = Use(self.path, line, column, how)  # type: ignore[arg-type]
        return Reference(use, target, call, by_instance, self._is_guarded(node))

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
