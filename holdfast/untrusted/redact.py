"""One redactor over every message, excerpt and line of code that leaves its place."""

from __future__ import annotations

import functools
import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Any

import re2

from holdfast.untrusted.known_secrets import REDACTED, KnownSecrets

LONGEST_LINE = 20_000
"""Characters; longer lines are cut for the detectors."""
MARGIN = 1_600
"""Characters behind what is kept that are looked at, too: a secret that is cut is still one."""
LONG = 64 * 1024
"""Characters above which it pays to look for all patterns together first."""
TOGETHER_BYTES = 64 * 1024 * 1024
"""The most that this look may take: with less it is slow for texts that are all letters and digits.
"""
SHORTEST_VALUE = 4
"""Letters of a value that is taken out of the line that it was seen in."""
NAME_LETTERS = 1_000
"""At most this many letters of a file's name are shown."""
QUOTED = re.compile(r"((?<!`)`++|[\"'])(?=\S)([^\n]{4,}?)\1")

_KEY_BLOCK = re.compile(
    r"-----BEGIN [A-Z0-9 ]{0,40}PRIVATE KEY[A-Z ]{0,10}-----"
    # Nothing of it is given back: to remember each letter would take a hundred times their room.
    r"(?:[^-]++|-(?!----END))*+(?:-----END [A-Z0-9 ]{0,40}PRIVATE KEY[A-Z ]{0,10}-----)?"
)
_BEFORE_A_VALUE = re.compile(r"\s*[\w.\- ]{1,60}[\"'\]]?\s*(?::=|=>|==|=|:)\s*")
"""The name at the beginning of a line, and what assigns to it or compares with it."""
_SOUNDS = r"\b[\w.-]{0,40}?(?:pass|pwd|secret|token|credential|api_?key|access_?key|private_?key)"
_NAMED = re.compile(
    rf"(?i)({_SOUNDS}\w{{0,40}}"
    r"[\"'\]]{0,2}\s{0,4}(?::=|=>|==|!=|=|:)\s{0,4}[rbfu]{0,2})([\"'`])(?:(?!\2).){1,500}\2"
)
"""A text behind a name that sounds like a secret: in a line of code even a short one is none's."""
_SET = re.compile(rf"(?i)({_SOUNDS}[\w.-]{{0,40}}[\"'\]]{{0,2}}\s{{0,4}}(?::=|=>|=|:)\s{{0,4}}).*")
"""The same with any value, in files of settings: there a text needs no quotes."""
_PROGRAM = re.compile(
    r"(?i)\.(?:pyi?|[cm]?[jt]sx?|vue|svelte|go|java|kts?|scala|rs|rb|php|c|h|cc|cpp|cxx|hpp|cs|swift|m|"
    r"lua|p[lm]|r|jl|exs?|erl|hs|ml|dart|sql)\Z"
)
"""Files in which a value without quotes is a name, and no text."""
_OPTIONS = re2.Options()
_OPTIONS.log_errors = False


def linear(pattern: str, flags: int = 0) -> Any:
    """Compile a pattern whose time is linear in the length of a text; the few of the library that
    look ahead are bounded and stay as they are.
    """
    text = f"(?i){pattern}" if flags & re.IGNORECASE else pattern
    try:
        return re2.compile(text, _OPTIONS)
    except re2.error:
        return re.compile(text)


_OWN = (
    # Anthropic and OpenAI keys, and everybody who copied their shape.
    linear(r"\b(sk-[A-Za-z0-9_-]{16,})"),
    linear(r"(?i)\bbearer\s{1,3}([A-Za-z0-9._~+/=-]{16,})"),
    # A signed web token with its signature, which is what makes it a credential.
    linear(r"\b(eyJ[A-Za-z0-9_-]{8,}\.[A-Za-z0-9_-]{8,}(?:\.[A-Za-z0-9_-]*)?)"),
    linear(r"\b(AIza[A-Za-z0-9_-]{30,})"),
    linear(
        r"(?i)(?:password|passwd|passphrase|secret|token|api_?key|access_?key|private_?key)"
        r"[\w.-]{0,40}[\"']?\s{0,4}(?::=|=>|==|[:=])\s{0,4}[rbfu]{0,2}[\"']([^\"'\n]{4,})[\"']"
    ),
    # Without quotes, as in prose and settings, what has digits at two places is no name of code.
    linear(
        r"(?i)(?:password|passwd|passphrase|secret|token|api_?key|access_?key)[\w.-]{0,40}"
        r"\s{0,4}[:=]\s{0,4}([a-z]{1,30}[0-9]{1,10}[a-z_!@#$%^&*+~-]{1,30}[0-9]{1,10}"
        r"[\w!@#$%^&*+~-]{0,60})(?:[\s,;]|$)"
    ),
    # What bandit quotes when it sees a password.
    linear(r"(?i)password: '([^'\n]+)'"),
)


@functools.cache
def _patterns() -> tuple[Any, ...]:
    # Seventy patterns, which most commands do not need.
    from holdfast.untrusted.secret_shapes import SHAPES

    return tuple(linear(shape.pattern, shape.flags) for shape in SHAPES)


