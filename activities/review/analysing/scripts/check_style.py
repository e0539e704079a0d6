"""Find what a change wrote otherwise than the repository's own settings for formatters and linters
have it, where the repository follows them.

Reads a JSON document from stdin (see `analysers/style.py`), prints one. Runs isolated, as a program
of its own, so it imports nothing of this project. The settings are a stranger's: of them a few
numbers, words and codes are taken and given to ruff as options; no tool reads the files themselves,
so nothing is extended, fetched, loaded or run by them.
"""

import configparser
import fnmatch
import json
import re
import subprocess
import sys
import tomllib
from collections import Counter
from collections.abc import Iterable, Iterator
from typing import Any

import re2

SETTINGS_BYTES = 64 * 1024
OF_A_FILE = 20
"""Remarks about one file."""
OBEYED = 0.1
"""Share of the base's files that may break a rule that counts as followed."""
CODE = re.compile(r"[A-Z]{1,6}[0-9]{0,4}")
TARGET = re.compile(r"py3[0-9]{1,2}")
ELSEWHERE = ("F", "S", "B", "PLE", "ASYNC", "INVALID")
"""Rules that other lenses have, or that are no style."""
FLAKE8_IGNORES = ["E121", "E123", "E126", "E226", "E24", "E704"]
QUOTES = ("double", "single", "preserve")
ENDINGS = {"lf": b"\n", "crlf": b"\r\n"}
Item = dict[str, Any]
Table = dict[str, Any]


def main() -> None:
    told = json.load(sys.stdin)
    files: dict[str, Item] = {each["path"]: each for each in told["files"]}
    sample: dict[str, str] = told["sample"]
    texts = {name: read(path) for name, path in told["settings"].items()}
    items = [
        *check_python(python_settings(texts), files, sample, told["ruff"]),
        *check_editorconfig(texts.get(".editorconfig", b""), files, sample),
    ]
    seen: Counter[str] = Counter()
    kept = []
    for item in items:
        seen[item["file"]] += 1
        if seen[item["file"]] <= OF_A_FILE:
            kept.append({**item, "scale": "style"})
    json.dump({"items": kept, "errors": [], "beyond": [], "read": len(files)}, sys.stdout)


def read(path: str) -> bytes:
    with open(path, "rb") as file:
        return file.read(SETTINGS_BYTES)


# ---------------------------------------------------------------- Python


def python_settings(texts: dict[str, bytes]) -> Table:
    """Return what is known of the style of Python: `options` of ruff, whether there is a
    `formatter`, and the codes to `select` and to `ignore`.
    """
    project = toml_of(texts, "pyproject.toml").get("tool", {})
    project = project if isinstance(project, dict) else {}
    ruff = toml_of(texts, "ruff.toml") or toml_of(texts, ".ruff.toml") or table(project, "ruff")
    black, isort = table(project, "black"), table(project, "isort")
    lint, style = {**ruff, **table(ruff, "lint")}, table(ruff, "format")
    found: Table = {"options": [], "formatter": bool(ruff or black), "per_file": {}}
    length = number(ruff, "line-length", 320) or number(black, "line-length", 320)
    found["select"] = codes(lint, "select") + codes(lint, "extend-select")
    found["ignore"] = codes(lint, "ignore") + codes(lint, "extend-ignore")
    for pattern, ignored in table(lint, "per-file-ignores").items():
        found["per_file"][str(pattern)] = codes({"x": ignored}, "x")
    found["exclude"] = [*listed(ruff, "exclude"), *listed(ruff, "extend-exclude")]
    if not ruff:
        flake8 = ini_of(texts, "setup.cfg") or ini_of(texts, "tox.ini") or ini_of(texts, ".flake8")
        if flake8:
            length = number(flake8, "max-line-length", 320) or length or 79
            found["select"] = codes(flake8, "select") or ["E", "W"]
            found["ignore"] = codes(flake8, "ignore") or FLAKE8_IGNORES
            found["ignore"] += codes(flake8, "extend-ignore")
    if isort.get("profile") == "black":
        found["select"].append("I")
    quote = style.get("quote-style")
    if black.get("skip-string-normalization") is True:
        quote = "preserve"
    found["options"] = [
        *([f"line-length={length}"] if length else []),
        *([f"indent-width={n}"] if (n := number(ruff, "indent-width", 16)) else []),
        *([f"format.quote-style='{quote}'"] if quote in QUOTES else []),
        *(["format.indent-style='tab'"] if style.get("indent-style") == "tab" else []),
        *(
            ["format.skip-magic-trailing-comma=true"]
            if style.get("skip-magic-trailing-comma") is True
            else []
        ),
    ]
    target = ruff.get("target-version")
    if isinstance(target, str) and TARGET.fullmatch(target):
        found["options"].append(f"target-version='{target}'")
    found["select"] = [each for each in found["select"] if not each.startswith(ELSEWHERE)]
    return found


def toml_of(texts: dict[str, bytes], name: str) -> Table:
    try:
        return tomllib.loads(texts.get(name, b"").decode())
    except (ValueError, RecursionError):
        return {}


