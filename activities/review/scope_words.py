"""Say which lens looked at what, in which languages, and at what nobody did: never more than was
so.
"""

from __future__ import annotations

from holdfast.activities.review.outcome import Looked, Outcome
from holdfast.contracts import LanguageShare
from holdfast.text import for_markdown, pluralize

MOST_LANGUAGES = 8
"""Languages that are named in one sentence."""


def describe_reach(outcome: Outcome) -> str:
    """Return the paragraph about all of that."""
    base, scope = outcome.data.base, outcome.data.scope
    what = f"what differs from {base[:12]}" if base else "the tree"
    parts = [f"In {what}: {pluralize(outcome.data.files_read, 'file')} of text."]
    if scope:
        parts = [f"Reviewed: {for_markdown(scope)}."]
        if base:
            parts.append("`--input scope=all` takes the whole tree.")
    seen = outcome.looked
    parts += [*_by_language(seen), *_of_any_file(seen), *_by_failed(seen), *_unread(seen)]
    by_reason: dict[str, list[str]] = {}
    for lens, why in seen.idle.items():
        by_reason.setdefault(why, []).append(lens)
    parts += [
        f"**Nothing to look at** for {join_names(lenses)}: {for_markdown(why)}."
        for why, lenses in by_reason.items()
    ]
    return " ".join(parts)


def _by_language(looked: Looked) -> list[str]:
    """Say who looked for defects in which languages."""
    by_lenses: dict[tuple[str, ...], list[LanguageShare]] = {}
    for language in looked.languages:
        if lenses := looked.readers(language):
            by_lenses.setdefault(lenses, []).append(language)
    return [
        f"{join_names(list(lenses))} looked for defects in {_list_languages(languages)}."
        for lenses, languages in by_lenses.items()
    ]


def _of_any_file(looked: Looked) -> list[str]:
    """Say who looked at files whatever their language, and at how many."""
    special = {lens for language in looked.languages for lens in looked.readers(language)}
    by_count: dict[int, list[str]] = {}
    for lens, count in looked.files.items():
        if count and lens not in special:
            by_count.setdefault(count, []).append(lens)
    seen = [
        f"{join_names(lenses)} looked at {pluralize(count, 'file')}"
        for count, lenses in sorted(by_count.items(), reverse=True)
    ]
    return [f"{'; '.join(seen)}."] if seen else []


def _by_failed(looked: Looked) -> list[str]:
    """Say who could not parse how many of the files that were for it."""
    by_count: dict[int, list[str]] = {}
    for lens, count in looked.not_parsed.items():
        by_count.setdefault(count, []).append(lens)
    said = [
        f"{pluralize(count, 'file')} by {join_names(lenses)}"
        for count, lenses in sorted(by_count.items(), reverse=True)
    ]
    return [f"**Not parsed**: {'; '.join(said)}."] if said else []


def _unread(looked: Looked) -> list[str]:
    """Name the code in which nobody looked for defects, with its share of the files."""
    unread = looked.unread_code
    # What agents open is their own choice: of which languages it was, nobody keeps count.
    who = "No analyser" if looked.agents else "Nobody"
    return (
        [f"**{who} looked for defects** in {_list_languages(unread, share=True)}."]
        if unread
        else []
    )


def _list_languages(
    languages: list[LanguageShare] | tuple[LanguageShare, ...], share: bool = False
) -> str:
    """Return `Go (12 files, 4 %) and Ruby (1 file)`."""
    said = [
        f"{for_markdown(each.name)} ({pluralize(each.files, 'file')}"
        + (f", {each.percent or 'under 1'} %)" if share else ")")
        for each in languages[:MOST_LANGUAGES]
    ]
    if len(languages) > MOST_LANGUAGES:
        said.append(pluralize(len(languages) - MOST_LANGUAGES, "more language"))
    return join_words(said)


def join_names(lenses: list[str]) -> str:
    """Return `bugs, security and history`, as Markdown."""
    return join_words([for_markdown(each) for each in lenses])


def join_words(words: list[str]) -> str:
    """Join words as in a sentence."""
    return " and ".join(filter(None, (", ".join(words[:-1]), words[-1])))
