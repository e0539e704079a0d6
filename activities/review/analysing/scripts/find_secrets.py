"""Find secrets in files, by the detectors of detect-secrets: print where they are, and apart from
that their values, for a redactor.

Reads from stdin, separated by NUL: a salt, the file of patterns that the library does not have,
then absolute paths. Prints JSON. Runs isolated, as a program of its own, so it imports nothing of
this project. Nothing is verified over the network.
"""

import ast
import base64
import functools
import hashlib
import json
import math
import re
import sys
import types
from collections import Counter
from collections.abc import Iterator
from typing import Any, TypedDict

# Nothing is verified, so the library needs no client of the web: four fifths of its loading time.
WEB: Any = types.ModuleType("requests")
WEB.Response = object
WEB.exceptions = types.SimpleNamespace(RequestException=OSError)
sys.modules["requests"] = WEB

import re2
import yaml
from detect_secrets.core.plugins.util import get_mapping_from_secret_type_to_class
from detect_secrets.core.scan import _is_filtered_out, _scan_line
from detect_secrets.filters.allowlist import is_line_allowlisted
from detect_secrets.filters.heuristic import is_lock_file
from detect_secrets.plugins.base import RegexBasedDetector
from detect_secrets.plugins.high_entropy_strings import HighEntropyStringsPlugin
from detect_secrets.plugins.keyword import DENYLIST, KeywordDetector
from detect_secrets.settings import get_plugins, transient_settings
from detect_secrets.util.code_snippet import get_code_snippet

# Public addresses are not secrets; the others guess by a name of a variable, slowly, and what they
# find the keyword detector finds too. A header alone is no private key: those are found here.
LEFT_OUT = {
    "IPPublicDetector", "IbmCloudIamDetector", "IbmCosHmacDetector", "SoftlayerDetector",
    "CloudantDetector", "PrivateKeyDetector",
}  # fmt: skip
HEURISTICS = (
    "is_sequential_string", "is_potential_uuid", "is_likely_id_string", "is_templated_secret",
    "is_prefixed_with_dollar_sign", "is_indirect_reference", "is_not_alphanumeric_string",
)  # fmt: skip
STANDS_FOR = re.compile(r"(?i)example|placeholder|dummy|your|(.)\1{4}|abcdefgh|12345678")
"""Matches placeholders that somebody writes where a secret belongs."""
FILLED_IN = re.compile(r"([A-Za-z0-9])\1{7}")
"""The same in what the library finds."""
PUBLIC = re.compile(r"devstoreaccount1")
"""Matches lines with credentials that their maker has published, as of the emulator of Azurite."""
Kinds = list[tuple[str, Any]]
Secret = tuple[int, str, str, int, int]
"""Line, kind, value, column (0: not known), and last line."""
SHORTEST = 8
"""Characters of a value that stands for itself."""
FEWEST_LETTERS = 10
"""Different characters of a value: fewer are not random text."""
# Without one of its words, the many patterns of the keyword detector cannot match.
KEYWORD = re.compile("|".join(DENYLIST), re.IGNORECASE)
# Longer lines are data or minified; the detectors' patterns are not all linear.
LONGEST_LINE = 5_000
OVERLAP = 500
"""Characters of a piece of a longer line that the next one has, too: a token is not cut in two."""


KEY_BEGINS = re.compile(
    r"-{4,5} ?BEGIN (?:[A-Z0-9]{2,10} ){0,3}PRIVATE KEY(?: BLOCK)? ?-{4,5}"
    r"|PuTTY-User-Key-File-[23]:[^\n\\]{0,40}"
)
KEY_FIELD = re.compile(
    r"\W{0,20}(?:Proc-Type|DEK-Info|Version|Comment|Hash|Charset|Subject|X-[\w-]{1,40}|Encryption"
    r"|Public-Lines|(Private-Lines)|Private-MAC|Key-Derivation|Argon2-[A-Za-z-]{1,20})\s*:"
)
ENCRYPTED = re.compile(r"ENCRYPTED|Encryption: aes|openssh-key-v1(?!.{4}\x04none)", re.DOTALL)
ESCAPED_END = re.compile(r"(?:\\+[rn])+")
BETWEEN = re.compile(r"[\s\"'`\\,;|#*()]+")
BASE64 = re.compile(r"=?[A-Za-z0-9+/]+={0,2}")
LEFT_AWAY = ("...", "…")
LONGEST_KEY = 20_000
"""Characters behind a header that are looked at."""
KEY_LINE = 40
"""Characters that at least one line of a key has: the words behind a quoted header are shorter."""
FEWEST_OF_A_KEY = 16
"""Different characters of such a line."""
PIECE = 4
"""Characters of Base64 that belong together; what is shorter is a sign of the language around."""


