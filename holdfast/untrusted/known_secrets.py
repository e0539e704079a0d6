"""Secrets whose values are known, taken out of any text: the key of the endpoint, what its address
carries, what was found in a repository.

A value is found in any case, spread by spaces or marks, cut at its ends, and as JSON, URLs, HTML,
hexadecimal or Base64 write it. What is short, or a word, is left alone: blotting it out would
mangle every text and hide nothing.
"""

from __future__ import annotations

import base64
import re
from collections.abc import Iterable, Iterator
from typing import Any
from urllib.parse import quote

REDACTED = "[redacted]"
GRAM = 12
"""Letters and digits in a row by which a value is recognised."""
HALF = GRAM // 2
SHORTEST = 8
"""Letters and digits of the shortest value that is withheld wherever it stands."""
WORD = 12
"""Letters in a row from which on a value without digits is not a word any more."""
DEEPEST = 50
"""Levels of a document that is looked through; what is nested deeper is left out."""
_IN_CODE = r"\\u([0-9a-fA-F]{4})|%([0-9a-fA-F]{2})|&#(?:x([0-9a-fA-F]{1,6})|([0-9]{1,7}));"
_CODED = re.compile(_IN_CODE)
"""What stands for a character in JSON, in a URL or in HTML."""
_SIGN = re.compile(rf"{_IN_CODE}|([^\W_])")
_QUOTED = re.compile(r"([\"'`])([^\"'`\n]{1,200})\1")
_REST = re.compile(r"[\W_]+")
_DIGIT, _LETTER = re.compile(r"\d"), re.compile(r"[A-Za-z]")


class KnownSecrets:
    """Secret values; `blot` removes them from a text in time linear in its length."""

    def __init__(self, values: Iterable[str] = (), *, parts: bool = True) -> None:
        """Take the values.

        With `parts`, a part of a value of at least GRAM letters and digits is removed, too.
        Without, only what begins as a value does, and a word or short value only in quotes: right
        for the many values of a repository, some of which are no secrets.
        """
        self._quoted: set[str] = set()
        self._grams: dict[str, list[str]] = {}
        self._halves: set[str] = set()
        self._short: set[str] = set()
        for value in dict.fromkeys(values):
            for form in _forms(value) if parts else (value,):
                if not self._add(_plain(form), parts) and not parts:
                    self._quoted.add(value)
        lengths = {len(each) for each in self._short}
        self._lengths = sorted(lengths, reverse=True)

    def __bool__(self) -> bool:
        return bool(self._grams or self._short or self._quoted)

    def blot(self, text: str) -> str:
        """Return the text with `[redacted]` in place of every value."""
        if self._quoted:
            text = _QUOTED.sub(self._unquoted, text)
        if not self or not self._holds_any(text):
            return text
        letters, places = _signs(text)
        result, end = [], 0
        for first, last in _merge(self._found(letters, text, places)):
            start, stop = places[first][0], places[last][1]
            result += [text[end:start], REDACTED]
            end = stop
        return "".join([*result, text[end:]])

    def blot_all(self, value: Any, depth: int = 0) -> Any:
        """Return a JSON document with every text in it blotted, field names included."""
        if not depth and not self._quoted and self._are_in_none_of(value):
            return value
        if isinstance(value, str):
            return self.blot(value)
        if depth > DEEPEST:
            return None
        if isinstance(value, dict):
            return {self.blot(str(k)): self.blot_all(v, depth + 1) for k, v in value.items()}
        if isinstance(value, list | tuple):
            return type(value)(self.blot_all(each, depth + 1) for each in value)
        return value

    def _are_in_none_of(self, value: Any) -> bool:
        """True if one look at all texts together finds nothing. Most documents are log lines, for
        which looking at each text would be most of their cost.
        """
        texts: list[str] = []
        return _gather(value, texts) and not (self and self._holds_any(" ".join(texts)))

    def _unquoted(self, match: re.Match[str]) -> str:
        return f"{match[1]}{REDACTED}{match[1]}" if match[2] in self._quoted else match[0]

    def _add(self, plain: str, parts: bool) -> bool:
        """Record a value to be removed wherever it stands; False for a short one or a word."""
        if len(plain) < SHORTEST or _is_word(plain):
            return False
        if len(plain) < GRAM:
            self._short.add(plain)
            return True
        starts = range(len(plain) - GRAM + 1) if parts else (0,)
        for start in starts:
            gram = plain[start : start + GRAM]
            self._grams.setdefault(gram, []).append(plain[start:])
            self._halves.update(gram[at : at + HALF] for at in range(GRAM - HALF + 1))
        return True

    def _holds_any(self, text: str) -> bool:
        """True if a text is worth a closer look. Fast: most texts hold nothing."""
        plain = _REST.sub("", _CODED.sub(lambda code: _letter(code), text)).lower()
        grams, halves = self._grams, self._halves
        # Whatever has a gram in it has one of its halves at a multiple of their length: a look at
        # each of those shows that most texts have none.
        if any(plain[start : start + HALF] in halves for start in range(0, len(plain), HALF)):
            starts = range(len(plain) - GRAM + 1)
            if any(plain[start : start + GRAM] in grams for start in starts):
                return True
        return any(each in plain for each in self._short)

    def _found(
        self, letters: str, text: str, places: list[tuple[int, int]]
    ) -> Iterator[tuple[int, int]]:
        """Yield the first and last position of each value in the text."""
        start, end = 0, len(letters)
        while start < end:
            length = 0
            for value in self._grams.get(letters[start : start + GRAM], ()):
                length = max(length, _common(value, letters, start))
            for size in self._lengths:
                # Near the end a slice is shorter than that, and can be another value.
                if length or size > end - start or letters[start : start + size] not in self._short:
                    continue
                if _stands_alone(text, places[start][0], places[start + size - 1][1]):
                    length = size
            if length:
                yield start, start + length - 1
            start += max(length, 1)


