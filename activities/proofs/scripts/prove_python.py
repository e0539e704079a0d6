"""Run a script over functions of a Python file, as it is and as it was, in a sandbox without files
and network. Runs isolated, in a bounded process of its own, so it imports nothing of this project.

Nothing of the file runs but what the script names: its functions and classes, with what these name
at the top of the file, also what that imports by name from other files of the repository.
Annotations are left out, as are imports of modules that the sandbox does not have, for which the
script may define stand-ins. A method is there as a function of its own, `Class_method`, because the
sandbox has no inheritance and no decorated methods.
"""

from __future__ import annotations

import ast
import builtins
import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from secrets import token_hex
from typing import Any

MODULES = {
    *("asyncio", "base64", "binascii", "bisect", "collections", "copy", "csv", "dataclasses"),
    *("datetime", "decimal", "functools", "hashlib", "itertools", "json", "math", "os", "pathlib"),
    *("posixpath", "random", "re", "sys", "time", "tomllib", "unicodedata"),
}
"""What the sandbox has to import, but for `typing`."""
TYPING = {
    **dict.fromkeys(("TypeVar", "ParamSpec", "TypeVarTuple"), "lambda *_, **__: object"),
    **dict.fromkeys(("overload", "final", "override", "runtime_checkable"), "lambda it: it"),
    "cast": "lambda _, it: it",
    "NewType": "lambda *_: lambda it: it",
    "TYPE_CHECKING": "False",
}
"""Stand-ins for names of `typing` that the sandbox lacks or that make no class there."""
TYPES = {
    *("Annotated", "Any", "Callable", "ClassVar", "Dict", "Final", "FrozenSet", "Generator"),
    *("Iterable", "Iterator", "List", "Literal", "Mapping", "Never", "NoReturn", "Optional"),
    *("Self", "Sequence", "Set", "Tuple", "Type", "Union"),
}
"""Names of `typing` that the sandbox has."""
BASES = ("Generic", "Protocol")
"""Of `typing`: a class has nothing of them that runs."""
PRINTED_BYTES = 20_000
CALLED = "_called_for_the_proof"
NAMES = 200
"""Names of a file that a model is told."""
SIGNATURE_LETTERS = 120
Defined = ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef
FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef)


def main(request: bytes) -> bytes:
    """Return what `show` or `run` says of the request, by its `do`."""
    asked = json.loads(request)
    answer = show(asked) if asked["do"] == "show" else run(asked)
    return json.dumps(answer).encode()


# ---------------------------------------------------------------- what is there


def show(asked: dict[str, Any]) -> dict[str, Any]:
    """Return the name for a script of the function around a `line` of `head`, and what a script
    can call, by signature. Without a function the name is empty.
    """
    source = asked["head"]
    try:
        head = ast.parse(source["files"][source["main"]])
    except (SyntaxError, ValueError, RecursionError) as error:
        return {"error": f"it does not parse: {error}"}
    return {"name": _around(head, asked["line"]), "names": [*_signatures(head)][:NAMES]}


def _around(tree: ast.Module, line: int) -> str:
    """Return the name of the method or the top definition around a line; empty: there is none."""
    for top in tree.body:
        if not isinstance(top, Defined) or not _covers(top, line):
            continue
        if isinstance(top, ast.ClassDef):
            for each in top.body:
                if isinstance(each, FUNCTIONS) and _covers(each, line):
                    return f"{top.name}_{each.name}"
        return top.name
    return ""


def _covers(node: Defined, line: int) -> bool:
    first = min([node.lineno, *(each.lineno for each in node.decorator_list)])
    return first <= line <= (node.end_lineno or node.lineno)


def _signatures(tree: ast.Module) -> Iterator[str]:
    """Yield what each name is called with, once: overloads and setters are none of their own."""
    found: dict[str, str] = {}
    for top in tree.body:
        if isinstance(top, FUNCTIONS):
            found[top.name] = _signature(top.name, top)
        elif isinstance(top, ast.ClassDef):
            found[top.name] = f"class {top.name}"
            for each in top.body:
                if isinstance(each, FUNCTIONS) and not _is_overload(each):
                    name = f"{top.name}_{each.name}"
                    found.setdefault(name, _signature(name, each))
    yield from found.values()


def _signature(name: str, function: ast.FunctionDef | ast.AsyncFunctionDef) -> str:
    whole = f"{name}({ast.unparse(function.args)})"
    if len(whole) <= SIGNATURE_LETTERS:
        return whole
    cut = whole[:SIGNATURE_LETTERS].rpartition(", ")[0]
    return f"{cut}, …)" if cut else f"{name}(…)"


# ---------------------------------------------------------------- what a script needs


