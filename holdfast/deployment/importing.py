"""Import code of others, of a project or of an installed package: it may raise anything, print,
wait for somebody to type, or never end.
"""

from __future__ import annotations

import os
import sys
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import Future
from contextlib import contextmanager, redirect_stdout
from types import FrameType
from typing import TypeVar

from holdfast.text import one_line

SECONDS = 30.0
"""How long an import may take; large libraries take some seconds."""
T = TypeVar("T")


class NotImported(Exception):
    """Code of others could not be imported: where, and why. What it raised is the cause."""

    def __init__(self, place: str, why: str) -> None:
        super().__init__(f"{place}: {why}")
        self.place = place


def load(what: Callable[[], T], where: str, folder: str = "") -> T:
    """Return the result of `what`, which imports code of others. Raise NotImported for whatever it
    raises, and if it has not ended in time, with the file and line of `folder`, else `where`.

    What it prints goes to standard error, as a command's output is for programs, and there is
    nothing for it to read. It runs in a thread, which is left behind if it does not end: a process
    of its own would import everything twice.
    """
    done: Future[T] = Future()

    def run() -> None:
        try:
            done.set_result(what())
        except BaseException as error:
            done.set_exception(error)

    thread = threading.Thread(target=run, daemon=True)
    with redirect_stdout(sys.stderr), _nothing_to_read():
        thread.start()
        thread.join(SECONDS)
    if thread.is_alive():
        lines = _lines_of(sys._current_frames().get(thread.ident or 0))
        place = next((each for each in lines if _is_in(folder, each)), where)
        raise NotImported(
            place,
            f"its import has not ended after {SECONDS:.0f} s; wait or compute in a function, not"
            " when the module is imported",
        )
    error = done.exception()
    if error is None:
        return done.result()
    said = one_line(f"{type(error).__name__}: {error}")
    place = _place_of(error, where, folder)
    raise NotImported(place, f"{said}; mend it, or take it out of there") from error


@contextmanager
def _nothing_to_read() -> Iterator[None]:
    before = sys.stdin
    with open(os.devnull, encoding="utf-8") as sys.stdin:
        try:
            yield
        finally:
            sys.stdin = before


def _lines_of(frame: FrameType | None) -> Iterator[str]:
    """Yield file and line of each call that a thread is in, the innermost first."""
    while frame is not None:
        yield f"{frame.f_code.co_filename}:{frame.f_lineno}"
        frame = frame.f_back


def _place_of(error: BaseException, where: str, folder: str) -> str:
    """Return the last file and line in `folder` on the way to an error; else `where`."""
    if isinstance(error, SyntaxError) and error.filename:
        return f"{error.filename}:{error.lineno}"
    place, trace = where, error.__traceback__
    while trace is not None:
        line = f"{trace.tb_frame.f_code.co_filename}:{trace.tb_lineno}"
        place = line if _is_in(folder, line) else place
        trace = trace.tb_next
    return place


def _is_in(folder: str, line: str) -> bool:
    return bool(folder) and line.startswith(f"{folder}{os.sep}")