KEYWORD_KIND = "Secret Keyword"
# What people write where a secret will stand, or beside one.
PLACEHOLDER = re.compile(
    r"example|sample|dummy|fake|test|change[-_]?me|placeholder|your|xxx|secret|passw|token|default"
    r"|foobar|redacted|admin|user|1234|abc|[{<$%]",
    re.IGNORECASE,
)
PROSE = re.compile(r"\.(?:md|rst|txt|html?|ipynb|baseline|lock)\Z")
COMMENT = re.compile(r"\s*(?:#|//|\*|>>>|--|<!--|;)")
OF_C = re.compile(
    r"\.(?:[cm]?[jt]sx?|vue|svelte|c|h|cc|cpp|hpp|cs|java|kt|scala|go|rs|swift|dart|php|groovy)\Z"
)
"""Files in which a comment begins as in C; `#` and `*` may begin code there."""
BLOCK = re.compile(r"/\*|\*/")
LIKELY_LETTERS = range(8, 201)
LIKELY_BITS = 2.8
"""Entropy per character."""

OF_A_KIND = 200
"""Secrets of one kind that are named in one file."""
MOST_VALUES = 20_000
"""Most values that the redactor can know; above, it is told so."""
OPTIONS = re2.Options()
OPTIONS.log_errors = False


class Printed(TypedDict):
    items: list[dict[str, Any]]
    errors: list[str]
    not_quotable: list[str]
    """Files with a line that is too long for all detectors."""
    read: int
    beyond: list[tuple[str, str, int]]
    values: list[str]
    whole: bool


def main() -> None:
    """Print the secrets and their values as JSON, in the form of `Printed`."""
    salt, shapes, *paths = sys.stdin.buffer.read().decode("utf-8", "surrogateescape").split("\0")
    kinds: list[type] = list(get_mapping_from_secret_type_to_class().values())
    plugins = [{"name": kind.__name__} for kind in kinds if kind.__name__ not in LEFT_OUT]
    filters = [{"path": f"detect_secrets.filters.heuristic.{name}"} for name in HEURISTICS]
    printed = Printed(
        items=[], errors=[], not_quotable=[], read=0, beyond=[], values=[], whole=True
    )
    with transient_settings({"plugins_used": plugins, "filters_used": filters}):
        make_linear()
        values: dict[str, None] = {}
        own = own_kinds(shapes)
        for path in paths:
            if path:
                look_at(path, salt.encode(), own, printed, values)
    printed["values"] = list(values)[:MOST_VALUES]
    printed["whole"] = len(values) <= MOST_VALUES
    json.dump(printed, sys.stdout)


def look_at(path: str, salt: bytes, own: Kinds, printed: Printed, values: dict[str, None]) -> None:
    """Add the secrets of one file to what is printed."""
    with open(path, encoding="utf-8", errors="replace") as file:
        # Split as every other tool counts lines, not at form feeds and the like.
        text = file.read()
    lines = text.split("\n")
    keys = list(find_keys(text, values))
    printed["read"] += 1
    if any(len(line) > LONGEST_LINE for line in lines):
        printed["not_quotable"].append(path)
    shapes = set(find_in_long_lines(lines, own))
    lines = [line if len(line) <= LONGEST_LINE else "" for line in lines]
    seen: Counter[str] = Counter()
    found = {*find_secrets(lines, path, own), *shapes, *keys}
    for number, kind, value, column, last in sorted(found):
        values[value] = None
        seen[kind] += 1
        if seen[kind] > OF_A_KIND:
            continue
        digest = hashlib.blake2b(value.encode(), key=salt, digest_size=4).hexdigest()
        snippet = get_code_snippet(lines, number)
        allowed = is_line_allowlisted(filename=path, line=lines[number - 1], context=snippet)
        is_likely = kind == KEYWORD_KIND and looks_random(value, lines[number - 1], path)
        entry = {
            "file": path,
            "line": number,
            "last_line": last,
            "column": column,
            "rule": kind.lower().replace(" ", "-"),
            "scale": f"{kind}, likely" if is_likely else kind,
            "message": f"{kind} in the code (value marked {digest})",
            "suppressed": allowed,
            "in_comment": is_in_comment(text, number, path),
        }
        printed["items"].append(entry)
    printed["beyond"] += [
        (path, kind, count - OF_A_KIND) for kind, count in seen.items() if count > OF_A_KIND
    ]


