"""Read Python modules: what each binds, where its imports lead, and what classes have."""

from __future__ import annotations

import ast
import builtins
import sys
import warnings
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from holdfast.activities.review.uses.tree import Tree, module_paths

FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef)
SOURCES = ("src", "lib", "python")
"""Folders that a repository puts on the path of its programs."""
MOST_HOPS = 5
"""Re-exports, and base classes, that are followed."""
KNOWN_BASES = {"ABC", "Protocol", "Generic", "Enum", "IntEnum", "StrEnum", "Flag", "NamedTuple"}
"""Bases that bring no names of their own but those with underscores."""
PLAIN_DECORATORS = {
    "staticmethod", "classmethod", "abstractmethod", "override", "cache", "lru_cache", "final",
    "contextmanager", "asynccontextmanager", "dataclass", "total_ordering", "runtime_checkable",
}  # fmt: skip
"""Decorators below which a definition keeps its parameters and its names."""
DYNAMIC = {"globals", "exec", "__getattr__", "modules"}
DYNAMIC_CLASS = {"setattr", "__getattr__", "__getattribute__"}
"""Names in a module, or in a class, that can bring other names while it runs."""
Target = tuple[str, str]
"""Path of a module and a name in it; "" is the module, `Class.name` a member."""


@dataclass
class Symbol:
    """A name that a module or class binds."""

    name: str
    kind: str
    node: ast.AST
    line: int
    end: int
    bound: int = 1
    """How often it is bound, or more than once if only under a condition."""
    source: tuple[str, int, str] | None = None
    """Of an import: module, level, and name in it; "" is the module."""
    members: dict[str, Symbol] = field(default_factory=dict)
    complete: bool = False
    """Of a class: True once what it assigns to `self` is among the members."""

    @property
    def sure(self) -> bool:
        return self.bound == 1


@dataclass
class Module:
    path: str
    tree: ast.Module
    symbols: dict[str, Symbol]
    stars: list[tuple[str, int]]
    dynamic: bool
    """True if it may have names that nobody can read."""