class _Parts:
    """The statements at the top of a file, by the names that they define."""

    def __init__(self, tree: ast.Module) -> None:
        self.whole: dict[str, ast.stmt] = {}
        self.order: list[ast.stmt] = []
        for top in tree.body:
            for name in _defines(top):
                self.whole[name] = top
            self.order.append(top)
            if isinstance(top, ast.ClassDef):
                for each in top.body:
                    if isinstance(each, FUNCTIONS) and not _is_overload(each):
                        self.whole.setdefault(f"{top.name}_{each.name}", each)
                        self.order.append(each)
        self.methods = {
            id(node): name
            for name, node in self.whole.items()
            if isinstance(node, FUNCTIONS) and node.name != name
        }


class _Needed:
    """What a script and what it names need, of a file and of those that it imports."""

    def __init__(self, source: Mapping[str, Any], script: ast.Module) -> None:
        self.source = source
        self.parts: dict[str, _Parts] = {}
        self.main = self.parts_of(source["main"])
        self.names: dict[str, str] = {}
        """The file that each name is of."""
        self.twice = ""
        """A name that two files have, which is one in the sandbox."""
        self.wanted: dict[str, set[int]] = {}
        self.aliases: list[str] = []
        self.left: list[str] = []
        # What the script defines itself is a stand-in for the file's.
        self.own = {name for top in script.body for name in _defines(top)}
        self.add(source["main"], _named(script))

    def parts_of(self, path: str) -> _Parts:
        if path not in self.parts:
            self.parts[path] = _Parts(ast.parse(self.source["files"][path]))
        return self.parts[path]

    def add(self, path: str, named: Iterable[str]) -> None:
        parts = self.parts_of(path)
        left = {*named}
        while left:
            name = left.pop()
            if name in self.own or name not in parts.whole or self.names.get(name) == path:
                continue
            statement = parts.whole[name]
            if isinstance(statement, ast.ImportFrom) and (other := self.other(path, statement)):
                self.bring(other, statement, name)
            elif name in self.names:
                self.twice = f"{name} of {path}, and of {self.names[name]}"
            else:
                self.names[name] = path
                self.wanted.setdefault(path, set()).add(id(statement))
                left |= _named(_stripped(statement))

    def other(self, path: str, statement: ast.ImportFrom) -> str:
        """Return the file of the repository that an import means; empty: none that is here."""
        spec = "." * statement.level + (statement.module or "")
        found = self.source["imports"].get(path, {}).get(spec, "")
        return found if found in self.source["files"] else ""

    def bring(self, path: str, statement: ast.ImportFrom, name: str) -> None:
        for each in statement.names:
            if (each.asname or each.name) == name:
                self.add(path, [each.name])
                if each.asname and (alias := f"{name} = {each.name}") not in self.aliases:
                    self.aliases.append(alias)

    def emit(self) -> tuple[str, list[str]]:
        """Return all of it as the sandbox can run it, what files import before they do, and what
        was left out.
        """
        lines: list[str] = []
        for path, parts in reversed(self.parts.items()):
            for node in parts.order:
                if id(node) in self.wanted.get(path, ()):
                    text, left = _emitted(parts, node)
                    lines += [text] if text else []
                    self.left += [left] if left else []
        return "\n".join([*lines, *self.aliases]), self.left


def _defines(top: ast.stmt) -> Iterator[str]:
    """Yield the names that a statement at the top of a file binds."""
    if isinstance(top, Defined):
        yield top.name
        return
    if isinstance(top, ast.Import | ast.ImportFrom):
        for each in top.names:
            yield each.asname or each.name.partition(".")[0]
        return
    for node in ast.walk(top):
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            yield node.id
        elif node is not top and isinstance(node, (*FUNCTIONS, ast.ClassDef)):
            yield node.name
        elif isinstance(node, ast.Import | ast.ImportFrom):
            yield from _defines(node)


def _named(node: ast.AST) -> set[str]:
    return {
        each.id
        for each in ast.walk(node)
        if isinstance(each, ast.Name) and isinstance(each.ctx, ast.Load)
    }


class _Stripped(ast.NodeTransformer):
    """Leaves out annotations, which may name what the sandbox does not have, and generic bases."""

    def visit_ClassDef(self, node: ast.ClassDef) -> ast.AST:
        node.bases = [each for each in node.bases if _last_name(each) not in BASES]
        return self.generic_visit(node)

    def visit_FunctionDef(self, node: ast.FunctionDef) -> ast.AST:
        node.returns = None
        return self.generic_visit(node)

    def visit_AsyncFunctionDef(self, node: ast.AsyncFunctionDef) -> ast.AST:
        node.returns = None
        return self.generic_visit(node)

    def visit_arg(self, node: ast.arg) -> ast.AST:
        node.annotation = None
        return node

    def visit_AnnAssign(self, node: ast.AnnAssign) -> ast.AST:
        # Fields of a dataclass are known by their annotations; which one it is does not matter.
        node.annotation = ast.Name("object", ast.Load())
        if node.value is not None:
            node.value = self.visit(node.value)
        return node


