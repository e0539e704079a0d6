"""Tells GitHub what a review came to: threads and summary of a pull request, a check, SARIF, and
the page of the workflow's run. What the token may not do is left out, and said; the rest is done.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from holdfast.contracts import Report, ReviewData, Severity
from holdfast.contracts.remarks import read_review
from holdfast.doors.github import checks, pulls, threads
from holdfast.doors.github.api import Api, ApiFailed, NotAllowed, Say, Unclear, UnknownToken
from holdfast.doors.github.checks import Check, Conclusion
from holdfast.doors.github.event import Asked
from holdfast.doors.github.pulls import PullState
from holdfast.doors.github.reviewing import Found, Range, codes_of
from holdfast.rendering.blocks import Marked
from holdfast.rendering.comment import as_comment
from holdfast.rendering.sarif import as_sarif
from holdfast.rendering.verdict import counted, judge
from holdfast.text import code_span, inline, pluralize

AGAIN = 3
"""Times that something is looked at and done, where it was unclear whether it had been done."""
BY_WORKFLOW = "not accessible by integration"
"""Words of GitHub's for what the token of a workflow may not do."""
NOT_RESOLVED = (
    "resolving threads: GitHub wants the permission contents: write for that; the threads say that"
    " their remarks are gone"
)
READ_ONLY = "the token only reads, as of any pull request from a fork"


@dataclass(frozen=True)
class Judged:
    """What the gate says of a review."""

    conclusion: Conclusion
    code: int


Gate = Callable[[Report, Sequence[Severity]], Judged]
"""Judges a report, with the severities of earlier remarks of agents that still stand."""


