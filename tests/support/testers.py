"""Runs tests in several processes, made of one that has read all tests: reading them takes 11 s of
processor time, and pytest-xdist does it in each process. `pytest --testers 4`.

Each process takes a file at a time, so that what a file sets up is set up once.
"""

from __future__ import annotations

import itertools
import multiprocessing
from collections.abc import Iterator
from multiprocessing.connection import Connection, wait
from typing import Any

import pytest

FORK = multiprocessing.get_context("fork")
Files = list[list[pytest.Item]]


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add the number of processes."""
    parser.addoption("--testers", type=int, default=0, help="processes; 0: this one")


@pytest.hookimpl(tryfirst=True)
def pytest_runtestloop(session: pytest.Session) -> bool | None:
    """Run the tests in other processes, if that was asked for."""
    config = session.config
    if not config.option.testers or config.option.collectonly or session.testsfailed:
        return None
    files = [list(items) for _, items in itertools.groupby(session.items, lambda item: item.path)]
    # Here, so that all have the same; each captures what its own tests print.
    config._tmp_path_factory.getbasetemp()  # type: ignore[attr-defined]
    config.pluginmanager.getplugin("capturemanager").stop_global_capturing()
    begun = [_begin(session, files) for _ in range(config.option.testers)]
    left, testing = iter(range(len(files))), dict.fromkeys(begun, "no test")
    while testing:
        for tester in wait(list(testing)):
            assert isinstance(tester, Connection)
            try:
                said = tester.recv()
            except EOFError:
                session.shouldfail = f"a tester ended by itself in or after {testing.pop(tester)}"
                continue
            if said is None:
                del testing[tester]
            elif said == "next":
                tester.send(None if session.shouldfail or session.shouldstop else next(left, None))
            else:
                testing[tester] = said["nodeid"]
                _report(config, said)
    if session.shouldfail:
        raise session.Failed(session.shouldfail)
    return True


def _begin(session: pytest.Session, files: Files) -> Connection:
    here, there = FORK.Pipe()
    FORK.Process(target=_test, args=(session, files, there), daemon=True).start()
    there.close()
    return here


def _report(config: pytest.Config, said: dict[str, Any]) -> None:
    hook = config.hook
    report = hook.pytest_report_from_serializable(config=config, data=said)
    hook.pytest_runtest_logreport(report=report)
    if report.when == "teardown":
        hook.pytest_runtest_logfinish(nodeid=report.nodeid, location=report.location)


class _Reporter:
    """Sends the reports of one process's tests."""

    def __init__(self, config: pytest.Config, to: Connection) -> None:
        self.config, self.to = config, to

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Send a report."""
        hook = self.config.hook
        self.to.send(hook.pytest_report_to_serializable(config=self.config, report=report))


def _test(session: pytest.Session, files: Files, link: Connection) -> None:
    """Run file after file in this process."""
    config = session.config
    plugins = config.pluginmanager
    plugins.unregister(name="terminalreporter")
    plugins.register(_Reporter(config, link))
    plugins.getplugin("capturemanager").start_global_capturing()
    try:
        for item, after in itertools.pairwise(itertools.chain(_taken(files, link), (None,))):
            assert item is not None
            config.hook.pytest_runtest_protocol(item=item, nextitem=after)
        link.send(None)
    finally:
        session._setupstate.teardown_exact(None)


def _taken(files: Files, link: Connection) -> Iterator[pytest.Item]:
    """Yield the tests of one file after the other, as long as there are any."""
    while True:
        link.send("next")
        place = link.recv()
        if place is None:
            return
        yield from files[place]
