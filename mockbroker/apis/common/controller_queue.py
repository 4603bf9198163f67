"""The queue of a KRaft controller: a request that waits in it for longer than its time-out fails.

The simulated controller is never behind, so only a request without any time waits too long.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Iterable
from typing import Final

from kproto.error_codes import ErrorCode
from mockbroker.apis.calls import Call
from mockbroker.apis.common.requirements import Requirement
from mockbroker.simulation.releases import fixes
from mockbroker.simulation.releases.release import Release, by_release
from mockbroker.simulation.releases.rows import Row, apply_first, rows_of_release

__all__ = ["queued", "queued_if", "queued_topics"]


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


def queued_if(waits: Callable[[Call], bool]) -> Requirement:
    """The request does not wait in the controller's queue for longer than its time-out. ``waits``
    says whether it waits at all, and is asked only if it has no time."""

    def check(call: Call) -> int:
        code = _error(call)
        return code if code and waits(call) else 0

    return Requirement(check)


def queued(field: str) -> Requirement:
    """As ``queued_if``, for requests that do not wait if the list in ``field`` is empty."""
    return queued_if(lambda call: getattr(call.body, field) != [])


def queued_topics(may: Callable[[Call, Iterable[str]], Collection[str]]) -> Requirement:
    """As ``queued_if``: KRaft's controller gets the topics that are named once, of those that the
    caller ``may`` change."""

    def waits(call: Call) -> bool:
        times = Counter(topic.name for topic in call.body.topics)
        return any(times[name] == 1 for name in may(call, times))

    return queued_if(waits)
