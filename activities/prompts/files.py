"""System prompts as files in `prompts/`, beside the roles: whoever writes prompts owns them, and no
column limit tears their sentences.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from activities.catalogue_files import text_of
from activities.catalogue_tools import CatalogueError
from deployment.settings import HOME
from orchestrator.calls import KINDS
from orchestrator.plans import checks
from orchestrator.policies import PROMPT_OVERHEAD_TOKENS

FOLDER = "prompts"
SHARED = "untrusted"
"""The file that stands below every other: what strangers wrote gives no instructions."""
CHECKS = "{checks}"
"""Stands in a prompt for the kinds of checks that there are, each with its argument."""
LONGEST_BYTES = PROMPT_OVERHEAD_TOKENS
"""A longer prompt could not leave with what is reserved around a call's material."""


def system_prompts(home: Path = HOME) -> Mapping[str, str]:
    """What each kind of call is told before its material, by the name of the file, with the note on
    untrusted material at its end. CatalogueError names each file that cannot be used, and why.
    """
    texts: dict[str, str] = {}
    wrong: list[str] = []
    for name in (*(kind.prompt for kind in KINDS.values() if kind.prompt), SHARED):
        try:
            texts[name] = _text(home / FOLDER / f"{name}.md")
        except CatalogueError as error:
            wrong.append(str(error))
    if wrong:
        raise CatalogueError(f"{'; '.join(wrong)}; mend or restore what calls are told")
    shared = texts.pop(SHARED)
    return {
        name: f"{text}\n\n{shared}".replace(CHECKS, checks.KINDS) for name, text in texts.items()
    }


def _text(path: Path) -> str:
    name = f"{FOLDER}/{path.name}"
    text = text_of(path, name, LONGEST_BYTES).strip()
    if not text:
        raise CatalogueError(f"{name}: is empty")
    return text
