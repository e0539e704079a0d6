"""System prompts as files in `prompts/`, beside the roles: whoever writes prompts owns them, and no
column limit tears their sentences.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from holdfast.activities.catalogue.files import text_of
from holdfast.activities.catalogue.tools import CatalogueError
from holdfast.calls import KINDS
from holdfast.calls.prove import TESTER
from holdfast.calls.row import MERGE_RULES, ROW
from holdfast.calls.work import COMPOSED_ROLE, COMPOSED_ROW, REVIEWER_ROLE
from holdfast.contracts.policies import PROMPT_OVERHEAD_TOKENS
from holdfast.deployment.settings import HOME
from holdfast.plans import checks

FOLDER = "prompts"
SHARED = "untrusted"
"""The file that stands below every other: what strangers wrote gives no instructions."""
ABOVE = (COMPOSED_ROLE, COMPOSED_ROW, REVIEWER_ROLE)
"""Files that stand above another, with that note at its end."""
CHECKS = "{checks}"
"""Replaced in a prompt by the kinds of checks, each with its argument."""
PARTS = ("answering", "confidence", "proving")
"""Files that others name in braces, as in {confidence}, so that each rule stands in one of them."""
LONGEST_BYTES = PROMPT_OVERHEAD_TOKENS
"""A longer prompt would not fit what is reserved around a call's material."""
REMEDY = "mend or restore what calls are told"
MOST_NAMED = 12
"""Files named for one reason: a refusal is cut to 500 characters where a run is told of it."""


def system_prompts(home: Path = HOME) -> Mapping[str, str]:
    """Return the system prompt of each kind of call, by the name of its file, with the note on
    untrusted material at its end, unless another stands below it. Raise CatalogueError naming the
    files that cannot be used, and why.
    """
    if not (home / FOLDER).is_dir():
        raise CatalogueError(f"there is no folder {FOLDER}/; {REMEDY}")
    texts: dict[str, str] = {}
    wrong: dict[str, list[str]] = {}
    asked = (kind.prompt for kind in (*KINDS.values(), ROW) if kind.prompt)
    for name in dict.fromkeys((*asked, MERGE_RULES, TESTER, *ABOVE, SHARED, *PARTS)):
        path = home / FOLDER / f"{name}.md"
        try:
            texts[name] = _text(path)
        except CatalogueError as error:
            wrong.setdefault(str(error), []).append(f"{FOLDER}/{path.name}")
    if wrong:
        told = "; ".join(f"{_list(names)}: {why}" for why, names in wrong.items())
        raise CatalogueError(f"{told}; {REMEDY}")
    parts = {f"{{{name}}}": texts.pop(name) for name in PARTS} | {CHECKS: checks.KINDS}
    shared = texts.pop(SHARED)
    filled = {name: _fill(text, parts) for name, text in texts.items()}
    return {n: text if n in ABOVE else f"{text}\n\n{shared}" for n, text in filled.items()}


def _list(names: Sequence[str]) -> str:
    more = len(names) - MOST_NAMED
    return ", ".join(names[:MOST_NAMED]) + (f" and {more} more" if more > 0 else "")


def _fill(text: str, parts: Mapping[str, str]) -> str:
    """Replace the names in braces; a part may name those that stand behind it."""
    for name, part in parts.items():
        text = text.replace(name, part)
    return text


def _text(path: Path) -> str:
    """Return the text of a file. Raise CatalogueError saying why it cannot be used, without its
    name.
    """
    try:
        text = text_of(path, path.name, LONGEST_BYTES).strip()
    except CatalogueError as error:
        raise CatalogueError(str(error).removeprefix(f"{path.name}: ")) from None
    if not text:
        raise CatalogueError("is empty")
    return text
