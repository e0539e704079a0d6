"""Secrets in files, by the detectors of detect-secrets: prints where they are, never what they are.

Reads from stdin, separated by NUL: a salt, then absolute paths. Prints JSON. Runs isolated, as a
program of its own, so it imports nothing of this project. Nothing is verified over the network.
"""

import functools
import hashlib
import json
import re
import sys
from collections.abc import Iterator
from typing import Any, TypedDict

from detect_secrets.core.plugins.util import get_mapping_from_secret_type_to_class
from detect_secrets.core.scan import _is_filtered_out, _scan_line
from detect_secrets.filters.allowlist import is_line_allowlisted
from detect_secrets.filters.heuristic import is_lock_file
from detect_secrets.plugins.base import RegexBasedDetector
from detect_secrets.plugins.keyword import DENYLIST, KeywordDetector
from detect_secrets.settings import get_plugins, transient_settings
from detect_secrets.util.code_snippet import get_code_snippet

# Public addresses are no secrets; the others guess by the name of a variable, slowly, and what they
# find the keyword detector finds too.
LEFT_OUT = {
    "IPPublicDetector", "IbmCloudIamDetector", "IbmCosHmacDetector", "SoftlayerDetector",
    "CloudantDetector",
}  # fmt: skip
HEURISTICS = (
    "is_sequential_string", "is_potential_uuid", "is_likely_id_string", "is_templated_secret",
    "is_prefixed_with_dollar_sign", "is_indirect_reference", "is_not_alphanumeric_string",
)  # fmt: skip
# Kinds that the library does not know.
OWN = {
    "Anthropic API Key": re.compile(r"\bsk-ant-[a-z0-9]{2,10}-[A-Za-z0-9_-]{20,}"),
    "Google API Key": re.compile(r"\bAIza[A-Za-z0-9_-]{35}\b"),
}
# Without one of its words, the many patterns of the keyword detector cannot match.
KEYWORD = re.compile("|".join(DENYLIST), re.IGNORECASE)
# Longer lines are data or minified; the detectors' patterns are not all linear.
LONGEST_LINE = 5_000


class Report(TypedDict):
    """What is printed."""

    secrets: list[dict[str, Any]]
    not_parsed: list[str]
    read: int


def main() -> None:
    """Print `{"secrets": […], "not_parsed": […], "read": n}`."""
    salt, *paths = sys.stdin.buffer.read().decode("utf-8", "surrogateescape").split("\0")
    kinds: list[type] = list(get_mapping_from_secret_type_to_class().values())
    plugins = [{"name": kind.__name__} for kind in kinds if kind.__name__ not in LEFT_OUT]
    filters = [{"path": f"detect_secrets.filters.heuristic.{name}"} for name in HEURISTICS]
    report = Report(secrets=[], not_parsed=[], read=0)
    with transient_settings({"plugins_used": plugins, "filters_used": filters}):
        for path in paths:
            if path and not is_lock_file(path):
                look_at(path, salt.encode(), report)
    json.dump(report, sys.stdout)


def look_at(path: str, salt: bytes, report: Report) -> None:
    """Add the secrets of one file to the report."""
    with open(path, encoding="utf-8", errors="replace") as file:
        # Split as every other tool counts lines, not at form feeds and the like.
        lines = file.read().split("\n")
    report["read"] += 1
    if any(len(line) > LONGEST_LINE for line in lines):
        report["not_parsed"].append(path)
    lines = [line if len(line) <= LONGEST_LINE else "" for line in lines]
    for number, kind, value in sorted(set(found_in(lines, path))):
        digest = hashlib.blake2b(value.encode(), key=salt, digest_size=4).hexdigest()
        snippet = get_code_snippet(lines, number)
        allowed = is_line_allowlisted(filename=path, line=lines[number - 1], context=snippet)
        entry = {"file": path, "line": number, "kind": kind, "hash": digest, "allowed": allowed}
        report["secrets"].append(entry)


def found_in(lines: list[str], path: str) -> Iterator[tuple[int, str, str]]:
    """Line number, kind and value of each secret."""
    detectors = plausible("\n".join(lines))
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
                    yield number, secret.type, secret.secret_value or ""
        for kind, pattern in OWN.items():
            for match in pattern.finditer(text):
                yield number, kind, match[0]


def plausible(text: str) -> list[Any]:
    """The detectors that can find anything in this text at all."""
    return [
        detector
        for detector in get_plugins()
        if not isinstance(detector, RegexBasedDetector)
        or any(by_line(pattern).search(text) for pattern in detector.denylist)
    ]


@functools.cache
def by_line(pattern: re.Pattern[str]) -> re.Pattern[str]:
    """The pattern with line ends where it expects the ends of the text."""
    return re.compile(pattern.pattern, pattern.flags | re.MULTILINE)


if __name__ == "__main__":
    main()
