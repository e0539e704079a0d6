"""Ask ast-grep for definitions, imports and uses in files: as events, a place each."""

from __future__ import annotations

import json
import re
import subprocess
import tempfile
import time
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from holdfast.activities.review.uses.tree import Tree

RULES = Path(__file__).parents[1] / "rules" / "uses"
CONFIG = """ruleDirs: [rules]
languageGlobs:
  tsx: ["*.js", "*.mjs", "*.cjs", "*.jsx", "*.ts", "*.mts", "*.cts", "*.tsx"]
"""
IGNORED = ("hidden", "dot", "exclude", "global", "parent", "vcs")
MOST_OUTPUT = 32 * 1024 * 1024
LAST = 4
"""Files that two threads may have begun to print, and not ended."""
MOST_FILES = 500
"""Files of one command."""
NOTHING = "^$"


@dataclass(frozen=True)
class Event:
    """One match of a rule: a name at its place, or a statement."""

    rule: str
    file: str
    text: str
    line: int
    column: int
    end: int
    """Last line of what it names, as far as it was asked for."""
    shown: str
    """The line that it stands in."""
    said: Mapping[str, str] = field(default_factory=dict)


def match(
    tree: Tree, program: str, places: Mapping[str, Path], names: Collection[str] | None
) -> dict[str, list[Event]]:
    """Return the events of files, by path: `names` are those whose definitions and uses are asked
    for; None asks for all definitions and no uses. A file that was not read whole is missing.
    """
    found: dict[str, list[Event]] = {}
    readable = {str(place): path for path, place in places.items()}
    files = list(readable)
    with tempfile.TemporaryDirectory(prefix="uses-") as folder:
        config = _configure(Path(folder), names)
        for start in range(0, len(files), MOST_FILES):
            if not tree.on_time():
                break
            batch = files[start : start + MOST_FILES]
            events, whole = _run(tree, program, config, batch)
            # Of what was cut, the files that were printed last may lack their end.
            seen = [*dict.fromkeys(event.file for event in reversed(events))]
            read = [file for file in (batch if whole else seen[LAST:]) if file in readable]
            tree.unread.update(readable[file] for file in {*batch} - {*read})
            found |= {readable[file]: [] for file in read}
            for event in events:
                path = readable.get(event.file, "")
                if path in found:
                    found[path].append(replace(event, file=path))
    return found


def _configure(folder: Path, names: Collection[str] | None) -> Path:
    """Write the rules about these names; return the configuration's path."""
    listed = "|".join(sorted(re.escape(each) for each in names or ()))
    only = f"^({listed})$" if listed else NOTHING
    defined = "." if names is None else only
    (folder / "rules").mkdir()
    for source in RULES.glob("*.yml"):
        text = source.read_text("utf-8").replace("@DEFINED@", defined).replace("@USED@", only)
        text = text.replace("@SYMBOL@", f"^:?({listed}):?$" if listed else NOTHING)
        (folder / "rules" / source.name).write_text(_numbered(text, source.stem), "utf-8")
    (folder / "sgconfig.yml").write_text(CONFIG, "utf-8")
    return folder / "sgconfig.yml"


def _numbered(text: str, language: str) -> str:
    """Return rules of which no two have one name, as ast-grep asks."""
    parts = text.split("\n---\n")
    return "\n---\n".join(
        re.sub(
            r"(?m)^id: (\w+)$", rf"id: \1-{language}-{number}\nseverity: info\nmessage: found", part
        )
        for number, part in enumerate(parts)
    )


def _run(tree: Tree, program: str, config: Path, files: Sequence[str]) -> tuple[list[Event], bool]:
    """Return the events of some files, and whether they are all."""
    options = [f"--no-ignore={kind}" for kind in IGNORED]
    command = [program, "scan", f"--config={config}", "--json=stream", "--threads=2", *options]
    try:
        done = subprocess.run(
            [*command, "--", *files],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            timeout=max(tree.deadline - time.monotonic(), 0),
            check=False,
        )
    except subprocess.TimeoutExpired:
        tree.late = True
        return [], False
    lines = done.stdout[:MOST_OUTPUT].split(b"\n")
    events = [_event(line) for line in lines if line.endswith(b"}")]
    return events, len(done.stdout) <= MOST_OUTPUT


def _event(line: bytes) -> Event:
    item = json.loads(line)
    single = item.get("metaVariables", {}).get("single", {})
    start = item["range"]["start"]
    end = max([item["range"]["end"]["line"], *(e["range"]["end"]["line"] for e in single.values())])
    return Event(
        rule=item["ruleId"].partition("-")[0],
        file=item["file"],
        text=item["text"],
        line=start["line"] + 1,
        column=start["column"] + 1,
        end=end + 1,
        shown=item["lines"].split("\n")[0].strip(),
        said={name: value["text"] for name, value in single.items()},
    )


def split_list(text: str, *, types: bool = False) -> list[str]:
    """Return the parts of a list in brackets, or without them, that commas separate. `types`: `<`
    is a bracket, too.
    """
    inner = text.strip()
    if inner[:1] in "([{" and inner[-1:] in ")]}":
        inner = inner[1:-1]
    parts, depth, quote, start, at = list[str](), 0, "", 0, 0
    opening, closing = ("([{<", ")]}>") if types else ("([{", ")]}")
    while at < len(inner):
        char = inner[at]
        if quote:
            if char == "\\":
                at += 1
            elif char == quote:
                quote = ""
        elif char in "\"'`":
            quote = char
        elif inner.startswith(("//", "/*"), at):
            end = inner.find("\n" if inner[at + 1] == "/" else "*/", at)
            at = len(inner) if end < 0 else end
        elif char in opening:
            depth += 1
        elif char in closing and not (char == ">" and inner[at - 1 : at] in "=-"):
            depth -= 1
        elif char == "," and depth == 0:
            parts.append(inner[start:at].strip())
            start = at + 1
        at += 1
    parts.append(inner[start:].strip())
    return [part for part in parts if part]
