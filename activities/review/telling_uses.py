"""Tell who uses what a change has changed, and its tests: for whoever reads on, within a bound."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from holdfast.activities.review.analysing.lens import Parsed
from holdfast.activities.review.surroundings import CodeAround
from holdfast.contracts import ChangedDefinition
from holdfast.text import code_span, pluralize

LETTERS = 5_000
"""Characters of the text: what is longer would reach agents as a digest."""
MOST_USES = 6
"""Uses of one definition in the text."""
HOW = {"removed": "removed", "signature": "its parameters changed", "body": "changed"}
Tests = dict[str, tuple[str, ...]]


def describe_uses(parsed: Parsed, code: CodeAround) -> tuple[tuple[ChangedDefinition, ...], Tests]:
    """Return the changed definitions with the code at their uses, and the tests, as they leave this
    process.
    """
    path = code.redactor.path
    changed = tuple(
        each.model_copy(
            update={
                "file": path(each.file),
                "uses": tuple(
                    use.model_copy(
                        update={"file": path(use.file), "code": code.call(use.file, use.line)}
                    )
                    for use in each.uses
                ),
            }
        )
        for each in parsed.changed
    )
    tests = {path(file): tuple(map(path, those)) for file, those in parsed.tests.items()}
    return changed, tests


def write_uses(
    changed: Sequence[ChangedDefinition], in_all: int, tests: Mapping[str, Sequence[str]]
) -> str:
    """Return them as Markdown, empty if there are none: of what does not fit, how much that is."""
    blocks: list[str] = []
    size = told = 0
    for each in changed:
        block = "\n".join(_lines(each))
        if size + len(block) > LETTERS:
            break
        blocks.append(block)
        size += len(block) + 1
        told += 1
    if in_all > told:
        blocks.append(f"* and {pluralize(in_all - told, 'more definition')}")
    named = []
    for file, those in tests.items():
        line = f"* {code_span(file)}: {', '.join(map(code_span, those))}"
        size += len(line)
        if size > 1.2 * LETTERS:
            break
        named.append(line)
    if len(tests) > len(named):
        named.append(f"* and of {pluralize(len(tests) - len(named), 'more file')}")
    parts = []
    if blocks:
        parts.append("\n\nWho uses what the change has changed:\n\n" + "\n".join(blocks))
    if named:
        parts.append("\n\nTests of changed files:\n\n" + "\n".join(named))
    return "".join(parts)


def _lines(each: ChangedDefinition) -> Iterator[str]:
    many = pluralize(each.uses_in_all, "use") if each.uses_in_all else "no use found"
    place = code_span(f"{each.file}:{each.line}")
    yield f"* {code_span(each.name)} in {place} ({HOW.get(each.change, each.change)}): {many}"
    for use in each.uses[:MOST_USES]:
        perhaps = "" if use.sure else " (perhaps another of this name)"
        code = f" {code_span(use.code)}" if use.code else ""
        yield f"  * {code_span(f'{use.file}:{use.line}')}{code}{perhaps}"
    if each.uses_in_all > MOST_USES:
        yield f"  * and {each.uses_in_all - min(len(each.uses), MOST_USES)} more"
