"""``--seconds-by-folder``: how long the tests of each folder took, set-up and tear-down included.

The seconds are those of the processes that ran the tests, added up: with several processes more
than the run took.
"""

from __future__ import annotations

from collections import defaultdict
from pathlib import PurePosixPath
from typing import Final

import pytest

_DEPTH: Final = 3
"""The number of leading parts of a path that make a row: ``tests/wiredump/spark`` has three."""
_LEAST: Final = 1.0


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--seconds-by-folder", action="store_true", help="print how long each folder's tests took"
    )


@pytest.hookimpl(trylast=True)
def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    if not terminalreporter.config.getoption("--seconds-by-folder"):
        return
    seconds: defaultdict[str, float] = defaultdict(float)
    tests: defaultdict[str, set[str]] = defaultdict(set)
    for reports in terminalreporter.stats.values():
        for report in reports:
            if isinstance(report, pytest.TestReport):
                folder = folder_of(report.nodeid)
                seconds[folder] += report.duration
                tests[folder].add(report.nodeid)
    terminalreporter.section("seconds by folder")
    for folder, taken in sorted(seconds.items(), key=lambda item: -item[1]):
        if taken >= _LEAST:
            terminalreporter.write_line(f"{taken:7.0f} s {len(tests[folder]):6,} tests  {folder}")


def folder_of(nodeid: str) -> str:
    """The folder of a test, without what is deeper."""
    return "/".join(PurePosixPath(nodeid.partition("::")[0]).parent.parts[:_DEPTH])
