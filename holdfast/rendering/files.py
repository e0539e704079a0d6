"""The files that agents made, as a report lists them: size, digest, and where they are. Pure."""

from __future__ import annotations

from collections.abc import Iterator

from htpy import Element, a, code

from holdfast.contracts import MadeFile, Report
from holdfast.contracts.made_files import place_files
from holdfast.text import code_span, inline


def lines(report: Report, where: str) -> Iterator[str]:
    """A line of Markdown for each; `where`: the address of the folder that they are in, empty when
    nobody has written them.
    """
    for finding, file, path in place_files(report):
        # Nothing in such a path means anything to Markdown or to an address.
        linked = path and where and not file.missing
        name = f"[{path}]({where}/{path})" if linked else code_span(path or file.name)
        facts = f"{file.size:,} bytes, SHA-256 {code_span(file.digest)}"
        yield f"{name}, {facts}, by {inline(finding.subtask_id)}{inline(_gone(file))}"


def items(report: Report, where: str) -> Iterator[list[str | Element]]:
    """The same for the page."""
    for finding, file, path in place_files(report):
        name = path or inline(file.name[:100])
        linked = path and where and not file.missing
        shown = a(href=f"{where}/{path}")[path] if linked else code[name]
        whose = f", by {finding.subtask_id}{_gone(file)}"
        yield [shown, f", {file.size:,} bytes, SHA-256 ", code[file.digest], whose]


def _gone(file: MadeFile) -> str:
    return f"; not here: {file.missing}" if file.missing else ""