@functools.cache
def _together() -> tuple[Any, ...]:
    """Return all patterns in one, which is much faster where nothing matches, and those that it
    does not take.
    """
    every = (*_OWN, *_patterns())
    options = re2.Options()
    options.log_errors, options.never_capture, options.max_mem = False, True, TOGETHER_BYTES
    ours = "|".join(f"(?:{each.pattern})" for each in every if not isinstance(each, re.Pattern))
    others = (each for each in every if isinstance(each, re.Pattern))
    return (re2.compile(ours, options), *others)


def looks_secret(text: str) -> bool:
    """True if anything in a text has the shape of a secret; of keys of several lines only some."""
    return any(pattern.search(text) for pattern in _together())


def redact(text: str) -> str:
    """Return the text with everything that looks like a secret replaced by `[redacted]`, line ends
    and line count unchanged.
    """
    # RE2 and the history take Unicode alone; a tool can quote half a character.
    text = text.encode("utf-8", "backslashreplace").decode()
    lines = [
        line[start : start + LONGEST_LINE]
        for line in without_keys(text).splitlines(keepends=True)
        for start in range(0, len(line), LONGEST_LINE)
    ]
    # Most texts hold none, and a long one is looked through at once much faster than by lines.
    whole = "\n".join(lines)
    if len(whole) > LONG and not looks_secret(whole):
        return "".join(lines)
    own = [pattern for pattern in _OWN if pattern.search(whole)]
    shapes = [pattern for pattern in _patterns() if pattern.search(whole)]
    if not own and not shapes:
        return "".join(lines)
    return "".join(_redact_line(line, own, shapes) for line in lines)


def without_keys(text: str) -> str:
    """Return the text without private keys of several lines. Do it before cutting out a part."""
    return _KEY_BLOCK.sub(lambda block: REDACTED + "\n" * block[0].count("\n"), text)


def _redact_line(line: str, own: Iterable[Any], shapes: Iterable[Any]) -> str:
    for pattern in own:
        line = pattern.sub(lambda match: match[0].replace(match[1], REDACTED), line)
    # The whole match goes, as the groups of these patterns do not always hold the whole secret.
    for pattern in shapes:
        line = pattern.sub(REDACTED, line)
    return line


class Redactor:
    """Removes from what a lens says whatever looks like a secret, and the values that were found as
    secrets anywhere in the same material.
    """

    def __init__(
        self,
        values: Iterable[str] = (),
        *,
        whole: bool = True,
        unread: Iterable[str] = (),
        lines: Mapping[str, Collection[int]] | None = None,
    ) -> None:
        """Take the values.

        If not `whole`, these are not all values and `unread` are files that were not searched: then
        nothing is quoted. `lines` are, by file, those in which a secret was seen.
        """
        self._values = sorted({each for each in values if each}, key=len, reverse=True)
        self._lines = lines or {}
        self._known = KnownSecrets(self._values, parts=False)
        self._whole = whole
        self._unread = frozenset(unread)

    def blot(self, text: str) -> str:
        """Return a text without the values that were found, whatever else it may hold."""
        return self._known.blot(text)

    def message(self, text: str, letters: int, file: str) -> str:
        """Return the beginning of a text about a file. It is cut first, so that its length costs
        nothing.
        """
        said = redact(self._known.blot(text[: letters + MARGIN]))
        if not self._whole or file in self._unread:
            said = QUOTED.sub(lambda quoted: f"{quoted[1]}…{quoted[1]}", said)
        return said[:letters]

    def quotes(self, file: str) -> bool:
        """True if code of a file may be shown: only where all its secrets are known."""
        return self._whole and file not in self._unread

    def line(self, text: str, file: str, number: int, *, withheld: bool = False) -> str:
        """Return a line of code; one in which a secret was seen, or that is `withheld`, without any
        value.
        """
        (shown,) = self.code([text], file, [number])
        return self._withhold(text, shown) if withheld else shown

    def code(self, lines: Sequence[str], file: str, numbers: Sequence[int]) -> list[str]:
        """Return lines of code, each as `line` does: many at once are done much faster."""
        named = [
            _NAMED.sub(
                rf"\1\2{REDACTED}\2",
                line if _PROGRAM.search(file) else _SET.sub(rf"\1{REDACTED}", line),
            )
            for line in lines
        ]
        shown = redact(self._known.blot("\n".join(named))).split("\n")
        seen = self._lines.get(file, ())
        return [
            self._withhold(line, each) if number in seen else each
            for line, each, number in zip(lines, shown, numbers, strict=True)
        ]

    def _withhold(self, line: str, shown: str) -> str:
        """Return a line in which a secret was seen without any value."""
        shown = self._without_values(shown)
        if shown != line:
            return shown
        # It is none of the shapes, nor as it was seen: then only its name is left.
        named = _BEFORE_A_VALUE.match(line)
        return f"{named[0] if named else ''}{REDACTED}"

    def _without_values(self, text: str) -> str:
        """Return a line without the values of secrets, however short they are."""
        for value in self._values:
            if len(value) >= SHORTEST_VALUE and value in text and value not in REDACTED:
                text = text.replace(value, REDACTED)
        return text

    def path(self, path: str) -> str:
        """Return a file's name, redacted folder by folder: no secret spans a slash."""
        parts = path[:NAME_LETTERS].split("/")
        return "/".join(redact(self._known.blot(part)) for part in parts)