def is_in_comment(text: str, number: int, path: str) -> bool:
    """True if a line is a comment, of a block of comment, or of a docstring of Python. Where
    something else stands before it in the line it is not told.
    """
    lines = text.split("\n", number)[:number]
    if OF_C.search(path):
        if re.match(r"\s*(?://|/\*|\*(?!\w))", lines[-1]):
            return True
        opened = next((line for line in reversed(lines) if BLOCK.search(line)), "")
        return BLOCK.findall(opened)[-1:] == ["/*"] and opened.lstrip().startswith("/*")
    if re.match(r"\s*(?:#|//|--(?!-)|<!--|;|>>>)", lines[-1]):
        return True
    return path.endswith(".py") and number in docstring_lines(text)


@functools.lru_cache(maxsize=1)
def docstring_lines(text: str) -> frozenset[int]:
    """Return the lines of the docstrings of a module; none if it is not Python of today."""
    try:
        tree = ast.parse(text)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return frozenset()
    documented = (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)
    firsts = (
        each.body[0]
        for each in ast.walk(tree)
        if isinstance(each, documented) and ast.get_docstring(each, clean=False) is not None
    )
    return frozenset(
        line for each in firsts for line in range(each.lineno, (each.end_lineno or 0) + 1)
    )


def looks_random(value: str, line: str, path: str) -> bool:
    """True if what a name calls a secret looks like one: random enough, not a path or a
    placeholder, and in code or configuration.
    """
    if PROSE.search(path) or COMMENT.match(line) or len(value) not in LIKELY_LETTERS:
        return False
    letters = re.search("[A-Za-z]", value) and re.search("[0-9]", value)
    if not letters or re.search(r"[\s/\\()\[\],;:.]", value) or PLACEHOLDER.search(value):
        return False
    shares = [count / len(value) for count in Counter(value).values()]
    return -sum(share * math.log2(share) for share in shares) >= LIKELY_BITS


def find_keys(text: str, values: dict[str, None]) -> Iterator[Secret]:
    """Yield the private keys: a header with lines of Base64 behind it, each on a line of its own or
    all in one text of a program. Add to `values` what a redactor can meet of each.
    """
    line = start = 0
    begins = list(KEY_BEGINS.finditer(text))
    ends = [*(each.start() for each in begins[1:]), len(text)]
    for begin, end in zip(begins, ends, strict=False):
        line, start = line + text.count("\n", start, begin.start()), begin.start()
        body = text[begin.end() : min(end, begin.end() + LONGEST_KEY)]
        fields, pieces, lines = read_key(body)
        longest = max(pieces, key=len, default="")
        if len(longest) < KEY_LINE or not is_random_base64(longest):
            continue
        # Whole blocks of the usual form the redactor knows by their form.
        values.update(dict.fromkeys([longest] if begin[0].startswith("-----") else pieces))
        told = begin[0] + fields + decode_start(pieces[0])
        kind = "Encrypted Private Key" if ENCRYPTED.search(told) else "Private Key"
        column = start - text.rfind("\n", 0, start)
        yield line + 1, kind, "".join(pieces), column, line + 1 + lines


def read_key(body: str) -> tuple[str, list[str], int]:
    """Return the fields and the pieces of Base64 behind the header of a key, and over how many
    further lines it goes. What is cut short by anything but its end is no key.
    """
    fields, number = "", 0
    pieces: list[str] = []
    for number, line in enumerate(body.split("\n")):
        for part in ESCAPED_END.split(line):
            if field := KEY_FIELD.match(part):
                fields += part[:200]
                # What stands above in a file of PuTTY is the public part.
                pieces = [] if field[1] else pieces
                continue
            for piece in BETWEEN.split(part):
                if len(piece) < PIECE and piece not in LEFT_AWAY:
                    continue
                if not BASE64.fullmatch(piece):
                    return fields, pieces if piece.startswith("-") else [], number
                pieces.append(piece)
    return fields, pieces, number


def is_random_base64(piece: str) -> bool:
    kinds = (str.isdigit, str.isupper, str.islower)
    return len(set(piece)) >= FEWEST_OF_A_KEY and all(any(map(kind, piece)) for kind in kinds)


