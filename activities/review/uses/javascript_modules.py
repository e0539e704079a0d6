"""JavaScript and TypeScript: what modules export, and what they import from which file."""

from __future__ import annotations

import posixpath
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from holdfast.activities.review.uses.matching import Event, split_list

PARSED = ("JavaScript", "TypeScript")
ENDINGS = (".ts", ".tsx", ".js", ".jsx", ".mjs", ".cjs", ".mts", ".cts", ".d.ts", ".json", ".vue")
COMPILED = {".js": (".ts", ".tsx"), ".jsx": (".tsx",), ".mjs": (".mts",), ".cjs": (".cts",)}
_FROM = re.compile(r"from\s*(['\"])([^'\"\n]+)\1")
_STAR = re.compile(r"export\s+\*\s+(?:as\s+([\w$]+)\s+)?from")
_REQUIRED = re.compile(r"^require\(\s*(['\"])([^'\"\n]+)\1\s*\)(?:\.([\w$]+))?$")


@dataclass
class Exports:
    """What a module exports: by its name there, the name inside; or another module and a name."""

    own: dict[str, str] = field(default_factory=dict)
    passed: dict[str, tuple[str, str]] = field(default_factory=dict)
    stars: list[str] = field(default_factory=list)
    opaque: bool = False
    """True if nobody can tell all names."""

    @property
    def names(self) -> set[str]:
        return {*self.own, *self.passed}


@dataclass(frozen=True)
class Import:
    """A name that a file has of a module. `inner` is its name there, `*` the module itself."""

    event: Event
    source: str
    inner: str
    local: str
    line: int


def exports_of(listed: Sequence[Event], text: str) -> Exports:
    found = Exports()
    for event in listed:
        match event.rule:
            case "export":
                _read_export(event, found)
            case "exports":
                _read_assigned(event, found)
            case "function" | "class" | "variable" | "type":
                if event.shown.startswith("export default"):
                    found.own["default"] = event.text
                elif event.shown.startswith("export "):
                    found.own[event.text] = event.text
    if re.search(r"Object\.(assign|definePropert(y|ies))\(\s*(module\.)?exports|exports\[", text):
        found.opaque = True
    return found


def _read_export(event: Event, found: Exports) -> None:
    text = event.text
    source = _FROM.search(text)
    if star := _STAR.match(text):
        if source and star[1]:
            found.passed[star[1]] = source[2], "*"
        elif source:
            found.stars.append(source[2])
    elif named := re.match(r"export\s+(?:type\s+)?\{([^}]*)\}", text):
        for local, name in _pairs(named[1]):
            if source:
                found.passed[name] = source[2], local
            else:
                found.own[name] = local
    elif re.match(r"export\s+default\b", text):
        same = re.match(r"export\s+default\s+([\w$]+)\s*;?\s*$", text)
        found.own.setdefault("default", same[1] if same else "")
    else:
        found.opaque = True


def _read_assigned(event: Event, found: Exports) -> None:
    left, right = event.said["LEFT"], event.said["RIGHT"]
    if left not in ("module.exports", "exports"):
        name = left.rpartition(".")[2]
        found.own[name] = right if re.fullmatch(r"[\w$]+", right) else ""
        return
    found.own["default"] = right if re.fullmatch(r"[\w$]+", right) else ""
    if not right.startswith("{"):
        found.opaque = True
        return
    for part in split_list(right):
        if key := re.match(r"(?:async\s+)?\*?\s*([\w$]+)\s*(?:\(|$|:\s*([\w$]+)\s*$|:)", part):
            whole = re.fullmatch(r"[\w$]+", part) is not None
            found.own[key[1]] = key[1] if whole else (key[2] or "")
        else:
            found.opaque = True


