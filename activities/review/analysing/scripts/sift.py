"""Cut what a tool says of files to what a reader can use: a stranger's file can make it say
anything any number of times.

Runs the command in its arguments, after the name of its tool, and prints `{"items": […], "errors":
[…], "beyond": [[file, rule, n]…]}`. Runs isolated, as a program of its own, so it imports nothing
of this project: what is long, or nested, is met here and not in the process that serves all runs.
"""

import ast
import functools
import itertools
import json
import re
import subprocess
import sys
from collections import Counter
from collections.abc import Callable, Iterator
from typing import IO, Any

import yaml

MOST_OUTPUT = 64 * 1024 * 1024
"""Bytes of a document, and of one line."""
MOST = 4_000
"""Items that are handed on; each file has a share, and each rule within it."""
OF_A_RULE = 2_000
"""Items of one rule in one file."""
LETTERS = 600
"""Characters kept of a text."""
SYNTAX = "invalid-syntax"
MODULE = re.compile(rb"(?m)^\s*(?:import|export)\b|\brequire\s*\(|\bmodule\.exports\b")
"""A script of a page may use what another script of the page defines; a module may not."""
BUILT_IN = re.compile(r"'(__\w*__|[A-Z][A-Z0-9_]+|n?p?gettext)' is not defined")
"""Names that a bundler puts values for, and those of a page's catalogue of texts."""
SAME_FIELD = re.compile(r"(?<![\w.])([\w$]+(?:\.[\w$]+)+)\s*(?:===?|[<>]=?)\s*\1(?![\w.(\[])")
"""A field compared with itself: one that is not a number would be compared by `!==`."""
FLOW = re.compile(rb"(?m)\A(?:#!.*\n)?\s*(?://.*\n\s*)*/[/*](?:[^*]|\*(?!/)){0,2000}@(?:no)?flow\b")
REACT = re.compile(
    rb"""(?:\bfrom|\brequire\(|\bimport)\s*"""
    rb"""["'](?:react|react-dom|react-native|preact(?:/\w+)?|next/\w+)["']"""
)
OTHER_UI = re.compile(rb"""["'](?:vue|@vue/[\w-]+|solid-js|svelte|@builder\.io/qwik)["'/]""")
"""Libraries whose functions may be named as hooks of React are, and are none."""
SILENCES = re.compile(
    r"(?i)\bwrap\b|underscore|\bprefix|\bdisabl|\bignor|noqa|suppress|intention|\bunused\b|\bvoid\b"
)
DEEPEST = 200
"""Levels of nesting beyond which YAML is not read: each further one costs libyaml more."""
RUFF_UNREADABLE = "E902"
SHELL_STOPPED = {1072, 1073, 1088, 1089}
"""Codes by which shellcheck says that it could not read on."""
CARRIAGE_RETURN = 1017
NEAR = {
    "from outside": re.compile(
        r"(?i)\b(?:request|req|argv|input|params?|form|payload|cookies?|(?-i:user)(?!_defined)\w*|email"
        r"|upload\w*|untrusted|recv)\b"
    ),
    "password": re.compile(r"(?i)passw|secret|token|credential"),
    "quoted": re.compile(
        r"""'%?\{(?!\w*(?:date|time|path|table|schema))[\w.]+\}%?'|'%?%s%?'|'%?["'] ?\+"""
    ),
}
RUNNING = {"B102", "B307", "B602", "B605"}
"""Tests of bandit for calls that run a text as code or as a command."""
STRANGER = re.compile(
    r"\bgithub\.(?:head_ref\b|event\.(?:issue|pull_request|discussion|comment|review|pages|commits"
    r"|head_commit|workflow_run)\b.*\b(?:title|display_title|body|message|email|head_branch|page_name"
    r"|(?:author|committer)\.name|head\.(?:ref|label|repo\.default_branch))\b)"
)
"""Expressions that an outsider can set by opening a request: texts and the names of branches, but
neither a user's name nor a commit's id, in which no sign can stand; above, code around a place.
"""
Item = dict[str, Any]
Read = Callable[[IO[bytes], list[str]], Iterator[Item]]
"""(the tool's output, files it could not read, to be added to) -> its items."""


def main() -> int:
    """Return the exit code of the tool; 0 if it only says that it found something."""
    kind, *command = sys.argv[1:]
    read, found = TOOLS[kind]
    with subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE) as tool:
        assert tool.stdout is not None
        errors: list[str] = []
        kept, beyond = keep(read(tool.stdout, errors))
        code = tool.wait()
    listed = [[*key, count] for key, count in beyond.items()]
    errors = list(dict.fromkeys(errors))
    json.dump({"items": kept, "errors": errors, "beyond": listed}, sys.stdout, ensure_ascii=True)
    return 0 if code == found else code