def _last_name(node: ast.expr) -> str:
    """Return the name that `a.name[…](…)` ends with."""
    while isinstance(node, ast.Subscript | ast.Call):
        node = node.value if isinstance(node, ast.Subscript) else node.func
    return ast.unparse(node).rpartition(".")[2]


def _is_overload(function: ast.FunctionDef | ast.AsyncFunctionDef) -> bool:
    return any(_last_name(each) == "overload" for each in function.decorator_list)


def _stripped(node: ast.stmt) -> ast.stmt:
    copy = ast.parse(ast.unparse(node)).body[0]
    _Stripped().visit(copy)
    return copy


def _emitted(parts: _Parts, node: ast.stmt) -> tuple[str, str]:
    """Return a statement of the file as the sandbox can run it, and what of it was left out."""
    if isinstance(node, ast.Import | ast.ImportFrom):
        return _imported(node)
    if (name := parts.methods.get(id(node))) is not None:
        copy = _stripped(node)
        assert isinstance(copy, FUNCTIONS)
        copy.name, copy.decorator_list = name, []
        return ast.unparse(ast.fix_missing_locations(copy)), ""
    if isinstance(node, ast.ClassDef) and (base := _error_base(node)):
        return f"{node.name} = {base}", ""
    return ast.unparse(ast.fix_missing_locations(_stripped(node))), ""


def _imported(node: ast.Import | ast.ImportFrom) -> tuple[str, str]:
    module = node.module if isinstance(node, ast.ImportFrom) else ""
    if module == "__future__":
        return "", ""
    if isinstance(node, ast.ImportFrom):
        if module in ("typing", "typing_extensions"):
            return _typing(node), ""
        if module == "datetime" and any(each.name == "UTC" for each in node.names):
            return _without_utc(node), ""
        known = not node.level and (module or "") in MODULES
        return (
            (ast.unparse(node), "") if known else ("", ", ".join(each.name for each in node.names))
        )
    kept = [each for each in node.names if each.name in MODULES]
    left = ", ".join(each.name for each in node.names if each not in kept)
    return (ast.unparse(ast.Import(kept)) if kept else ""), left


def _typing(node: ast.ImportFrom) -> str:
    """Return what an import of `typing` becomes: names that nothing stands in for are left out."""
    kept = [each for each in node.names if each.name in TYPES]
    lines = [ast.unparse(ast.ImportFrom("typing", kept, 0))] if kept else []
    made = [each for each in node.names if each.name in TYPING]
    return "\n".join(
        [*lines, *(f"{each.asname or each.name} = {TYPING[each.name]}" for each in made)]
    )


def _without_utc(node: ast.ImportFrom) -> str:
    """Return an import of names of `datetime`, of which the sandbox lacks UTC."""
    aliases = [each.asname or each.name for each in node.names if each.name == "UTC"]
    others = [each for each in node.names if each.name != "UTC"]
    kept = ast.ImportFrom("datetime", [*others, ast.alias("timezone", "_timezone")], 0)
    return "\n".join([ast.unparse(kept), *(f"{each} = _timezone.utc" for each in aliases)])


def _error_base(node: ast.ClassDef) -> str:
    """Return the error that a class without a body of its own stands for; empty: it is no such
    class.
    """
    plain = all(
        isinstance(each, ast.Pass)
        or (isinstance(each, ast.Expr) and isinstance(each.value, ast.Constant))
        for each in node.body
    )
    if not plain or len(node.bases) != 1 or not isinstance(node.bases[0], ast.Name):
        return ""
    base = node.bases[0].id
    found = getattr(builtins, base, None)
    known = isinstance(found, type) and issubclass(found, BaseException)
    return base if known or base.endswith(("Error", "Exception")) else ""


# ---------------------------------------------------------------- running it


def run(asked: dict[str, Any]) -> dict[str, Any]:
    """Return, for `head` and `base` (null: there is none), how the script ended over its functions:
    `kind` and `said` of the error that ended it, both empty if none did, what it `printed`, whether
    it `ran` the function, whether the error is of the script's `own` lines, and what its code names
    or imports and the sandbox `lacks`. `about` is the name that the script must use.
    """
    try:
        script = ast.parse(asked["script"])
    except (SyntaxError, ValueError, RecursionError) as error:
        return {"head": _ended("SyntaxError", f"the script: {error}"), "base": None}
    base = None if asked["base"] is None else _over(asked["base"], script, asked)
    return {"head": _over(asked["head"], script, asked), "base": base}


