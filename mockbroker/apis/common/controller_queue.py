"""The queue of a KRaft controller: a request that waits in it for longer than its time-out fails.

The simulated controller is never behind, so only a request without any time waits too long.
"""

from __future__ import annotations

from typing import Final

from kproto.error_codes import ErrorCode
from mockbroker.apis.calls import Call
from mockbroker.apis.common.requirements import Requirement
from mockbroker.simulation.releases import fixes
from mockbroker.simulation.releases.release import Release, by_release
from mockbroker.simulation.releases.rows import Row, apply_first, rows_of_release

__all__ = ["controller_queue", "queued"]


def _has_no_time(call: Call) -> bool:
    return call.profile.forwarding and call.body.timeout_ms <= 0


_ROWS: Final[tuple[Row[Call, None], ...]] = (
    Row("A-56", _has_no_time, (), since=fixes.KAFKA_12778),
)


@by_release
def _rows(release: Release) -> tuple[Row[Call, None], ...]:
    return rows_of_release(_ROWS, release)


def _error(call: Call) -> int:
    """The controller answers REQUEST_TIMED_OUT, having done nothing."""
    return ErrorCode.REQUEST_TIMED_OUT if apply_first(_rows(call.release), call, None) else 0


def queued(field: str) -> Requirement:
    """As ``controller_queue``, for requests that do not wait if the list in ``field`` is empty."""
    return Requirement(lambda call: 0 if getattr(call.body, field) == [] else _error(call))


controller_queue: Final = Requirement(_error)
"""The request does not wait in the controller's queue for longer than its time-out."""