def read_document(stream: IO[bytes]) -> Any:
    """Return the one JSON document that a tool writes; None if it writes nothing."""
    text = stream.read(MOST_OUTPUT + 1)
    if len(text) > MOST_OUTPUT:
        raise SystemExit(f"wrote more than {MOST_OUTPUT >> 20} MiB")
    return json.loads(text) if text.strip() else None


def of_ruff(stream: IO[bytes], errors: list[str]) -> Iterator[Item]:
    """Read an item a line; an error of syntax is told once a file."""
    lost = set[str]()
    while line := stream.readline(MOST_OUTPUT):
        item = json.loads(line)
        file, rule = item["filename"], item["code"] or SYNTAX
        if rule in (SYNTAX, RUFF_UNREADABLE):
            known = file in lost
            lost.add(file)
            errors.append(file)
            if known or rule == RUFF_UNREADABLE or is_python(file):
                continue
        message, fix = item["message"], item.get("fix") or {}
        yield {
            "file": file,
            "rule": rule,
            "line": item["location"]["row"],
            "column": item["location"]["column"],
            "message": cut(f"Syntax error: {message}" if rule == SYNTAX else message),
            "suggestion": advice(fix.get("message")),
        }


def is_python(path: str) -> bool:
    """True if the Python that runs this can read a file: then a tool that cannot is at fault."""
    return syntax_of(path) is not None


def of_bandit(stream: IO[bytes], errors: list[str]) -> Iterator[Item]:
    """Read the items, with the lines that each is about."""
    report = read_document(stream)
    errors += [error["filename"] for error in report["errors"]]
    for item in report["results"]:
        line = item["line_number"]
        around = [line, *(item["line_range"] or ())]
        yield {
            "file": item["filename"],
            "rule": item["test_id"],
            "line": line,
            "column": column_of(item),
            "first_line": min(around),
            "last_line": max(around),
            "scale": f"{item['issue_severity']}/{item['issue_confidence']}",
            "message": cut(item["issue_text"]),
            "near": [
                *(name for name, pattern in NEAR.items() if pattern.search(item["code"])),
                *(["formatted"] if item["test_id"] in RUNNING and runs_pieces(item) else ()),
            ],
        }


def runs_pieces(item: Item) -> bool:
    """True if a call in the lines of an item runs a text that is put together of others, in the
    call or before it in the same function.
    """
    tree = syntax_of(item["filename"])
    lines = [item["line_number"], *(item["line_range"] or ())]
    calls = [
        each
        for each in (ast.walk(tree) if tree else ())
        if isinstance(each, ast.Call) and min(lines) <= each.lineno <= max(lines)
    ]
    return any(
        is_of_pieces(given, tree, each.lineno)
        for each in calls
        for given in (*each.args[:1], *(k.value for k in each.keywords if k.arg == "args"))
    )


@functools.lru_cache(maxsize=8)
def syntax_of(path: str) -> ast.Module | None:
    with open(path, "rb") as file:
        try:
            return ast.parse(file.read())
        except (SyntaxError, ValueError, RecursionError, MemoryError):
            return None


def is_of_pieces(node: ast.expr, tree: ast.AST | None, line: int) -> bool:
    """True if a text has parts that are no constants, by what the code says of it up to a line."""
    match node:
        case ast.JoinedStr(values=parts):
            holes = (each.value for each in parts if isinstance(each, ast.FormattedValue))
            return any(not is_constant(each) for each in holes)
        case ast.BinOp(left=left, op=ast.Add(), right=right):
            pair = left, right
            texts = any(isinstance(each, ast.JoinedStr | ast.Constant) for each in pair)
            pieces = (is_of_pieces(each, None, line) for each in pair)
            return any(pieces) or (texts and not all(map(is_constant, pair)))
        case ast.BinOp(left=ast.Constant(value=str()), op=ast.Mod(), right=right):
            return not is_constant(right)
        case ast.Call(func=ast.Attribute(value=ast.Constant(value=str()), attr="format" | "join")):
            return True
        case ast.Name(id=name) if tree is not None:
            return any(is_of_pieces(each, None, line) for each in last_value(tree, name, line))
    return False


def is_constant(node: ast.expr) -> bool:
    """True of a value that is written there, or has the name of a constant."""
    return isinstance(node, ast.Constant) or (isinstance(node, ast.Name) and node.id.isupper())


