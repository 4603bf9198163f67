"""The broker configs that change anything here, and what they decide. Data only.

Every other config is accepted and described, and listed at start as one without an effect.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from mockbroker.simulation.releases import facts
from mockbroker.simulation.releases.release import Fact, Release

__all__ = ["EFFECTS", "has_effect"]

_OF_TOPICS: Final = (
    "compression.type",
    "log.cleaner.delete.retention.ms",
    "log.cleaner.min.compaction.lag.ms",
    "log.cleanup.policy",
    "log.index.interval.bytes",
    "log.message.downconversion.enable",
    "log.message.format.version",
    "log.message.timestamp.after.max.ms",
    "log.message.timestamp.before.max.ms",
    "log.message.timestamp.difference.max.ms",
    "log.message.timestamp.type",
    "log.retention.bytes",
    "log.retention.hours",
    "log.retention.minutes",
    "log.retention.ms",
    "log.roll.hours",
    "log.roll.ms",
    "log.segment.bytes",
    "message.max.bytes",
    "min.insync.replicas",
    "unclean.leader.election.enable",
)
_OF_GROUPS: Final = (
    "group.consumer.assignment.interval.ms",
    "group.consumer.heartbeat.interval.ms",
    "group.consumer.session.timeout.ms",
    "group.share.assignment.interval.ms",
    "group.share.delivery.count.limit",
    "group.share.heartbeat.interval.ms",
    "group.share.partition.max.record.locks",
    "group.share.record.lock.duration.ms",
    "group.share.session.timeout.ms",
    "group.streams.acceptable.recovery.lag",
    "group.streams.assignment.interval.ms",
    "group.streams.heartbeat.interval.ms",
    "group.streams.initial.rebalance.delay.ms",
    "group.streams.num.standby.replicas",
    "group.streams.rack.aware.assignment.tags",
    "group.streams.session.timeout.ms",
    "group.streams.task.offset.interval.ms",
)
_BOUNDS_OF_GROUPS: Final = (
    "group.consumer.max.assignment.interval.ms",
    "group.consumer.max.heartbeat.interval.ms",
    "group.consumer.max.session.timeout.ms",
    "group.consumer.min.assignment.interval.ms",
    "group.consumer.min.heartbeat.interval.ms",
    "group.consumer.min.session.timeout.ms",
    *(
        f"group.share.{side}.{name}"
        for side in ("max", "min")
        for name in (
            "assignment.interval.ms",
            "delivery.count.limit",
            "heartbeat.interval.ms",
            "partition.max.record.locks",
            "record.lock.duration.ms",
            "session.timeout.ms",
        )
    ),
    "group.streams.assignors",
    "group.streams.max.assignment.interval.ms",
    "group.streams.max.heartbeat.interval.ms",
    "group.streams.max.session.timeout.ms",
    "group.streams.max.standby.replicas",
    "group.streams.max.warmup.replicas",
    "group.streams.min.assignment.interval.ms",
    "group.streams.min.heartbeat.interval.ms",
    "group.streams.min.session.timeout.ms",
    "group.streams.min.task.offset.interval.ms",
)
_OF_INTERNAL_TOPICS: Final = (
    "offsets.topic.num.partitions",
    "offsets.topic.replication.factor",
    "offsets.topic.segment.bytes",
    "share.coordinator.state.topic.min.isr",
    "share.coordinator.state.topic.num.partitions",
    "share.coordinator.state.topic.replication.factor",
    "share.coordinator.state.topic.segment.bytes",
    "transaction.state.log.min.isr",
    "transaction.state.log.num.partitions",
    "transaction.state.log.replication.factor",
    "transaction.state.log.segment.bytes",
)

_OF_LISTENERS: Final = (
    "advertised.listeners",
    "controller.listener.names",
    "inter.broker.listener.name",
    "listener.security.protocol.map",
    "listeners",
    "process.roles",
    "sasl.enabled.mechanisms",
    "security.inter.broker.protocol",
    "ssl.client.auth",
    "ssl.enabled.protocols",
    "ssl.key.password",
    "ssl.keystore.certificate.chain",
    "ssl.keystore.key",
    "ssl.keystore.location",
    "ssl.keystore.password",
    "ssl.truststore.certificates",
    "ssl.truststore.location",
    "ssl.truststore.password",
)

EFFECTS: Final[Mapping[str, str]] = {
    **dict.fromkeys(_OF_LISTENERS, "with `listeners`: which listeners brokers have"),
    **dict.fromkeys(_OF_TOPICS, "what topics follow that have no config of their own"),
    **dict.fromkeys(_OF_GROUPS, "what groups follow that have no config of their own"),
    **dict.fromkeys(_BOUNDS_OF_GROUPS, "which configs groups accept"),
    **dict.fromkeys(_OF_INTERNAL_TOPICS, "how internal topics are created"),
    "auto.create.topics.enable": "whether Metadata creates topics",
    "auto.leader.rebalance.enable": "if set to true, preferred replicas become leaders",
    "broker.rack": "the broker's rack in Metadata",
    "connections.max.idle.ms": "when idle connections are closed",
    "connections.max.reauth.ms": "how long a SASL session lasts",
    "default.replication.factor": "the replicas of new topics",
    "delegation.token.expiry.check.interval.ms": "when expired delegation tokens disappear",
    "delegation.token.expiry.time.ms": "when delegation tokens expire",
    "delegation.token.master.key": "whether there are delegation tokens",
    "delegation.token.max.lifetime.ms": "how long delegation tokens can be renewed",
    "delegation.token.secret.key": "whether there are delegation tokens",
    "delete.topic.enable": "whether topics can be deleted",
    "fetch.max.bytes": "the size of answers to Fetch",
    "follower.replication.throttled.rate": "the throttle of followers",
    "group.consumer.assignors": "which assignors consumer groups have",
    "group.consumer.max.size": "the members of a consumer group",
    "group.consumer.migration.policy": "whether classic groups turn into consumer groups",
    "group.consumer.regex.refresh.interval.ms": "when regular expressions are resolved again",
    "group.coordinator.rebalance.protocols": "which kinds of groups there are",
    "group.initial.rebalance.delay.ms": "how long a new group waits for members",
    "group.max.session.timeout.ms": "which sessions members may have",
    "group.max.size": "the members of a classic group",
    "group.min.session.timeout.ms": "which sessions members may have",
    "group.share.max.share.sessions": "the share sessions of a broker",
    "group.share.max.size": "the members of a share group",
    "group.streams.max.size": "the members of a streams group",
    "leader.imbalance.check.interval.seconds": "how often preferred replicas become leaders",
    "leader.imbalance.per.broker.percentage": "from which imbalance on they do",
    "leader.replication.throttled.rate": "the throttle of leaders",
    "log.dir": "the broker's log directory",
    "log.dirs": "the broker's log directories",
    "max.connections": "how many connections a broker serves",
    "max.connections.per.ip": "how many connections a broker accepts from one address",
    "max.connections.per.ip.overrides": "how many connections a broker accepts from one address",
    "max.incremental.fetch.session.cache.slots": "the fetch sessions of a broker",
    "num.partitions": "the partitions of new topics",
    "offset.metadata.max.bytes": "the metadata of a committed offset",
    "offsets.commit.timeout.ms": "how long OffsetCommit waits for replicas",
    "offsets.retention.check.interval.ms": "when expired offsets disappear",
    "offsets.retention.minutes": "when committed offsets expire",
    "producer.id.expiration.check.interval.ms": "when idle producers are forgotten",
    "producer.id.expiration.ms": "when idle producers are forgotten",
    "remote.log.storage.system.enable": "whether topics may use remote storage",
    "replica.lag.time.max.ms": "if set, when a held replica leaves the ISR",
    "replica.selector.class": "which replica consumers fetch from",
    "share.coordinator.snapshot.update.records.per.snapshot": "how often states are snapshots",
    "socket.request.max.bytes": "the largest request",
    "telemetry.max.bytes": "the largest metrics that a client pushes",
    "transaction.abort.timed.out.transaction.cleanup.interval.ms": "when time-outs are noticed",
    "transaction.max.timeout.ms": "which time-outs transactions may have",
    "transaction.partition.verification.enable": "whether transactional appends are verified",
    "transaction.remove.expired.transaction.cleanup.interval.ms": "when idle ids are forgotten",
    "transaction.two.phase.commit.enable": "whether producers may use two-phase commit",
    "transactional.id.expiration.ms": "when transactional ids expire",
    "unstable.api.versions.enable": "whether InitProducerId has version 6",
    "zookeeper.session.timeout.ms": "how long a session with ZooKeeper lasts",
}
"""By name: what the config decides."""

_NOT_WITH: Final[Mapping[str, Fact]] = {"log.message.format.version": facts.MESSAGE_FORMAT_FIXED}
"""Configs without an effect in the releases that have the fact."""

_ONLY_WITH: Final[Mapping[str, Fact]] = {"unstable.api.versions.enable": facts.TWO_PHASE_COMMIT}
"""Configs with an effect only in the releases that have the fact."""


def has_effect(name: str, release: Release) -> bool:
    """Whether a config changes anything in a release that has it."""
    without, needed = _NOT_WITH.get(name), _ONLY_WITH.get(name)
    return (
        name in EFFECTS
        and (without is None or not release.has(without))
        and (needed is None or release.has(needed))
    )
