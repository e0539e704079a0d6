"""The search for secrets, within the process of a test. What its program does in a tenth of a
second it loads in two, three times for each change that a test looks at.
"""

from __future__ import annotations

import contextlib
import functools
import importlib.util
import io
import sys
import threading
from collections.abc import Iterator
from types import ModuleType, SimpleNamespace
from typing import Any
from unittest import mock

import anyio.to_thread

from holdfast.activities.review import examination
from holdfast.activities.review.analysing.lens import SCRIPTS
from holdfast.untrusted import process

PROGRAM = str(SCRIPTS / "find_secrets.py")
# The library that it stands on keeps its settings once a process.
ONE_AT_A_TIME = threading.Lock()


async def run(command: Any, **options: Any) -> process.Finished:
    """Run a program as an analyser's is run, but this one here."""
    if command[-1] != PROGRAM:
        return await process.run(command, **options)
    printed = await anyio.to_thread.run_sync(_search, options["stdin"])
    return process.Finished(0, printed, b"")


def _search(asked: bytes) -> bytes:
    with ONE_AT_A_TIME, _web_put_back():
        program = _program()
        said = io.StringIO()
        streams = SimpleNamespace(stdin=SimpleNamespace(buffer=io.BytesIO(asked)), stdout=said)
        with mock.patch.object(program, "sys", streams):
            program.main()
    return said.getvalue().encode()


@contextlib.contextmanager
def _web_put_back() -> Iterator[None]:
    """The program takes a module away from the library that it loads: from that alone."""
    web = sys.modules.get("requests")
    try:
        yield
    finally:
        sys.modules.pop("requests", None)
        if web is not None:
            sys.modules["requests"] = web


@functools.cache
def _program() -> ModuleType:
    spec = importlib.util.spec_from_file_location("find_secrets", PROGRAM)
    assert spec is not None and spec.loader is not None
    program = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(program)
    for name in ("make_linear", "own_kinds"):
        setattr(program, name, functools.cache(getattr(program, name)))
    return program


@contextlib.contextmanager
def searching_here() -> Iterator[None]:
    """Let analysers find secrets without a program of their own."""
    with mock.patch.object(examination, "run", run):
        yield
