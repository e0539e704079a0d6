"""Where an answer's statements come from: what it cites, counts and links must stand in the
material.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

from orchestrator.contracts import Finding, Synthesis
from orchestrator.materials import SynthesisMaterial

CITATION = re.compile(r"\[([a-z0-9][a-z0-9_-]{0,31})\](?!\()")
URL = re.compile(r"https?://[^\s<>()\[\]\"'`]+")
NUMBER = re.compile(r"(?<![\w.])\d(?:[\d,]*\d)?(?:\.\d+)?(?![\w])")
MOST_FLAGS = 20


def flagged(synthesis: Synthesis, material: SynthesisMaterial) -> Synthesis:
    """The synthesis with a flag for each citation, figure and address that nothing supports.

    Single digits are not figures: they number lists and chapters.
    """
    known = [subtask.id for subtask in material.subtasks]
    texts = [material.goal, material.instruction, *map(_whole, material.findings)]
    numbers = {_plain(number) for text in texts for number in NUMBER.findall(text)}
    urls = {url.rstrip(".,;:") for text in texts for url in URL.findall(text)}
    answer = URL.sub(" ", synthesis.answer)
    flags = [
        f"cites [{cited}], and there is no such subtask"
        for cited in _once(CITATION.findall(answer))
        if cited not in known and not cited.isdigit()
    ]
    flags += [
        f"gives the address {url}, which no finding contains"
        for url in _once(each.rstrip(".,;:") for each in URL.findall(synthesis.answer))
        if url not in urls
    ]
    flags += [
        f"gives the number {number}, which no finding contains"
        for number in _once(NUMBER.findall(CITATION.sub(" ", answer)))
        if len(_plain(number)) > 1 and _plain(number) not in numbers
    ]
    return synthesis.model_copy(update={"flags": tuple(flags[:MOST_FLAGS])})


def _whole(finding: Finding) -> str:
    partial = finding.escalation.partial if finding.escalation else ""
    sources = "\n".join(finding.sources)
    return f"{finding.content}\n{partial}\n{finding.reason}\n{sources}\n{finding.digest}"


def _plain(number: str) -> str:
    plain = number.replace(",", "")
    return plain.rstrip("0").rstrip(".") if "." in plain else plain


def _once(texts: Iterable[str]) -> list[str]:
    return list(dict.fromkeys(texts))
