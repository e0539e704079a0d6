"""Print the ten largest modules, functions and folders of what ships: for a reader, no gate."""

from __future__ import annotations

import ast
import sys
from collections import Counter
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
NOT_SHIPPED = {"tests", "bench", "simulator", "examples"}
TOP = 10


def shipped() -> list[Path]:
    return [
        path
        for path in sorted(ROOT.rglob("*.py"))
        if not path.relative_to(ROOT).parts[0].startswith(".")
        and path.relative_to(ROOT).parts[0] not in NOT_SHIPPED
    ]


def largest(what: str, sizes: Counter[str]) -> list[str]:
    return [f"{what}:", *(f"  {size:>5}  {name}" for name, size in sizes.most_common(TOP))]


def main() -> None:
    modules: Counter[str] = Counter()
    functions: Counter[str] = Counter()
    folders: Counter[str] = Counter()
    for path in shipped():
        name = path.relative_to(ROOT).as_posix()
        source = path.read_text("utf-8")
        modules[name] = len(source.splitlines())
        folders[path.parent.relative_to(ROOT).as_posix()] += 1
        for node in ast.walk(ast.parse(source)):
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
                functions[f"{name}: {node.name}"] = (
                    (node.end_lineno or node.lineno) - node.lineno + 1
                )
    lines = [
        f"{len(modules)} modules, {sum(modules.values()):,} lines",
        *largest("modules, lines", modules),
        *largest("functions, lines", functions),
        *largest("folders, modules", folders),
    ]
    sys.stdout.write("\n".join(lines) + "\n")


if __name__ == "__main__":
    main()
