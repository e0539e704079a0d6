"""Handlers that a change added without the guard that all others of their file have."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from dataclasses import dataclass

from holdfast.activities.review.uses.guards import RIGHTS, kinds
from holdfast.activities.review.uses.reporting import Breakage
from holdfast.activities.review.uses.tree import Pair, Tree

FEWEST = 2
"""Guarded handlers of the base that make a custom."""

_VERBS = "route|get|post|put|patch|delete"
_PUBLIC = re.compile(
    r"(?i)log_?(?:in|out)|sign_?(?:in|up|out)|regist|health|ping|ready|alive|status|version|public"
    r"|static|asset|favicon|hook|callback|oauth|token|password|reset|verify|confirm|activate|index"
    r"|home|about|terms|contact|robots|sitemap|metrics|docs|openapi|error|not_?found"
)
_ASKS_ITSELF = re.compile(
    r"(?i)\b40[13]\b|permission|forbid|unauthori|authori[sz]|authenticat|current_?user"
    r"|\breq(?:uest)?\.user\b|principal|signature|\b(?:can|may|has|require|ensure)_?[a-z]+\("
)
_FOR_ALL = re.compile(
    r"before_request|(?:APIRouter|FastAPI)\([^)]{0,300}dependencies"
    r"|\.use\((?!\s*['\"/])[^)]{0,300}"
    r"|@(?:PreAuthorize|Secured|RolesAllowed)[^\n]*\n(?:@[^\n]*\n)*(?:public |final )*class "
)
"""What may guard all handlers of a file at once."""
_EXPRESS = re.compile(
    r"^[ \t]*(?P<router>\w+)\.(?P<verb>get|post|put|patch|delete)"
    r"\(\s*(?P<path>(['\"`])/[^'\"`\n]*\4)\s*,(?P<between>[^\n]{0,300}?)"
    r"(?:async\s*)?(?:\(\s*\w{0,20}req\w{0,20}\b|function\b|\b\w{1,60}\s*\)\s*;?[ \t]*$)",
    re.MULTILINE,
)
_SPRING = re.compile(
    r"(?P<marks>(?:^[ \t]*@\w+[^\n]*\n)+)[ \t]*(?:public|protected|private)?"
    r"[\w<>\[\],.? \t]{1,200}[ \t](?P<name>\w{1,100})\(",
    re.MULTILINE,
)
_MAPPING = re.compile(
    r"^[ \t]*@(?:Get|Post|Put|Patch|Delete|Request)Mapping\b(?P<route>[^\n]*)", re.MULTILINE
)
_TEXT = re.compile(r"'[^'\n]*'|\"[^\"\n]*\"|`[^`\n]*`")


@dataclass(frozen=True)
class Handler:
    """What answers a route. `key` tells it from others, `guard` is empty where it has none."""

    group: str
    key: str
    line: int
    guard: str
    body: str


def find(tree: Tree) -> list[Breakage]:
    """Return the new handlers of production code that lack their siblings' guard."""
    return [
        _remark(pair, new, old[0].guard)
        for pair in tree.pairs
        if pair.was and pair.now and pair.kind == "production"
        for new, old in _unguarded(tree, pair)
    ]


def _unguarded(tree: Tree, pair: Pair) -> Iterator[tuple[Handler, list[Handler]]]:
    text, before = tree.text(pair.now), tree.text(pair.was, base=True)
    if not text or not before or any(_is_guard(each[0]) for each in _FOR_ALL.finditer(text)):
        return
    known = {(each.group, each.key) for each in _handlers(pair.language, before)}
    handlers = [each for each in _handlers(pair.language, text) if not _PUBLIC.search(each.key)]
    for new in handlers:
        if (new.group, new.key) in known or new.guard or _ASKS_ITSELF.search(new.body):
            continue
        old = [each for each in handlers if each.group == new.group]
        old = [each for each in old if (each.group, each.key) in known]
        if len(old) >= FEWEST and all(each.guard for each in old):
            yield new, old


