"""Check an answer so strictly that no critic need read it: what may differ counts as different.

Each line cites, and each figure stands as it is written, with its unit, in what the line cites or
in what was asked. Words that are neither numbers nor units are not read.
"""

from __future__ import annotations

import html
import re
from collections.abc import Iterator, Mapping
from itertools import groupby

from holdfast.contracts import Checked
from holdfast.text.marks import BRACKETS, URL, strip_stop

Run = tuple[str, ...]
"""Figures, units and signs that stand side by side, as `EUR 1.5 million`."""
GROUPED = re.compile(r"(?<![\w.,])[1-9][0-9]{0,2}(?:,[0-9]{3})+(?!\w|,\w)")
UNCLEAR = re.compile(r"\d,(?!\d{3}(?!\d))\d|\b0,\d|\d\.\d{3}(?!\d)")
"""Commas before decimals, or points that may group: a text with them may mean 1.2 by `1,200`."""
ITEM = re.compile(r"(\s*(?:[-*+>#]+\s+)*)(?:([0-9]{1,3})[.)]\s)?")
HEADING = re.compile(r" {0,3}#{1,6}\s")
RULE = re.compile(r"\s*\|[\s|:]*-[\s|:-]*")
"""The line below a table's head."""
MARKUP, OPENING, STOPS = "*_`“”„«»", "(|", ".,;:!?)|"
UNITS = re.compile(
    r"[%‰€$£¥₹]|percent|prozent|dollar|\b(?:pct|euros?|pounds?|cents?|yen|yuan|rupees?|franken"
    r"|francs?|eur|usd|gbp|chf|jpy|cny|inr|cad|aud|sek|nok|dkk|pln|k|m|mn|bn|tn|tsd|mio|mrd)\b"
    r"|hundred|hundert|thousand|tausend|milli(?:on|ard)|billi(?:on|ard)|trillion|dozen|dutzend"
    r"|twice|doubl|doppel|tripl|dreifach|zweimal|dreimal|\b(?:half|halves|halb\w*|hälfte"
    r"|two|three|four|five|six|seven|eight|nine|ten|eleven|twelve"
    r"|\w+teen|(?:twen|thir|for|fif|six|seven|eigh|nine)ty"
    r"|zwei|drei|vier|fünf|sechs|sieben|acht|neun|zehn|elf|zwölf"
    r"|\w+zehn|(?:zwan|vier|fünf|sech|sieb|acht|neun)zig|dreißig)\b",
    re.IGNORECASE,
)
"""Money, shares, scales and numbers in words: without a figure beside them they are not checked."""


def count_checked(said: str, asked: str, findings: Mapping[str, str]) -> Checked | None:
    """Count figures and citations. None: there are none, a line that states something cites
    nothing, or a bracket, figure or address is not surely right.
    """
    said = html.unescape(said)
    clear = not UNCLEAR.search(said)
    in_goal = _support(asked)
    known = {each: _support(text) for each, text in findings.items()}
    lines = said.splitlines()
    items: dict[str, int] = {}
    figures = citations = 0
    for line, below in zip(lines, [*lines[1:], ""], strict=True):
        plain = URL.sub(" ", line)
        cited = [each for inside in BRACKETS.findall(plain) for each in re.split("[ ,;]+", inside)]
        plain = _strip_number(BRACKETS.sub(" ", plain), items)
        head = HEADING.match(line) or ("|" in line and RULE.fullmatch(below))
        bare = not (cited or head) and any(map(str.isalnum, plain))
        if bare or not known.keys() >= {*cited}:
            return None
        support = in_goal.union(*(known[each] for each in cited))
        if not support >= _addresses(line):
            return None
        for run in _runs(plain):
            numbers = sum(map(_is_figure, run))
            if numbers and support.isdisjoint(_readings(run, clear)):
                return None
            if not numbers and any(map(UNITS.search, run)):
                return None
            figures += numbers
        citations += len(cited)
    return Checked(figures=figures, citations=citations) if figures and citations else None


def _strip_number(line: str, items: dict[str, int]) -> str:
    """Return a line without its sign of a list, and without its number if it is one more than the
    last of its level.
    """
    found = ITEM.match(line)
    assert found is not None, "each of its parts may be empty"
    level, number = found.groups()
    if number and int(number) in (1, items.get(level, 0) + 1):
        items[level] = int(number)
        return line[found.end() :]
    return line[len(level) :]


def _support(text: str) -> set[Run]:
    """Return what a text supports: its addresses, and its runs in each reading. Numbers of its
    lists are no figures.
    """
    clear = not UNCLEAR.search(text)
    lines = (ITEM.sub("", line, count=1) for line in text.splitlines())
    runs = {read for line in lines for run in _runs(line) for read in _readings(run, clear)}
    return runs | _addresses(text)


def _readings(run: Run, clear: bool) -> set[Run]:
    """Return a run as it is and, in a text of clear commas, with 1,200 as 1200."""
    plain = tuple(GROUPED.sub(lambda found: found[0].replace(",", ""), each) for each in run)
    return {run, plain} if clear else {run}


def _addresses(text: str) -> set[Run]:
    return {(strip_stop(each),) for each in URL.findall(text)}


def _runs(line: str) -> Iterator[Run]:
    for is_part, run in groupby(_parts(line), key=bool):
        if is_part:
            yield tuple(run)


def _parts(line: str) -> Iterator[str]:
    """Yield each figure, unit and sign; empty for other words and where a comma or stop parts."""
    for word in line.split():
        bare = word.strip(MARKUP)
        part = bare.lstrip(OPENING).rstrip(STOPS).strip(MARKUP)
        if bare.startswith(tuple(OPENING)):
            yield ""
        counts = _is_figure(part) or UNITS.search(part) or not any(map(str.isalnum, part))
        yield part if counts else ""
        if bare.endswith(tuple(STOPS)):
            yield ""


def _is_figure(word: str) -> bool:
    return any(map(str.isnumeric, word))
