"""Who looked at what in a review, in which languages, and at what nobody did: never more than was
so. Pure.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TypeVar

from holdfast.contracts import LanguageShare, ReviewData
from holdfast.text import for_markdown, pluralize

MOST_LANGUAGES = 8
"""Languages that are named in one sentence."""
Same = TypeVar("Same", str, int)


def looked_for_defects(review: ReviewData) -> bool:
    """True if anybody looked for defects in code: where there is any, a search for secrets alone
    says nothing of them.
    """
    code = [each for each in review.languages if each.kind == "code"]
    unread = [each for each in code if not readers(review, each)]
    return bool(review.agents) or (bool(review.looked_at) and (not code or len(unread) < len(code)))


def readers(review: ReviewData, language: LanguageShare) -> tuple[str, ...]:
    """Return the lenses for a language that really looked: one that could parse nothing did not."""
    files, failed = review.looked_at, review.not_parsed_by
    return tuple(
        lens for lens in language.lenses if lens in files and (files[lens] or lens not in failed)
    )


def unread_code(review: ReviewData) -> tuple[LanguageShare, ...]:
    """Return the languages of code in which no lens looked for defects."""
    code = (each for each in review.languages if each.kind == "code")
    return tuple(each for each in code if not readers(review, each))


def count_missed(review: ReviewData) -> str:
    """Return how many texts, links and submodules were to be read and were not."""
    kinds = {"file of text": review.missed_in_all, "link": 0, "submodule": 0}
    for each in review.missed:
        for kind in ("link", "submodule"):
            if each.why.startswith(f"a {kind}"):
                kinds[kind] += 1
                kinds["file of text"] -= 1
    files = kinds.pop("file of text")
    told = [f"{pluralize(files, 'file')} of text"] if files else []
    told += [pluralize(count, kind) for kind, count in kinds.items() if count]
    return join_words(told)


def describe_reach(review: ReviewData) -> str:
    """Return what was reviewed, and who looked at it, as a paragraph of Markdown."""
    base, scope = review.base, review.scope
    what = f"what differs from {base[:12]}" if base else "the tree"
    parts = [f"In {what}: {pluralize(review.files_read, 'file')} of text."]
    if scope:
        parts = [f"Reviewed: {for_markdown(scope)}."]
        if base:
            parts.append("`--input scope=all` takes the whole tree.")
    return " ".join([*parts, *who_looked(review)])


def who_looked(review: ReviewData) -> Iterator[str]:
    """Yield, as sentences of Markdown, which lenses and agents looked at what, and what nobody
    looked at.
    """
    yield from _by_language(review)
    yield from _of_any_file(review)
    yield from _of_agents(review.agents, review.unsure)
    yield from _by_failed("Not parsed", review.not_parsed_by)
    yield from _by_failed("Not looked at, since the time limit was reached", review.not_reached_by)
    yield from _unread(review)
    for why, lenses in _grouped(review.nothing_to_look_at).items():
        yield f"**Nothing to look at** for {join_names(lenses)}: {for_markdown(why)}."


def _by_language(review: ReviewData) -> Iterator[str]:
    """Say who looked for defects in which languages."""
    by_lenses: dict[tuple[str, ...], list[LanguageShare]] = {}
    for language in review.languages:
        if lenses := readers(review, language):
            by_lenses.setdefault(lenses, []).append(language)
    for lenses, languages in by_lenses.items():
        yield f"{join_names(lenses)} looked for defects in {list_languages(languages)}."


def _of_any_file(review: ReviewData) -> Iterator[str]:
    """Say who looked at files whatever their language, and at how many."""
    special = {lens for each in review.languages for lens in readers(review, each)}
    counts = {lens: n for lens, n in review.looked_at.items() if n and lens not in special}
    seen = [
        f"{join_names(lenses)} looked at {pluralize(count, 'file')}"
        for count, lenses in sorted(_grouped(counts).items(), reverse=True)
    ]
    if seen:
        yield f"{'; '.join(seen)}."


def _of_agents(agents: Mapping[str, int], unsure: Mapping[str, int]) -> Iterator[str]:
    said = []
    for name, count in agents.items():
        sure = f", only {unsure[name]} % sure of what it looked at" if name in unsure else ""
        said.append(f"{for_markdown(name)} ({pluralize(count, 'tool call')}{sure})")
    if said:
        yield f"Agents read the code: {join_words(said)}."


def _by_failed(what: str, files: Mapping[str, int]) -> Iterator[str]:
    """Say for how many of the files that were for it a lens failed."""
    said = [
        f"{pluralize(count, 'file')} by {join_names(lenses)}"
        for count, lenses in sorted(_grouped(files).items(), reverse=True)
    ]
    if said:
        yield f"**{what}**: {'; '.join(said)}."


def _unread(review: ReviewData) -> Iterator[str]:
    """Name the code in which nobody looked for defects, with its share of the files."""
    # What agents open is their own choice: of which languages it was, nobody keeps count.
    who = "No analyser" if review.agents else "Nobody"
    if unread := unread_code(review):
        yield f"**{who} looked for defects** in {list_languages(unread, share=True)}."


def list_languages(languages: Sequence[LanguageShare], *, share: bool = False) -> str:
    """Return `Go (12 files, 4 %) and Ruby (1 file)`."""
    said = [
        f"{for_markdown(each.name)} ({pluralize(each.files, 'file')}"
        + (f", {each.percent or 'under 1'} %)" if share else ")")
        for each in languages[:MOST_LANGUAGES]
    ]
    if len(languages) > MOST_LANGUAGES:
        said.append(pluralize(len(languages) - MOST_LANGUAGES, "more language"))
    return join_words(said)


def _grouped(values: Mapping[str, Same]) -> dict[Same, list[str]]:
    """Return the names of each value."""
    groups: dict[Same, list[str]] = {}
    for name, value in values.items():
        groups.setdefault(value, []).append(name)
    return groups


def join_names(names: Iterable[str]) -> str:
    """Return `bugs, security and history`, as Markdown."""
    return join_words([for_markdown(each) for each in names])


def join_words(words: Sequence[str]) -> str:
    """Join words as in a sentence."""
    return " and ".join(filter(None, (", ".join(words[:-1]), words[-1])))