def ini_of(texts: dict[str, bytes], name: str) -> Table:
    parser = configparser.RawConfigParser()
    try:
        parser.read_string(texts.get(name, b"").decode())
        return dict(parser["flake8"])
    except (ValueError, KeyError, configparser.Error):
        return {}


def table(values: Table, name: str) -> Table:
    found = values.get(name)
    return found if isinstance(found, dict) else {}


def number(values: Table, name: str, most: int) -> int:
    """Return a number of the settings; 0 if there is none within bounds."""
    text = str(values.get(name, values.get(name.replace("-", "_"), "")))
    return int(text) if text.isascii() and text.isdigit() and 0 < int(text[:6]) <= most else 0


def listed(values: Table, name: str) -> list[str]:
    found = values.get(name)
    return [each for each in found if isinstance(each, str)] if isinstance(found, list) else []


def codes(values: Table, name: str) -> list[str]:
    found = values.get(name, values.get(name.replace("-", "_"), ()))
    found = re.split(r"[\s,]+", found) if isinstance(found, str) else found
    return [each for each in listed({"x": found}, "x")[:500] if CODE.fullmatch(each)]


def check_python(
    settings: Table, files: dict[str, Item], sample: dict[str, str], ruff: list[str]
) -> Iterator[Item]:
    """Yield what ruff would write otherwise in files whose base it would leave as it is."""
    heads = {
        each["place"]: each
        for path, each in files.items()
        if path.endswith((".py", ".pyi")) and not excluded(path, settings["exclude"])
    }
    before = {each["before"] for each in heads.values() if each["before"]}
    known = {place for path, place in sample.items() if path.endswith((".py", ".pyi"))} | before
    if not heads or not known:
        return
    options = [part for each in settings["options"] for part in ("--config", each)]
    command = [*ruff, "format", "--isolated", "--no-cache", "--diff", *options, "--"]
    if settings["formatter"]:
        hunks = reformatted(run(command, [*heads, *known]))
        if sum(place in hunks for place in known) <= OBEYED * len(known):
            for place, each in heads.items():
                line = first_touched(hunks.get(place, []), each["touched"])
                if line and each["before"] not in hunks:
                    yield item(
                        each, line, "format", "The repository's formatter writes it otherwise"
                    )
    if settings["select"]:
        yield from by_rules(settings, heads, known, ruff, options)


def by_rules(
    settings: Table,
    heads: dict[str, Item],
    known: set[str],
    ruff: list[str],
    options: list[str],
) -> Iterator[Item]:
    """Yield what breaks rules that the base's files keep."""
    command = [*ruff, "check", "--isolated", "--no-cache", "--exit-zero", "--output-format=json"]
    command += [*options, f"--select={','.join(known_codes(settings['select'], ruff))}"]
    found = json.loads(run([*command, "--"], [*heads, *known]) or b"[]")
    broken: dict[str, set[str]] = {}
    for each in found:
        broken.setdefault(str(each["code"]), set()).add(each["filename"])
    for each in found:
        head, code = heads.get(each["filename"]), str(each["code"])
        if head is None or code.upper().startswith((*ELSEWHERE, *settings["ignore"])):
            continue
        followed = len(broken[code] & known) <= OBEYED * len(known)
        if not followed or head["before"] in broken[code]:
            continue
        if not any(
            code.startswith(tuple(ignored)) and matches(head["path"], pattern)
            for pattern, ignored in settings["per_file"].items()
            if ignored
        ):
            yield item(head, each["location"]["row"], code, str(each["message"])[:300])


def known_codes(select: list[str], ruff: list[str]) -> list[str]:
    """Return the selectors that ruff knows: one of another tool's would make it refuse all."""
    rules = json.loads(run([*ruff, "rule", "--all", "--output-format=json"], []))
    names = [str(rule["code"]) for rule in rules]
    known = (each for each in select if any(name.startswith(each) for name in ("ALL", *names)))
    return list(known) or ["E9"]


def run(command: list[str], files: Iterable[str]) -> bytes:
    return subprocess.run([*command, *files], stdin=subprocess.DEVNULL, capture_output=True).stdout


def reformatted(diff: bytes) -> dict[str, list[tuple[int, int]]]:
    """Return first and last line of each place that a formatter would change, by file."""
    hunks: dict[str, list[tuple[int, int]]] = {}
    current: list[tuple[int, int]] = []
    line = 0
    for text in diff.decode("utf-8", "replace").split("\n"):
        if text.startswith("--- "):
            current = hunks.setdefault(text[4:], [])
        elif match := re.match(r"@@ -(\d+)", text):
            line = int(match[1])
        elif text.startswith("-"):
            current.append((line, line))
            line += 1
        elif text.startswith("+") and not text.startswith("+++"):
            current.append((max(line - 1, 1), line))
        elif text.startswith(" "):
            line += 1
    return hunks


