"""Find the files in which a repository writes down its rules for whoever changes it: what tools for
agents read, what people are told, and what either of them names.
"""

from __future__ import annotations

import posixpath
import re
from collections.abc import Callable, Iterator

from holdfast.activities.repositories.manifest import Manifest

MOST_FILES = 20
MOST_NAMED = 40
"""Links of one file that are followed."""
_NAMES = re.compile(
    r"(?i)(?:^|/)(?:(?:CLAUDE|CLAUDE\.local|AGENTS?|GEMINI)\.md"
    r"|(?:CONTRIBUTING|CONVENTIONS|HACKING|DEVELOPMENT|MAINTAINING|(?:[a-z]+[-_])?(?:coding|code|style)"
    r"[-_]?(?:style|standards?|guide|guidelines|conventions)?)\.(?:md|mdx|rst|txt|adoc)"
    r"|CONTRIBUTING|HACKING|\.claude/rules/[^/]+\.md"
    r"|\.(?:cursor|windsurf|cline)rules|\.cursor/rules/[^/]+\.mdc|\.clinerules/[^/]+\.md"
    r"|\.github/copilot-instructions\.md|\.github/instructions/[^/]+\.instructions\.md"
    r"|(?:\.github/)?pull_request_template\.md)$"
)
_ABOUT_RULES = re.compile(
    r"(?i)(?:contribut|convention|guideline|style|standard|coding|hacking|develop|testing|rules|agents)"
)
"""Matches the paths of documents that a rule file names and that are rules themselves."""
_LINKS = re.compile(
    r"\]\(<?([^()\s>#]{1,200}\.(?:md|mdx|rst|txt|adoc))\b"
    r"|`([\w./-]{1,200}\.(?:md|mdx|rst|txt|adoc))`"
    r"|(?:^|\s)@([\w./-]{1,200}\.md)\b"
)
"""Matches links of Markdown, names in backticks, and the imports of CLAUDE.md."""


def find_rule_files(manifest: Manifest, read: Callable[[str], str]) -> tuple[str, ...]:
    """Return the paths of a snapshot's rule files, in scope or around it, the nearest to what is in
    scope first, and behind them the documents that they name; `read` returns the text of a path.
    """
    paths = {file.path for file in (*manifest.files, *manifest.around)}
    near = _folders_in_scope(manifest)
    found = [path for path in paths if _NAMES.search(path) and _applies(path, near)]
    found.sort(key=lambda path: (-_depth(path), path))
    found = found[:MOST_FILES]
    named = (name for path in found for name in _named(path, read(path)) if name in paths)
    return tuple(dict.fromkeys([*found, *named]))[:MOST_FILES]


def _folders_in_scope(manifest: Manifest) -> set[str]:
    """Return every folder above a file in scope; the top is empty."""
    folders = {""}
    for file in manifest.files:
        folder = posixpath.dirname(file.path)
        while folder:
            folders.add(folder)
            folder = posixpath.dirname(folder)
    return folders


def _home(path: str) -> str:
    """Return the folder that a rule file speaks for; empty: all."""
    folder = posixpath.dirname(path)
    parts = folder.split("/") if folder else []
    while parts and (parts[-1] in ("rules", "instructions", "docs", "doc") or parts[-1][0] == "."):
        parts.pop()
    return "/".join(parts)


def _applies(path: str, folders: set[str]) -> bool:
    return _home(path) in folders


def _depth(path: str) -> int:
    home = _home(path)
    return home.count("/") + 1 if home else 0


def _named(path: str, text: str) -> Iterator[str]:
    """Yield the paths of documents about rules that a rule file names, by its folder or the top."""
    links = [next(filter(None, match.groups())) for match in _LINKS.finditer(text)]
    for link in links[:MOST_NAMED]:
        if _ABOUT_RULES.search(link):
            yield posixpath.normpath(posixpath.join(posixpath.dirname(path), link))
            yield posixpath.normpath(link.lstrip("/"))
