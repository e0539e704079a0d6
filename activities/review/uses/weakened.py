"""Tests that a change deleted or skips, and assertions that it deleted. By the texts of the files
and their indentation.
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

from holdfast.activities.review.uses.definitions import place_now, squeezed
from holdfast.activities.review.uses.guards import depth_of
from holdfast.activities.review.uses.reporting import Breakage, Changed
from holdfast.activities.review.uses.tree import Pair, Tree

ALIKE = 0.6
"""Share of a deleted test's words that a test has which stands for it."""
MOST_NAMED = 5
MOST_ALIGNED = 200
"""Lines of a hunk that are looked through for names that are others now."""
LETTERS = 120
"""Characters of a line that are told."""
LONGEST = 500
"""Characters of a line that is looked at."""

_HEADS = {
    "Python": r"(?:async )?def (test\w*)\(",
    "JavaScript": r"x?(?:it|test|specify)(?:\.\w+)*\(\s*(?:(?P<quote>['\"`])(.+?)(?P=quote)|\w)",
    "Go": r"func ((?:Test|Fuzz)\w*)\(",
    "Java": r"(?:(?:public|protected|private|static|final) )*void (\w+)\(",
    "Ruby": r"x?(?:it|test|specify|scenario|def)\b[ (]*(?:['\"](.+?)['\"]|(test_\w+)).*",
    "Rust": r"(?:pub )?(?:async )?fn (\w+)\(",
}
_HEADS["TypeScript"] = _HEADS["JavaScript"]
_MARKED = re.compile(r"@\w*Test\b|#\[(?:\w+::)?test\b")
"""What stands above a test where its name does not tell it: in Java and Rust."""
_ASSERTS = re.compile(
    r"\b(?:assert\w*!?|refute\w*)(?!\w)|\b(?:expect\w*|verify\w*|require\.\w+)\s*[({]|\.assert\w*"
    r"|\bshould(?:_not)?\b[\s.(]|\.must_\w+"
    r"|\bt\.(?:Error|Fatal|Fail)\w*\(|\bpytest\.(?:raises|fail)\b"
)
_STRONG = {
    "a value": re.compile(
        r"^assert\s.*\s==\s|\bassert(?:_eq!|_?[eE]quals?)\W|\b(?:assert|require)\.Equal\(|\bt\.equals?\("
        r"|\b(?:strict|deep|deepStrict)Equal\(|\.to(?:Be|Equal|StrictEqual)\([^)]|\.to\s+eq\b"
    ),
    "the arguments of a call": re.compile(
        r"\.assert_(?:called|awaited)_(?:once_)?with\(|\.assert_has_calls\("
        r"|\.toHaveBeen(?:Called|LastCalled|NthCalled)With\(|\.to\s+have_received\(.*\.with\("
    ),
    "an error": re.compile(
        r"\bpytest\.raises\(|\bassert_?[rR]aises\w*\W|\bassert_?[tT]hrows\(|\bassert\.(?:throws|rejects)\("
        r"|\.toThrow(?:Error)?\([^)]|\braise_error\b"
    ),
}
"""What an assertion holds fast, and how that is known."""
_WEAK = re.compile(
    r"^assert\s+(?P<python>[\w.]+?)(?:\.called|\.await_count|\.call_count)?(?:\(.*\))?(?:\s+is\s+not\s+None)?$"
    r"|^(?P<mock>[\w.]+)\.assert_called(?:_once)?\(\)$"
    r"|^(?:self\.)?assert(?:True|IsNotNone|NotNull|_not_nil|!)\(\s*(?P<unit>[\w.]+)"
    r"|^(?:(?:t|assert|t\.assert)\.)?(?:ok|assert)\(\s*(?P<script>[\w.]+)"
    r"|^(?:assert|require)\.(?:NotNil|True)\(t,\s*(?P<go>[\w.]+)|^refute_nil\s+(?P<ruby>[\w.]+)"
    r"|^expect\(\s*(?P<expect>[\w.]+).*\)\.(?:toBeTruthy|toBeDefined|toHaveBeenCalled|toThrow|not\.toBeNull"
    r"|not\.toBeUndefined)\(\)"
    r"|^expect\(?\s*(?P<spec>[\w.]+).*\)\.(?:to\s+be_truthy|not_to\s+be_nil|to\s+be_present)\b"
)
"""Assertions that something is there, by the name that they are about."""
_COMPARES = re.compile(r"[=!]=|[<>]|&&|\|\||\b(?:and|in)\b")
_TRUTH = re.compile(r"(?i)\b(?:true|false|none|null|nil|undefined)\b\W*$")
_SKIPS = re.compile(
    r"^@(?:pytest\.mark\.(?:skip|xfail)\b(?!if)|(?:unittest\.)?skip\b|Disabled\b|Ignore\b)"
    r"|^pytestmark\b.*\bmark\.skip\b(?!if)|^(?:pytest\.skip|self\.skipTest)\("
    r"|^(?:it|test|describe|context|suite|specify)\.skip\(|^x(?:it|describe|test|context)\b"
    r"|^t\.Skip(?:f|Now)?\(|^#\[ignore\b|^(?:skip|pending)\b(?!.*[=:])"
)
_CONDITION = re.compile(r"^(?:\}\s*)?(?:if|unless|else|elif|elsif|when|case)\b|\bif\b.*[{:]$")
_EXAMPLES = re.compile(r"(?:^|/)(?:examples?|samples?|demos?)/")
"""Folders whose tests show how something is tested."""
_CLOSES = re.compile(r"[)\]}]|end\b")
_WORD = re.compile(r"\w{3,}")
_NAME = re.compile(r"[A-Za-z_]\w*")
_COMMENT = re.compile(r"#(?!\[)|//|/\*|\*")