def _over(
    source: Mapping[str, Any], script: ast.Module, asked: Mapping[str, Any]
) -> dict[str, Any]:
    try:
        needed = _Needed(source, script)
        header, left = needed.emit()
    except (SyntaxError, ValueError, RecursionError) as error:
        return _ended("SyntaxError", f"the file: {error}")
    if needed.twice:
        return _ended("Unloaded", f"the sandbox cannot hold two of one name: {needed.twice}")
    about = asked["about"]
    if about and about not in needed.main.whole:
        return _ended("Absent", f"there is no {about} in it")
    if about not in needed.names if about else not needed.names:
        return _ended("Unused", f"the script does not use {about or 'anything of the file'}")
    own = "\n".join(
        _imported(each)[0] if isinstance(each, ast.ImportFrom) else ast.unparse(each)
        for each in script.body
    )
    mark = token_hex()
    marked = _mark_call(header, about, mark)
    ended = _sandboxed([f"{marked}\n{own}"], asked, marked.count("\n") + 1)
    ended["ran"] = marked == header or mark in ended["printed"]
    ended["printed"] = ended["printed"].replace(f"{mark}\n", "")
    ended["lacks"] = [*left, *_lacking(header)]
    if ended["kind"] and not left and (why := _why_unloaded(header, asked)):
        return _ended("Unloaded", f"the sandbox cannot load the file's own code: {why}")
    if left and ended["kind"] == "NameError":
        ended["said"] = f"{ended['said']}; not there: {', '.join(left)}"[:600]
    return ended


def _lacking(header: str) -> list[str]:
    """Return the modules that code imports within its functions or statements, and that the sandbox
    does not have: the code may catch that, and do nothing.
    """
    found: dict[str, None] = {}
    for node in ast.walk(ast.parse(header)):
        if isinstance(node, ast.ImportFrom):
            found["." * node.level + (node.module or "")] = None
        elif isinstance(node, ast.Import):
            found.update(dict.fromkeys(each.name for each in node.names))
    return [each for each in found if each not in {*MODULES, "typing", "__future__"}]


def _mark_call(header: str, about: str, mark: str) -> str:
    """Return code in which a function prints a mark when it is called first; as it is if there is
    no such function.
    """
    tree = ast.parse(header)
    for top in tree.body:
        if isinstance(top, FUNCTIONS) and top.name == about:
            once = f"if not {CALLED}:\n    {CALLED}.append(1)\n    print({mark!r})"
            top.body[:0] = ast.parse(once).body
            return f"{CALLED} = []\n{ast.unparse(ast.fix_missing_locations(tree))}"
    return header


def _why_unloaded(header: str, asked: Mapping[str, Any]) -> str:
    """Return what of a file's code the sandbox cannot load, and why; empty: it loads all."""
    statements = ast.parse(header).body
    alone = _sandboxed([ast.unparse(each) for each in statements], asked, 0)
    if not alone["kind"]:
        return ""
    names = ", ".join(_defines(statements[alone["part"]])) or "a statement at its top"
    return f"{names}: {alone['said']}"


def _sandboxed(parts: Sequence[str], asked: Mapping[str, Any], own_after: int) -> dict[str, Any]:
    """Return how code ends that is run part by part, and at which `part`; of one part, lines after
    `own_after` are the script's own.
    """
    from pydantic_monty import (
        CollectString,
        Monty,
        MontyCrashedError,
        MontyError,
        MontyRuntimeError,
        ResourceLimits,
    )

    limits = ResourceLimits(
        max_feed_duration_secs=asked["seconds"],
        max_memory=asked["memory"],
        max_recursion_depth=200,
        max_total_sleep_secs=1.0,
    )
    printed = CollectString(max_bytes=PRINTED_BYTES)
    with (
        Monty(min_processes=1, max_processes=1, request_timeout=asked["seconds"] + 2.0) as pool,
        # So that the script ends the same way each time.
        pool.checkout(limits=limits, os_policy={"random_start": {"seed": 0}}) as session,
    ):
        part = -1
        try:
            for code in parts:
                part += 1
                session.feed_run(code, inputs={}, print_callback=printed)
        except MontyCrashedError:
            why = "the sandbox broke down or took too long and was ended"
            return {**_ended("Crashed", why), "part": part}
        except MontyRuntimeError as error:
            frames = error.traceback()
            own = bool(frames) and frames[-1].line > own_after
            kind = type(error.exception()).__name__
            return {**_ended(kind, str(error), printed.output), "own": own, "part": part}
        except MontyError as error:
            return {**_ended("SyntaxError", str(error)), "part": part}
    return _ended("", "", printed.output)


def _ended(kind: str, said: str, printed: str = "") -> dict[str, Any]:
    return {"kind": kind, "said": said[:2_000], "printed": printed[:2_000]}
