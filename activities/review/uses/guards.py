"""Checks that a change deleted and that the head has nowhere else."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from holdfast.activities.review.uses.definitions import place_now, squeezed
from holdfast.activities.review.uses.reporting import Breakage
from holdfast.activities.review.uses.tree import Pair, Tree
from holdfast.untrusted.reading import shipped_yaml

DATA = Path(__file__).with_name("guards.yaml")
INPUT = "input"
PRECONDITION = "precondition"
"""A condition that raises, whatever it is about, if it is of no other kind."""
RIGHTS = ("authentication", "ownership", "permission")
"""Kinds of which each does the work of another."""
FEWEST, ALIKE = 5, 0.7
"""Words of an error by which another one is known to be the same, and the share of them it has."""
TEXT_LINES = 5
"""Lines in which what is raised says why."""
NEAR = 2
"""Lines between the place of a deleted check and an added one that stands there."""
LETTERS = 160
"""Characters of a deleted line that are shown."""
CONSEQUENT = 3
"""Lines after a condition in which its consequence stands."""
LONGEST = 500
"""Characters of a line that is looked at."""
REACH = 400
"""Lines upwards in which an enclosing definition is looked for."""

_CONDITION = re.compile(r"^(?:\}\s*)?(?:else\s+)?(?:if|unless|elif|elsif|guard)\b|^assert\b")
_MODIFIED = re.compile(
    r"^(?:raise|return|abort|halt|head|render|redirect_to|throw|fail)\b.*\s(?:if|unless)\s"
)
_STOPS = re.compile(
    r"\b(?:raise|throw|abort|panic|reject|halt|die|exit|redirect\w*|deny|fail|Forbidden|Unauthorized"
    r"|HttpResponseForbidden|sendStatus|http\.Error|head|bail|assert)\b|\b40[013]\b|\breturn\b"
)
_FAILS = re.compile(
    r"\braise\s+(?:\w+\.)*(?:ValueError|TypeError|ArgumentError|\w*(?:Invalid|Valid|BadRequest|TooLarge"
    r"|TooLong|Argument|Unprocessable)\w*)|\bthrow\s+new\s+(?:\w*Error|Illegal\w+|\w*(?:Invalid|Valid"
    r"|BadRequest)\w*)|\bstatus\(4(?:00|22)\)|\b4(?:00|22)\b|\bStatusBadRequest\b|\bassert\b"
    r"|\breturn\s+(?:[\w{}\"]+,\s*)*(?:fmt\.Errorf|errors\.New|Err[A-Z]\w*)"
)
_RAISES = re.compile(r"(?:raise\s+|throw\s+(?:new\s+)?|panic\()(?!NotImplemented|\w*Unsupported)\w")
_GUARD = re.compile(r"^(?:if|unless)\b")
_ANY_CHECK = re.compile(r"\b(?:raise|throw|abort|panic|reject|fail|assert)\b")
_CALL = re.compile(
    r"^(?:await\s+|self\.|this\.|\w+[.:]{1,2}|before_action\s*\(?:?\s*:|skip_\w+\s+:|(?:app|router)\.use\(\s*)*"
    r"[!:]?(?:authori[sz]e|authenticate|require|ensure|check|verify|validate|enforce|protect|permit|guard|assert)_?\w*[!?]?\s*(?:\(|\)|\s:|,|;|$|\s\w)"
)
_ROUTE = re.compile(r"\.(?:get|post|put|patch|delete|all|use|route|Handle|HandleFunc)\(")
_MARKS = ("@", "[", "#[")
"""How a line begins that says something of the definition below it."""
_COMMENT = re.compile(r"^(?:#(?!\[)|//|/\*|\*|--|<!--|\"\"\"|''')")
_HEADER = re.compile(
    r"^(?:import|from|export|require|require_relative|package|using|include|use"
    r"|(?:public |private |abstract |async |pub )*"
    r"(?:class|def|function|func|fn|interface|module|type|enum))\b"
)
_NAME = re.compile(
    r"(?:def|func|function|fn|class|sub|module)\s+(?:\([^)]*\)\s*)?(?:self\.)?(\w+)|(\w+)\s*(?:=\s*(?:async\s*)?)?\("
)
_BLOCK = re.compile(
    r"(?:\}\s*)?(?:if|else|elif|unless|for|while|switch|catch|with|try|match|case)\b"
)
_WORD = re.compile(r"[A-Za-z_]\w{2,}")
_TEXT = re.compile(r"'[^']*'|\"[^\"]*\"")
_ANY_WORD = re.compile(r"[A-Za-z_]\w*")
_NO_SUBJECT = re.compile(
    r"(?i)if|or|is|in|isinstance|issubclass|type|not|and|the|self|this|return|raise|throw|new|none|null|nil|true|false|else|elif|unless|len"
    r"|err|error|errors|fmt|errorf|abort|require|ensure|check"
)


@dataclass(frozen=True)
class Kind:
    """What a check is about, and how it is known."""

    about: str
    words: re.Pattern[str]
    lines: re.Pattern[str] | None = None
    inside: re.Pattern[str] | None = None


@cache
def kinds() -> tuple[Kind, ...]:
    told: dict[str, dict[str, str]] = shipped_yaml(DATA)

    def pattern(row: dict[str, str], key: str) -> re.Pattern[str] | None:
        return re.compile(row[key], re.IGNORECASE) if key in row else None

    return tuple(
        Kind(
            about,
            re.compile(row["words"], re.IGNORECASE),
            pattern(row, "lines"),
            pattern(row, "inside"),
        )
        for about, row in told.items()
    )


_PRECONDITION = Kind(PRECONDITION, re.compile("(?!)"))


@dataclass(frozen=True)
class _Check:
    """A deleted check: its first line in the base, and how many lines it has."""

    pair: Pair
    line: int
    text: str
    whole: str
    kind: Kind
    inside: bool = False


@dataclass(frozen=True)
class _Added:
    """A line that the change added."""

    pair: Pair
    line: int
    text: str


def find(tree: Tree) -> list[Breakage]:
    """Return the checks of production code that are gone."""
    pairs = [pair for pair in tree.pairs if pair.was and pair.now and pair.kind == "production"]
    pairs = [pair for pair in pairs if tree.text(pair.was, base=True) and tree.text(pair.now)]
    added = [each for pair in tree.pairs if pair.now for each in _added(tree, pair)]
    had, has = Counter[str](), Counter[str]()
    for pair in tree.pairs:
        had.update(squeezed(each) for each in tree.lines(pair.was, base=True) if pair.was)
        has.update(squeezed(each) for each in tree.lines(pair.now) if pair.now)
    found = []
    for pair in pairs:
        for check in _deleted(tree, pair):
            key = squeezed(tree.lines(pair.was, base=True)[check.line - 1])
            moved = has[key] >= had[key] and has[key] > 0
            if moved or _is_replaced(tree, check, added) or _is_gone_with_all(tree, check):
                continue
            found.append(_remark(check))
    return found


def _added(tree: Tree, pair: Pair) -> Iterator[_Added]:
    lines = tree.lines(pair.now)
    spans = [(start, count) for _, _, start, count in pair.hunks if count]
    for start, count in spans if pair.was else [(1, len(lines))]:
        for number in range(start, min(start + count, len(lines) + 1)):
            text = lines[number - 1].strip()[:LONGEST]
            yield _Added(pair, number, text)


def _deleted(tree: Tree, pair: Pair) -> Iterator[_Check]:
    lines = tree.lines(pair.was, base=True)
    now = tree.lines(pair.now)
    for start, count, there, more in pair.hunks:
        replaced = (
            [each.strip()[:LONGEST] for each in now[there - 1 : there - 1 + more]] if more else []
        )
        last = start + count - 1
        at = start
        while at <= last:
            text = lines[at - 1].strip()[:LONGEST]
            check = None
            if text and not _COMMENT.match(text) and not _HEADER.match(text):
                check = _check_at(pair, lines, at, last, text) or _inside(pair, at, text, replaced)
            if check is not None:
                yield check
                at += check.whole.count("\n")
            at += 1


def _check_at(pair: Pair, lines: Sequence[str], at: int, last: int, text: str) -> _Check | None:
    if text.startswith("@") or re.match(r"#?\[\w", text):
        kind = _kind(text, (INPUT,))
        return _Check(pair, at, text, text, kind) if kind else None
    if _CONDITION.match(text) or _MODIFIED.match(text):
        own = [text]
        for number in range(at + 1, min(at + 1 + CONSEQUENT, last + 1)):
            own.append(lines[number - 1].strip()[:LONGEST])
            if _STOPS.search(own[-1]):
                break
        condition = re.sub(r"^\W*(?:else\s+)?(?:if|unless|elif|elsif)\b", "", text)
        body = text if _MODIFIED.match(text) or text.startswith("assert") else "\n".join(own)
        after = condition.rpartition(":")[2] if ":" in condition else condition
        stops = (
            _STOPS.search("\n".join([after, *own[1:]]))
            or _MODIFIED.match(text)
            or text.startswith("assert")
        )
        if not stops:
            return None
        kind = _kind(body, (INPUT,))
        if kind is None and _FAILS.search(body):
            kind = next(
                (each for each in kinds() if each.about == INPUT and each.words.search(text)), None
            )
        if kind is None and _is_guard(lines, at, last):
            kind = _PRECONDITION
        return _Check(pair, at, text, body, kind) if kind else None
    for kind in kinds():
        if kind.lines is not None and kind.lines.match(text):
            return _Check(pair, at, text, text, kind)
    if _CALL.match(text):
        kind = _kind(text, (INPUT,)) or (
            next(each for each in kinds() if each.about == INPUT)
            if re.match(r"^(?:self\.|this\.)?\w*\.?validate\w*\(", text)
            else None
        )
        return _Check(pair, at, text, text, kind) if kind else None
    return None


def _is_guard(lines: Sequence[str], at: int, last: int) -> bool:
    """True if a deleted line is a condition that raises, with what it raises."""
    text = lines[at - 1].strip()[:LONGEST]
    if _MODIFIED.match(text):
        return _RAISES.match(text) is not None
    if not _GUARD.match(text):
        return False
    if re.search(rf"[):]\s*\{{?\s*{_RAISES.pattern}", text):
        return True
    for line in lines[at : min(at + CONSEQUENT, last)]:
        if line.strip() and depth_of(line) <= depth_of(lines[at - 1]):
            return False
        if _RAISES.match(line.strip()[:LONGEST]):
            return True
    return False


def _kind(text: str, but: tuple[str, ...]) -> Kind | None:
    return next(
        (each for each in kinds() if each.about not in but and each.words.search(text)), None
    )


def _inside(pair: Pair, at: int, text: str, replaced: Sequence[str]) -> _Check | None:
    """Return what protected within a line, if the line is still there without it."""
    for kind in kinds():
        if kind.inside is None or (found := kind.inside.search(text)) is None:
            continue
        rest = _WORD.findall(text.replace(found[0], " "))
        for line in replaced:
            kept = set(_WORD.findall(line))
            if (
                rest
                and sum(each in kept for each in rest) >= 0.7 * len(rest)
                and not kind.inside.search(line)
            ):
                return _Check(pair, at, text, text, kind, inside=True)
    return None


def _is_replaced(tree: Tree, check: _Check, added: Sequence[_Added]) -> bool:
    """True if the change adds a check of the same kind in the same function, or, wherever that is,
    about the same names. For one of input or a precondition only the names count, or that it stands
    in its place and differs by names alone.
    """
    before = tree.lines(check.pair.was, base=True)
    around = _definition(before, check.line)
    at = place_now(check.pair, check.line)
    general = check.kind.about in (INPUT, PRECONDITION)
    subjects = _subjects(_condition(check.text) if general else check.whole)
    said = _said(before, check.line)
    for each in added:
        if len(said) >= FEWEST and _RAISES.search(each.text):
            here = _said(tree.lines(each.pair.now), each.line)
            if len(said & here) >= ALIKE * len(said):
                return True
        if not _does_work_of(check.kind, each.text):
            continue
        near = each.pair is check.pair and abs(each.line - at) <= NEAR
        if general:
            alike = near and _shape(each.text) == _shape(check.text)
        else:
            alike = near or (
                each.pair is check.pair
                and _definition(tree.lines(each.pair.now), each.line) == around
            )
        if alike:
            return True
        words = set(_ANY_WORD.findall(each.text))
        if subjects and 2 * len(subjects & words) >= len(subjects):
            return True
    return False


def _said(lines: Sequence[str], number: int) -> set[str]:
    """Return the words of the texts from a line on, as of what is raised there."""
    text = "\n".join(lines[number - 1 : number - 1 + TEXT_LINES])
    return {word for each in _TEXT.findall(text) for word in _WORD.findall(each)}


def _does_work_of(kind: Kind, line: str) -> bool:
    """True if a line is a check of a kind."""
    if not line or _COMMENT.match(line) or re.match(r"(?:import|from|use|require)\b", line):
        return False
    own = _CONDITION.match(line) or _MODIFIED.match(line) or _CALL.match(line)
    if kind.about in (INPUT, PRECONDITION):
        return bool(own or _ANY_CHECK.search(line))
    patterns = (kind.inside, kind.lines)
    if any(pattern is not None and pattern.search(line) for pattern in patterns):
        return True
    related = RIGHTS if kind.about in RIGHTS else (kind.about,)
    checks = own or line.startswith("@") or _STOPS.search(line) or _ROUTE.search(line)
    return bool(checks) and any(
        each.words.search(line) for each in kinds() if each.about in related
    )


def _subjects(text: str) -> set[str]:
    """Return the names that a check is about."""
    return {each for each in _ANY_WORD.findall(text) if not _NO_SUBJECT.fullmatch(each)}


def _condition(text: str) -> str:
    """Return what the first line of a check asks, without texts and what it raises."""
    text = _TEXT.sub(" ", text)
    if _MODIFIED.match(text):
        return re.split(r"\s(?:if|unless)\s", text, maxsplit=1)[1]
    raised = _RAISES.search(text)
    return text[: raised.start()] if raised else text


def _shape(text: str) -> str:
    """Return a line without the names in it."""
    return squeezed(
        _ANY_WORD.sub(lambda word: word[0] if _NO_SUBJECT.fullmatch(word[0]) else "_", text)
    )


def _definition(lines: Sequence[str], number: int) -> str:
    """Return the definition that a line stands in, or that it decorates, by its name or its first
    line; empty: it stands in none.
    """
    line = lines[number - 1]
    if line.strip().startswith(_MARKS):
        below = (each for each in lines[number:] if not each.strip().startswith(_MARKS))
        return _named(next(below, ""))
    depth = depth_of(line)
    for each in reversed(lines[max(number - 1 - REACH, 0) : number - 1]):
        if each.strip() and not _COMMENT.match(each.strip()) and depth_of(each) < depth:
            depth = depth_of(each)
            if _name(each) and not _BLOCK.match(each.strip()):
                return _named(each)
    return ""


def _named(line: str) -> str:
    found = _NAME.search(line)
    return found[1] if found and found[1] else squeezed(line)


def _name(line: str) -> str:
    named = _NAME.search(line)
    return (named[1] or named[2]) if named else ""


def _is_gone_with_all(tree: Tree, check: _Check) -> bool:
    """True if what it guarded is gone, too: the definition around it, or all that it names."""
    pair = check.pair
    lines = tree.lines(pair.was, base=True)
    head = tree.text(pair.now) or ""
    there = {squeezed(each) for each in head.split("\n")}
    if check.text.startswith(_MARKS):
        below = (each for each in lines[check.line :] if each.strip())
        header = next((each for each in below if not each.strip().startswith(_MARKS)), "")
        return _is_away(header, head, there)
    depth = depth_of(lines[check.line - 1])
    for at in range(check.line - 2, max(check.line - REACH, -1), -1):
        line = lines[at]
        if line.strip() and not _COMMENT.match(line.strip()) and depth_of(line) < depth:
            depth = depth_of(line)
            if pair.touched_before(at + 1, at + 1) and _is_away(line, head, there):
                return True
            if depth == 0:
                break
    subjects = _subjects(_condition(check.text))
    left = len(subjects & set(_ANY_WORD.findall(head)))
    return check.kind.about in (INPUT, PRECONDITION) and bool(subjects) and 2 * left < len(subjects)


def _is_away(line: str, head: str, there: set[str]) -> bool:
    if squeezed(line) in there:
        return False
    name = _name(line)
    return not name or re.search(rf"\b{re.escape(name)}\s*[=(:]", head) is None


def depth_of(line: str) -> int:
    return len(line.expandtabs(4)) - len(line.expandtabs(4).lstrip())


def _remark(check: _Check) -> Breakage:
    line = " ".join(check.whole.split("\n"))[:LETTERS]
    row = "deleted-check input" if check.kind.about in (INPUT, PRECONDITION) else "deleted-check"
    return Breakage(
        check.pair.now,
        place_now(check.pair, check.line),
        "deleted-check",
        f"A check ({check.kind.about}) was deleted here, and nothing that the change adds does its"
        f" work: `{line}` (line {check.line} before)",
        "Put it back, or say in the change what checks this now",
        grade=row,
        base_line=check.line,
    )