@dataclass(frozen=True)
class _Test:
    """A test: its name, its first line, and its lines, marks above it included."""

    pair: Pair
    name: str
    line: int
    lines: tuple[str, ...]

    @property
    def key(self) -> tuple[str, str]:
        return self.pair.path, self.name

    @cached_property
    def words(self) -> frozenset[str]:
        return frozenset(word for line in self.lines for word in _WORD.findall(line))

    def which(self, pattern: re.Pattern[str]) -> dict[int, str]:
        """Return the lines that a pattern finds, by number, but comments and, of what skips, what
        stands below a condition.
        """
        return {
            number: line
            for number, line in enumerate(self.lines, self.line)
            if pattern.search(line)
            and not _COMMENT.match(line)
            and not (pattern is _SKIPS and self._is_conditional(number))
        }

    def _is_conditional(self, number: int) -> bool:
        above = self.lines[: number - self.line]
        before = next((line for line in reversed(above) if line), "")
        return bool(_CONDITION.search(before))


_Tests = Mapping[tuple[str, str], _Test]


def find(tree: Tree, changed: Sequence[Changed]) -> list[Breakage]:
    """Return what the change took from the tests. `changed` are the definitions of
    production code that it changed: with what is gone, its tests may go.
    """
    pairs = [pair for pair in tree.pairs if pair.language in _HEADS]
    names = _renamed(tree)
    old = [test for pair in pairs if pair.was for test in _tests(tree, pair, names, base=True)]
    new = [test for pair in pairs if pair.now for test in _tests(tree, pair, {}, base=False)]
    before, after = ({each.key: each for each in tests} for tests in (old, new))
    gone = {each.name.rpartition(".")[2] for each in changed if each.what == "removed"}
    lost = [
        each
        for key, each in before.items()
        if key not in after and not each.words & gone and not _is_retold(each, before, after)
    ]
    found: list[Breakage] = []
    for pair in pairs:
        if not _EXAMPLES.search(pair.was):
            found += _deleted(pair, [each for each in lost if each.pair is pair])
        found += _skipped_whole(tree, pair)
    for key in before.keys() & after.keys():
        old_test, new_test = before[key], after[key]
        found += [
            *_assertions(old_test, new_test),
            *_replaced(old_test, new_test),
            *_skips(old_test, new_test),
        ]
    return found


