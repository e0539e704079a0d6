"""The files that agents made, as a report lists them: size, digest, and where they are. Pure."""

from __future__ import annotations

from collections.abc import Iterator

from htpy import Element, a, code

from orchestrator.contracts import MadeFile, Report
from orchestrator.made_files import placed
from orchestrator.text import code_span, inline


def lines(report: Report, where: str) -> Iterator[str]:
    """A line of Markdown for each; `where`: the address of the folder that they are in, empty when
    nobody has written them.
    """
    for finding, file, path in placed(report):
        # Nothing in such a path means anything to Markdown or to an address.
        name = f"[{path}]({where}/{path})" if path and where else code_span(path or file.name)
        yield f"{name}, {_facts(file)}, by {inline(finding.subtask_id)}"


def items(report: Report, where: str) -> Iterator[list[str | Element]]:
    """The same for the page."""
    for finding, file, path in placed(report):
        name = path or inline(file.name[:100])
        shown = a(href=f"{where}/{path}")[path] if path and where else code[name]
        digest = code[file.digest]
        yield [shown, f", {file.size:,} bytes, SHA-256 ", digest, f", by {finding.subtask_id}"]


def _facts(file: MadeFile) -> str:
    return f"{file.size:,} bytes, SHA-256 {code_span(file.digest)}"
