"""Hypothesis strategies for names, replicas, plans and faults. They are small, so that commands
interact, and mostly valid, as refusals test little."""

from __future__ import annotations

from typing import Final

from hypothesis import strategies as st

from kproto.znodes.plan_znodes import (
    CANCEL_REASSIGNMENT_IN_PROGRESS,
    PREFERRED_REPLICA_ELECTION,
    REASSIGN_PARTITIONS,
    REASSIGN_PARTITIONS_QUEUE,
    PlannedReplicas,
    encode_preferred_replica_election,
    encode_reassign_partitions,
)
from kproto.znodes.request_znodes import (
    REASSIGN_CANCEL,
    REASSIGN_PARTITIONS_EXTRA,
    REQUEST_PREFIX,
    ReassignmentRequest,
    encode_request,
)
from mockbroker.faults import Fault

__all__ = [
    "ASKED",
    "BROKER",
    "CONFIGS",
    "COURSE",
    "DATA_FAULTS",
    "FAULTS",
    "MISSING",
    "NAME",
    "PICK",
    "PLANS",
    "REPLICAS",
    "SWITCHES",
    "TOPICS",
    "znode_text",
]

BROKER: Final = st.integers(1, 5)
NAME: Final = st.sampled_from(["foo", "foo", "bar", "bar", "baz", "a.b", "a_b", "in valid"])
TOPICS: Final = st.lists(
    st.sampled_from(["foo=1,2,3/3,4", "bar=2", "baz=5,4,3/1/2,5"]), min_size=1, unique=True
)
PICK: Final = st.integers(0, 11)
"""Pick an existing partition by number, modulo the number of partitions; the last one picks
none."""
MISSING: Final = ("nosuch", 7)

REPLICAS: Final = st.permutations([1, 2, 3, 4, 5]).flatmap(
    lambda order: st.integers(1, 4).map(lambda count: list(order[:count]))
)
_BAD: Final = st.sampled_from([[], [1, 1], [9], [-1], [2, 3, 2]])
_TARGET: Final = st.one_of(REPLICAS, REPLICAS, REPLICAS, st.none(), _BAD)
ASKED: Final = st.lists(
    # Each partition once: KRaft accepts one named twice, which keeps no invariant.
    st.tuples(PICK, _TARGET),
    min_size=1,
    max_size=3,
    unique_by=lambda row: row[0],
)
"""[(pick, broker ids or None)]"""
COURSE: Final = st.lists(st.one_of(REPLICAS, REPLICAS, st.none(), st.just("join")), min_size=2,
                         max_size=6)  # fmt: skip
"""What happens to one partition: new targets, cancellations, and replicas that join in between."""

CONFIGS: Final = st.sampled_from(
    [
        ("unclean.leader.election.enable", "true"),
        ("unclean.leader.election.enable", "true"),
        ("unclean.leader.election.enable", "maybe"),
        ("min.insync.replicas", "3"),
        ("retention.ms", "1000"),
        ("cleanup.policy", "compact"),
        ("no.such.config", "1"),
    ]
)

PLANS: Final = st.dictionaries(PICK, REPLICAS, min_size=1, max_size=2)
"""Pick -> broker ids."""

SWITCHES: Final = (
    REASSIGN_PARTITIONS,
    REASSIGN_PARTITIONS_QUEUE,
    CANCEL_REASSIGNMENT_IN_PROGRESS,
    REASSIGN_CANCEL,
    REASSIGN_PARTITIONS_EXTRA,
    REQUEST_PREFIX,
    PREFERRED_REPLICA_ELECTION,
)
"""Znodes by which users make requests, in the released form and in the drafts'."""

FAULTS: Final = st.sampled_from(
    [
        Fault(api=45, error="NOT_CONTROLLER", times=1),
        Fault(api=45, error="INVALID_REQUEST", error_at="all", apply=True, times=1),
        Fault(api=45, topic="foo", partition=0, error="NO_REASSIGNMENT_IN_PROGRESS", times=2),
        Fault(api=45, disconnect="after", times=1),
        Fault(api=45, disconnect="before", times=1),
        Fault(api=45, steps_before=("failover other",), times=1),
        Fault(api=46, delay=20, times=2),
        Fault(api="Metadata", throttle=5, times=3),
        Fault(api="Metadata", hold_responses=1, times=1),
        Fault(api="Metadata", hold_for=30, times=1),
        Fault(api="Metadata", steps_after=("stop-broker other",), times=1),
        Fault(unknown_tags=("header", "body", "elements"), times=2),
        Fault(split=7, times=2),
        Fault(split=9, split_delay=10, times=1),
        Fault(never_answer=True, times=1),
        Fault(api=19, never_answer=True, apply=True, times=1),
        Fault(api=43, error="REQUEST_TIMED_OUT", times=1),
        Fault(client_id="client-1", nth=2, error="UNKNOWN_SERVER_ERROR", times=1),
        Fault(name="spoil-truncate", api="Metadata", truncate=-3, times=1),
        Fault(name="spoil-id", api=46, correlation_off_by=1, times=1),
        Fault(name="spoil-garbage", garbage=20, times=1),
    ]
)


DATA_FAULTS: Final = st.sampled_from(
    [
        Fault(api="Produce", disconnect="after", times=1),
        Fault(api="Produce", disconnect="before", times=1),
        Fault(api="Produce", error="NOT_LEADER_OR_FOLLOWER", times=1),
        Fault(api="Produce", error="REQUEST_TIMED_OUT", apply=True, times=1),
        Fault(api="Fetch", error="OFFSET_OUT_OF_RANGE", times=1),
        Fault(api="Fetch", topic="foo", partition=0, corrupt="bit", times=1),
        Fault(api="OffsetCommit", never_answer=True, apply=True, times=1),
        Fault(api="OffsetCommit", disconnect="after", times=1),
        Fault(api="JoinGroup", error="COORDINATOR_LOAD_IN_PROGRESS", times=1),
        Fault(api="SyncGroup", disconnect="before", times=1),
        Fault(api="Heartbeat", error="REBALANCE_IN_PROGRESS", times=1),
        Fault(api="InitProducerId", disconnect="after", times=1),
        Fault(api="AddPartitionsToTxn", error="CONCURRENT_TRANSACTIONS", times=1),
        Fault(api="TxnOffsetCommit", disconnect="before", times=1),
        Fault(api="EndTxn", disconnect="after", times=1),
        Fault(api="EndTxn", disconnect="before", times=1),
    ]
)
"""Without delays: they would only mark more answers as proving nothing."""


def znode_text(path: str, plan: dict[tuple[str, int], list[int]]) -> str:
    """Return the data that requests this plan at that path; an election uses only its
    partitions."""
    if path == REQUEST_PREFIX:
        return encode_request(ReassignmentRequest(plan)).decode()
    if path == PREFERRED_REPLICA_ELECTION:
        return encode_preferred_replica_election(plan).decode()
    planned = {tp: PlannedReplicas(replicas) for tp, replicas in plan.items()}
    return encode_reassign_partitions(planned).decode()