def _renamed(tree: Tree) -> dict[str, str]:
    """Return names of production code that have one other in all lines that the change wrote over,
    changing nothing but names.
    """
    seen: dict[str, set[str]] = {}
    for pair in tree.pairs:
        if not pair.was or not pair.now or pair.kind != "production":
            continue
        was, now = tree.lines(pair.was, base=True), tree.lines(pair.now)
        for start, count, there, more in pair.hunks:
            if max(count, more) > MOST_ALIGNED or not count or not more:
                continue
            old, new = was[start - 1 : start - 1 + count], now[there - 1 : there - 1 + more]
            one, other = ([_NAME.sub("_", line) for line in side] for side in (old, new))
            aligned = difflib.SequenceMatcher(None, one, other, autojunk=False)
            for at, place, size in aligned.get_matching_blocks():
                for line, text in zip(old[at : at + size], new[place : place + size], strict=True):
                    if not _ASSERTS.search(line):
                        for name, named in zip(*map(_NAME.findall, (line, text)), strict=True):
                            seen.setdefault(name, set()).add(named)
    return {one: next(iter(those)) for one, those in seen.items() if len(those) == 1}


def _is_retold(test: _Test, before: _Tests, after: _Tests) -> bool:
    """True if a new test has most of the words of a deleted one, or its name in another file, or if
    the change wrote most of what it alone had into another one.
    """
    for key, each in after.items():
        known = before[key].words if key in before else frozenset()
        own = test.words - known
        added = each.words - known
        if own and len(own & added) >= ALIKE * len(own):
            return True
        if key not in before and test.name == each.name:
            return True
    return False


def _tests(tree: Tree, pair: Pair, renamed: Mapping[str, str], *, base: bool) -> Iterator[_Test]:
    """Yield the tests of a file, with other names for some."""
    path = pair.was if base else pair.now
    raw = tree.lines(path, base=base)
    lines = [line.strip()[:LONGEST] for line in raw]
    if renamed:
        lines = [_NAME.sub(lambda word: renamed.get(word[0], word[0]), line) for line in lines]
    marked = pair.language in ("Java", "Rust")
    if not marked and pair.kind != "tests":
        return
    heads = []
    for at, line in enumerate(lines):
        named = re.match(_HEADS[pair.language], line)
        if named is None:
            continue
        start = at
        while start and lines[start - 1].startswith(("@", "#[")):
            start -= 1
        if marked and not _MARKED.search("\n".join(lines[start:at])):
            continue
        names = [each for each in named.groups() if each and len(each) > 1]
        heads.append((start, at, names[0] if names else line))
    starts = [*(start for start, _, _ in heads), len(lines)]
    for (start, at, name), end in zip(heads, starts[1:], strict=True):
        yield _Test(pair, name, start + 1, tuple(lines[start : _end(raw, at, end)]))


def _end(lines: Sequence[str], at: int, end: int) -> int:
    """Return where a test ends whose head is at a place, at `end` at the latest: its last line is
    indented, or closes it.
    """
    for place in range(at + 1, end):
        text = lines[place].strip()
        if text and depth_of(lines[place]) <= depth_of(lines[at]) and not _CLOSES.match(text):
            end = place
            break
    while not lines[end - 1].strip():
        end -= 1
    return end


def _deleted(pair: Pair, lost: Sequence[_Test]) -> Iterator[Breakage]:
    if not lost:
        return
    first = lost[0]
    names = ", ".join(f"`{each.name[:LETTERS]}`" for each in lost[:MOST_NAMED])
    more = f" and {len(lost) - MOST_NAMED} more" if len(lost) > MOST_NAMED else ""
    were = "A test was" if len(lost) == 1 else f"{len(lost)} tests were"
    yield Breakage(
        pair.path,
        place_now(pair, first.line) if pair.now else first.line,
        "deleted-test",
        f"{were} deleted here, and no test that the change adds looks like it: {names}{more}",
        "Put it back, or say in the change why it is not needed any more",
        base_line=first.line,
    )


