"""The tables about groups and transactions."""

from __future__ import annotations

from typing import Final

from wiredump.rows.columns import Table, columns

__all__ = ["GROUPS", "TRANSACTIONS"]

GROUPS: Final = Table(
    "groups",
    "Rebalances of groups: a row for each generation of a classic group, and for each epoch of a "
    "consumer (KIP-848), share (KIP-932) or streams (KIP-1071) group.",
    columns(
        """
        coordinator     string   host:port of the broker, or its id in a journal
        group_id        string   of the requests
        protocol        string   classic, consumer, share or streams
        generation      int32    generation, or epoch; null if no response has one
        outcome         string   completed, superseded, failed, in progress
        assignor        string   classic: the protocol chosen; consumer: as requested, if it was
        leader          string   classic: the leader's member id
        members         int32    members that were seen, or that the leader was given if more
        members_joined  int32    of these, those that are new
        members_left    int32    members that left before, or during the rebalance
        reasons         strings  of JoinGroup (8) and LeaveGroup (5), each once, sorted
        errors          strings  names of error codes in the responses, each once, sorted
        client_ids      strings  of the requests' headers, each once, sorted
        began_ns        int64    time of the first request
        ended_ns        int64    time of the last assignment that was captured; null without any
        duration_ns     int64    between the two; null where that is negative
        connection      int64    id of the connection of the first request
        request_offset  int64    of that request within its direction
        """
    ),
    ("group_id", "coordinator", "protocol", "began_ns", "connection", "request_offset",
     "generation"),
)  # fmt: skip

TRANSACTIONS: Final = Table(
    "transactions",
    "Transactions, from the first request of their transactional id to EndTxn.",
    columns(
        """
        transactional_id  string   of the requests
        producer_id       int64    null if no message has it
        producer_epoch    int16    likewise
        outcome           string   committed, aborted, fenced, failed, open
        coordinator       string   host:port of the broker, or its id in a journal; null if unknown
        client_id         string   of the first request's header
        software_name     string   from ApiVersions; null without it
        software_version  string   likewise
        began_ns          int64    time of the first request; null if it began before the capture
        ended_ns          int64    when the response that ended it was complete; null without one
        duration_ns       int64    between the two; null where that is negative
        topics            strings  names, or ids (see topics) where requests have ids, sorted
        partitions        int32    partitions that were added or written
        groups            strings  groups whose offsets were added, sorted
        offsets           int32    partitions whose offsets were committed
        requests          int64    requests of the transaction
        errors            strings  names of error codes in the responses, each once, sorted
        connection        int64    id of the connection of the first request
        request_offset    int64    of that request within its direction
        """
    ),
    ("transactional_id", "began_ns", "ended_ns", "connection", "request_offset"),
)
