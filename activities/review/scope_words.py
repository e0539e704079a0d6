"""Which lens looked at what, in which languages, and at what nobody did: never more than was so."""

from __future__ import annotations

from holdfast.activities.review.outcome import Outcome
from holdfast.contracts import LanguageShare
from holdfast.text import for_markdown, pluralize

MOST_LANGUAGES = 8
"""Languages that are named in one sentence."""


def looked(outcome: Outcome) -> str:
    """The paragraph about all of that."""
    what = f"what differs from {outcome.base[:12]}" if outcome.base else "the tree"
    parts = [f"In {what}: {pluralize(outcome.files, 'file')} of text."]
    if outcome.scope:
        parts = [f"Reviewed: {for_markdown(outcome.scope)}."]
        if outcome.base:
            parts.append("`--input scope=all` takes the whole tree.")
    parts += [*_by_language(outcome), *_of_any_file(outcome)]
    parts += [*_not_parsed(outcome), *_unread(outcome)]
    by_reason: dict[str, list[str]] = {}
    for lens, why in outcome.idle:
        by_reason.setdefault(why, []).append(lens)
    parts += [
        f"**Nothing to look at** for {names(lenses)}: {for_markdown(why)}."
        for why, lenses in by_reason.items()
    ]
    return " ".join(parts)


def _by_language(outcome: Outcome) -> list[str]:
    """Who looked for defects in which languages."""
    by_lenses: dict[tuple[str, ...], list[LanguageShare]] = {}
    for language in outcome.languages:
        if lenses := outcome.readers(language):
            by_lenses.setdefault(lenses, []).append(language)
    return [
        f"{names(list(lenses))} looked for defects in {_listed(languages)}."
        for lenses, languages in by_lenses.items()
    ]


def _of_any_file(outcome: Outcome) -> list[str]:
    """Who looked at files whatever their language, and at how many."""
    special = {lens for language in outcome.languages for lens in outcome.readers(language)}
    by_count: dict[int, list[str]] = {}
    for lens, count in outcome.looked:
        if count and lens not in special:
            by_count.setdefault(count, []).append(lens)
    seen = [
        f"{names(lenses)} looked at {pluralize(count, 'file')}"
        for count, lenses in sorted(by_count.items(), reverse=True)
    ]
    return [f"{'; '.join(seen)}."] if seen else []


def _not_parsed(outcome: Outcome) -> list[str]:
    """Who could not take in how many of the files that were for it."""
    by_count: dict[int, list[str]] = {}
    for lens, count in outcome.not_parsed_by:
        by_count.setdefault(count, []).append(lens)
    said = [
        f"{pluralize(count, 'file')} by {names(lenses)}"
        for count, lenses in sorted(by_count.items(), reverse=True)
    ]
    return [f"**Not parsed**: {'; '.join(said)}."] if said else []


def _unread(outcome: Outcome) -> list[str]:
    """The code in which nobody looked for defects, with its share of the files."""
    unread = outcome.unread_code
    # What agents open is their own choice: of which languages it was, nobody keeps count.
    who = "No analyser" if outcome.agents else "Nobody"
    return [f"**{who} looked for defects** in {_listed(unread, share=True)}."] if unread else []


def _listed(languages: list[LanguageShare] | tuple[LanguageShare, ...], share: bool = False) -> str:
    """`Go (12 files, 4 %) and Ruby (1 file)`."""
    said = [
        f"{for_markdown(each.name)} ({pluralize(each.files, 'file')}"
        + (f", {each.percent or 'under 1'} %)" if share else ")")
        for each in languages[:MOST_LANGUAGES]
    ]
    if len(languages) > MOST_LANGUAGES:
        said.append(pluralize(len(languages) - MOST_LANGUAGES, "more language"))
    return joined(said)


def names(lenses: list[str]) -> str:
    """`bugs, security and history`, as Markdown."""
    return joined([for_markdown(each) for each in lenses])


def joined(words: list[str]) -> str:
    """The words as one speaks them."""
    return " and ".join(filter(None, (", ".join(words[:-1]), words[-1])))
