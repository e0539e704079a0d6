"""What a review leaves for a program beside its report: SARIF, a comment for the change, and an
exit code by severity, so that it can stand in a pipeline's way.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from holdfast.cli.screen.exits import Code, Exit
from holdfast.cli.screen.streams import say
from holdfast.contracts import Report, ReviewData
from holdfast.contracts.remarks import REVIEW, read_review
from holdfast.rendering.comment import as_comment
from holdfast.rendering.proofs import patches_of
from holdfast.rendering.reach import count_missed
from holdfast.rendering.remarks import by_severity, refuted_of
from holdfast.rendering.sarif import as_sarif
from holdfast.rendering.verdict import counted, failing, looked_at_nothing
from holdfast.storage.files import write_whole
from holdfast.text import for_terminal, pluralize

FAILING = ("critical", "warning")
"""Values of `--fail-on`."""
MOST_NAMED = 5
"""Files that could not be read, in a line."""


@dataclass(frozen=True)
class Pipeline:
    """Files that a review writes beside its report; none by default."""

    fail_on: str = ""
    sarif: Path | None = None
    comment: Path | None = None
    links: str = ""
    fix: Path | None = None

    @property
    def wanted(self) -> bool:
        """True if anything was asked for that only a review has."""
        return bool(self.fail_on or self.sarif or self.comment or self.fix)

    def pass_on(self, report: Report, code: Code) -> Code:
        """Write the files; return the run's exit code, or another if remarks are too severe.

        Exit for a complete run that is not a review: a check that never fails protects nothing.
        """
        if not self.wanted:
            return code
        review = read_review(report)
        if review is None:
            if code is not Code.COMPLETE:
                return code
            raise no_review(f"run {report.run_id}")
        self._write(report)
        severe = failing(self.fail_on)
        stopped = [each for each in counted(review) if each.severity in severe]
        if code not in (Code.COMPLETE, Code.PARTIAL):
            return code
        if not stopped:
            return self._unless_missed(review, code)
        count = f"{by_severity(Counter(each.severity for each in stopped))}{refuted_of(stopped)}"
        say(f"--fail-on {self.fail_on}: {count}, exit code {Code.REMARKS}", "bold red")
        return Code.REMARKS

    def check(self, template: str, what: str) -> None:
        """Exit, before anything is paid, if something was asked for that only a review has and this
        run is none.
        """
        if self.wanted and template != REVIEW:
            raise no_review(what)

    def _unless_missed(self, review: ReviewData, code: Code) -> Code:
        """Return the exit code of a review without severe remarks; partial if something was not
        read, or nothing was looked at.
        """
        if not self.fail_on:
            return code
        unseen = [
            f"{pluralize(count, 'file')} not looked at by {for_terminal(lens)}: the time limit was"
            " reached"
            for lens, count in review.not_reached_by.items()
        ]
        if review.missed_in_all:
            named = review.missed[:MOST_NAMED]
            first = ", ".join(f"{for_terminal(each.path)} ({each.why})" for each in named)
            more = ", …" if review.missed_in_all > len(named) else ""
            unseen.insert(0, f"{count_missed(review)} not read: {first}{more}")
        if review.base and review.not_parsed:
            # Of a change, what no parser takes may be there to hide the rest of its file.
            lost = review.not_parsed
            first = ", ".join(map(for_terminal, lost[:MOST_NAMED]))
            more = ", …" if len(lost) > MOST_NAMED else ""
            unseen.append(f"{pluralize(len(lost), 'file')} could not be parsed: {first}{more}")
        if looked_at_nothing(review):
            unseen.insert(0, "nothing was looked at")
        for said in unseen:
            say(f"--fail-on {self.fail_on}: {said}, exit code {Code.PARTIAL}", "bold red")
        return Code.PARTIAL if unseen else code

    def _write(self, report: Report) -> None:
        for path, text in self._files(report):
            try:
                write_whole(path, text.encode("utf-8", "backslashreplace"))
                say(f"Written: {path}")
            except OSError as error:
                say(f"{path} could not be written: {error.strerror}", "magenta")

    def _files(self, report: Report) -> Iterator[tuple[Path, str]]:
        if self.sarif:
            yield self.sarif, as_sarif(report)
        if self.comment:
            yield self.comment, as_comment(report, self.links, self.fail_on)
        if self.fix:
            patches, left_out = patches_of(read_review(report) or ReviewData())
            yield self.fix, patches
            if left_out:
                named = ", ".join(for_terminal(f"{each.file}:{each.line}") for each in left_out)
                say(f"Not in it, since another patch is too near: {named}; apply it, review again")


def no_review(what: str) -> Exit:
    """Return the refusal of a run that has no remarks."""
    return Exit(
        f"{what} is not a review, so it has no remarks: leave out --fail-on, --sarif and --comment"
    )