def _handlers(language: str, text: str) -> list[Handler]:
    if language == "Python":
        return list(_of_python(text))
    if language in ("JavaScript", "TypeScript"):
        return list(_of_express(text))
    return list(_of_spring(text)) if language == "Java" else []


def _of_python(text: str) -> Iterator[Handler]:
    try:
        module = ast.parse(text)
    except (SyntaxError, ValueError, RecursionError):
        return
    calls = (each.func for each in ast.walk(module) if isinstance(each, ast.Call))
    called = {each.id for each in calls if isinstance(each, ast.Name)}
    for node in module.body:
        if not isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            continue
        routes = [each for each in node.decorator_list if _router(each)]
        names = [each.arg for each in node.args.args]
        # What the file calls itself is a helper of its handlers.
        helps = node.name.startswith("_") or node.name in called
        if not routes and (names[:1] != ["request"] or helps):
            continue
        marks = [f"@{ast.unparse(each)}" for each in node.decorator_list if each not in routes]
        marks += [
            ast.unparse(word.value)
            for each in routes
            if isinstance(each, ast.Call)
            for word in each.keywords
            if word.arg == "dependencies"
        ]
        defaults = [*node.args.defaults, *(each for each in node.args.kw_defaults if each)]
        hints = [each.annotation for each in (*node.args.args, *node.args.kwonlyargs)]
        marks += [ast.unparse(each) for each in (*defaults, *hints) if each is not None]
        key = " ".join([node.name, *_paths(routes)])
        body = "\n".join(ast.unparse(each) for each in node.body)
        group = _router(routes[0]) if routes else "request"
        yield Handler(group, key, node.lineno, _guard(marks), body)


def _router(decorator: ast.expr) -> str:
    """Return the object whose route a decorator declares, empty if it declares none."""
    call = decorator.func if isinstance(decorator, ast.Call) else None
    if isinstance(call, ast.Attribute) and re.fullmatch(_VERBS, call.attr):
        return ast.unparse(call.value)
    return ""


def _paths(routes: list[ast.expr]) -> Iterator[str]:
    for each in routes:
        if isinstance(each, ast.Call) and each.args:
            yield ast.unparse(each.args[0])


def _of_express(text: str) -> Iterator[Handler]:
    found = list(_EXPRESS.finditer(text))
    starts = [*(each.start() for each in found), len(text)]
    for each, end in zip(found, starts[1:], strict=True):
        marks = _TEXT.sub("", each["between"]).split(",")
        line = text.count("\n", 0, each.start("router")) + 1
        key = f"{each['verb']} {each['path']}"
        yield Handler(each["router"], key, line, _guard(marks), text[each.end() : end])


def _of_spring(text: str) -> Iterator[Handler]:
    found = [each for each in _SPRING.finditer(text) if _MAPPING.search(each["marks"])]
    starts = [*(each.start() for each in found), len(text)]
    for each, end in zip(found, starts[1:], strict=True):
        route = _MAPPING.search(each["marks"])
        marks = _MAPPING.sub("", each["marks"]).split("\n")
        line = text.count("\n", 0, each.start("name")) + 1
        key = f"{each['name']} {route['route'] if route else ''}"
        yield Handler("class", key, line, _guard(marks), text[each.end() : end])


def _guard(marks: list[str]) -> str:
    return next((each.strip() for each in marks if _is_guard(each)), "")


def _is_guard(text: str) -> bool:
    return any(
        each.words.search(text) or (each.inside is not None and each.inside.search(text))
        for each in kinds()
        if each.about in RIGHTS
    )


def _remark(pair: Pair, new: Handler, guard: str) -> Breakage:
    return Breakage(
        pair.now,
        new.line,
        "unguarded-handler",
        "This handler is new and unguarded, while all others of its kind in this file have a"
        f" guard such as `{guard[:80]}`",
        "Guard it as the others are, or say in the code why everybody may call it",
    )
