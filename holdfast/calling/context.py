"""How much of the findings one model may read: the cap of the supervisor's context. Pure.

What exceeds it is rolled up into digests, as far as that can be paid and succeeds; the rest is cut,
and the report says so.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from holdfast.contracts import Finding
from holdfast.state.parts import partial_of, passes_on
from holdfast.state.run import State

EXPECTED_BYTES_PER_TOKEN = 4
"""Bytes of a token of plain English; decides what is shortened, never what is paid."""
MOST_REASON = 400
"""Bytes of a reason why a subtask found nothing."""


def room(state: State) -> int:
    """Return the bytes of findings that one model may read."""
    return state.goal.limits.supervisor_context_tokens * EXPECTED_BYTES_PER_TOKEN


def fits(state: State) -> bool:
    """True if everything usable, as far as it is rolled up, can be read at once. Where the plan
    reduces, only what is rolled up can.
    """
    if is_reducing(state):
        return False
    return sum(map(_size, state.finishing.rolled or state.usable)) <= room(state)


REDUCED_AT_ONCE = 4
"""Findings that are condensed into one, where the plan's strategy is reduce."""


def is_reducing(state: State) -> bool:
    """True if the plan wants its findings condensed before they are combined, and none is yet."""
    reduces = state.plan is not None and state.plan.strategy == "reduce"
    return reduces and state.finishing.round == 0


def batches(state: State) -> list[tuple[Finding, ...]]:
    """Return the findings in order, in batches of at most half a context, and of a few where the
    plan reduces.
    """
    most = REDUCED_AT_ONCE if is_reducing(state) else len(state.work)
    found: list[tuple[Finding, ...]] = []
    batch: list[Finding] = []
    filled = 0
    for finding in state.finishing.rolled or state.usable:
        size = _size(finding)
        # At least two: a batch of one could never get shorter.
        if len(batch) > 1 and (filled + size > room(state) // 2 or len(batch) >= most):
            found.append(tuple(batch))
            batch, filled = [], 0
        batch.append(finding)
        filled += size
    return [*found, tuple(batch)] if batch else found


def replace_rolled(state: State) -> tuple[Finding, ...]:
    """Return what is usable, with its digest for each batch that is rolled up."""
    finishing = state.finishing
    if not finishing.rolling:
        return finishing.rolled or state.usable
    whole: list[Finding] = []
    for place, batch in enumerate(batches(state)):
        rolled = finishing.rolling.get(place)
        whole += (rolled,) if rolled else batch
    return tuple(whole)


def is_long(state: State, finding: Finding) -> bool:
    """True if a reader is given the digest of a finding instead of the whole."""
    return is_longer(partial_of(finding), longest(state))


def longest(state: State) -> int:
    """Return the bytes of a finding that readers are given as it is."""
    return state.goal.limits.digest_above_tokens * EXPECTED_BYTES_PER_TOKEN


def shorten(state: State, finding: Finding) -> Finding:
    """Return a finding with its digest as its content; without one with its beginning, marked."""
    text = finding.digest or _beginning(partial_of(finding), longest(state))
    update: dict[str, object] = {"content": text, "digest": "", "claims": (), "data": {}}
    if finding.escalation is not None:
        update["escalation"] = finding.escalation.model_copy(update={"partial": text})
    return finding.model_copy(update=update)


def cut_to_fit(
    findings: Iterable[Finding], most: int
) -> tuple[tuple[Finding, ...], tuple[str, ...]]:
    """Cut findings to at most so many bytes in all. Return them with what a model reads as their
    content, and the ids of those that were cut: the longest, all to the same length.
    """
    found = tuple(findings)
    # Of very many that failed the reasons alone would fill the room.
    reason = min(MOST_REASON, most // 2 // max(len(found), 1))
    shown = [_as_read(each, reason) for each in found]
    whys = sum(len(each.why.encode()) for each in shown)
    share = _share([len(each.content.encode()) for each in shown], max(most - whys, 0))
    short = [_cut(each, share) for each in shown]
    changed = zip(shown, short, strict=True)
    return tuple(short), tuple(old.subtask_id for old, new in changed if old != new)


def is_longer(text: str, most: int) -> bool:
    """True if a text has more than so many bytes in UTF-8, which has one to four per character."""
    return len(text) > most or (len(text) * 4 > most and len(text.encode()) > most)


def _size(finding: Finding) -> int:
    return len((finding.digest or finding.content).encode())


def _as_read(finding: Finding, reason: int) -> Finding:
    partial = finding.escalation.partial if finding.escalation else ""
    text = finding.digest or partial or finding.content
    why = _beginning(finding.why, reason)
    return finding.model_copy(update={"content": text, "digest": "", "why": why})


def _share(sizes: Sequence[int], most: int) -> int:
    """Return the length to cut the longest of these to, so that all together have at most `most`
    bytes; shorter ones leave their rest to the others.
    """
    left = most
    for place, size in enumerate(sorted(sizes)):
        share = left // (len(sizes) - place)
        if size > share:
            return share
        left -= size
    return max(sizes, default=0)


def _cut(finding: Finding, most: int) -> Finding:
    text = _beginning(finding.content, most)
    given_back = finding.escalation
    if given_back is not None and passes_on(finding):
        given_back = given_back.model_copy(update={"partial": text})
    return finding.model_copy(update={"content": text, "escalation": given_back})


def _beginning(text: str, most: int) -> str:
    """Cut a text to at most so many bytes of UTF-8, with a mark."""
    whole = text.encode()
    if len(whole) <= most:
        return text
    mark = f" … [cut: {len(whole)} bytes in all]".encode()
    kept = whole[: most - len(mark)] + mark if most > len(mark) else whole[:most]
    return kept.decode("utf-8", "ignore")
