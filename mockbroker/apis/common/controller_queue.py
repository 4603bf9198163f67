"""The queue of a KRaft controller: a request that waits in it for longer than its time-out fails.

The simulated controller is never behind, so only a request without any time waits too long.
"""

from __future__ import annotations

from functools import cache
from typing import Final

from mockbroker.apis.registry import Call
from mockbroker.simulation.releases.release import Release
from mockbroker.simulation.releases.rows import Row, apply_first, rows_of_release

__all__ = ["times_out"]


def _has_no_time(call: Call) -> bool:
    return call.profile.forwarding and call.body.timeout_ms <= 0


_ROWS: Final[tuple[Row[Call, None], ...]] = (Row("A-56", _has_no_time, (), since=(3, 0)),)


@cache
def _rows(release: Release) -> tuple[Row[Call, None], ...]:
    return rows_of_release(_ROWS, release)


def times_out(call: Call) -> bool:
    """Whether the controller answers REQUEST_TIMED_OUT, having done nothing."""
    return apply_first(_rows(call.release), call, None)