def decode_start(piece: str) -> str:
    """Return what the first bytes of a key say of themselves; empty if they say nothing."""
    try:
        return base64.b64decode(piece[: min(len(piece), 60) // PIECE * PIECE]).decode("latin-1")
    except ValueError:
        return ""


def find_secrets(lines: list[str], path: str, shapes: Kinds) -> Iterator[Secret]:
    """Yield each secret that stands in one line."""
    whole = "\n".join(lines)
    detectors = select_plausible(whole, of_lock_file=is_lock_file(path))
    own = [(kind, pattern) for kind, pattern in shapes if pattern.search(whole)]
    for number, line in enumerate(lines, start=1):
        text = line.rstrip()
        keyword = KEYWORD.search(text) is not None
        for detector in detectors if text else ():
            if not keyword and isinstance(detector, KeywordDetector):
                continue
            # Most lines hold nothing; asking the detector alone is much faster than the library's
            # whole way, which then decides about the others.
            if detector.analyze_line(
                filename=path, line=text, line_number=number
            ) and not _is_filtered_out(["line"], filename=path, line=text):
                context = get_code_snippet(lines, number)
                for secret in _scan_line(detector, path, text, number, context):
                    for value in whole_values(detector, secret.secret_value or "", text):
                        if not FILLED_IN.search(value):
                            yield number, secret.type, value, text.find(value) + 1, number
        for kind, pattern in own:
            for match in pattern.finditer(text):
                if len(set(match[0])) >= FEWEST_LETTERS and not STANDS_FOR.search(match[0]):
                    yield number, kind, match[0], match.start() + 1, number


def whole_values(detector: Any, value: str, text: str) -> Iterator[str]:
    """Yield the value that a detector names, as far as it stands alone in a line. Of some kinds it
    names the beginning: then each token in the line that begins so.
    """
    if not isinstance(detector, RegexBasedDetector):
        yield value
    elif not PUBLIC.search(text):
        for pattern in detector.denylist:
            for match in pattern.finditer(text):
                names = (match[0], *(each or "" for each in match.groups()))
                if value in names and stands_alone(text, match):
                    is_beginning = len(value) <= SHORTEST and match[0].startswith(value)
                    yield match[0] if is_beginning else value


def stands_alone(text: str, match: Any) -> bool:
    """True if a token is not a part of a longer word, as of a picture in Base64."""
    start, end = match.span()
    before, after = text[start - 1 : start] if start else "", text[end : end + 1]
    return not (before.isalnum() and match[0][0].isalnum()) and not (
        after.isalnum() and match[0][-1].isalnum()
    )


def find_in_long_lines(lines: list[str], own: Kinds) -> Iterator[Secret]:
    """Yield what looks like a token in lines that are too long for every detector, piece by piece:
    a name with a value means little in what a program wrote.
    """
    detectors = [each for each in get_plugins() if isinstance(each, RegexBasedDetector)]
    kinds = [(each.secret_type, pattern) for each in detectors for pattern in each.denylist] + own
    for number, line in enumerate(lines, start=1):
        if len(line) <= LONGEST_LINE:
            continue
        for start in range(0, len(line), LONGEST_LINE - OVERLAP):
            piece = line[start : start + LONGEST_LINE]
            for kind, pattern in kinds:
                for match in pattern.finditer(piece):
                    value = match[0]
                    random = len(set(value)) >= FEWEST_LETTERS and not FILLED_IN.search(value)
                    if random and stands_alone(piece, match) and not STANDS_FOR.search(value):
                        yield number, kind, value, start + match.start() + 1, number


def own_kinds(path: str) -> Kinds:
    """Return kind and pattern of what the library does not have, from the file that lists them."""
    with open(path, encoding="utf-8") as file:
        shapes: dict[str, str] = yaml.load(file, yaml.CSafeLoader)
    return [(kind, make_pattern(rf"\b{shape}(?:\b|$)")) for kind, shape in shapes.items()]


def select_plausible(text: str, *, of_lock_file: bool) -> list[Any]:
    """Return the detectors that can find anything in this text at all. A lock file is full of
    digests, which are random and not secret.
    """
    return [
        detector
        for detector in get_plugins()
        if not (of_lock_file and isinstance(detector, HighEntropyStringsPlugin))
        and (
            not isinstance(detector, RegexBasedDetector)
            or any(by_line(pattern.pattern).search(text) for pattern in detector.denylist)
        )
    ]


@functools.cache
def by_line(pattern: str) -> Any:
    """Return the pattern with line ends where it expects the ends of the text."""
    return make_pattern(f"(?m){pattern}")


def make_linear() -> None:
    """Give the detectors patterns whose time grows with a line's length and not with its square."""
    for detector in get_plugins():
        if isinstance(detector, RegexBasedDetector):
            # Of the class, as the library has it.
            kind: Any = type(detector)
            kind.denylist = [make_pattern(each) for each in detector.denylist]


def make_pattern(pattern: Any) -> Any:
    """Return a pattern of RE2. The few that look ahead are bounded and stay as they are."""
    text = pattern if isinstance(pattern, str) else pattern.pattern
    flags = 0 if isinstance(pattern, str) else pattern.flags
    text = f"(?i){text}" if flags & re.IGNORECASE else text
    try:
        return re2.compile(text, OPTIONS)
    except re2.error:
        return re.compile(text)


if __name__ == "__main__":
    main()
