"""Check an answer against its material: what it cites, counts and links must stand there."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Sequence
from decimal import Decimal

from holdfast.activities.asking.checked import count_checked
from holdfast.activities.asking.computed import LEAST_BESIDE, derive
from holdfast.calls.synthesize import SynthesisMaterial
from holdfast.contracts import Checked, Finding, Synthesis
from holdfast.contracts.data import texts as texts_of
from holdfast.state.settling import status_words
from holdfast.text.marks import BRACKETS, NUMBER, URL, strip_stop

CITED = re.compile(r"[a-z0-9][a-z0-9_-]{0,31}")
MOST_FLAGS = 20
SCALES = {"thousand": 1_000, "million": 1_000_000}
WORDED = re.compile(
    rf"(?P<number>{NUMBER.pattern})[ \u00a0-](?P<scale>thousand|million)\b", re.IGNORECASE
)
SENTENCES = re.compile(r"(?<=[.!?])\s+|\n")
COMMAS_AND_POINTS = str.maketrans(",.", ".,")
GROUPED = re.compile(r"-?\d{1,3}(,\d{2,3})*,\d{3}(\.\d*)?")
"""Digits in groups; the last one has three, in India the others two."""


def flag_unsupported(synthesis: Synthesis, material: SynthesisMaterial) -> Synthesis:
    """Return the synthesis with a flag for each citation, figure and address that nothing supports,
    and with these words themselves.

    Single digits are not checked: they number lists and chapters. A figure that two figures of the
    material give is not flagged; a note says how.
    """
    planned = [subtask.id for subtask in material.subtasks]
    said = _stated(synthesis)
    form = json.dumps(material.form.result, ensure_ascii=False)
    texts = [material.goal, material.instruction, form, *material.aside]
    texts += map(_all_text, material.findings)
    numbers = {_plain(number) for text in texts for number in _numbers(text)}
    readings = _readings_in("\n".join(texts))
    urls = _addresses("\n".join(texts))
    answer = _without_worded(URL.sub(" ", said), readings)
    flags = [
        (f"[{cited}]", f"cites [{cited}], {_why_not_citable(cited, material)}")
        for cited in _unique(_find_citations(answer, planned))
        if cited not in material.citable
    ]
    flags += [
        (url, f"gives the address {url}, which no finding contains")
        for url in _unique(map(strip_stop, URL.findall(said)))
        if url not in urls
    ]
    foreign = [
        number
        for number in _unique(NUMBER.findall(_strip_citations(answer, planned)))
        if len(_plain(number)) > 1 and readings.isdisjoint(_readings(number))
    ]
    sentences = [*map(NUMBER.findall, SENTENCES.split(answer))]
    computed = {
        number: derive(number, numbers) or _derive_beside(number, sentences, numbers)
        for number in foreign[:MOST_FLAGS]
    }
    flags += [
        (number, f"gives the number {number}, which no finding contains")
        for number in foreign
        if not computed.get(number)
    ]
    told = flags[:MOST_FLAGS]
    sums = [f"In no finding, and {how}." for how in computed.values() if how]
    return synthesis.model_copy(
        update={
            "doubtful": tuple(word for word, _ in told),
            "flags": tuple(flag for _, flag in told),
            "notes": (*synthesis.notes, *sums),
            "checked": _count_checked(said, material) if material.counted else None,
        }
    )


def _count_checked(said: str, material: SynthesisMaterial) -> Checked | None:
    findings = {
        each.subtask_id: "\n".join((_all_text(each), *texts_of(each.data)))
        for each in material.findings
        if each.subtask_id in material.citable
    }
    return count_checked(said, f"{material.goal}\n{material.instruction}", findings)


def _derive_beside(number: str, sentences: Sequence[Sequence[str]], numbers: set[str]) -> str:
    """Return how figures of a sentence that the material has give a number beside them; empty: they
    do not. `382 by night, 72 more than by day (310)` says itself what it rests on.
    """
    for each in sentences:
        beside = {*map(_plain, each)} & numbers if number in each else set[str]()
        if how := derive(number, beside, LEAST_BESIDE):
            return how
    return ""


def _stated(synthesis: Synthesis) -> str:
    """Return what the answer states. Of data, its texts and numbers, a line each, so that no
    bracket of the data looks like a citation.
    """
    if synthesis.document is None:
        return synthesis.answer
    return "\n".join(texts_of(synthesis.document))


def _find_citations(answer: str, planned: Sequence[str]) -> Iterator[str]:
    """Yield the ids in square brackets: one by itself, or several where one of them is planned."""
    for inside in BRACKETS.findall(answer):
        yield from _ids(inside, planned)


def _ids(inside: str, planned: Sequence[str]) -> list[str]:
    if CITED.fullmatch(inside) and not inside.isdigit():
        return [inside]
    words = [each.lower() for each in re.split(r"[^\w-]+", inside)]
    if not any(each in planned for each in words):
        return []  # prose, or the number of a footnote
    # Beside an id that is planned, what has a digit is meant as one, too.
    return [
        each
        for each in words
        if each in planned
        or (CITED.fullmatch(each) and not each.isdigit() and any(map(str.isdigit, each)))
    ]


def _strip_citations(answer: str, planned: Sequence[str]) -> str:
    return BRACKETS.sub(lambda found: " " if _ids(found[1], planned) else found[0], answer)


def _why_not_citable(cited: str, material: SynthesisMaterial) -> str:
    if all(subtask.id != cited for subtask in material.subtasks):
        return "and there is no such subtask"
    gone = [each.status for each in material.findings if each.subtask_id == cited]
    if not gone or gone[0] == "complete":
        return "whose finding was not selected for this answer"
    return f"which has no finding: it {status_words(gone[0])}"


def _all_text(finding: Finding) -> str:
    partial = finding.escalation.partial if finding.escalation else ""
    sources = "\n".join(finding.sources)
    return f"{finding.content}\n{partial}\n{finding.why}\n{sources}\n{finding.digest}"


def _plain(number: str) -> str:
    """Return a number as Python writes it. A comma that is before no group is one of decimals."""
    decimal = number.translate(COMMAS_AND_POINTS)
    if "," in number and not GROUPED.fullmatch(number) and decimal.count(".") == 1:
        number = decimal
    plain = number.replace(",", "")
    return plain.rstrip("0").rstrip(".") if "." in plain else plain


def _addresses(text: str) -> set[str]:
    return {*map(strip_stop, URL.findall(text))}


def _numbers(text: str) -> Iterator[str]:
    yield from NUMBER.findall(text)
    yield from _worded(text).values()


def _readings_in(text: str) -> set[str]:
    return {read for number in {*_numbers(text)} for read in _readings(number)}


def _readings(number: str) -> set[str]:
    """Return what a number may mean: with a point before decimals, or with a comma."""
    return {_plain(number), _plain(number.translate(COMMAS_AND_POINTS))}


def _worded(text: str) -> dict[str, str]:
    """Return what `412 thousand` and `3 million` say in figures, by their words."""
    return {
        found[0]: f"{Decimal(_plain(found['number'])) * SCALES[found['scale'].lower()]:f}"
        for found in WORDED.finditer(text)
    }


def _without_worded(text: str, readings: set[str]) -> str:
    """Return the text without the worded numbers that the material has."""
    for words, number in _worded(text).items():
        if not readings.isdisjoint(_readings(number)):
            text = text.replace(words, " ")
    return text


def _unique(texts: Iterable[str]) -> list[str]:
    return list(dict.fromkeys(texts))