def first_touched(places: list[tuple[int, int]], touched: list[list[int]] | None) -> int:
    """Return the first line of the places that the change touched; 0: none."""
    for first, last in places:
        for start, end in touched or [[1, sys.maxsize]]:
            if first <= end and start <= last:
                return max(first, start)
    return 0


def excluded(path: str, patterns: list[str]) -> bool:
    return any(matches(path, each) for each in patterns)


def matches(path: str, pattern: str) -> bool:
    """True if a pattern of ruff's settings names a file, its name, or a folder above it."""
    pattern = pattern.removeprefix("./").rstrip("/")
    parts = path.split("/")
    above = ["/".join(parts[:n]) for n in range(1, len(parts) + 1)]
    return any(fnmatch.fnmatchcase(each, pattern) for each in (*parts, *above))


def item(file: Item, line: int, rule: str, message: str) -> Item:
    return {"file": file["path"], "line": line, "rule": rule, "message": message}


# ---------------------------------------------------------------- .editorconfig


def check_editorconfig(
    text: bytes, files: dict[str, Item], sample: dict[str, str]
) -> Iterator[Item]:
    """Yield touched lines that are not as `.editorconfig` at the top has them, where the base's
    files of that ending are.
    """
    sections = list(sections_of(text.decode("utf-8", "replace")))
    if not sections:
        return
    kept: dict[str, list[set[str]]] = {}
    for path, place in sample.items():
        properties = properties_of(sections, path)
        broken = {rule for _, rule, _ in breaches(content(place), properties)}
        kept.setdefault(ending(path), []).append(broken)
    for path, each in files.items():
        properties = properties_of(sections, path)
        old = content(each["before"]) if each["before"] else b""
        of_base = {rule for _, rule, _ in breaches(old, properties)}
        others = kept.get(ending(path), [])
        for line, rule, message in breaches(content(each["place"]), properties):
            shared = sum(rule in broken for broken in others)
            obeyed = (others or old) and shared <= OBEYED * len(others)
            if obeyed and rule not in of_base and first_touched([(line, line)], each["touched"]):
                yield item(each, line, rule, message)


def content(place: str) -> bytes:
    with open(place, "rb") as file:
        return file.read()


def ending(path: str) -> str:
    return path.rpartition("/")[2].rpartition(".")[2]


def sections_of(text: str) -> Iterator[tuple[Any, Table]]:
    """Yield the sections, each with a pattern of the paths that it is for."""
    current: Table = {}
    for line in text.splitlines()[:500]:
        line = line.strip()
        if line.startswith("[") and line.endswith("]"):
            current = {}
            yield glob(line[1:-1]), current
        elif "=" in line and not line.startswith(("#", ";")):
            name, _, value = line.partition("=")
            current[name.strip().lower()] = value.strip().lower()


def glob(pattern: str) -> Any:
    """Return a pattern of `.editorconfig`, as far as it is `*`, `**`, `?` and `{a,b}`, of linear
    time.
    """
    out = ""
    for part in re.findall(r"\*\*|\*|\?|\{[^{}]*\}|[^*?{}]+|.", pattern[:200]):
        if part.startswith("{") and "," in part:
            out += f"(?:{'|'.join(map(re.escape, part[1:-1].split(',')))})"
        else:
            out += {"**": ".*", "*": "[^/]*", "?": "[^/]"}.get(part, re.escape(part))
    return re2.compile(out if "/" in pattern.lstrip("/") else rf"(?:.*/)?{out}")


def properties_of(sections: list[tuple[Any, Table]], path: str) -> Table:
    found: Table = {}
    for pattern, values in sections:
        if pattern.fullmatch(path):
            found.update(values)
    return found


def breaches(text: bytes, properties: Table) -> Iterator[tuple[int, str, str]]:
    """Yield line, rule and message of what is not as the properties have it."""
    if not text or not properties or b"\0" in text:
        return
    width = number(properties, "max_line_length", 500)
    style, end = properties.get("indent_style"), ENDINGS.get(properties.get("end_of_line", ""))
    lines = text.split(b"\n")
    for place, line in enumerate(lines, 1):
        bare = line.removesuffix(b"\r")
        if properties.get("trim_trailing_whitespace") == "true" and bare != bare.rstrip(b" \t"):
            yield place, "trailing-whitespace", "White space at the end of the line"
        if style == "tab" and re.match(rb" {2,}(?![ *])", bare):
            yield place, "indent-style", "Indented by spaces, where the repository has tabs"
        if style == "space" and re.match(rb" *\t", bare):
            yield place, "indent-style", "Indented by a tab, where the repository has spaces"
        if width and len(bare.decode("utf-8", "replace").expandtabs(4)) > width:
            yield place, "line-length", f"Longer than the {width} characters of the repository"
        if end and place < len(lines) and (line.endswith(b"\r") != (end == b"\r\n")):
            yield place, "line-end", "Another line end than the repository's"
    if properties.get("insert_final_newline") == "true" and not text.endswith(b"\n"):
        yield len(lines), "final-newline", "The file does not end with a line end"


if __name__ == "__main__":
    main()