def parse(text: str) -> ast.Module | None:
    """Return the syntax of a text, None if it has none that this Python knows."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            return ast.parse(text)
        except (SyntaxError, ValueError, RecursionError, MemoryError):
            return None


def walk(root: ast.AST) -> Iterator[ast.AST]:
    """Yield a node and all below it but contexts and operators, which are a third of them."""
    waiting = [root]
    while waiting:
        node = waiting.pop()
        yield node
        for name in node._fields:
            value = getattr(node, name, None)
            if isinstance(value, list):
                waiting += [each for each in value if isinstance(each, ast.AST)]
            elif isinstance(value, ast.AST) and value._fields:
                waiting.append(value)


def bind(body: Sequence[ast.stmt]) -> dict[str, Symbol]:
    """Return what statements bind in their own scope."""
    found: dict[str, Symbol] = {}
    waiting: list[tuple[ast.stmt, bool]] = [(each, False) for each in reversed(body)]
    while waiting:
        node, perhaps = waiting.pop()
        for symbol in _bound_by(node):
            symbol.bound += perhaps
            if symbol.name in found:
                symbol.bound += found[symbol.name].bound
            found[symbol.name] = symbol
        if not isinstance(node, (*FUNCTIONS, ast.ClassDef)):
            below = [
                each
                for part in ("body", "orelse", "finalbody")
                for each in getattr(node, part, ())
                if isinstance(each, ast.stmt)
            ]
            handlers: list[ast.ExceptHandler] = getattr(node, "handlers", [])
            below += [each for handler in handlers for each in handler.body]
            below += [each for case in getattr(node, "cases", ()) for each in case.body]
            waiting += [(each, True) for each in reversed(below)]
    return found


def _bound_by(node: ast.stmt) -> Iterator[Symbol]:
    end = node.end_lineno or node.lineno
    match node:
        case ast.FunctionDef() | ast.AsyncFunctionDef():
            yield Symbol(node.name, "function", node, _first_line(node), end)
        case ast.ClassDef():
            symbol = Symbol(node.name, "class", node, _first_line(node), end)
            symbol.members = bind(node.body)
            yield symbol
        case ast.Import(names=names):
            for each in names:
                local = each.asname or each.name.partition(".")[0]
                module = each.name if each.asname else local
                yield Symbol(local, "import", node, node.lineno, end, source=(module, 0, ""))
        case ast.ImportFrom(names=names):
            for each in names:
                source = (node.module or "", node.level, each.name)
                local = each.asname or each.name
                if local != "*":
                    yield Symbol(local, "import", node, node.lineno, end, source=source)
        case ast.Assign() | ast.AnnAssign() | ast.AugAssign() | ast.For() | ast.With():
            for child in ast.walk(_targets(node)):
                if isinstance(child, ast.Name) and isinstance(child.ctx, ast.Store):
                    yield Symbol(child.id, "variable", node, node.lineno, end)


def _targets(node: ast.stmt) -> ast.AST:
    match node:
        case ast.Assign(targets=targets):
            return ast.Tuple(list(targets))
        case ast.With(items=items):
            return ast.Tuple([each.optional_vars for each in items if each.optional_vars])
        case ast.AnnAssign(target=target) | ast.AugAssign(target=target) | ast.For(target=target):
            return target
    return node


def _first_line(node: ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef) -> int:
    return min([node.lineno, *(each.lineno for each in node.decorator_list)])


def name_of(node: ast.expr) -> str:
    """Return the last name of an expression such as `a.b.c(…)` or `C[…]`."""
    while True:
        match node:
            case ast.Call(func=inner) | ast.Subscript(value=inner):
                node = inner
            case ast.Attribute(attr=name) | ast.Name(id=name):
                return name
            case _:
                return ""


def is_plain(symbol: Symbol) -> bool:
    """True if what a definition is can be read: bound once, below no unknown decorator."""
    decorators: list[ast.expr] = getattr(symbol.node, "decorator_list", [])
    return symbol.sure and all(name_of(each) in PLAIN_DECORATORS for each in decorators)


def is_dynamic(node: ast.AST, names: set[str]) -> bool:
    """True if names may appear in a module or class while it runs."""
    for child in walk(node):
        if isinstance(child, FUNCTIONS) and child.name in names:
            return True
        if isinstance(child, ast.Call) and name_of(child.func) in names:
            return True
        if isinstance(child, ast.Attribute) and child.attr in names:
            return True
    return False


@dataclass
class Modules:
    """The Python files of both trees, parsed when they are asked for."""

    tree: Tree
    _parsed: dict[tuple[bool, str], Module | None] = field(default_factory=dict)
    _found: dict[tuple[bool, str, int, str], str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self._paths = {
            side: module_paths(
                path.removesuffix("/__init__.py").removesuffix("/__init__.pyi")
                if path.endswith(("/__init__.py", "/__init__.pyi"))
                else path
                for path, file in files.items()
                if file.language == "Python"
            )
            for side, files in ((False, self.tree.head), (True, self.tree.base))
        }
        self._folders = {
            side: {folder for path in files for folder in _folders(path)}
            for side, files in ((False, self.tree.head), (True, self.tree.base))
        }

    def module(self, path: str, *, base: bool = False) -> Module | None:
        """Return a module, None if it cannot be parsed."""
        key = base, path
        if key not in self._parsed:
            text = self.tree.text(path, base=base)
            tree = parse(text) if text is not None else None
            if text is not None and tree is None:
                self.tree.unread.add(path)
            self._parsed[key] = _module(path, tree, text) if tree and text else None
        return self._parsed[key]

    def find(self, dotted: str, level: int, importer: str, *, base: bool = False) -> str:
        """Return the path of a module as a file names it; empty: it is not in the tree, or nobody
        can tell which one it is.
        """
        folder = importer.rpartition("/")[0]
        key = base, dotted, level, folder
        if key not in self._found:
            self._found[key] = self._look_up(dotted, level, folder, base)
        return self._found[key]

    def _look_up(self, dotted: str, level: int, folder: str, base: bool) -> str:
        parts = dotted.split(".") if dotted else []
        if level:
            above = folder.split("/") if folder else []
            if level - 1 > len(above):
                return ""
            return self._file([*above[: len(above) - (level - 1)], *parts], base)
        if not parts or parts[0] in sys.stdlib_module_names:
            return ""
        roots = set()
        for path in self._paths[base].get(parts[-1], ()):
            plain = path.removesuffix(".py").removesuffix(".pyi").split("/")
            if plain[-len(parts) :] == parts:
                roots.add("/".join(plain[: -len(parts)]))
        usable = [root for root in roots if self._is_root(root, folder, base)]
        usable.sort(key=len, reverse=True)
        beside = [root for root in usable if _below(folder, root)]
        chosen = beside or usable
        if not chosen or (not beside and len(usable) > 1):
            return ""
        return self._file([*(chosen[0].split("/") if chosen[0] else []), *parts], base)

    def _is_root(self, root: str, folder: str, base: bool) -> bool:
        """True if files in a folder can import from a root."""
        files = self.tree.base if base else self.tree.head
        if f"{root}/__init__.py".lstrip("/") in files:
            return False
        return _below(folder, root) or root.rpartition("/")[2] in SOURCES

    def _file(self, parts: Sequence[str], base: bool) -> str:
        files = self.tree.base if base else self.tree.head
        stem = "/".join(parts)
        tried = (f"{stem}.py", f"{stem}/__init__.py", f"{stem}.pyi", f"{stem}/__init__.pyi")
        return next((path.lstrip("/") for path in tried if path.lstrip("/") in files), "")

    def is_folder(self, module: str) -> bool:
        """True if the head has a folder where a module of the base was: a namespace."""
        return module.removesuffix("/__init__.py").removesuffix(".py") in self._folders[False]

    def names(self, path: str, *, base: bool = False, hops: int = 0) -> set[str] | None:
        """Return all names of a module, those of star imports too; None if nobody can tell."""
        module = self.module(path, base=base)
        if module is None or module.dynamic or hops > MOST_HOPS:
            return None
        found = {*module.symbols}
        for dotted, level in module.stars:
            source = self.find(dotted, level, path, base=base)
            more = self.names(source, base=base, hops=hops + 1) if source else None
            if more is None:
                return None
            found |= more
        return found

    def origin(self, path: str, name: str, *, base: bool = False) -> Target:
        """Follow a name through re-exports to where it is defined."""
        for _ in range(MOST_HOPS):
            module = self.module(path, base=base)
            symbol = module.symbols.get(name) if module else None
            if module is None or symbol is None or symbol.source is None or not symbol.sure:
                break
            dotted, level, inner = symbol.source
            source = self.find(dotted, level, path, base=base)
            if inner:
                below = self.find(f"{dotted}.{inner}".lstrip("."), level, path, base=base)
                if below and (not source or not self._has(source, inner, base)):
                    return below, ""
            if not source:
                return "", ""
            if not inner:
                return source, ""
            path, name = source, inner
        return path, name

    def _has(self, path: str, name: str, base: bool) -> bool:
        module = self.module(path, base=base)
        return module is not None and name in module.symbols

    def class_of(self, target: Target, *, base: bool = False) -> Symbol | None:
        """Return the class at a place, None if there is none."""
        module = self.module(target[0], base=base)
        symbol = module.symbols.get(target[1]) if module else None
        if symbol is None or symbol.kind != "class":
            return None
        if not symbol.complete:
            _add_attributes(symbol)
        return symbol

    def bases(self, target: Target, *, base: bool = False) -> tuple[list[Target], bool]:
        """Return the base classes of a class that are in the tree, and whether all others are known
        to bring no names.
        """
        symbol = self.class_of(target, base=base)
        if symbol is None or not isinstance(symbol.node, ast.ClassDef):
            return [], False
        found: list[Target] = []
        known = not symbol.node.keywords and is_plain(symbol)
        for each in symbol.node.bases:
            name = name_of(each)
            where = self.resolve(each, target[0], base=base)
            if where[0] and self.class_of(where, base=base):
                found.append(where)
            else:
                known = known and (
                    name in KNOWN_BASES or (isinstance(each, ast.Name) and hasattr(builtins, name))
                )
        return found, known

    def resolve(self, node: ast.expr, path: str, *, base: bool = False) -> Target:
        """Return what an expression of names means at the top of a module; ("", "") if unknown."""
        if isinstance(node, ast.Subscript):
            node = node.value
        if isinstance(node, ast.Name):
            module = self.module(path, base=base)
            if module is None or node.id not in module.symbols:
                return "", ""
            return self.origin(path, node.id, base=base)
        if isinstance(node, ast.Attribute):
            where = self.resolve(node.value, path, base=base)
            return self.attribute(where, node.attr, base=base)
        return "", ""

    def attribute(self, where: Target, name: str, *, base: bool = False) -> Target:
        """Return what a name means behind a dot; ("", "") if unknown."""
        path, inner = where
        if not path:
            return "", ""
        if not inner:
            module = self.module(path, base=base)
            if path.endswith("/__init__.py") and (module is None or name not in module.symbols):
                below = self._file([*path.removesuffix("/__init__.py").split("/"), name], base)
                if below:
                    return below, ""
            return self.origin(path, name, base=base)
        if "." in inner:
            return "", ""
        return path, f"{inner}.{name}"


def _module(path: str, tree: ast.Module, text: str) -> Module:
    symbols = bind(tree.body)
    stars: list[tuple[str, int]] = []
    if "import *" in text or "global " in text:
        for node in walk(tree):
            if isinstance(node, ast.ImportFrom) and any(each.name == "*" for each in node.names):
                stars.append((node.module or "", node.level))
            elif isinstance(node, ast.Global):
                _bind_global(node, symbols)
    dynamic = any(word in text for word in DYNAMIC) and _is_dynamic_module(tree)
    return Module(path, tree, symbols, stars, dynamic)


def _bind_global(node: ast.Global, symbols: dict[str, Symbol]) -> None:
    for name in node.names:
        line = node.lineno
        held = symbols.setdefault(name, Symbol(name, "variable", node, line, line))
        held.bound += 1


def _is_dynamic_module(tree: ast.Module) -> bool:
    own = [each for each in tree.body if not isinstance(each, ast.ClassDef)]
    return is_dynamic(ast.Module(own, []), DYNAMIC)


def _add_attributes(symbol: Symbol) -> None:
    """Add what methods assign to `self`."""
    symbol.complete = True
    for child in walk(symbol.node):
        if (
            isinstance(child, ast.Attribute)
            and isinstance(child.ctx, ast.Store)
            and isinstance(child.value, ast.Name)
            and child.attr not in symbol.members
        ):
            line = child.lineno
            symbol.members[child.attr] = Symbol(child.attr, "attribute", child, line, line, bound=2)


def _folders(path: str) -> Iterator[str]:
    while "/" in path:
        path = path.rpartition("/")[0]
        yield path


def _below(folder: str, root: str) -> bool:
    return not root or folder == root or folder.startswith(f"{root}/")
