"""The worker, which counts the CPU that it spends on its story and on spans, and tells it in a file
each time it has looked for runs that have closed.
"""

from __future__ import annotations

import json
import os
import sys
import time
from collections import defaultdict
from collections.abc import Callable, Coroutine, Generator, Sequence
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parent.parent.parent))

from bench.tracing import FILE
from holdfast.serving import worker
from holdfast.storage.files import write_whole
from holdfast.telemetry import logs as telemetry
from holdfast.telemetry.otel import closed_runs
from holdfast.telemetry.otel.exporting import Send, exporter
from holdfast.tracing.otlp import OtelSpan
from holdfast.workflows import telling

SPENT: defaultdict[str, float] = defaultdict(float)
"""Seconds of CPU, by what they were spent on."""
Anything = Callable[..., Any]


def counted(what: str, function: Anything) -> Anything:
    """The same function, with what it spends counted."""

    def do(*given: Any, **named: Any) -> Any:
        began = time.thread_time()
        try:
            return function(*given, **named)
        finally:
            SPENT[what] += time.thread_time() - began

    return do


class Counted:
    """A coroutine, with what it spends counted, and not what others spend while it waits."""

    def __init__(self, what: str, coroutine: Coroutine[Any, Any, Any]) -> None:
        self._what, self._coroutine = what, coroutine

    def __await__(self) -> Generator[Any, Any, Any]:
        step = counted(self._what, self._coroutine.send)
        given = None
        while True:
            try:
                wanted = step(given)
            except StopIteration as ended:
                return ended.value
            given = yield wanted


def main() -> int:
    look = closed_runs.send_closed

    def counting() -> Send:
        send = exporter()

        def sends(spans: Sequence[OtelSpan]) -> bool:
            taken: bool = counted("spans", send)(spans)
            return taken

        return sends

    async def looks(*given: Any) -> bool:
        done: bool = await Counted("spans", look(*given))
        write_whole(Path(os.environ[FILE]), json.dumps(SPENT).encode(), sync=False)
        return done

    # A thread makes the lines of what was told, and writes them.
    telemetry._Together.flush = counted("story", telemetry._Together.flush)  # type: ignore[method-assign]
    vars(telling).update(tell=counted("story", telling.tell))
    vars(closed_runs).update(exporter=counting, send_closed=looks)
    return worker.main()


if __name__ == "__main__":
    os._exit(main())
