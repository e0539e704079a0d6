"""Logs as JSON, one object a line, with the run and the activity they belong to.

Everything goes through the standard library's root logger, so that libraries, `workflow.logger`
(silent on replay) and structlog end up in the same file in the same form. It is private, and
bounded in its size.
"""

from __future__ import annotations

import json
import logging
import os
import sys
import threading
import time
from collections import deque
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from datetime import UTC, datetime
from functools import cache
from io import TextIOWrapper
from logging.handlers import RotatingFileHandler
from pathlib import Path
from typing import Any

import structlog
from temporalio import activity, workflow
from temporalio.runtime import (
    LogForwardingConfig,
    LoggingConfig,
    PrometheusConfig,
    Runtime,
    TelemetryConfig,
    TelemetryFilter,
)
from temporalio.worker import (
    ActivityInboundInterceptor,
    ExecuteActivityInput,
    Interceptor,
)

from holdfast.contracts.errors import OrchestrationError
from holdfast.errors import Undecipherable
from holdfast.storage import StoreAway
from holdfast.storage.payloads import PayloadLost
from holdfast.telemetry.metrics import prometheus
from holdfast.untrusted.known_secrets import KnownSecrets
from holdfast.workers.pollers import BEAT

LOG_BYTES = 5_000_000
LOG_FILES = 3
TOGETHER_SECONDS = 0.1
"""How long a line may wait for others to be written with it; what a process that is killed may not
have written of what it did last.
"""
CHATTY = ("httpx", "httpx2", "httpcore", "httpcore2", "anthropic")
"""Libraries whose informative lines repeat addresses with all that stands in them."""
_TEMPORAL = {
    "workflow_id": "workflow_id",
    "run_id": "run_id",
    "workflow_run_id": "run_id",
    "workflow_type": "workflow_type",
    "activity_id": "activity_id",
    "activity_type": "activity_type",
    "attempt": "attempt",
}
"""What is kept of Temporal's facts about a message, and under which name."""
_CONTEXT = "said_within"
"""The attribute of a record that has what structlog had bound where it was said."""
_ADAPTERS = ("temporal_workflow", "temporal_activity")
_OF_EVERY_RECORD = {*vars(logging.makeLogRecord({})), "message", "asctime", "taskName", _CONTEXT}
_EXPECTED = (OrchestrationError, Undecipherable, PayloadLost, StoreAway)
"""What calls may end with, and workflow tasks that cannot read what they are about."""
_HAS_A_FORM = (str, int, float, dict, list, tuple, type(None))
_ISO = "%Y-%m-%dT%H:%M:%S.%fZ"


def configure_logging(path: Path | None, level: str, secrets: Iterable[str] = ()) -> None:
    """Send every log record of this process to a file (None: standard error) as JSON lines.

    `secrets` are removed wherever they occur: a library may log a header.
    """
    handler = _Together(_print if path is None else _LogFile(path).write_all)
    handler.setFormatter(_JsonLines(secrets))
    logging.basicConfig(handlers=[handler], level=level.upper(), force=True)
    # What no line shows need not be found out for each.
    logging.logThreads = logging.logProcesses = logging.logMultiprocessing = False
    for name in CHATTY:
        logging.getLogger(name).setLevel(max(logging.WARNING, logging.getLogger().level))
    # Its sentence repeats as text what the record carries as fields.
    workflow.logger.workflow_info_on_message = False
    activity.logger.activity_info_on_message = False
    structlog.configure(
        processors=[
            structlog.stdlib.PositionalArgumentsFormatter(),
            structlog.processors.StackInfoRenderer(),
            structlog.processors.format_exc_info,
            structlog.stdlib.ProcessorFormatter.wrap_for_formatter,
        ],
        logger_factory=structlog.stdlib.LoggerFactory(),
        wrapper_class=structlog.stdlib.BoundLogger,
        cache_logger_on_first_use=True,
    )


def flush_logs() -> None:
    """Write what was logged so far, for a process that ends without the interpreter's shutdown."""
    for handler in logging.getLogger().handlers:
        handler.flush()


class _LogFile(RotatingFileHandler):
    """A private log file that is rotated by size."""

    stream: TextIOWrapper

    def __init__(self, path: Path) -> None:
        super().__init__(path, maxBytes=LOG_BYTES, backupCount=LOG_FILES - 1)

    def _open(self) -> TextIOWrapper:
        # Also the file that comes after a full one is its owner's alone.
        Path(self.baseFilename).touch(mode=0o600)
        stream = super()._open()
        self._size = os.fstat(stream.fileno()).st_size
        return stream

    def write_all(self, lines: Iterable[str]) -> None:
        """Append these lines, beginning a new file wherever one is full."""
        for line in lines:
            if self._size >= self.maxBytes:
                self.doRollover()
            self._size += self.stream.write(line + "\n")
        self.stream.flush()


def _print(lines: Iterable[str]) -> None:
    for line in lines:
        # Each by itself: what several processes write into one pipe stays whole up to 4 KiB.
        sys.stderr.write(line + "\n")
        sys.stderr.flush()


