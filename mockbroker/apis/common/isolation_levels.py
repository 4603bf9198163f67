"""The isolation levels of Fetch and ListOffsets: READ_UNCOMMITTED(0) and READ_COMMITTED(1)."""

from __future__ import annotations

from typing import Final

from mockbroker.apis.calls import Call
from mockbroker.apis.common.requirements import Requirement
from mockbroker.errors import UnreadableError
from mockbroker.simulation.releases import facts

__all__ = ["ISOLATION_LEVELS", "readable_isolation_level"]

ISOLATION_LEVELS: Final = (0, 1)


def _check(call: Call) -> int:
    level = call.body.isolation_level
    if level not in ISOLATION_LEVELS and call.release.has(facts.ISOLATION_LEVELS_READ):
        raise UnreadableError(f"isolation level {level}, which Kafka does not read")
    return 0


readable_isolation_level: Final = Requirement(_check)
"""The broker can read the isolation level. The check raises UnreadableError."""
