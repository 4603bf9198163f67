"""``--seconds-by-folder``: how long the tests of each folder took, set-up and tear-down included.

Two columns: seconds that passed, added up over the processes that ran the tests, so that several
processes take more than the run did; and seconds of CPU, of these processes and of the programs
that they started and waited for. A program that serves several tests counts where it ended.
"""

from __future__ import annotations

import os
from collections import defaultdict
from collections.abc import Generator
from pathlib import PurePosixPath
from typing import Final

import pytest

_DEPTH: Final = 3
"""The number of leading parts of a path that make a row: ``tests/wiredump/spark`` has three."""
_LEAST: Final = 1.0
_CPU: Final = "seconds of CPU"
_BEFORE = pytest.StashKey[float]()


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--seconds-by-folder", action="store_true", help="print how long each folder's tests took"
    )


@pytest.hookimpl(wrapper=True)
def pytest_runtest_protocol(item: pytest.Item) -> Generator[None, object, object]:
    """Attach the CPU that the test took to its last report, the one of its tear-down."""
    if not item.config.getoption("--seconds-by-folder"):
        return (yield)
    item.stash[_BEFORE] = _cpu()
    return (yield)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(
    item: pytest.Item, call: pytest.CallInfo[None]
) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    report = yield
    if call.when == "teardown" and _BEFORE in item.stash:
        report.user_properties.append((_CPU, _cpu() - item.stash[_BEFORE]))
    return report


def _cpu() -> float:
    """Seconds of CPU that this process and its children that ended have taken."""
    return sum(os.times()[:4])


@pytest.hookimpl(trylast=True)
def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    if not terminalreporter.config.getoption("--seconds-by-folder"):
        return
    seconds: defaultdict[str, float] = defaultdict(float)
    cpu: defaultdict[str, float] = defaultdict(float)
    tests: defaultdict[str, set[str]] = defaultdict(set)
    for reports in terminalreporter.stats.values():
        for report in reports:
            if isinstance(report, pytest.TestReport):
                folder = folder_of(report.nodeid)
                seconds[folder] += report.duration
                cpu[folder] += _spent(report)
                tests[folder].add(report.nodeid)
    terminalreporter.section("seconds by folder")
    for folder, taken in sorted(seconds.items(), key=lambda item: -item[1]):
        if taken >= _LEAST:
            spent = f"{taken:7.0f} s {cpu[folder]:7.0f} s CPU"
            terminalreporter.write_line(f"{spent} {len(tests[folder]):6,} tests  {folder}")


def _spent(report: pytest.TestReport) -> float:
    values = (value for key, value in report.user_properties if key == _CPU)
    return sum(value for value in values if isinstance(value, float))


def folder_of(nodeid: str) -> str:
    """The folder of a test, without what is deeper."""
    return "/".join(PurePosixPath(nodeid.partition("::")[0]).parent.parts[:_DEPTH])