def _assertions(before: _Test, after: _Test) -> Iterator[Breakage]:
    had, has = before.which(_ASSERTS), after.which(_ASSERTS)
    kept = {squeezed(line) for line in has.values()}
    gone = {number: line for number, line in had.items() if squeezed(line) not in kept}
    known = {squeezed(line) for line in had.values()}
    if (
        len(has) >= len(had)
        or not gone
        or any(squeezed(line) not in known for line in has.values())
    ):
        return
    number, line = next(iter(gone.items()))
    more = f" and {len(gone) - 1} more" if len(gone) > 1 else ""
    yield Breakage(
        after.pair.now,
        place_now(before.pair, number),
        "deleted-assertion",
        f"The test `{before.name[:LETTERS]}` no longer asserts `{line[:LETTERS]}`{more}, and"
        " nothing that the change adds to it does",
        "Put it back, or say in the change why it does not hold any more",
        base_line=number,
    )


def _replaced(before: _Test, after: _Test) -> Iterator[Breakage]:
    """Yield where an assertion of a value, a call's arguments or an error was replaced, at its
    place, by one that only says that something is there.
    """
    had, has = before.which(_ASSERTS), after.which(_ASSERTS) | after.which(_WEAK)
    kept = {squeezed(line) for line in has.values()}
    known = {squeezed(line) for line in (before.which(_ASSERTS) | before.which(_WEAK)).values()}
    for start, count, there, more in before.pair.hunks:
        old = {number: had[number] for number in range(start, start + count) if number in had}
        new = [has[number] for number in range(there, there + more) if number in has]
        strong = {
            number: (what, line)
            for number, line in old.items()
            if (what := _held(line)) and squeezed(line) not in kept
        }
        if not strong or any(_held(line) for line in new):
            continue
        last = before.line + len(before.lines)
        gone = before.lines[max(start - before.line, 0) : min(start + count, last) - before.line]
        for line in new:
            named = _named(line)
            if not named or squeezed(line) in known:
                continue
            about = re.compile(rf"(?<![\w.]){re.escape(named)}\b")
            if named not in ("True", "true") and not any(about.search(each) for each in gone):
                continue
            number, (what, was) = next(iter(strong.items()))
            yield Breakage(
                after.pair.now,
                next(at for at in range(there, there + more) if has.get(at) == line),
                "weakened-assertion",
                f"The test `{before.name[:LETTERS]}` no longer asserts {what}, only that something"
                f" is there: `{line[:LETTERS]}` stands for `{was[:LETTERS]}`"
                f" (line {number} before)",
                "Assert again what it asserted, or say in the change why that does not hold any"
                " more",
                base_line=number,
            )
            break


def _held(line: str) -> str:
    """Return what a line holds fast that a weaker assertion does not; empty: nothing."""
    if _TRUTH.search(line):
        return ""
    return next((what for what, pattern in _STRONG.items() if pattern.search(line)), "")


def _named(line: str) -> str:
    """Return the name of which a line asserts only that it is there; empty: it asserts more."""
    text = line.rstrip(";")
    weak = _WEAK.match(text)
    if weak is None or _COMPARES.search(text):
        return ""
    return next((each for each in weak.groups() if each), "")


def _skips(before: _Test, after: _Test) -> Iterator[Breakage]:
    has = after.which(_SKIPS)
    if has and not before.which(_SKIPS):
        number, line = next(iter(has.items()))
        yield _skipped(after.pair, number, line)


def _skipped_whole(tree: Tree, pair: Pair) -> Iterator[Breakage]:
    """Yield what skips many tests at once: above all tests, or for a group of them."""
    if not pair.was or not pair.now or pair.kind != "tests":
        return
    groups = re.compile(r"^pytestmark\b.*\bmark\.skip\b(?!if)|^(?:describe|context|suite)\.skip\(")
    had = {squeezed(line) for line in tree.lines(pair.was, base=True)}
    for number, line in enumerate(tree.lines(pair.now), 1):
        text = line.strip()[:LONGEST]
        if groups.match(text) and squeezed(line) not in had:
            yield _skipped(pair, number, text)


def _skipped(pair: Pair, number: int, line: str) -> Breakage:
    return Breakage(
        pair.now,
        number,
        "skipped-test",
        f"The change skips a test that ran before: `{line[:LETTERS]}`",
        "Mend the test, or say in the change when it runs again",
    )