class _Together(logging.Handler):
    """Formats and writes the lines of a moment together in a thread, which is cheaper than one by
    one and holds up nobody.

    When the call that logs a warning returns, the warning and all before it are on their way.
    """

    def __init__(self, write_all: Callable[[Iterable[str]], None]) -> None:
        super().__init__()
        self._write_all = write_all
        self._records: deque[logging.LogRecord] = deque()
        self._said, self._writing = threading.Event(), threading.Lock()
        threading.Thread(target=self._write_on, name="log", daemon=True).start()

    def emit(self, record: logging.LogRecord) -> None:
        try:
            # What it was said with may be another by the time of its line.
            if not isinstance(record.msg, dict):
                record.msg, record.args = record.getMessage(), None
            vars(record)[_CONTEXT] = structlog.contextvars.get_contextvars()
            self._records.append(record)
        except Exception:
            self.handleError(record)
        if record.levelno >= logging.WARNING:
            self.flush()
        elif not self._said.is_set():
            self._said.set()

    def flush(self) -> None:
        """Write what was logged so far. A full disk loses lines and stops nobody."""
        with self._writing, suppress(OSError):
            # Others may say more meanwhile, behind these.
            said = [self._records.popleft() for _ in range(len(self._records))]
            self._write_all([line for each in said if (line := self._line(each))])

    def _line(self, record: logging.LogRecord) -> str:
        try:
            return self.format(record)
        except Exception:
            self.handleError(record)
            return ""

    def _write_on(self) -> None:
        while self._said.wait():
            time.sleep(TOGETHER_SECONDS)
            self._said.clear()
            self.flush()


def runtime(metrics: PrometheusConfig | None = None) -> Runtime:
    """Return the SDK's runtime, with its own messages in the same log; by default it prints them.

    It reports this worker's life to the server. ValueError if `metrics` cannot listen.
    """
    return Runtime(
        telemetry=TelemetryConfig(
            metrics=metrics,
            logging=LoggingConfig(
                filter=TelemetryFilter(core_level="WARN", other_level="ERROR"),
                forwarding=LogForwardingConfig(logger=logging.getLogger("temporalio.core")),
            ),
        ),
        worker_heartbeat_interval=BEAT,
    )


@cache
def offer_runtime() -> None:
    """Make ours the runtime of a process that has none: by the SDK's own, which says once a minute
    that a worker lives, one that just started is taken for one that was killed.
    """
    with suppress(RuntimeError):
        Runtime.set_default(runtime())


def measured_runtime(place: str) -> Runtime:
    """Return the runtime that answers Prometheus at ADDRESS:PORT, or nowhere. A port in use is no
    reason not to work.
    """
    if not place:
        return runtime()
    try:
        return runtime(prometheus(place))
    except ValueError as error:
        logging.getLogger("worker").error("no metrics at %s: %s", place, error)
        return runtime()


class _JsonLines(logging.Formatter):
    """Formats any log record as one line of JSON. structlog's own formatter copies each record and
    leads it through a chain, which would be most of what logging a run costs.
    """

    def __init__(self, secrets: Iterable[str]) -> None:
        super().__init__()
        self._known = KnownSecrets(secrets)

    def format(self, record: logging.LogRecord) -> str:
        given = record.msg if isinstance(record.msg, dict) else _facts_of(record)
        said: dict[str, Any] = {**getattr(record, _CONTEXT, {}), **given}
        said |= {"level": record.levelname.lower(), "logger": record.name}
        said["timestamp"] = f"{datetime.fromtimestamp(record.created, UTC):{_ISO}}"
        if record.exc_info and isinstance(error := record.exc_info[1], _EXPECTED):
            # The way there is the same each time.
            said["exception"] = str(error)
        elif record.exc_info:
            said["exception"] = self.formatException(record.exc_info)
        if record.stack_info:
            said["stack"] = record.stack_info
        # Before it is JSON: in a line, what is blotted out could be a part of its form.
        plain = {key: _to_json(value) for key, value in said.items()}
        return json.dumps(self._known.blot_all(plain), default=str)


def _facts_of(record: logging.LogRecord) -> dict[str, Any]:
    """Return the message of a record and its extra fields. Temporal's adapters put theirs into one
    object.
    """
    given = {key: value for key, value in vars(record).items() if key not in _OF_EVERY_RECORD}
    given["event"] = record.getMessage()
    for key in _ADAPTERS:
        facts: Mapping[str, Any] = given.pop(key, None) or {}
        for theirs, ours in _TEMPORAL.items():
            if facts.get(theirs):
                given.setdefault(ours, facts[theirs])
    return given


def _to_json(value: Any) -> Any:
    """Return a value as JSON has it, anything else as text."""
    return value if isinstance(value, _HAS_A_FORM) else str(value)


class LogContext(Interceptor):
    """Gives every log line of an activity its run, activity id and attempt."""

    def intercept_activity(self, next: ActivityInboundInterceptor) -> ActivityInboundInterceptor:
        return _BindsActivity(next)


class _BindsActivity(ActivityInboundInterceptor):
    async def execute_activity(self, input: ExecuteActivityInput) -> Any:
        info = activity.info()
        with structlog.contextvars.bound_contextvars(
            workflow_id=info.workflow_id,
            run_id=info.workflow_run_id,
            activity_id=info.activity_id,
            attempt=info.attempt,
        ):
            return await self.next.execute_activity(input)
