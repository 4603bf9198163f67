"""Defects that a case can tell from the right client and that no user could notice, each with the
reason.

A key is the module, the function or constant, and the change, as ``kspec holes`` prints them; ``*``
stands for every change of the place.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from kspec.holes.mutations import Mutation

__all__ = ["REASONS", "reason_for"]

_PAUSE: Final = "It is the length of a pause, for which no document states a number."
_TIME_OUT: Final = "A client chooses how long a broker may take."
_UNOBSERVED: Final = "A client need not push metrics (KIP-714)."
_OWN_TIMER: Final = "It is how often the client looks at its own state, which no broker sees."

REASONS: Final[Mapping[tuple[str, str, str], str]] = {
    ("calls", "_DESCRIBE_CLUSTER", "*"): (
        "Metadata names the brokers and the controller, too, and either request is right."
    ),
    ("consumer", "_PAUSE", "*"): _PAUSE,
    ("rules", "_FIRST_PAUSE", "*"): _PAUSE,
    ("rules", "_LONGEST_PAUSE", "*"): _PAUSE,
    ("heartbeating_member", "_POLL_PAUSE", "*"): _OWN_TIMER,
    ("heartbeating_member", "_SHORTEST_PAUSE", "*"): _PAUSE,
    ("heartbeating_member", "_FIRST_INTERVAL", "*"): (
        "The first answer of the coordinator replaces the interval before it is used."
    ),
    ("telemetry", "_LOOK_SECONDS", "*"): _OWN_TIMER,
    ("telemetry", "_PAUSE_SECONDS", "*"): _PAUSE,
    ("telemetry", "Telemetry.subscribe", "71 -> 70"): _UNOBSERVED,
    (
        "telemetry",
        "Telemetry.push_while_subscribed",
        "code == _INVALID_RECORD and self.stops_when_unreadable() -> code == _INVALID_RECORD",
    ): "The method returns True.",
    (
        "streams_group_member",
        "StreamsGroupMember.find_counts",
        "set(self.names) <= set(self.topics.counts) -> set(self.names) < set(self.topics.counts)",
    ): "It asks for metadata with each new target, too, which no document forbids.",
    ("telemetry", "Telemetry.run", "continue"): (
        "A client need not push metrics: one that never asks is not judged (KIP-714)."
    ),
    ("membership", "_JOIN_SLACK", "*"): (
        "It is how much longer than the rebalance a client waits for the coordinator's answer."
    ),
    ("cluster_calls", "describe_quotas", "True -> False"): (
        "Clients have a call for either: whether entities with more parts are listed is a choice."
    ),
    ("consumer", "_MAX_BYTES", "*"): "A client chooses the largest answer that it takes.",
    ("consumer", "_PARTITION_BYTES", "*"): "A client chooses how much it takes of a partition.",
    (
        "membership",
        "Membership.on_commit_error",
        "(_ILLEGAL_GENERATION, _UNKNOWN_MEMBER_ID, _REBALANCE_IN_PROGRESS, _FE…"
        " -> (_ILLEGAL_GENERATION, _REBALANCE_IN_PROGRESS, _FENCED_INSTANCE_ID)",
    ): "The application gets the error by partition, and the next heartbeat has it for the member.",
    ("consumer", "Consumer.body", "session_epoch=session.epoch"): (
        "Without an epoch a fetch belongs to no session, which a client may choose (KIP-227)."
    ),
    (
        "producer",
        "Producer.number",
        "not self.idempotent or batch.sequence >= 0 -> batch.sequence >= 0",
    ): "Without a producer id brokers do not look at sequences.",
    ("producer", "Producer.body", "1000 -> 100"): _TIME_OUT,
    ("producer", "Producer.body", "1000 -> 10000"): _TIME_OUT,
    (
        "producer",
        "Producer.can_encode",
        "self.codec is not Compression.ZSTD or version >= _ZSTD_SINCE"
        " -> self.codec is not Compression.ZSTD and version >= _ZSTD_SINCE",
    ): "A client need not have every codec, and it says which it lacks.",
    ("client", "Client.call", "self.data is not None -> self.data is None"): (
        "Whether a client has a call is for its adapter to say; cases without it are unsupported."
    ),
    ("assignors", "share_in_turns", "0 -> 1"): (
        "Members are equal: the leader may begin with any of them."
    ),
    ("data_calls", "DataClients.producer", "self._observe('producer')"): _UNOBSERVED,
    ("data_calls", "DataClients.consumer", "self._observe('consumer')"): _UNOBSERVED,
    ("admin_calls", "create_topics.request", "1000 -> 100"): _TIME_OUT,
    ("admin_calls", "create_topics.request", "1000 -> 10000"): _TIME_OUT,
    ("admin_calls", "create_partitions.request", "1000 -> 100"): _TIME_OUT,
    ("admin_calls", "create_partitions.request", "1000 -> 10000"): _TIME_OUT,
    ("membership", "Membership.join_once", "self.on_sync_error(synced.error_code)"): (
        "The member joins again in any case, and the answer to that has the error if it lasts."
    ),
    ("producer", "Producer.identify", "0 -> 1"): (
        "Without a transactional id brokers do not look at the time-out of transactions."
    ),
    ("share_consumer", "_PAUSE", "*"): _PAUSE,
    ("share_consumer", "_MAX_BYTES", "*"): "A client chooses the largest answer that it takes.",
    ("share_consumer", "_MOST_RECORDS", "*"): "A client chooses how many records it takes.",
    ("bearer", "_EARLY_SECONDS", "*"): "No document states how early a client gets another token.",
    ("producer", "_BATCH_BYTES", "*"): "A client chooses the size of its batches.",
    ("transactional_producer", "_INVALID_PRODUCER_ID_MAPPING", "*"): (
        "Whether a producer goes on after it differs by release of Kafka's own client."
    ),
    ("transactional_producer", "_TRANSACTIONAL_ID_AUTHORIZATION_FAILED", "*"): (
        "The transaction does not begin in any case, and a record sent all the same fails, too."
    ),
    ("transactional_producer", "_TRANSACTION_TIMEOUT_MS", "*"): (
        "A client chooses the time-out of its transactions."
    ),
    (
        "producer",
        "Producer.begin_epoch",
        "(producer_id, epoch + 1) if epoch < _LAST_EPOCH else (-1, -1) -> (-1, -1)",
    ): "Under another producer id sequences begin anew, as they do in a higher epoch.",
    ("producer", "Producer.begin_epoch", "1 -> 2"): "Brokers take any higher epoch.",
    ("rules", "ClientRules.link_to", "link.outlived and self.sasl is not None -> link.outlived"): (
        "Only a connection that was authenticated has a session that ends."
    ),
    ("scram", "ScramExchange.attributes", "self.check_extension(parts[0][0])"): (
        "The exchange fails as well, as the message does not begin with what is expected."
    ),
    ("scram", "_NONCE_BYTES", "*"): "A client chooses the length of its nonce.",
    ("scram", "_MOST_ITERATIONS", "*"): "A client chooses how long it may compute.",
    (
        "consumer",
        "Consumer.validate",
        "raise BrokerError(_LOG_TRUNCATION, 'records that were read are gone')",
    ): ("Without a policy a consumer may report the truncation, or read on where the logs part."),
}


def reason_for(mutation: Mutation) -> str | None:
    place = (mutation.module, mutation.place)
    return REASONS.get((*place, mutation.change)) or REASONS.get((*place, "*"))
