"""Imports that a change took out of a file that still uses what they brought."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence

from holdfast.activities.review.uses.javascript_modules import PARSED, imports_of
from holdfast.activities.review.uses.matching import Event, match
from holdfast.activities.review.uses.reporting import Breakage
from holdfast.activities.review.uses.tree import Pair, Tree, Wanted

LANGUAGES = (*PARSED, "Go", "Java", "Ruby")
"""Of Python, ruff tells it."""
LIBRARIES = {
    "json": "JSON", "yaml": "YAML", "csv": "CSV", "date": "DateTime", "digest": "Digest",
    "openssl": "OpenSSL", "securerandom": "SecureRandom", "net/http": "Net", "erb": "ERB",
    "fileutils": "FileUtils", "tempfile": "Tempfile", "logger": "Logger", "zlib": "Zlib",
    "optparse": "OptionParser", "pathname": "Pathname", "bigdecimal": "BigDecimal",
    "open3": "Open3", "base64": "Base64", "stringio": "StringIO", "timeout": "Timeout",
    "forwardable": "Forwardable", "singleton": "Singleton", "benchmark": "Benchmark",
    "socket": "TCPSocket", "tmpdir": "Dir", "uri": "URI", "matrix": "Matrix",
}  # fmt: skip
"""What each library of Ruby defines."""
DEFINITIONS = ("function", "class", "type", "variable", "binding")
_JAVA_LANG = re.compile(r"^import\s+(?:static\s+)?[\w.]+\.\*;")


def find(tree: Tree, program: str) -> list[Breakage]:
    """Return the first use of each name that no import brings any more."""
    pairs = [
        pair
        for pair in tree.pairs
        if pair.was and pair.now and pair.language in LANGUAGES and tree.text(pair.now) is not None
    ]
    if not pairs or not tree.on_time():
        return []
    old = match(tree, program, {p.was: tree.place(p.was, base=True) for p in pairs}, ())
    new = match(tree, program, {p.now: tree.place(p.now) for p in pairs}, ())
    lost: dict[str, dict[str, Event]] = {}
    for pair in pairs:
        if pair.now not in new:
            continue
        had = _brought(pair, old.get(pair.was, ()))
        has = _brought(pair, new[pair.now])
        if gone := {name: event for name, event in had.items() if name not in has}:
            lost[pair.now] = gone
    names = {name for gone in lost.values() for name in gone}
    if not names:
        return []
    events = match(tree, program, {path: tree.place(path) for path in lost}, names)
    kinds = {pair.now: pair for pair in pairs}
    return [
        each
        for path, gone in lost.items()
        for each in _missing(tree, kinds[path], gone, events.get(path, ()))
    ]


def _brought(pair: Pair, listed: Sequence[Event]) -> dict[str, Event]:
    """Return the names that the imports of a file bring."""
    if pair.language in PARSED:
        return {each.local: each.event for each in imports_of(listed) if each.local}
    found: dict[str, Event] = {}
    for event in listed:
        if event.rule != "import":
            continue
        if pair.language == "Ruby":
            said = re.match(r"require[\s(]+['\"]([\w./-]+)['\"]", event.text)
            if said and said[1] in LIBRARIES:
                found[LIBRARIES[said[1]]] = event
            continue
        if pair.language == "Go":
            alias, _, path = event.text.rpartition('"')[0].rpartition('"')
            last = [part for part in path.split("/") if not re.fullmatch(r"v\d+", part)][-1:]
            name = alias.strip() or (last[0].removeprefix("go-").partition(".")[0] if last else "")
        else:
            name = event.text.rstrip("; \n").rpartition(".")[2]
            if _JAVA_LANG.match(event.text):
                found["*"] = event
        if re.fullmatch(r"[A-Za-z]\w*", name):
            found[name] = event
    return found


def _missing(
    tree: Tree, pair: Pair, gone: Mapping[str, Event], listed: Sequence[Event]
) -> Iterator[Breakage]:
    for name, event in gone.items():
        if any(each.rule in DEFINITIONS and each.text == name for each in listed):
            continue
        if pair.language == "Java" and not _java_needs(tree, pair, name, listed):
            continue
        if pair.language == "Ruby" and _is_required(tree, event.text):
            continue
        if pair.language == "Go" and not name.islower():
            continue
        uses = (e for e in listed if e.rule == "use" and _is_it(pair, e, name))
        use = next((e for e in uses if not _is_qualified(tree, e)), None)
        if use is not None:
            yield Breakage(
                use.file,
                use.line,
                "removed-import",
                f"`{name}` is used here, and this change took its import out of the file"
                f" (`{_shown(event)}`, line {event.line} before)",
                "Import it again, or take the use out",
                use.column,
            )


def _is_it(pair: Pair, event: Event, name: str) -> bool:
    if pair.language == "Go":
        # The package of a selector is an identifier of its own.
        return event.text == name and "ON" not in event.said and "ARGS" not in event.said
    return event.text == name and "ON" not in event.said


def _is_qualified(tree: Tree, event: Event) -> bool:
    """True of the last part of a name such as `java.util.List`."""
    before = tree.lines(event.file)[event.line - 1][: event.column - 1]
    return before.rstrip().endswith(".")


def _java_needs(tree: Tree, pair: Pair, name: str, listed: Sequence[Event]) -> bool:
    """True if neither the package nor an import of all of one can bring a name."""
    beside = pair.now.rpartition("/")[0]
    return (
        f"{beside}/{name}.java".lstrip("/") not in tree.head
        and not any(e.rule == "import" and e.text.rstrip("; ").endswith("*") for e in listed)
        and name[:1].isupper()
    )


def _is_required(tree: Tree, text: str) -> bool:
    """True if another file requires a library, or a framework may."""
    name = re.sub(r"^require[\s(]+|[\s)]+$", "", text).strip("'\"")
    words = frozenset({f"'{name}'", f'"{name}"', "config/application"})
    return bool(tree.holding([Wanted(words)], ("Ruby",)))


def _shown(event: Event) -> str:
    return " ".join(event.text.split())[:120]
