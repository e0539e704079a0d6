"""A finished run in files: its Report as Markdown, as JSON and as a page for a browser, its answer
if that is data, and what its agents made. A model named those files and wrote what is in them: they
are data, whatever they say they are.
"""

from __future__ import annotations

import hashlib
import re
from pathlib import Path
from urllib.parse import quote

from holdfast.cli.screen.streams import say
from holdfast.client.documents import as_markdown, as_page
from holdfast.client.reading import Look
from holdfast.contracts import MadeFile, Report
from holdfast.contracts.errors import BlobLost
from holdfast.contracts.made_files import FILE_BYTES, place_files
from holdfast.rendering.answers import answer_file
from holdfast.storage import Store
from holdfast.storage.files import write_whole
from holdfast.temporal.connection import Target
from holdfast.text import for_json, pluralize, visible

NAME_LETTERS = 200
_UNFIT = re.compile(r"[^A-Za-z0-9._:-]")


class PageFailed(Exception):
    """The page could not be made, by a mistake of ours; the other files are written. Holds the path
    of the Markdown.
    """

    def __init__(self, markdown: Path) -> None:
        super().__init__(str(markdown))
        self.markdown = markdown


def place(run_id: str, folder: Path, ending: str) -> Path:
    """Return where a file of a run's report is kept, making its private folder."""
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    # Whoever reaches the server names runs as he likes.
    name = _UNFIT.sub("_", run_id)[:NAME_LETTERS].lstrip(".") or "_"
    return folder / f"{name}{ending}"


def files_of(run_id: str, folder: Path) -> Path:
    """Return the folder of the files that a run's agents made, beside its report."""
    return place(run_id, folder, ".files")


def from_beside(folder: Path) -> str:
    """Return the address of a folder relative to a page beside it, so that both can be moved.
    Colons in the ids of scheduled runs are escaped: they would look like a URL scheme.
    """
    return quote(folder.name)


def keep(report: Report, folder: Path, look: Look) -> tuple[Path, Path]:
    """Write the report as `RUN.md`, `RUN.json` and `RUN.html` into a private folder; return the
    paths of the Markdown and the page.

    PageFailed if only the page is missing. A history that cannot be read to its end never replaces
    what was written when it could.
    """
    markdown, document, page = (
        place(report.run_id, folder, ending) for ending in (".md", ".json", ".html")
    )
    where = from_beside(files_of(report.run_id, folder))
    for path in (markdown, document):
        if not (look.unreadable and path.exists()):
            write(report, path, look, where)
    if look.unreadable and page.exists():
        return markdown, page
    if answer := answer_file(report):
        ending, text = answer
        write_whole(place(report.run_id, folder, ending), as_bytes(text))
    try:
        write(report, page, look, where)
    except OSError:
        raise
    except Exception as error:
        raise PageFailed(markdown) from error
    return markdown, page


def write(report: Report, path: Path, look: Look, where: str) -> None:
    """Write a report as one file in the form of its suffix, in one step. `look` is what the run's
    history tells besides, for the page; `where` the folder of its files.
    """
    match path.suffix.lower():
        case ".json":
            text = for_json(report.model_dump_json(indent=2)) + "\n"
        case ".html":
            text = as_page(report, look, where=where)
        case _:
            text = as_markdown(report, where=where)
    write_whole(path, as_bytes(text))


def as_bytes(text: str) -> bytes:
    """Encode a text, with lone surrogates escaped."""
    return text.encode("utf-8", "backslashreplace")


def in_plain(target: Target) -> str:
    """Return that a file holds in plain what the deployment keeps encrypted; empty: it does not."""
    return "; it holds in plain what is encrypted here" * target.keys.writes


def deliver(report: Report, folder: Path, out: Path | None, look: Look, plain: str = "") -> None:
    """Write the files of a finished run and print where they are, the page last; `plain`: a remark
    on what they hold. A full disk does not lose the report itself.
    """
    if out:
        try:
            write(report, out, look, files_of(report.run_id, folder).as_uri())
            say(f"Report: {out}{plain}")
        except OSError as error:
            say(f"The report could not be written to {out}: {error.strerror}", "magenta")
    try:
        markdown, page = keep(report, folder, look)
    except OSError as error:
        say(f"The report could not be kept in {folder}: {error.strerror}", "magenta")
        return
    except PageFailed as failed:
        say(f"Report: {failed.markdown}")
        say(f"Its page could not be made: a mistake of ours: {failed.__cause__!r}", "magenta")
        return
    say(f"Report: {markdown}{plain}")
    if answer := answer_file(report):
        say(f"Answer: {place(report.run_id, folder, answer[0])}")
    made = [file for finding in report.findings for file in finding.files]
    if any(not each.missing for each in made):
        say(f"Files: {files_of(report.run_id, folder)}")
    if gone := sum(bool(each.missing) for each in made):
        say(f"Not written: {gone} of {pluralize(len(made), 'file')}; see the notes", "magenta")
    say(f"Page: {page.as_uri()}")


async def with_files(report: Report, store: Store, folder: Path) -> Report:
    """Return the report after writing its agents' files below this folder. Files that could not be
    written are noted with the reason.
    """
    missing = []
    files: dict[str, tuple[MadeFile, ...]] = {each.subtask_id: () for each in report.findings}
    for finding, file, path in place_files(report):
        why = ""
        try:
            if not _stands(file, folder / path):
                await _write(file, store, folder, path)
        except (OSError, BlobLost) as error:
            why = error.message if isinstance(error, BlobLost) else error.strerror or str(error)
            name = visible(file.name[:100])
            missing.append(f"{finding.subtask_id}: its file {name} is not here: {why}")
        known = file.model_copy(update={"missing": why})
        files[finding.subtask_id] = (*files[finding.subtask_id], known)
    findings = tuple(
        each.model_copy(update={"files": files[each.subtask_id]}) for each in report.findings
    )
    notes = (*report.notes, *missing)
    return report.model_copy(update={"findings": findings, "notes": notes})


def _stands(file: MadeFile, path: Path) -> bool:
    """True if the recorded bytes are already there."""
    if path.is_symlink() or not path.is_file() or path.stat().st_size != file.size:
        return False
    return hashlib.sha256(path.read_bytes()).hexdigest() == file.digest


async def _write(file: MadeFile, store: Store, folder: Path, path: str) -> None:
    """Write one file for its owner alone. OSError, or BlobLost if the store lacks the recorded
    bytes.
    """
    if not path:
        raise OSError("its name is none that a file may have here")
    if file.size > FILE_BYTES:
        raise OSError(f"it is said to have {file.size:,} bytes, more than {FILE_BYTES:,}")
    content = await store.get(file.digest)
    if len(content) != file.size:
        raise OSError(f"it has {len(content):,} bytes, and {file.size:,} were recorded")
    target = folder / path
    for each in (folder, target.parent):
        if each.is_symlink():
            raise OSError(f"{each} is a link, which is not followed")
        each.mkdir(mode=0o700, parents=True, exist_ok=True)
    write_whole(target, content)
