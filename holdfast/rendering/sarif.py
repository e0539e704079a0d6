"""A review as SARIF 2.1.0, as code scanning services take it in: results by rank, within their
limits, each with the rule, the place and a fingerprint that survives moved lines. Pure.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Iterable, Iterator
from typing import Any

from holdfast.contracts import Remark, Report, ReviewData
from holdfast.contracts.remarks import (
    describe_hidden,
    read_review,
    stands,
    why_unread,
)
from holdfast.rendering.proofs import text_of
from holdfast.rendering.verdict import counted
from holdfast.text import pluralize, sentence, visible

SCHEMA = "https://json.schemastore.org/sarif-2.1.0.json"
ROOT = "%SRCROOT%"
"""What paths are relative to: the top folder of the repository, by the name that readers know."""
MOST_RESULTS, MOST_BYTES = 25_000, 10_000_000
"""Most that GitHub takes of one run: lower ranks are left out, and that is said."""
MOST_FILES = 1_000
"""Files that could not be parsed, each with a notification of its own."""
TEXT_LETTERS = 1_000
LEVELS = {"critical": "error", "warning": "warning", "info": "note"}
SCORES = {"critical": "9.0", "warning": "6.0", "info": "3.0"}
"""How severe a hole is, by the scale that security tools share."""
SECURITY = ("security", "secrets")
TITLE_LETTERS = 100
_END = re.compile(r"[.!?;](?:\s|$)")
"""Matches the end of a message's first short sentence."""
_QUOTED = re.compile(r"""`[^`]*`|"[^"]*"|(?<!\w)'[^']*'(?!\w)""")
_ASIDE = re.compile(r"\s\([^()]+\)")
"""Matches words in brackets, such as the mark of a value, which no two workers write alike."""
_KEPT = frozenset(b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-._~/")
Json = dict[str, Any]


def as_sarif(report: Report) -> str:
    """Return the document, with what stands in it. A report of no review has no results."""
    review = read_review(report) or ReviewData()
    standing = [each for each in counted(review) if each.file]
    rules = _rules(standing)
    places = {rule["id"]: place for place, rule in enumerate(rules)}
    results = [*_fitting(_results(standing, places))]
    left = len(standing) - len(results)
    run: Json = {
        "tool": {
            "driver": {
                "name": "holdfast",
                **({"version": report.version} if report.version else {}),
                "rules": rules,
            }
        },
        "originalUriBaseIds": {
            ROOT: {"description": {"text": "The top folder of the repository."}}
        },
        "columnKind": "unicodeCodePoints",
        "invocations": [_invocation(report, review, left)],
        "automationDetails": {"id": "holdfast/"},
        "results": results,
        **_revision(report),
    }
    return json.dumps({"$schema": SCHEMA, "version": "2.1.0", "runs": [run]}, indent=1) + "\n"


def _revision(report: Report) -> Json:
    """Return what was reviewed, as properties of ours: the standard's `versionControlProvenance`
    wants the repository's address, and what is known of it is a path on this machine.
    """
    pinned = next((each for each in report.inputs if each.kind == "repository"), None)
    if pinned is None or not pinned.commit:
        return {}
    changed = {} if pinned.changed is None else {"filesNotCommitted": pinned.changed}
    return {"properties": {"revisionId": pinned.commit, **changed}}


def _invocation(report: Report, review: ReviewData, left: int) -> Json:
    """Return how far the review went: what is missing is told as a notification."""
    missing = [f"{gap.title}: {gap.why}" for gap in report.gaps]
    missing += [f"{left} remarks beyond what one file may hold"] if left else []
    if nowhere := sum(not each.file for each in counted(review)):
        missing.append(f"{pluralize(nowhere, 'remark')} about the repository, and no file of it")
    listed = ", ".join(f"{why} ({n})" for why, n in why_unread(review))
    if review.unread_in_all:
        missing.append(f"{pluralize(review.unread_in_all, 'file')} not read: {listed}".rstrip(": "))
    missing += [hidden] if (hidden := describe_hidden(review)) else []
    told = [_notified(each) for each in missing]
    named, lost = review.missed[:MOST_FILES], review.not_parsed
    told += [_notified(f"Not read: {each.why}", each.path) for each in named]
    if review.missed_in_all > len(named):
        told.append(_notified(f"{review.missed_in_all - len(named)} more not read"))
    told += [_notified("Some lens could not parse this file", each) for each in lost[:MOST_FILES]]
    if len(lost) > MOST_FILES:
        told.append(_notified(f"{len(lost) - MOST_FILES} more files could not be parsed"))
    told += [
        _notified(f"{count} files not looked at by {lens}: the time limit was reached")
        for lens, count in review.not_reached_by.items()
    ]
    complete = report.status == "complete" and not (review.missed_in_all or review.not_reached)
    return {
        "executionSuccessful": complete,
        **({"toolExecutionNotifications": told} if told else {}),
    }


def _notified(text: str, file: str = "") -> Json:
    place: Json = {"artifactLocation": {"uri": encoded(file), "uriBaseId": ROOT}}
    where = {"locations": [{"physicalLocation": place}]} if file else {}
    return {"level": "warning", "message": {"text": _text(text)}, **where}


def _rules(remarks: Iterable[Remark]) -> list[Json]:
    first: dict[str, Remark] = {}
    for remark in remarks:
        first.setdefault(_rule_id(remark), remark)
    return [_rule(name, remark) for name, remark in first.items()]


def _rule(name: str, remark: Remark) -> Json:
    parts = [sentence(each) for each in (remark.matters, remark.suggestion) if each.strip()]
    title = _text(_title(remark))
    said = " ".join(parts) or sentence(f"Seen by the lens {remark.lens or 'of the review'}")
    secure = remark.lens in SECURITY
    return {
        "id": name,
        "name": name,
        "shortDescription": {"text": title},
        "fullDescription": {"text": _text(said)},
        "help": {"text": _text(said)},
        "defaultConfiguration": {"level": LEVELS[remark.severity]},
        "properties": {
            "precision": _precision(remark),
            # No tag may stand twice.
            "tags": [*dict.fromkeys((*["security"] * secure, remark.lens or "review"))],
            **({"security-severity": SCORES[remark.severity]} if secure else {}),
        },
    }


def _title(remark: Remark) -> str:
    """Return the name of the defect: a rule's that is called by words, else what the first remark
    begins with, without what is of its place alone.
    """
    if " " in remark.rule:
        return remark.rule
    message = _ASIDE.sub("", " ".join(remark.message.split()))
    first = _END.split(_QUOTED.sub("…", message), maxsplit=1)[0]
    words = first.strip().rstrip(".:;,")
    if len(words) > TITLE_LETTERS:
        words = words[:TITLE_LETTERS].rpartition(" ")[0] + "…"
    return words if words.strip("… ") else remark.rule or remark.lens or "remark"


def _precision(remark: Remark) -> str:
    named = ((95, "very-high"), (85, "high"), (70, "medium"))
    return next((name for least, name in named if remark.confidence >= least), "low")


def _rule_id(remark: Remark) -> str:
    return _text("/".join(part for part in (remark.lens, remark.rule) if part) or "remark")


def _results(remarks: Iterable[Remark], rules: dict[str, int]) -> Iterator[Json]:
    seen: dict[str, int] = {}
    for remark in remarks:
        name = _rule_id(remark)
        print_of = fingerprint(remark)
        # Of equal lines in one file each is a result of its own.
        seen[print_of] = seen.get(print_of, 0) + 1
        said = [remark.message, remark.suggestion]
        said += [] if stands(remark) else [f"Refuted by a model: {remark.why}"]
        message = " ".join(sentence(_text(each)) for each in said if each.strip())
        yield {
            "ruleId": name,
            "ruleIndex": rules[name],
            "level": LEVELS[remark.severity],
            "rank": float(remark.confidence),
            "message": {"text": message or name},
            "locations": [{"physicalLocation": _location(remark)}],
            "partialFingerprints": {"holdfast/v1": f"{print_of}:{seen[print_of]}"},
            **_verdict(remark),
            **_fixes(remark),
        }


def _verdict(remark: Remark) -> Json:
    """Return what a model said of it. No suppression, which would take it out: what is refuted
    counts.
    """
    if not remark.verdict:
        return {}
    said = {"verdict": remark.verdict, "verdictReason": _text(remark.why)}
    return {"properties": {**said, **_proof(remark)}}


def _fixes(remark: Remark) -> Json:
    fix = remark.fix
    if fix is None or not fix.diff:
        return {}
    region = {"startLine": fix.first, "startColumn": 1, "endLine": fix.last + 1, "endColumn": 1}
    text = "".join(f"{line}\n" for line in fix.lines)
    place = {"uri": encoded(remark.file), "uriBaseId": ROOT}
    replaced = {"deletedRegion": region, "insertedContent": {"text": text}}
    change = {"artifactLocation": place, "replacements": [replaced]}
    return {"fixes": [{"description": {"text": _text(fix.why)}, "artifactChanges": [change]}]}


def _proof(remark: Remark) -> Json:
    if remark.proof is None:
        return {}
    said = {"verdict": remark.proof.verdict, "reason": _text(remark.proof.why)}
    text = text_of(remark)
    return {"proof": {**said, **({"script": text} if text else {})}}


def _location(remark: Remark) -> Json:
    region: Json = {"startLine": max(remark.line, 1)}
    if remark.line and remark.column:
        region["startColumn"] = remark.column
    return {
        "artifactLocation": {"uri": encoded(remark.file), "uriBaseId": ROOT},
        "region": region,
    }


def fingerprint(remark: Remark) -> str:
    """Return a hash of what is wrong, and of the line of code; not of its number, which moves."""
    if remark.fingerprint:
        return remark.fingerprint
    code = ""
    if (excerpt := remark.excerpt) and not remark.deleted:
        code = " ".join(excerpt.lines[remark.line - excerpt.first].split())
    said = (remark.file, remark.lens, remark.rule, code or remark.message)
    written = json.dumps(said).encode()
    return hashlib.sha256(written).hexdigest()[:32]


def encoded(path: str) -> str:
    """Return a relative path as a URI: each byte that may mean something there as its number."""
    raw = path.encode("utf-8", "backslashreplace")
    return "".join(chr(byte) if byte in _KEPT else f"%{byte:02X}" for byte in raw)


def _text(text: str) -> str:
    return visible(" ".join(text.split()))[:TEXT_LETTERS]


def _fitting(results: Iterable[Json]) -> Iterator[Json]:
    """Yield the first results that fit; half of the room is for indentation and rules."""
    room = MOST_BYTES // 2
    for number, result in enumerate(results):
        room -= len(json.dumps(result))
        if number >= MOST_RESULTS or room < 0:
            return
        yield result
