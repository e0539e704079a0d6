"""What a call of a Python function or dataclass may hand over."""

from __future__ import annotations

import ast

from holdfast.activities.review.uses.python_modules import FUNCTIONS, Symbol, name_of
from holdfast.activities.review.uses.signatures import Arguments, Parameters


def arguments_of(call: ast.Call) -> Arguments | None:
    """Return what a call hands over; None: nobody can tell."""
    if any(isinstance(each, ast.Starred) for each in call.args) or any(
        each.arg is None for each in call.keywords
    ):
        return None
    return Arguments(len(call.args), frozenset(each.arg or "" for each in call.keywords))


def body_of(symbol: Symbol) -> str:
    """Return what a function does, as text, without its documentation."""
    node = symbol.node
    if not isinstance(node, FUNCTIONS):
        return ""
    body = node.body[ast.get_docstring(node) is not None :]
    return "\n".join(ast.unparse(each) for each in body)


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
    """Return the parameters of a dataclass without bases or of a named tuple; None: it is neither,
    or one that nobody can read.
    """
    node = symbol.node
    if not isinstance(node, ast.ClassDef) or {"__init__", "__new__"} & symbol.members.keys():
        return None
    by = [each for each in node.decorator_list if name_of(each) == "dataclass"]
    bases = [name_of(each) for each in node.bases]
    if bases != (["NamedTuple"] if not by else []) or any(
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
