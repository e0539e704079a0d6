"""What a review came to: the remarks, what is told in sum, and all that was counted."""

from __future__ import annotations

from dataclasses import dataclass, field

from holdfast.activities.review.scope import elsewhere
from holdfast.contracts import LanguageShare, Remark, Unread
from holdfast.contracts.remarks import blocks_change, stands


@dataclass(frozen=True)
class Outcome:
    """Of a review. `remarks` are ranked and above the least confidence."""

    remarks: tuple[Remark, ...]
    summed: tuple[Remark, ...] = ()
    """What is no defect by itself, ranked and above the least confidence: told in a paragraph."""
    taken_out: str = ""
    """What the repository's settings and a baseline took out, as Markdown."""
    hidden: dict[str, int] = field(default_factory=dict)
    """How many remarks each word of these took out."""
    below: int = 0
    min_confidence: int = 0
    to_verify: int = 0
    """How many a model was to verify."""
    suppressed: int = 0
    cut: int = 0
    cut_of_agents: dict[str, int] = field(default_factory=dict)
    """How many remarks of each agent are not handed on, where there are any."""
    unread: int = 0
    unread_why: dict[str, int] = field(default_factory=dict)
    missed: int = 0
    """Of the files not read, how many are text that somebody wrote, as far as anybody can tell."""
    missed_files: tuple[Unread, ...] = ()
    not_parsed: tuple[str, ...] = ()
    not_parsed_by: tuple[tuple[str, int], ...] = ()
    """The lenses that could not parse something, each with how many files."""
    files: int = 0
    """Text files in scope."""
    base: str = ""
    scope: str = ""
    """How much was taken and why, in words; empty: nobody had a choice."""
    languages: tuple[LanguageShare, ...] = ()
    """Of the files in scope, the most common first."""
    notes: tuple[str, ...] = ()
    looked: tuple[tuple[str, int], ...] = ()
    """The lenses that looked at something, each with how many files."""
    idle: tuple[tuple[str, str], ...] = ()
    """The lenses that had nothing to look at, each with the reason."""
    agents: dict[str, int] = field(default_factory=dict)
    """The agents that read the code, each with how many calls of tools it made."""
    unconfirmed: tuple[Remark, ...] = ()
    """What only an agent says."""
    missing: tuple[str, ...] = ()
    """Titles of lenses that failed; why, the report's gaps say. What was never to run, the report
    lists with the reason.
    """

    @property
    def standing(self) -> list[Remark]:
        """What is listed: in production code, and nobody has refuted it."""
        return [each for each in elsewhere.in_production(self.remarks) if stands(each)]

    @property
    def counted(self) -> list[Remark]:
        """What may hold up a change: also what an analyser found and a model refuted."""
        return [each for each in self.remarks if blocks_change(each)]

    def readers(self, language: LanguageShare) -> tuple[str, ...]:
        """The lenses for a language that really looked: one that could parse nothing did not."""
        failed = {lens for lens, _ in self.not_parsed_by}
        there = {lens for lens, count in self.looked if count or lens not in failed}
        return tuple(lens for lens in language.lenses if lens in there)

    @property
    def unread_code(self) -> tuple[LanguageShare, ...]:
        """The languages of code in which nobody looked for defects."""
        return tuple(
            each for each in self.languages if each.kind == "code" and not self.readers(each)
        )

    @property
    def checked(self) -> bool:
        """Whether anybody looked for defects in code: where there is any, a search for secrets
        alone says nothing of them.
        """
        if self.agents:
            return True
        code = [each for each in self.languages if each.kind == "code"]
        return bool(self.looked) and (not code or len(self.unread_code) < len(code))
