"""The rules of classic groups in one release, out of the tables of all releases.

Rows with ``until=NEW_COORDINATOR`` are those of Kafka's former coordinator (``GroupCoordinator``,
Scala), which releases up to 3.9 run by default.
"""

from __future__ import annotations

from functools import cache

import msgspec

from mockbroker.simulation.groups.classic.classic_requests import (
    Admission,
    DeleteEvent,
    HeartbeatEvent,
)
from mockbroker.simulation.groups.classic.commit_rules import (
    ON_COMMIT,
    ON_DELETE,
    ON_DELETE_GATE,
    ON_DESCRIBE,
    ON_MISSING_IN_COMMIT,
    CommitRow,
    DescribeRow,
    MissingRow,
)
from mockbroker.simulation.groups.classic.group_effects import (
    GroupRow,
)
from mockbroker.simulation.groups.classic.join_rules import (
    ON_ADMISSION,
    ON_JOIN,
    ON_MADE,
    ON_REPLACED,
    ON_UPDATED,
    JoinRow,
)
from mockbroker.simulation.groups.classic.member_rules import (
    ON_HEARTBEAT,
    ON_HEARTBEAT_GATE,
    ON_LEAVE,
    ON_LEAVE_GATE,
    ON_MEMBERS_LEFT,
    ON_SYNC,
    ON_SYNC_GATE,
    GateRow,
    LeaveRow,
    SyncRow,
)
from mockbroker.simulation.groups.classic.rebalance_rules import (
    ON_COMPLETE,
    ON_GENERATION,
    ON_JOINED,
    ON_LATE,
    ON_LEADER,
    ON_MEMBER_ADDED,
    ON_PENDING_GONE,
    ON_PREPARE,
    ON_PREPARED,
    ON_SESSION_END,
    ON_SESSION_ENDED,
    ON_SETTLE,
    ON_SYNC_END,
)
from mockbroker.simulation.groups.classic.rebalancing import (
    Rules,
)
from mockbroker.simulation.releases.release import Release
from mockbroker.simulation.releases.rows import Row, rows_of_release, rules_of_release

__all__ = [
    "RequestRules",
    "request_rules",
    "rules",
]


class RequestRules(msgspec.Struct, frozen=True):
    """The rows by request."""

    admission: tuple[Row[Admission, Admission], ...] = ON_ADMISSION
    join: tuple[JoinRow, ...] = ON_JOIN
    made: tuple[JoinRow, ...] = ON_MADE
    updated: tuple[JoinRow, ...] = ON_UPDATED
    replaced: tuple[JoinRow, ...] = ON_REPLACED
    sync: tuple[SyncRow, ...] = ON_SYNC
    heartbeat: tuple[Row[HeartbeatEvent, HeartbeatEvent], ...] = ON_HEARTBEAT
    leave: tuple[LeaveRow, ...] = ON_LEAVE
    members_left: tuple[GroupRow, ...] = ON_MEMBERS_LEFT
    sync_gate: tuple[GateRow, ...] = ON_SYNC_GATE
    heartbeat_gate: tuple[GateRow, ...] = ON_HEARTBEAT_GATE
    leave_gate: tuple[GateRow, ...] = ON_LEAVE_GATE
    missing_in_commit: tuple[MissingRow, ...] = ON_MISSING_IN_COMMIT
    commit: tuple[CommitRow, ...] = ON_COMMIT
    delete_gate: tuple[GateRow, ...] = ON_DELETE_GATE
    delete: tuple[Row[DeleteEvent, DeleteEvent], ...] = ON_DELETE
    describe: tuple[DescribeRow, ...] = ON_DESCRIBE


@cache
def rules(release: Release) -> Rules:
    """Return the rules of a release that more than one request leads to."""
    return Rules(
        prepare=rows_of_release(ON_PREPARE, release),
        prepared=rows_of_release(ON_PREPARED, release),
        member_added=rows_of_release(ON_MEMBER_ADDED, release),
        joined=rows_of_release(ON_JOINED, release),
        settle=rows_of_release(ON_SETTLE, release),
        late=rows_of_release(ON_LATE, release),
        leader=rows_of_release(ON_LEADER, release),
        complete=rows_of_release(ON_COMPLETE, release),
        generation=rows_of_release(ON_GENERATION, release),
        session_end=rows_of_release(ON_SESSION_END, release),
        session_ended=rows_of_release(ON_SESSION_ENDED, release),
        pending_gone=rows_of_release(ON_PENDING_GONE, release),
        sync_end=rows_of_release(ON_SYNC_END, release),
    )


@cache
def request_rules(release: Release) -> RequestRules:
    """Return the rules of a release for requests."""
    return rules_of_release(RequestRules, release)
