"""Say what a review does not list because of the repository's settings, or because it is known:
exactly what, by whose word, and how many remarks that hides.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence

from holdfast.activities.review.rule_names import explain_unknown
from holdfast.activities.review.scope.narrowing import KNOWN, RULE, THRESHOLD
from holdfast.contracts import Narrowing, Remark
from holdfast.text import code_span, for_markdown, pluralize

MOST_NAMED = 10
"""Patterns or rules that are told one by one."""


def listed(remarks: Iterable[Remark]) -> list[Remark]:
    """Those that nothing takes out."""
    return [each for each in remarks if not each.hidden]


def count_hidden(remarks: Iterable[Remark]) -> dict[str, int]:
    """Return how many remarks each word took out."""
    return dict(sorted(Counter(each.hidden for each in remarks if each.hidden).items()))


def describe_taken_out(narrowing: Narrowing, remarks: Sequence[Remark], min_confidence: int) -> str:
    """Return what was taken out, as Markdown; `remarks` are those above the least confidence,
    hidden ones too. Empty: nothing was asked for.
    """
    counts = Counter(each.hidden for each in remarks if each.hidden)
    criticals = Counter(
        each.hidden for each in remarks if each.hidden and each.severity == "critical"
    )
    lines = [
        *_settings(narrowing, counts, criticals, min_confidence),
        *_known(narrowing, counts[KNOWN], criticals[KNOWN]),
        *(f"Not obeyed: {for_markdown(each)}." for each in narrowing.not_obeyed),
        *(f"{code_span(first)}{for_markdown(rest)}." for first, rest in _split(narrowing.changed)),
    ]
    if not lines:
        return ""
    return "\n".join(["### Taken out of this review", "", *(f"- {line}" for line in lines)])


def _settings(
    narrowing: Narrowing, counts: Counter[str], criticals: Counter[str], min_confidence: int
) -> Iterator[str]:
    said = f"By {for_markdown(narrowing.source)}"
    paths = [(f"files {code_span(each)}", f"path {each}") for each in narrowing.paths_out]
    rules = [
        (f"rule {code_span(name)}, because: {for_markdown(why)}", f"{RULE}{name}")
        for name, why in narrowing.rules_off.items()
    ]
    both = [*paths, *rules]
    for what, why in both[:MOST_NAMED]:
        hides = _hides(counts[why], criticals[why])
        if (
            not counts[why]
            and why.startswith(RULE)
            and (no_rule := explain_unknown(why[len(RULE) :]))
        ):
            hides = f"hides nothing: {no_rule}"
        yield f"{said}: {what} ({hides})"
    if more := both[MOST_NAMED:]:
        total = sum(counts[why] for _, why in more)
        worst = sum(criticals[why] for _, why in more)
        yield f"{said}: {len(more)} more patterns and rules ({_hides(total, worst)})"
    if narrowing.threshold > min_confidence:
        hides = _hides(counts[THRESHOLD], criticals[THRESHOLD])
        yield f"{said}: what is below confidence {narrowing.threshold} ({hides})"
    elif narrowing.threshold:
        yield (
            f"{said}: a threshold of {narrowing.threshold}, which has no effect: this review lists"
            f" nothing below {min_confidence} as it is"
        )


def _known(narrowing: Narrowing, count: int, criticals: int) -> Iterator[str]:
    if narrowing.baselines:
        where = " and ".join(map(for_markdown, narrowing.baselines))
        yield f"**Known**: {_hides(count, criticals)}, by {where}"


def _hides(count: int, criticals: int) -> str:
    worst = f", {criticals} of them critical" if criticals else ""
    return f"{pluralize(count, 'remark')} not listed{worst}" if count else "hides nothing more"


def _split(lines: Iterable[str]) -> Iterator[tuple[str, str]]:
    for line in lines:
        name, found, rest = line.partition(" ")
        yield name, found + rest
