"""How a request waits for the replicas of its partitions (acks -1, DeleteRecords)."""

from __future__ import annotations

from typing import Any

from mockbroker.simulation.log.replicas.replica_wait import LogWait
from mockbroker.simulation.state.timers import Timers, wait_for_call

__all__ = ["wait_for_replicas"]


async def wait_for_replicas(wait: LogWait[Any], timeout_ms: int, timers: Timers | None) -> None:
    """Wait until every partition is decided; after ``timeout_ms``, of real time or by the clock of
    ``timers``, the others time out. If the client disconnects, nothing waits any more."""
    try:
        if not await wait_for_call(wait.when_over, max(timeout_ms, 0), timers):
            wait.expire()
    finally:
        wait.end()