def last_value(tree: ast.AST, name: str, line: int) -> list[ast.expr]:
    """Return what a name was last given before a line, in the function or file that this is in."""
    functions = [
        each
        for each in ast.walk(tree)
        if isinstance(each, ast.FunctionDef | ast.AsyncFunctionDef)
        and each.lineno <= line <= (each.end_lineno or 0)
    ]
    scope = max(functions, key=lambda each: each.lineno, default=tree)
    given = [
        each
        for each in ast.walk(scope)
        if isinstance(each, ast.Assign)
        and each.lineno < line
        and any(isinstance(to, ast.Name) and to.id == name for to in each.targets)
    ]
    return [max(given, key=lambda each: each.lineno).value] if given else []


def of_oxlint(stream: IO[bytes], errors: list[str]) -> Iterator[Item]:
    """Read the items; one without a code is an error of syntax, told once a file."""
    # Flow is a language of its own, which it takes for broken TypeScript.
    flow = {file for file in given_files() if holds(file, FLOW)}
    errors += sorted(flow)
    module = functools.cache(lambda file: holds(file, MODULE))
    for item in read_document(stream)["diagnostics"]:
        file, message = item["filename"], str(item["message"])
        rule = re.sub(r".*\((.*)\)", r"\1", item.get("code") or SYNTAX)
        if file in flow or (rule == SYNTAX and file in errors):
            continue
        if rule == SYNTAX:
            errors.append(file)
        if rule == "no-undef" and (BUILT_IN.match(message) or not module(file)):
            continue
        if rule == "rules-of-hooks" and not is_hook_of_react(file, message):
            continue
        # Of two places the later one: what is given or declared before is not what is wrong.
        places = [label["span"] for label in item.get("labels") or ()]
        place = max(places, key=lambda span: int(span["offset"]), default={"line": 0, "column": 0})
        yield {
            "file": file,
            "rule": rule,
            "scale": f"{rule} of fields" if is_same_field(file, rule, place["line"]) else rule,
            "line": place["line"],
            "column": place["column"],
            "message": cut(f"Syntax error: {message}" if rule == SYNTAX else message),
            "suggestion": advice(item.get("help")),
        }


def is_hook_of_react(path: str, message: str) -> bool:
    """True if a file is of React, and does not define the hook that it is said to misuse: libraries
    that implement hooks, and others that name functions so, know other rules.
    """
    with open(path, "rb") as file:
        text = file.read()
    if not REACT.search(text) and not (
        path.endswith((".jsx", ".tsx")) and not OTHER_UI.search(text)
    ):
        return False
    name = re.match(r'React Hook "(?:\w+\.)?(\w+)"', message)
    defined = rb"\b(?:function|const|let|var)\s+%s\b" % name[1].encode() if name else b"\\Z(?!)"
    return re.search(defined, text) is None


def of_ast_grep(stream: IO[bytes], errors: list[str]) -> Iterator[Item]:
    """Read an item a line, by our rules."""
    del errors
    while line := stream.readline(MOST_OUTPUT):
        item = json.loads(line)
        yield {
            "file": item["file"],
            "rule": item["ruleId"],
            "line": item["range"]["start"]["line"] + 1,
            "column": item["range"]["start"]["column"] + 1,
            "message": cut(item["message"]),
            "suggestion": cut(item.get("note") or ""),
        }


def of_shellcheck(stream: IO[bytes], errors: list[str]) -> Iterator[Item]:
    """Read the items; where it stopped parsing is an error of syntax, told once a file, and so are
    carriage returns, which stand at the end of each line.
    """
    returns = set[str]()
    for item in read_document(stream)["comments"]:
        if item["code"] == CARRIAGE_RETURN:
            if item["file"] in returns:
                continue
            returns.add(item["file"])
            item["message"] = "A line ends with a carriage return (CRLF), which the shell takes in"
        stopped = item["code"] in SHELL_STOPPED
        if stopped and item["file"] in errors:
            continue
        if stopped:
            errors.append(item["file"])
        yield {
            "file": item["file"],
            "rule": SYNTAX if stopped else f"SC{item['code']}",
            "line": item["line"],
            "column": item["column"],
            "message": cut(f"Syntax error: {item['message']}" if stopped else item["message"]),
        }


def of_zizmor(stream: IO[bytes], errors: list[str]) -> Iterator[Item]:
    """Read the items, at the place that it calls the primary one. It passes over what is not
    YAML.
    """
    errors += [file for file in given_files() if not is_yaml(file)]
    report = read_document(stream)
    if report is None:
        errors += given_files()
    for item in report or ():
        sure = item["determinations"]
        for place in item["locations"]:
            if place["symbolic"]["kind"] == "Primary":
                by = "/of a stranger" if STRANGER.search(expression_of(place)) else ""
                start = place["concrete"]["location"]["start_point"]
                yield {
                    "file": place["symbolic"]["key"]["Local"]["verbatim_path"],
                    "rule": item["ident"],
                    "line": start["row"] + 1,
                    "column": start["column"] + 1,
                    "scale": f"{item['ident']}/{sure['severity']}/{sure['confidence']}{by}",
                    "message": cut(f"{item['desc']}: {place['symbolic']['annotation']}"),
                }
                break


