"""Which configs topics and brokers have: name, type, default, allowed values. Facts, no state.

Topic configs are those of Kafka 4.4's ``LogConfig`` without its internal ones; each names the
broker config that gives its default. Broker configs are those, plus the ones that clients, tools
and this mock's own rules look at: a real broker has some three hundred.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, Literal, TypeAlias

__all__ = ["BROKER_CONFIGS", "TOPIC_CONFIGS", "ConfigDefinition", "ConfigType"]

ConfigType: TypeAlias = Literal[
    "UNKNOWN", "BOOLEAN", "STRING", "INT", "LONG", "DOUBLE", "LIST", "PASSWORD"
]


@dataclass(frozen=True, slots=True)
class ConfigDefinition:
    """``default`` is the text DescribeConfigs shows. ``synonym`` is the broker config behind a
    topic config. ``dynamic`` says whether a running broker takes a change; ``only_set`` is one that
    DescribeConfigs leaves out until somebody sets it."""

    name: str
    type: ConfigType
    default: str | None
    minimum: float | None = None
    maximum: float | None = None
    choices: tuple[str, ...] = ()
    synonym: str | None = None
    dynamic: bool = True
    only_set: bool = False


_MAX_LONG = str(2**63 - 1)
_CODECS = ("uncompressed", "zstd", "lz4", "snappy", "gzip", "producer")


def _topic(
    name: str,
    type_: ConfigType,
    default: str,
    synonym: str | None = None,
    minimum: float | None = None,
    maximum: float | None = None,
    choices: tuple[str, ...] = (),
) -> ConfigDefinition:
    return ConfigDefinition(name, type_, default, minimum, maximum, choices, synonym)


def _static(name: str, type_: ConfigType, default: str | None) -> ConfigDefinition:
    return ConfigDefinition(name, type_, default, dynamic=False)


_TOPIC = (
    _topic("cleanup.policy", "LIST", "delete", "log.cleanup.policy", choices=("compact", "delete")),
    _topic("compression.gzip.level", "INT", "-1", "compression.gzip.level", -1, 9),
    _topic("compression.lz4.level", "INT", "9", "compression.lz4.level", 1, 17),
    _topic("compression.type", "STRING", "producer", "compression.type", choices=_CODECS),
    _topic("compression.zstd.level", "INT", "3", "compression.zstd.level", -131072, 22),
    _topic("delete.retention.ms", "LONG", "86400000", "log.cleaner.delete.retention.ms", 0),
    _topic("file.delete.delay.ms", "LONG", "60000", "log.segment.delete.delay.ms", 0),
    _topic("flush.messages", "LONG", _MAX_LONG, "log.flush.interval.messages", 1),
    _topic("flush.ms", "LONG", _MAX_LONG, "log.flush.interval.ms", 0),
    _topic("follower.replication.throttled.replicas", "LIST", ""),
    _topic("index.interval.bytes", "INT", "4096", "log.index.interval.bytes", 0),
    _topic("leader.replication.throttled.replicas", "LIST", ""),
    _topic("local.retention.bytes", "LONG", "-2", "log.local.retention.bytes", -2),
    _topic("local.retention.ms", "LONG", "-2", "log.local.retention.ms", -2),
    _topic("max.compaction.lag.ms", "LONG", _MAX_LONG, "log.cleaner.max.compaction.lag.ms", 1),
    _topic("max.message.bytes", "INT", "1048588", "message.max.bytes", 0),
    _topic(
        "message.timestamp.after.max.ms", "LONG", "3600000", "log.message.timestamp.after.max.ms", 0
    ),
    _topic(
        "message.timestamp.before.max.ms",
        "LONG",
        _MAX_LONG,
        "log.message.timestamp.before.max.ms",
        0,
    ),
    _topic(
        "message.timestamp.type",
        "STRING",
        "CreateTime",
        "log.message.timestamp.type",
        choices=("CreateTime", "LogAppendTime"),
    ),
    _topic("min.cleanable.dirty.ratio", "DOUBLE", "0.5", "log.cleaner.min.cleanable.ratio", 0, 1),
    _topic("min.compaction.lag.ms", "LONG", "0", "log.cleaner.min.compaction.lag.ms", 0),
    _topic("min.insync.replicas", "INT", "1", "min.insync.replicas", 1),
    _topic("preallocate", "BOOLEAN", "false", "log.preallocate"),
    _topic("remote.log.copy.disable", "BOOLEAN", "false"),
    _topic("remote.log.delete.on.disable", "BOOLEAN", "false"),
    _topic("remote.storage.enable", "BOOLEAN", "false"),
    _topic("retention.bytes", "LONG", "-1", "log.retention.bytes"),
    _topic("retention.ms", "LONG", "604800000", "log.retention.ms", -1),
    _topic("segment.bytes", "INT", "1073741824", "log.segment.bytes", 1048576),
    _topic("segment.index.bytes", "INT", "10485760", "log.index.size.max.bytes", 4),
    _topic("segment.jitter.ms", "LONG", "0", "log.roll.jitter.ms", 0),
    _topic("segment.ms", "LONG", "604800000", "log.roll.ms", 1),
    _topic("unclean.leader.election.enable", "BOOLEAN", "false", "unclean.leader.election.enable"),
)


def _rate(name: str) -> ConfigDefinition:
    """A replication throttle, in bytes a second; unlimited unless set."""
    return ConfigDefinition(name, "LONG", _MAX_LONG, minimum=0, only_set=True)


_BROKER = (
    _static("advertised.listeners", "LIST", None),
    _static("auto.create.topics.enable", "BOOLEAN", "true"),
    _static("auto.leader.rebalance.enable", "BOOLEAN", "true"),
    ConfigDefinition("background.threads", "INT", "10", 1),
    _static("broker.id", "INT", None),
    _static("broker.rack", "STRING", None),
    _static("controlled.shutdown.enable", "BOOLEAN", "true"),
    _static("default.replication.factor", "INT", "1"),
    _static("delete.topic.enable", "BOOLEAN", "true"),
    _rate("follower.replication.throttled.rate"),
    _static("inter.broker.listener.name", "STRING", None),
    _rate("leader.replication.throttled.rate"),
    _static("leader.imbalance.check.interval.seconds", "LONG", "300"),
    _static("leader.imbalance.per.broker.percentage", "INT", "10"),
    _static("listeners", "LIST", None),
    ConfigDefinition("log.cleaner.threads", "INT", "1", 0),
    _static("log.dirs", "LIST", "/var/lib/kafka/data"),
    ConfigDefinition("max.connections", "INT", str(2**31 - 1), 0),
    ConfigDefinition("max.connections.per.ip", "INT", str(2**31 - 1), 0),
    _static("node.id", "INT", None),
    ConfigDefinition("num.io.threads", "INT", "8", 1),
    ConfigDefinition("num.network.threads", "INT", "3", 1),
    _static("num.partitions", "INT", "1"),
    ConfigDefinition("num.replica.fetchers", "INT", "1", 1),
    _static("offsets.topic.replication.factor", "INT", "3"),
    _static("process.roles", "LIST", "broker,controller"),
    _rate("replica.alter.log.dirs.io.max.bytes.per.second"),
    _static("replica.lag.time.max.ms", "LONG", "30000"),
    _static("request.timeout.ms", "INT", "30000"),
    ConfigDefinition("ssl.keystore.password", "PASSWORD", None),
)


_NULL_BY_DEFAULT: Final = frozenset(
    {"log.flush.interval.ms", "log.retention.ms", "log.roll.jitter.ms", "log.roll.ms"}
)
"""Broker configs in milliseconds that have no default: others, in hours, give the topics' one."""


def _behind(topic_config: ConfigDefinition) -> ConfigDefinition:
    """The broker config that gives a topic config its default: same type and values."""
    assert topic_config.synonym is not None
    return ConfigDefinition(
        topic_config.synonym,
        topic_config.type,
        None if topic_config.synonym in _NULL_BY_DEFAULT else topic_config.default,
        topic_config.minimum,
        topic_config.maximum,
        topic_config.choices,
    )


TOPIC_CONFIGS: Final[dict[str, ConfigDefinition]] = {config.name: config for config in _TOPIC}
BROKER_CONFIGS: Final[dict[str, ConfigDefinition]] = {
    config.name: config
    for config in sorted(
        (*_BROKER, *(_behind(topic) for topic in _TOPIC if topic.synonym)), key=lambda c: c.name
    )
}
