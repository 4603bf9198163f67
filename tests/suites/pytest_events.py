"""A plugin for suites that run under pytest: a line of JSON on standard error for each test that
ends. It runs in the suite's own process and imports nothing of this project."""

import json
import sys
from collections.abc import Iterator

import pytest

__all__ = ["PREFIX"]

PREFIX = "pytest-event: "


@pytest.hookimpl(wrapper=True)
def pytest_runtest_protocol(item: pytest.Item) -> Iterator[None]:
    _reports.clear()
    try:
        return (yield)
    finally:
        failed = any(each.failed for each in _reports)
        skipped = any(each.skipped for each in _reports)
        event = {
            "name": item.nodeid,
            "status": "failed" if failed else "skipped" if skipped else "passed",
            "output": "\n".join(each.longreprtext for each in _reports if each.failed),
        }
        print(f"\n{PREFIX}{json.dumps(event)}", file=sys.__stderr__, flush=True)


_reports: list[pytest.TestReport] = []


def pytest_runtest_logreport(report: pytest.TestReport) -> None:
    _reports.append(report)