def expression_of(place: Item) -> str:
    """Return the one expression that a place is about; the whole script if it names none."""
    part = place["symbolic"].get("feature_kind")
    inner = part.get("Subfeature") if isinstance(part, dict) else None
    fragment = inner["fragment"] if inner else place["concrete"]["feature"]
    return str(fragment)


def of_hadolint(stream: IO[bytes], errors: list[str]) -> Iterator[Item]:
    """Read the items; what it could not parse is an error of syntax, once a file."""
    for item in read_document(stream):
        stopped = item["code"] == "DL1000"
        if stopped:
            errors.append(item["file"])
        message = item["message"].partition("\n")[0]
        yield {
            "file": item["file"],
            "rule": SYNTAX if stopped else item["code"],
            "line": item["line"],
            "column": item["column"],
            "message": cut(f"Syntax error: {message}" if stopped else message),
        }


def given_files() -> list[str]:
    return sys.argv[sys.argv.index("--") + 1 :]


def holds(path: str, pattern: re.Pattern[bytes]) -> bool:
    """True if a file has the pattern somewhere."""
    with open(path, "rb") as file:
        return pattern.search(file.read()) is not None


def is_same_field(path: str, rule: str, line: int) -> bool:
    """True of a comparison with itself that asks nothing."""
    if rule != "no-self-compare":
        return False
    with open(path, encoding="utf-8", errors="replace") as file:
        text = next(itertools.islice(file, max(line - 1, 0), None), "")
    return SAME_FIELD.search(text[:LETTERS]) is not None


def is_yaml(path: str) -> bool:
    """True if a file can be read as YAML at all."""
    with open(path, "rb") as file:
        try:
            depth = 0
            # Events one by one: a tree of what is nested deeply would overflow the stack of C.
            for event in yaml.parse(file, yaml.CSafeLoader):
                depth += isinstance(event, yaml.CollectionStartEvent)
                depth -= isinstance(event, yaml.CollectionEndEvent)
                if depth > DEEPEST:
                    return False
            return True
        except (yaml.YAMLError, ValueError):
            return False


def column_of(item: Item) -> int:
    """Return where an item of bandit begins, 1-based, in characters; 0: on another line. Bandit
    counts bytes from 0 and quotes the line behind its number.
    """
    line = item["line_number"]
    quoted = str(item["code"]).split("\n")
    text = next((each for each in quoted if each.startswith(f"{line} ")), None)
    if text is None or line != min([line, *(item["line_range"] or ())]):
        return 0
    before = text[len(f"{line} ") :].encode("utf-8", "surrogatepass")[: item["col_offset"]]
    return len(before.decode("utf-8", "replace")) + 1


def cut(text: object) -> str:
    return str(text)[:LETTERS]


def advice(text: object) -> str:
    """Return what a tool advises; nothing if that only silences it."""
    return "" if not text or SILENCES.search(str(text)) else cut(text)


def keep(items: Iterator[Item]) -> tuple[list[Item], Counter[tuple[str, str]]]:
    """Return the items that are handed on, in their order, and how many are not, by file and
    rule.
    """
    seen: Counter[tuple[str, str]] = Counter()
    listed: list[Item] = []
    for item in items:
        key = (item["file"], item["rule"])
        seen[key] += 1
        if seen[key] <= OF_A_RULE:
            listed.append(item)
    most = share([min(count, OF_A_RULE) for count in seen.values()], MOST)
    counted: Counter[tuple[str, str]] = Counter()
    kept: list[Item] = []
    for item in listed:
        key = (item["file"], item["rule"])
        if counted[key] < most and len(kept) < MOST:
            counted[key] += 1
            kept.append(item)
    return kept, seen - counted


def share(counts: list[int], most: int) -> int:
    """Return how many of each may be kept, at least one, so that all together are about `most`."""
    left = most
    for index, count in enumerate(sorted(counts)):
        fair = left // (len(counts) - index)
        if count > fair:
            return max(fair, 1)
        left -= count
    return max(counts, default=1)


TOOLS: dict[str, tuple[Read, int]] = {
    "ruff": (of_ruff, 0),
    "bandit": (of_bandit, 0),
    "oxlint": (of_oxlint, 1),
    "ast-grep": (of_ast_grep, 1),
    "shellcheck": (of_shellcheck, 1),
    "zizmor": (of_zizmor, 3),
    "hadolint": (of_hadolint, 0),
}
"""How each tool is read, and its exit code if it found something or read nothing."""

if __name__ == "__main__":
    sys.exit(main())
