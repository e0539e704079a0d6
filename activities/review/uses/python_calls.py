"""What a call of a Python function or dataclass may hand over."""

from __future__ import annotations

import ast
from collections.abc import Collection
from dataclasses import dataclass

from holdfast.activities.review.uses.python_modules import FUNCTIONS, Symbol, name_of
from holdfast.text import pluralize


@dataclass(frozen=True)
class Parameters:
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


def signature_of(symbol: Symbol) -> tuple[str, Parameters | None]:
    """Return what tells whether a definition is called as before: an `async` function is not."""
    kind = type(symbol.node).__name__ if symbol.kind == "function" else symbol.kind
    return kind, parameters_of(symbol)


def parameters_of(symbol: Symbol, *, drop: bool = False) -> Parameters | None:
    """Return the parameters of a function, or of the dataclass that a symbol is; `drop`: without
    the first. None: nobody can tell.
    """
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
    return Parameters(
        tuple(listed), needed, keyword, required, args.vararg is not None, args.kwarg is not None
    )


def _fields_of(symbol: Symbol) -> Parameters | None:
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
    return Parameters(tuple(names), needed)