def _gather(value: Any, texts: list[str], depth: int = 0) -> bool:
    """Gather the texts of a document; False if it is nested too deeply or a field name is no
    text.
    """
    if isinstance(value, str):
        texts.append(value)
    elif isinstance(value, dict):
        if not all(isinstance(name, str) for name in value):
            return False
        texts.extend(value)
        # Most values are texts, which need no call of their own.
        texts.extend(each for each in value.values() if isinstance(each, str))
        inner = [each for each in value.values() if isinstance(each, dict | list | tuple)]
        return depth < DEEPEST and all(_gather(each, texts, depth + 1) for each in inner)
    elif isinstance(value, list | tuple):
        return depth < DEEPEST and all(_gather(each, texts, depth + 1) for each in value)
    return True


def _forms(value: str) -> Iterator[str]:
    """Yield the value and its usual encodings."""
    raw = value.encode("utf-8", "surrogatepass")
    yield value
    yield value[::-1]
    yield quote(value, safe="")
    yield raw.hex()
    for shift in range(3):
        # Behind one or two other bytes the letters of Base64 are others; those at the ends depend
        # on the neighbours.
        encoded = base64.b64encode(b"\0" * shift + raw).decode().rstrip("=")
        inner = encoded[-(-shift * 8 // 6) : len(encoded) - 1]
        yield inner
        yield inner.replace("+", "-").replace("/", "_")


def _signs(text: str) -> tuple[str, list[tuple[int, int]]]:
    """Return the letters and digits of a text in lower case, and the position of each."""
    letters, places = [], []
    for match in _SIGN.finditer(text):
        sign = match[5] or _letter(match)
        # Of one sign one letter is kept, so that places and letters stay in step.
        if sign.isalnum():
            letters.append((sign.lower() or sign)[0])
            places.append(match.span())
    return "".join(letters), places


def _letter(code: re.Match[str]) -> str:
    number = int(code[4]) if code[4] else int(code[1] or code[2] or code[3], 16)
    return chr(number % 0x110000)


def _plain(value: str) -> str:
    return "".join((each.lower() or each)[0] for each in value if each.isalnum())


def _is_word(plain: str) -> bool:
    return len(plain) < WORD and not (_DIGIT.search(plain) and _LETTER.search(plain))


def _common(value: str, letters: str, start: int) -> int:
    """Return how many characters of a value match at a position, at least GRAM of them."""
    length = GRAM
    most = min(len(value), len(letters) - start)
    while length < most and value[length] == letters[start + length]:
        length += 1
    return length


def _stands_alone(text: str, start: int, end: int) -> bool:
    before, after = text[start - 1 : start], text[end : end + 1]
    return not (before.isalnum() or after.isalnum())


def _merge(found: Iterable[tuple[int, int]]) -> Iterator[tuple[int, int]]:
    """Yield adjacent ranges as one."""
    last: tuple[int, int] | None = None
    for first, end in found:
        if last is not None and first == last[1] + 1:
            last = (last[0], end)
            continue
        if last is not None:
            yield last
        last = (first, end)
    if last is not None:
        yield last