def _pairs(text: str) -> Iterator[tuple[str, str]]:
    """Yield the names of `a, b as c`: what it is called there, and here."""
    text = re.sub(r"//[^\n]*|/\*.*?\*/", "", text, flags=re.DOTALL)
    for part in text.split(","):
        words = re.sub(r"^type\s+(?=[\w$])", "", part.strip())
        found = re.fullmatch(r"([\w$]+)(?:\s+as\s+([\w$]+))?", words)
        if found:
            yield found[1], found[2] or found[1]


def imports_of(listed: Sequence[Event]) -> Iterator[Import]:
    for event in listed:
        if event.rule in ("import", "export"):
            yield from _read_import(event)
        elif event.rule == "require":
            yield from _read_require(event)
        elif event.rule == "module":
            yield Import(event, event.text.strip("'\""), "", "", event.line)


def _read_import(event: Event) -> Iterator[Import]:
    text = event.text
    source = _FROM.search(text)
    if source is None:
        bare = re.match(r"import\s*(['\"])([^'\"\n]+)\1", text)
        if bare:
            yield Import(event, bare[2], "", "", event.line)
        return
    clause = text[: source.start()]
    if event.rule == "export":
        if _STAR.match(text):
            yield Import(event, source[2], "", "", event.line)
        named = re.search(r"\{([^}]*)\}", clause)
        for inner, _ in _pairs(named[1] if named else ""):
            yield Import(event, source[2], inner, "", _line(event, inner))
        return
    clause = re.sub(r"^import\s+(?:type\s+(?=[{*\w]))?", "", clause).strip()
    named = re.search(r"\{([^}]*)\}", clause)
    for inner, local in _pairs(named[1] if named else ""):
        yield Import(event, source[2], inner, local, _line(event, inner))
    rest = re.sub(r"\{[^}]*\}", "", clause)
    if space := re.search(r"\*\s*as\s+([\w$]+)", rest):
        yield Import(event, source[2], "*", space[1], event.line)
    if default := re.match(r"\s*([\w$]+)", re.sub(r"\*\s*as\s+[\w$]+", "", rest)):
        yield Import(event, source[2], "default", default[1], event.line)


def bound_in(listed: Sequence[Event]) -> set[str]:
    """Return the names that a file binds otherwise than by an import."""
    required = {line for e in listed if e.rule == "require" for line in range(e.line, e.end + 1)}
    return {e.text for e in listed if e.rule == "binding" and e.line not in required}


def _line(event: Event, name: str) -> int:
    found = re.search(rf"(?<![\w$]){re.escape(name)}(?![\w$])", event.text)
    return event.line + event.text.count("\n", 0, found.start() if found else 0)


def _read_require(event: Event) -> Iterator[Import]:
    said = _REQUIRED.match(event.said["VALUE"])
    if said is None:
        return
    name = event.said["NAME"]
    if not name.startswith("{"):
        yield Import(event, said[2], said[3] or "*", name, event.line)
        return
    for part in split_list(name):
        pair = re.match(r"([\w$]+)(?:\s*:\s*([\w$]+))?\s*(?:=.*)?\Z", part)
        if pair and not said[3]:
            yield Import(event, said[2], pair[1], pair[2] or pair[1], _line(event, pair[1]))


def resolve(source: str, importer: str, files: Mapping[str, object]) -> str:
    """Return the file that a source names, empty if it is none of these."""
    if source.startswith("."):
        stem = posixpath.normpath(posixpath.join(posixpath.dirname(importer), source))
    elif source.startswith(("@/", "~/")) and "src/" in f"/{importer}":
        root = importer[: f"/{importer}".rindex("/src/") + 4] if "/src/" in f"/{importer}" else ""
        stem = posixpath.normpath(posixpath.join(root, source[2:])) if root else ""
    else:
        return ""
    stem = "" if stem.startswith("..") else stem
    base, ending = posixpath.splitext(stem)
    tried = [stem, *(f"{stem}{each}" for each in ENDINGS)]
    tried += [f"{base}{each}" for each in COMPILED.get(ending, ())]
    tried += [f"{stem}/index{each}".lstrip("/") for each in ENDINGS]
    return next((each for each in tried if each in files), "")
