"""Turn what a lens's tool said into what it hands on: the remarks in scope, each file with its
share, without the values of secrets. Blocking, and for a thread: what a repository can write is not
worked on in the event loop.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

from holdfast.activities.repositories.manifest import Manifest, SnapshotFile
from holdfast.activities.review.analysing.languages import language_of
from holdfast.activities.review.analysing.lens import (
    SYNTAX,
    UNKNOWN,
    Analyser,
    Grade,
    Parsed,
    Sighting,
)
from holdfast.activities.review.analysing.sharing import fair_share
from holdfast.activities.review.comparing import (
    Base,
    Comparison,
    by_lines,
    compare,
    in_scope,
    of_change,
)
from holdfast.activities.review.scope import baseline
from holdfast.activities.review.scope.elsewhere import temper
from holdfast.activities.review.scope.narrowing import Narrower
from holdfast.activities.review.surroundings import CodeAround
from holdfast.activities.review.telling_uses import describe_uses, write_uses
from holdfast.contracts import Draft, LanguageShare, Remark, Sightings, Unread
from holdfast.contracts.remarks import is_credential, rank, rank_remarks
from holdfast.rendering.remarks import by_severity
from holdfast.text import pluralize
from holdfast.untrusted.redact import Redactor

MOST_REMARKS = 2_000
"""Remarks that one lens hands on, the most severe first, each file with its share."""
MOST_NAMES = 200
"""Files that were not read or not parsed and are named."""
FEWEST_FRAGMENTS = 4
MESSAGE_LETTERS = 400
MOST_FINGERPRINTS = MOST_REMARKS
"""Remarks that can be known: each line is searched for secrets before it is hashed."""
MOST_EXCERPTS = 100
"""Remarks of one lens that bring the code at their place, the most severe first, each file with its
share: an answer shows fewer.
"""


@dataclass(frozen=True)
class Findings:
    """One lens over one snapshot."""

    analyser: Analyser
    manifest: Manifest
    files: Sequence[SnapshotFile]
    """Files that the analyser looks at."""
    parsed: Parsed
    redactor: Redactor
    code: CodeAround
    languages: tuple[LanguageShare, ...] = ()
    """Languages of the files in scope."""
    base: Base | None = None
    """What the lens said of the base's files; None: it did not look at any."""

    @cached_property
    def _by_path(self) -> Mapping[str, SnapshotFile]:
        return {file.path: file for file in self.files}

    @cached_property
    def _gone(self) -> frozenset[str]:
        return frozenset(file.path for file in self.manifest.deleted)

    @cached_property
    def _comparison(self) -> Comparison:
        """Tell what is new since the base; without one all is."""
        root, files = self.code.snapshot.root, self._by_path
        if self.analyser.explore is not None:
            return of_change(self.parsed, {file.path: file for file in self.manifest.files})
        if self.base is None:
            return by_lines(self.parsed, files, whole=not self.manifest.base)
        return compare(self.analyser, self.parsed, root, files, self.base)

    @cached_property
    def _fragments(self) -> frozenset[str]:
        """Folders of a whole tree of whose files many cannot be parsed: pieces and patterns that
        other programs fill in, and no code.
        """
        if self.manifest.base:
            return frozenset()
        broken = {each.file for each in self.parsed.sightings if each.rule == SYNTAX}
        counts = Counter(map(_folder, broken))
        files = Counter(_folder(file.path) for file in self.files)
        return frozenset(
            folder
            for folder, count in counts.items()
            if count >= FEWEST_FRAGMENTS and 3 * count > files[folder]
        )

    def draft(self) -> Draft:
        """Return what the lens found, as data and in a few lines."""
        parsed, manifest = self.parsed, self.manifest
        changed, tests = describe_uses(parsed, self.code)
        shown = self._rank()
        suppressed = sum(
            each.suppressed and in_scope(each, self._by_path) for each in parsed.sightings
        )
        counts: Counter[str] = Counter(remark.severity for remark in shown)
        for _, row, count in self._comparison.beyond:
            counts[self._grade(row).severity] += count
        kept = fair_share(shown, MOST_REMARKS, lambda remark: remark.file)
        read = (parsed.read or 0) - len(parsed.not_parsed)
        narrower = Narrower(manifest.narrowing, ())
        missed = [each for each in manifest.missed if not narrower.takes_out(each.path)]
        return Draft(
            content=self._content(counts, len(kept), suppressed)
            + write_uses(changed, parsed.changed_in_all, tests),
            data=Sightings(
                remarks=self._clean_all(kept),
                remarks_in_all=counts.total(),
                files_read=read,
                files_in_scope=len(manifest.files),
                nothing_to_look_at="" if parsed.read else self._why_nothing(),
                suppressed=suppressed,
                old=self._comparison.old,
                not_parsed=tuple(map(self.redactor.path, parsed.not_parsed[:MOST_NAMES])),
                not_parsed_in_all=len(parsed.not_parsed),
                not_reached=tuple(map(self.redactor.path, parsed.not_reached[:MOST_NAMES])),
                not_reached_in_all=len(parsed.not_reached),
                unread=manifest.unread_in_all,
                unread_why=manifest.unread_why,
                unread_files=tuple(self._clean_unread(manifest.unread)),
                missed=manifest.missed_in_all - len(manifest.missed) + len(missed),
                missed_files=tuple(self._clean_unread(missed)),
                base=manifest.base,
                scope=manifest.scope,
                narrowing=manifest.narrowing,
                notes=self._notes(),
                languages=self.languages,
                changed=changed,
                changed_in_all=parsed.changed_in_all,
                tests=tests,
            ).model_dump(mode="json"),
        )

    def _notes(self) -> tuple[str, ...]:
        found, lens = self._comparison, self.analyser.name
        notes = [*self.manifest.notes]
        if found.not_compared:
            many = pluralize(found.not_compared, "sighting")
            notes.append(f"{many} of {lens} were too many to compare with the base")
        if found.unknown:
            notes.append(
                f"{lens} could not read the base of {pluralize(found.unknown, 'file')}, or not in"
                " time: what was there before is not known, and touched lines alone count"
            )
        return tuple(notes)

    def _clean_unread(self, files: Sequence[Unread]) -> Iterator[Unread]:
        for each in files[:MOST_NAMES]:
            yield Unread(path=self.redactor.path(each.path), why=each.why)

    def _rank(self) -> list[Remark]:
        """Return the new remarks by rank, last those that are not to be listed."""
        sightings, found = self.parsed.sightings, self._comparison
        code = baseline.locate_lines(self.code.snapshot.root, sightings)
        narrower = Narrower(self.manifest.narrowing, self.manifest.known)
        wanted = [
            (index, self._remark(sightings[index], untouched=index in found.elsewhere))
            for index in sorted(found.new)
        ]
        wanted.sort(key=lambda item: rank(item[1]))
        marked = []
        for number, (index, remark) in enumerate(wanted):
            if number < MOST_FINGERPRINTS:
                remark = self._add_fingerprint(remark, *code[index])
            hidden = narrower.why_hidden(remark)
            marked.append(remark.model_copy(update={"hidden": hidden}) if hidden else remark)
        return rank_remarks(marked)

    def _add_fingerprint(self, remark: Remark, line: str, occurrence: int) -> Remark:
        # Of the line of a credential nothing is told, be it a hash.
        told = "" if is_credential(remark) else self.redactor.message(line, len(line), remark.file)
        mark = baseline.fingerprint(self.analyser.name, remark, told, occurrence)
        return remark.model_copy(update={"fingerprint": mark})

    def _grade(self, row: str) -> Grade:
        return self.analyser.grade(row, change=bool(self.manifest.base))

    def _remark(self, sighting: Sighting, *, untouched: bool) -> Remark:
        grade, file = self._grade(sighting.grade), self._by_path.get(sighting.file)
        if sighting.rule == SYNTAX and _folder(sighting.file) in self._fragments:
            grade = UNKNOWN
        severity = grade.severity
        if severity == "critical" and sighting.rule == SYNTAX and not self._is_broken(file):
            severity = "warning"
        remark = Remark(
            severity=severity,
            file=sighting.file,
            line=sighting.line,
            column=sighting.column,
            last_line=sighting.last_line if sighting.last_line > sighting.line else 0,
            message=sighting.message,
            suggestion=sighting.suggestion,
            rule=sighting.rule,
            confidence=grade.confidence,
            lens=self.analyser.name,
            deleted=sighting.base_line > 0,
            base_line=sighting.base_line,
            gone=sighting.file in self._gone,
            kind=sighting.kind or (file.kind if file else "production"),
            summed=self.analyser.summed,
            weight=sighting.weight,
            new_since=self.manifest.base if untouched else "",
        )
        # Somebody has just put it there: whether it is made up is theirs to say.
        return remark if self.manifest.base else temper(remark, in_comment=sighting.in_comment)

    def _is_broken(self, file: SnapshotFile | None) -> bool:
        """True if an error of syntax is in the code and not in the tool: it reads all of the
        language, or it could read the file's base.
        """
        if self.analyser.reads_all:
            return True
        if file is None or self.base is None or file.was not in self.base.files:
            return False
        parsed = self.base.parsed
        return file.was not in {*parsed.not_parsed, *parsed.not_reached}

    def _clean_all(self, kept: Sequence[Remark]) -> tuple[Remark, ...]:
        """Return the remarks as they leave this process; the first of each file with the code
        there.
        """
        shown = fair_share(
            [each for each in range(len(kept)) if not kept[each].summed],
            MOST_EXCERPTS,
            lambda place: kept[place].file,
        )
        places = self.code.at([kept[each] for each in shown])
        placed = dict(zip(shown, places, strict=True))
        return tuple(self._clean(placed.get(place, each)) for place, each in enumerate(kept))

    def _clean(self, remark: Remark) -> Remark:
        """Return the remark as it leaves this process."""
        redactor = self.redactor
        return remark.model_copy(
            update={
                "file": redactor.path(remark.file),
                "message": redactor.message(remark.message, MESSAGE_LETTERS, remark.file),
                "suggestion": redactor.message(remark.suggestion, MESSAGE_LETTERS, remark.file),
            }
        )

    def _unread(self) -> int:
        """Return how many files this tool would have looked at, had they been read."""
        reads = self.analyser.languages
        if reads is None:
            return 0
        endings = self.manifest.unread_endings
        return sum(
            count for ending, count in endings.items() if language_of(f"file{ending}") in reads
        )

    def _why_nothing(self) -> str:
        """Complete the sentence "nothing to look at: …"."""
        if self.analyser.survey is not None and self.manifest.commits:
            return "no file left of what differs from the base"
        ranged = self.manifest.base and self.analyser.survey is None
        scope = " differing from the base" if ranged else ""
        if self.analyser.explore is not None and not self.manifest.base:
            return "no base to compare with"
        unread = self._unread()
        read = f" that could be read, and {unread} that could not" if unread else ""
        return f"no {self.analyser.looks_for}{scope}{read}"

    def _content(self, counts: Counter[str], kept: int, suppressed: int) -> str:
        parsed = self.parsed
        if not parsed.read:
            return f"Nothing to look at: {self._why_nothing()}."
        kinds = by_severity(counts)
        read = pluralize(parsed.read - len(parsed.not_parsed), "file")
        lines = [f"{read} looked at: {kinds or 'no remarks'}."]
        if counts.total() > kept:
            lines.append(
                f"Of {counts.total()} remarks {kept} are handed on, of each file its share."
            )
        if suppressed:
            lines.append(f"{pluralize(suppressed, 'remark')} suppressed in the code.")
        if parsed.not_parsed:
            lines.append(f"{pluralize(len(parsed.not_parsed), 'file')} could not be parsed.")
        if parsed.not_quotable:
            count = pluralize(len(parsed.not_quotable), "file")
            kinds = "in a line above 5,000 characters only secrets of known kinds are looked for"
            lines.append(f"{count}: {kinds}.")
        if parsed.not_reached:
            count = pluralize(len(parsed.not_reached), "file")
            lines.append(f"{count} not looked at: the time limit was reached.")
        lines += _sentences((*parsed.notes, *self._notes()))
        return "\n".join(f"- {line}" for line in lines)


def _folder(path: str) -> str:
    return path.rpartition("/")[0]


def _sentences(notes: Iterable[str]) -> Iterable[str]:
    return (f"{note[:1].upper()}{note[1:]}." for note in notes)
