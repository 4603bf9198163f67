"""Tests that are repeated because Spark gave its Python process no time.

Spark waits ten seconds for a Python process to connect, which no setting changes. On a machine
whose cores are all busy, importing PySpark takes longer, and the stream of a test fails with it.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Final

import pytest
from _pytest.runner import runtestprotocol

__all__ = ["STARVED", "play"]

STARVED: Final = "Python worker failed to connect back"
_OF_THE_COMMAND: Final = "a Python process took more than Spark's ten seconds to start"


def play(item: pytest.Item, nextitem: pytest.Item | None) -> bool | None:
    """Run a test of this folder, and once more if Spark had no time; None for other tests."""
    if Path(__file__).parent not in item.path.parents:
        return None
    item.ihook.pytest_runtest_logstart(nodeid=item.nodeid, location=item.location)
    reports = runtestprotocol(item, log=False, nextitem=nextitem)
    if _is_starved(reports):
        item._initrequest()  # type: ignore[attr-defined]
        reports = runtestprotocol(item, log=False, nextitem=nextitem)
    for report in reports:
        item.ihook.pytest_runtest_logreport(report=report)
    item.ihook.pytest_runtest_logfinish(nodeid=item.nodeid, location=item.location)
    return True


def _is_starved(reports: Sequence[pytest.TestReport]) -> bool:
    failed = [str(report.longrepr) for report in reports if report.failed]
    return any(text in each for each in failed for text in (STARVED, _OF_THE_COMMAND))