@dataclass
class Teller:
    """Tells one review."""

    api: Api
    asked: Asked
    repository: Path
    say: Say
    gate: Gate
    server: str = "https://github.com"
    fail_on: str = ""
    left_out: list[str] = field(default_factory=list)
    annotations: list[str] = field(default_factory=list)
    """Commands for a runner of Actions that show remarks which nothing else tells."""
    _told: set[str] = field(default_factory=set)
    """Keys of remarks that have a thread, open or not."""
    _opened: set[str] = field(default_factory=set)
    """Keys of those whose thread is open."""
    _standing: list[Severity] = field(default_factory=list)
    _reached: bool = False
    """True if GitHub took something from this token."""
    _posted: bool = False
    """True if something was posted that another job at once may have posted as well."""

    async def tell(self, found: Found) -> tuple[Judged, str]:
        """Tell everybody; return what the gate says, and the page of the workflow's run."""
        notes = [describe_range(found.range)] if found.range.base else []
        if found.range.replaced:
            replaced = code_span(found.range.replaced[:12])
            notes.append(f"This push replaced {replaced}, which no clone has.")
        if self.asked.pull:
            notes += await self._threads(found)
        judged = self.gate(found.report, self._standing)
        page = as_comment(found.report, self._links, self.fail_on, [*map(Marked, notes)])
        if self.asked.pull:
            text = threads.as_read(page, self._read_up_to(found))
            await self._try("the summary", lambda: self._summary(text))
            if self._posted:
                await self._try("doubles", self._read)
        review = read_review(found.report) or ReviewData()
        remarks = counted(review)
        told = [each for key, each in threads.keyed(remarks).items() if key not in self._opened]
        verdict = judge(review, found.report.status)
        check = Check(judged.conclusion, verdict.said, verdict.line, told)
        if not await self._try("the check", lambda: checks.tell_check(self.api, self.asked, check)):
            self.annotations += checks.as_commands(told)
        if self.asked.ref:
            document = as_sarif(found.report)
            await self._try(
                "SARIF", lambda: checks.upload_sarif(self.api, self.asked, document), unclear=False
            )
        return judged, "\n\n".join([page, *(f"Left out: {inline(each)}" for each in self.left_out)])

    @property
    def _links(self) -> str:
        return f"{self.server}/{self.asked.repository}/blob/{self.asked.head}"

    async def _try(
        self, what: str, do: Callable[[], Awaitable[object]], *, unclear: bool = True
    ) -> bool:
        """Do something that looks first what is there; look and do it again where it is unclear
        whether it was done. Return False, and say what was left out, if it could not be. Raise
        UnknownToken if nothing was told before.
        """
        for attempt in range(AGAIN):
            try:
                await do()
                self._reached = True
                return True
            except Unclear as error:
                if attempt == AGAIN - 1 or not unclear:
                    self._leave_out(what, error)
                    return False
                self.say(f"{error}: looking whether it was done")
            except ApiFailed as error:
                if isinstance(error, UnknownToken) and not self._reached:
                    raise
                self._leave_out(what, error)
                return False
        raise AssertionError("the last attempt returns")

    def _leave_out(self, what: str, error: ApiFailed) -> None:
        fork = self.asked.pull is not None and self.asked.pull.fork
        why = f" ({READ_ONLY})" if fork and BY_WORKFLOW in str(error) else ""
        self.left_out.append(f"{what}: {error}{why}")

    def _read_up_to(self, found: Found) -> str:
        """Return the commit from which agents go on the next time: what they said is kept by its
        thread alone, so where one has none they look there again.
        """
        remarks = threads.keyed(counted(read_review(found.report) or ReviewData()))
        lost = any(each.by_agent and key not in self._told for key, each in remarks.items())
        return found.range.since if lost else found.read_up_to

    # ------------------------------------------------------------ threads

    async def _threads(self, found: Found) -> list[str]:
        """Bring the threads up to date; return what the summary says of them."""
        notes: list[str] = []

        async def once() -> None:
            notes[:] = await self._threads_once(found)

        await self._try("review threads", once)
        return notes

    async def _threads_once(self, found: Found) -> list[str]:
        state = await self._read()
        review = read_review(found.report) or ReviewData()
        remarks = counted(review)
        known = {each.mark.key for each in state.threads}
        fresh = any(key not in known for key in threads.keyed(remarks))
        head, paths = self.asked.head, pulls.paths_of_agents(state.threads)
        seen = threads.Seen(
            remarks=remarks,
            in_diff=await pulls.read_difference(self.api, self.asked) if fresh else (),
            whole=found.report.status in ("complete", "complete_with_gaps"),
            failed=review.failed,
            unread={*review.not_parsed, *review.not_reached, *(e.path for e in review.missed)},
            head=head,
            codes=await codes_of(self.repository, found.range, paths),
        )
        plan = threads.plan(state.threads, seen)
        self._opened = {each.mark.key for each in state.threads if not each.resolved}
        self._standing = threads.worst_of(plan.standing)
        closed = [
            await pulls.change(self.api, each, threads.as_gone(each, head), resolve=True)
            for each in plan.resolved
        ]
        for each in plan.reopened:
            await pulls.change(self.api, each, threads.as_back(each), resolve=False)
        new: list[str] = []
        if plan.opened:
            self._posted = True
            new = await pulls.open_threads(self.api, self.asked, plan.opened, self.fail_on)
        self._opened |= {*new, *(each.mark.key for each in plan.reopened)}
        self._told = {*known, *new}
        if not all(closed) and NOT_RESOLVED not in self.left_out:
            self.left_out.append(NOT_RESOLVED)
        untold = plan.outside + plan.beyond + len(plan.opened) - len(new)
        return [*describe_threads(plan, len(new), untold)]

    async def _summary(self, text: str) -> None:
        state = await self._read()
        self._posted |= not state.summary
        await pulls.write_summary(self.api, self.asked, state, text)

    async def _read(self) -> PullState:
        """Return what the pull request has of ours, without doubles, which are deleted. ApiFailed
        if its head is another by now.
        """
        state = await pulls.read_pull(self.api, self.asked)
        if state.head != self.asked.head:
            raise ApiFailed(f"{state.head[:12]} was pushed meanwhile, and its own review tells")
        try:
            await pulls.delete_doubles(self.api, state)
        except NotAllowed as error:
            if not any(each.startswith("deleting doubles") for each in self.left_out):
                self._leave_out("deleting doubles", error)
        return state


def describe_range(span: Range) -> str:
    """Return in a line which commits were compared."""
    said = f"Lenses looked at {code_span(f'{span.base[:12]}..{span.head[:12]}')}"
    if not span.since:
        return f"{said}."
    if span.since == span.head:
        return f"{said}; agents had read all of it before."
    return f"{said}, agents at the new commits {code_span(f'{span.since[:12]}..{span.head[:12]}')}."


def describe_threads(plan: threads.Plan, new: int, untold: int) -> list[str]:
    """Return what became of the threads, as lines of Markdown."""
    parts = [
        f"{new:,} opened" if new else "",
        f"{len(plan.resolved):,} resolved" if plan.resolved else "",
        f"{len(plan.reopened):,} opened again" if plan.reopened else "",
    ]
    said = ", ".join(filter(None, parts))
    lines = [f"Threads: {said}."] if said else []
    if plan.left:
        gone = pluralize(len(plan.left), "thread")
        lines.append(f"{gone} left open: the remark is gone, and somebody answered there.")
    if plan.standing:
        places = ", ".join(dict.fromkeys(code_span(each.path) for each in plan.standing))
        count = pluralize(len(plan.standing), "earlier remark")
        lines.append(f"{count} of agents still open, in {places}: the code is still there.")
    if untold:
        lines.append(
            f"{pluralize(untold, 'new remark')} without a thread: not at a line of the difference,"
            f" or beyond the first {threads.MOST_NEW}."
        )
    return lines
