"""What a review came to: the data of its report, and what the answer says beside it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from holdfast.activities.review.scope import elsewhere
from holdfast.contracts import LanguageShare, Remark, ReviewData, Sightings
from holdfast.contracts.remarks import blocks_change, stands


@dataclass(frozen=True)
class Looked:
    """The lenses and agents that looked at the code and came to an end."""

    lenses: Mapping[str, Sightings]
    agents: Mapping[str, int]
    """Tool calls of each agent."""

    @property
    def languages(self) -> tuple[LanguageShare, ...]:
        """The languages of the files in scope, the most common first."""
        return next((each.languages for each in self.lenses.values() if each.languages), ())

    @property
    def files(self) -> dict[str, int]:
        """Files read, by each lens that had any to read."""
        found = self.lenses.items()
        return {name: each.files_read for name, each in found if not each.nothing_to_look_at}

    @property
    def idle(self) -> dict[str, str]:
        """Return why lenses had no file to read, by lens."""
        return {
            name: each.nothing_to_look_at
            for name, each in self.lenses.items()
            if each.nothing_to_look_at
        }

    @property
    def not_parsed(self) -> dict[str, int]:
        """Files that a lens could not parse, by each lens with any."""
        counts = {
            name: max(each.not_parsed_in_all, len(each.not_parsed))
            for name, each in self.lenses.items()
        }
        return {name: count for name, count in counts.items() if count}

    def readers(self, language: LanguageShare) -> tuple[str, ...]:
        """Return the lenses for a language that really looked: one that could parse nothing did
        not.
        """
        files, failed = self.files, self.not_parsed
        return tuple(
            lens
            for lens in language.lenses
            if lens in files and (files[lens] or lens not in failed)
        )

    @property
    def unread_code(self) -> tuple[LanguageShare, ...]:
        """The languages of code in which no lens looked for defects."""
        return tuple(
            each for each in self.languages if each.kind == "code" and not self.readers(each)
        )

    @property
    def at_code(self) -> bool:
        """True if anybody looked for defects in code: where there is any, a search for secrets
        alone says nothing of them.
        """
        code = [each for each in self.languages if each.kind == "code"]
        some = bool(self.files) and (not code or len(self.unread_code) < len(code))
        return bool(self.agents) or some


@dataclass(frozen=True)
class Outcome:
    """Outcome of a review."""

    data: ReviewData
    looked: Looked
    summed: Mapping[str, list[Remark]]
    """Remarks that are not defects by themselves, ranked, by lens: told in a paragraph."""
    outside: str
    """Remarks outside production code, as Markdown."""
    taken_out: str
    """Remarks that the repository's settings and a baseline took out, as Markdown."""
    to_verify: int
    """Remarks that a model was to verify."""
    unread_why: Mapping[str, int]
    notes: tuple[str, ...]
    missing: tuple[str, ...]
    """Titles of lenses that failed; the report's gaps say why."""

    @property
    def standing(self) -> list[Remark]:
        """Return the listed remarks: in production code, and not refuted."""
        return [each for each in elsewhere.select_production(self.data.remarks) if stands(each)]

    @property
    def blocking(self) -> list[Remark]:
        """Return the remarks that may fail a change, also an analyser's that a model refuted."""
        return [each for each in self.data.remarks if blocks_change(each)]
