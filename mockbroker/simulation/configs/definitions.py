"""The configs of topics, groups, brokers and subscriptions to clients' metrics. Data, no state.

Topic configs are those of ``LogConfig`` in Kafka 0.11 to 4.4; each names the broker config that
provides its default. ``broker_facts`` has the broker configs of each release; a row here adds what
values they accept. Each row lists the releases for which it holds, so a config that changed has
several rows. ``effects`` says which broker configs change anything here.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Final, Literal, NamedTuple, TypeAlias, cast

import msgspec
from msgspec.structs import replace

from mockbroker.simulation.configs.broker_facts import BROKER_FACTS
from mockbroker.simulation.releases import facts
from mockbroker.simulation.releases.release import EVER, Release, ReleaseNumber, by_release

__all__ = ["ConfigDefinition", "ConfigDefinitions", "ConfigType", "config_definitions"]

ConfigType: TypeAlias = Literal[
    "UNKNOWN", "BOOLEAN", "STRING", "INT", "SHORT", "LONG", "DOUBLE", "LIST", "CLASS", "PASSWORD"
]

_STILL: Final = (99, 0)


class ConfigDefinition(msgspec.Struct, frozen=True):
    """One config in the lines of releases from ``since`` to ``until``, both included.

    ``default`` is the text in DescribeConfigs. ``synonym`` is the broker config that provides the
    default of a topic's or a group's config. ``dynamic``: a running broker accepts changes.
    ``only_set``: DescribeConfigs omits it unless it is set. ``internal``: Kafka documents it
    nowhere, and omits it unless it is set; clients may set it all the same.
    ``called_read_only``: DescribeConfigs reports it as read-only although it is not.
    ``of_replicas``: the value lists replicas, or is an asterisk; this is how a text says in what
    form. ``first_counts``: the list is an asterisk if its first item is one. Lists with
    ``items_differ`` or ``items_once`` are refused because of an empty item; because of one that
    comes twice, too, or have it once. ``of_offsets``: it says where a share group begins to read;
    this is how a text writes a duration. ``of_formats``: it names a version of the message format;
    this is how a text says that there is no such version. ``of_levels``: it is a level of gzip, or
    -1.
    """

    name: str
    type: ConfigType
    default: str | None
    minimum: float | None = None
    maximum: float | None = None
    choices: tuple[str, ...] = ()
    synonym: str | None = None
    dynamic: bool = True
    only_set: bool = False
    internal: bool = False
    called_read_only: bool = False
    of_replicas: str = ""
    first_counts: bool = False
    items_differ: bool = False
    items_once: bool = False
    of_offsets: str = ""
    of_formats: str = ""
    of_levels: bool = False
    since: ReleaseNumber = EVER
    until: ReleaseNumber = _STILL


class ConfigDefinitions(NamedTuple):
    """The configs that one release defines, by name."""

    topic: Mapping[str, ConfigDefinition]
    broker: Mapping[str, ConfigDefinition]
    group: Mapping[str, ConfigDefinition]
    client_metrics: Mapping[str, ConfigDefinition]


_MAX_LONG = str(2**63 - 1)
_CODECS = ("uncompressed", "zstd", "lz4", "snappy", "gzip", "producer")
_OLD_CODECS = ("uncompressed", "snappy", "lz4", "gzip", "producer")


def _topic(
    name: str,
    type_: ConfigType,
    default: str,
    synonym: str | None = None,
    minimum: float | None = None,
    maximum: float | None = None,
    choices: tuple[str, ...] = (),
    *,
    since: ReleaseNumber = EVER,
    until: ReleaseNumber = _STILL,
) -> ConfigDefinition:
    return ConfigDefinition(
        name, type_, default, minimum, maximum, choices, synonym, since=since, until=until
    )


def _throttled(name: str) -> tuple[ConfigDefinition, ...]:
    form = "[partitionId]:[brokerId],[partitionId]:[brokerId],..."
    wrong = "[partitionId],[brokerId]:[partitionId],[brokerId]:..."
    # By bytecode: 2.7.2 looks at the first item, 2.8.2 at all of them joined.
    first = ConfigDefinition(name, "LIST", "", of_replicas=form, first_counts=True)
    return (
        replace(first, of_replicas=wrong, until=(2, 2)),
        replace(first, since=(2, 3), until=(2, 7)),
        replace(first, first_counts=False, since=(2, 8)),
    )


def _message_format(
    since: ReleaseNumber,
    until: ReleaseNumber,
    default: str,
    text: str = "Version `{}` is not a valid version",
) -> ConfigDefinition:
    """Return the message format of these releases; since 3.0 it is fixed. The text has lost its
    quotes in 3.3: 3.2.3 has them, and 3.3.2 does not."""
    row = _topic(
        "message.format.version", "STRING", default, "log.message.format.version",
        since=since, until=until,
    )  # fmt: skip
    return replace(row, of_formats=text)


def _hidden(
    name: str, type_: ConfigType, default: str, minimum: float | None = None
) -> ConfigDefinition:
    """A config of tiered storage before there was any: Kafka documents it nowhere."""
    return ConfigDefinition(
        name, type_, default, minimum, only_set=True, internal=True, since=(3, 0), until=(3, 5)
    )


_SEGMENT: Final = (4, 1)
"""The first release with a size of segments for tests, below the least ``segment.bytes``."""

_TOPIC = (
    _topic("cleanup.policy", "LIST", "delete", "log.cleanup.policy", choices=("compact", "delete")),
    replace(
        _topic("compression.gzip.level", "INT", "-1", "compression.gzip.level", since=(3, 8)),
        of_levels=True,
    ),
    _topic("compression.lz4.level", "INT", "9", "compression.lz4.level", 1, 17, since=(3, 8)),
    _topic(
        "compression.type", "STRING", "producer", "compression.type", choices=_OLD_CODECS,
        until=(2, 0),
    ),
    _topic(
        "compression.type", "STRING", "producer", "compression.type", choices=_CODECS, since=(2, 1)
    ),
    _topic(
        "compression.zstd.level", "INT", "3", "compression.zstd.level", -131072, 22, since=(3, 8)
    ),
    _topic("delete.retention.ms", "LONG", "86400000", "log.cleaner.delete.retention.ms", 0),
    _topic("errors.deadletterqueue.group.enable", "BOOLEAN", "false", since=(4, 4)),
    _topic("file.delete.delay.ms", "LONG", "60000", "log.segment.delete.delay.ms", 0),
    _topic("flush.messages", "LONG", _MAX_LONG, "log.flush.interval.messages", 0, until=(3, 2)),
    _topic("flush.messages", "LONG", _MAX_LONG, "log.flush.interval.messages", 1, since=(3, 3)),
    _topic("flush.ms", "LONG", _MAX_LONG, "log.flush.interval.ms", 0),
    *_throttled("follower.replication.throttled.replicas"),
    _topic("index.interval.bytes", "INT", "4096", "log.index.interval.bytes", 0),
    *_throttled("leader.replication.throttled.replicas"),
    ConfigDefinition(
        "internal.segment.bytes", "INT", None, only_set=True, internal=True, since=_SEGMENT
    ),
    *(_hidden(name, "LONG", "-2", -2) for name in ("local.retention.bytes", "local.retention.ms")),
    _topic("local.retention.bytes", "LONG", "-2", "log.local.retention.bytes", -2, since=(3, 6)),
    _topic("local.retention.ms", "LONG", "-2", "log.local.retention.ms", -2, since=(3, 6)),
    _topic(
        "max.compaction.lag.ms", "LONG", _MAX_LONG, "log.cleaner.max.compaction.lag.ms", 1,
        since=(2, 3),
    ),
    _topic(
        "max.decompressed.message.bytes", "INT", "2147483639", "max.decompressed.message.bytes", 1,
        2147483639, since=(4, 2), until=(4, 2),
    ),
    _topic(
        "max.decompressed.message.bytes", "INT", "2147483639", "max.decompressed.message.bytes", 1,
        2147483639, since=(4, 4),
    ),
    _topic("max.message.bytes", "INT", "1000012", "message.max.bytes", 0, until=(2, 4)),
    _topic("max.message.bytes", "INT", "1048588", "message.max.bytes", 0, since=(2, 5)),
    _topic(
        "message.downconversion.enable", "BOOLEAN", "true", "log.message.downconversion.enable",
        since=(2, 0), until=(3, 9),
    ),
    _message_format(EVER, (0, 10), "0.10.2-IV0"),
    _message_format((0, 11), (0, 11), "0.11.0-IV2"),
    _message_format((1, 0), (1, 0), "1.0-IV0"),
    _message_format((1, 1), (1, 1), "1.1-IV0"),
    _message_format((2, 0), (2, 0), "2.0-IV1"),
    _message_format((2, 1), (2, 1), "2.1-IV2"),
    _message_format((2, 2), (2, 2), "2.2-IV1"),
    _message_format((2, 3), (2, 3), "2.3-IV1"),
    _message_format((2, 4), (2, 4), "2.4-IV1"),
    _message_format((2, 5), (2, 5), "2.5-IV0"),
    _message_format((2, 6), (2, 6), "2.6-IV0"),
    _message_format((2, 7), (2, 7), "2.7-IV2"),
    _message_format((2, 8), (2, 8), "2.8-IV1"),
    _message_format((3, 0), (3, 2), "3.0-IV1"),
    _message_format((3, 3), (3, 9), "3.0-IV1", "Version {} is not a valid version"),
    _topic(
        "message.timestamp.after.max.ms", "LONG", _MAX_LONG, "log.message.timestamp.after.max.ms",
        0, since=(3, 6), until=(3, 9),
    ),
    _topic(
        "message.timestamp.after.max.ms", "LONG", "3600000", "log.message.timestamp.after.max.ms",
        0, since=(4, 0),
    ),
    _topic(
        "message.timestamp.before.max.ms", "LONG", _MAX_LONG, "log.message.timestamp.before.max.ms",
        0, since=(3, 6),
    ),
    _topic(
        "message.timestamp.difference.max.ms", "LONG", _MAX_LONG,
        "log.message.timestamp.difference.max.ms", 0, until=(3, 9),
    ),
    _topic(
        "message.timestamp.type", "STRING", "CreateTime", "log.message.timestamp.type",
        choices=("CreateTime", "LogAppendTime"),
    ),
    _topic("min.cleanable.dirty.ratio", "DOUBLE", "0.5", "log.cleaner.min.cleanable.ratio", 0, 1),
    _topic("min.compaction.lag.ms", "LONG", "0", "log.cleaner.min.compaction.lag.ms", 0),
    _topic("min.insync.replicas", "INT", "1", "min.insync.replicas", 1),
    _topic("preallocate", "BOOLEAN", "false", "log.preallocate"),
    _topic("remote.copy.lag.bytes", "LONG", "-1", "log.remote.copy.lag.bytes", -1, since=(4, 4)),
    _topic("remote.copy.lag.ms", "LONG", "0", "log.remote.copy.lag.ms", -1, since=(4, 4)),
    _topic("remote.log.copy.disable", "BOOLEAN", "false", since=(3, 9)),
    _topic("remote.log.delete.on.disable", "BOOLEAN", "false", since=(3, 9)),
    _hidden("remote.storage.enable", "BOOLEAN", "false"),
    _topic("remote.storage.enable", "BOOLEAN", "false", since=(3, 6)),
    _topic("retention.bytes", "LONG", "-1", "log.retention.bytes"),
    _topic("retention.ms", "LONG", "604800000", "log.retention.ms", until=(2, 1)),
    _topic("retention.ms", "LONG", "604800000", "log.retention.ms", -1, since=(2, 2)),
    _topic("segment.bytes", "INT", "1073741824", "log.segment.bytes", 14, until=(4, 0)),
    _topic("segment.bytes", "INT", "1073741824", "log.segment.bytes", 1048576, since=(4, 1)),
    _topic("segment.index.bytes", "INT", "10485760", "log.index.size.max.bytes", 0, until=(3, 2)),
    _topic("segment.index.bytes", "INT", "10485760", "log.index.size.max.bytes", 4, since=(3, 3)),
    _topic("segment.jitter.ms", "LONG", "0", "log.roll.jitter.ms", 0),
    _topic("segment.ms", "LONG", "604800000", "log.roll.ms", 0, until=(1, 1)),
    _topic("segment.ms", "LONG", "604800000", "log.roll.ms", 1, since=(2, 0)),
    _topic(
        "unclean.leader.election.enable", "BOOLEAN", "true", "unclean.leader.election.enable",
        until=(0, 10),
    ),
    _topic(
        "unclean.leader.election.enable", "BOOLEAN", "false", "unclean.leader.election.enable",
        since=(0, 11),
    ),
)  # fmt: skip


def _group(
    name: str,
    default: str,
    synonym: str | None = None,
    minimum: float | None = 1,
    choices: tuple[str, ...] = (),
    *,
    type_: ConfigType = "INT",
    since: ReleaseNumber = (4, 0),
    only_set: bool = False,
) -> ConfigDefinition:
    least = minimum if type_ in ("INT", "LONG") else None
    return ConfigDefinition(
        name, type_, default, least, None, choices, synonym, only_set=only_set,
        since=since,
    )  # fmt: skip


def _internal(
    name: str, type_: ConfigType, default: str, minimum: float | None = None
) -> ConfigDefinition:
    """Kafka documents no internal config; clients may set them all the same."""
    return _group(name, default, f"group.{name}", minimum, type_=type_, since=(4, 4), only_set=True)


_OFFSET_RESET: Final = _group("share.auto.offset.reset", "latest", type_="STRING")


def _assignment_interval(kind: str) -> ConfigDefinition:
    name = f"{kind}.assignment.interval.ms"
    return _group(name, "1000", f"group.{name}", 0, since=_INTERVAL_SINCE)


_INTERVAL_SINCE: Final = (4, 3)

_GROUP = (
    _assignment_interval("consumer"),
    _internal("consumer.assignor.offload.enable", "BOOLEAN", "true"),
    _group("consumer.heartbeat.interval.ms", "5000", "group.consumer.heartbeat.interval.ms"),
    _group("consumer.session.timeout.ms", "45000", "group.consumer.session.timeout.ms"),
    _group("errors.deadletterqueue.copy.record.enable", "false", type_="BOOLEAN", since=(4, 4)),
    _group("errors.deadletterqueue.topic.name", "", type_="STRING", since=(4, 4)),
    _assignment_interval("share"),
    _internal("share.assignor.offload.enable", "BOOLEAN", "true"),
    replace(_OFFSET_RESET, of_offsets="<PnDTnHnMn.nS.>", until=(4, 0)),
    replace(_OFFSET_RESET, of_offsets="<PnDTnHnMn.nS>", since=(4, 1)),
    _group("share.delivery.count.limit", "5", "group.share.delivery.count.limit", 2,
           since=_INTERVAL_SINCE),
    _group("share.heartbeat.interval.ms", "5000", "group.share.heartbeat.interval.ms"),
    _group("share.isolation.level", "read_uncommitted",
           choices=("read_committed", "read_uncommitted"), type_="STRING", since=(4, 1)),
    _group("share.partition.max.record.locks", "2000", "group.share.partition.max.record.locks",
           100, since=_INTERVAL_SINCE),
    _group("share.record.lock.duration.ms", "30000", "group.share.record.lock.duration.ms", 1000),
    _group("share.renew.acknowledge.enable", "true", type_="BOOLEAN", since=_INTERVAL_SINCE),
    _group("share.session.timeout.ms", "45000", "group.share.session.timeout.ms"),
    _internal("streams.acceptable.recovery.lag", "LONG", "10000", 0),
    _assignment_interval("streams"),
    _internal("streams.assignor.offload.enable", "BOOLEAN", "true"),
    _group("streams.assignor.name", "sticky", "group.streams.assignors", type_="STRING",
           since=(4, 4)),
    _group("streams.heartbeat.interval.ms", "5000", "group.streams.heartbeat.interval.ms",
           since=(4, 1)),
    _group("streams.initial.rebalance.delay.ms", "3000",
           "group.streams.initial.rebalance.delay.ms", 0, since=(4, 2)),
    _group("streams.num.standby.replicas", "0", "group.streams.num.standby.replicas", 0,
           since=(4, 1)),
    _internal("streams.num.warmup.replicas", "INT", "2", 0),
    _group("streams.rack.aware.assignment.tags", "", "group.streams.rack.aware.assignment.tags",
           type_="LIST", since=(4, 4)),
    _group("streams.session.timeout.ms", "45000", "group.streams.session.timeout.ms",
           since=(4, 1)),
    _internal("streams.task.offset.interval.ms", "INT", "60000", 1),
)  # fmt: skip


def _rate(name: str) -> tuple[ConfigDefinition, ConfigDefinition]:
    """A replication throttle, in bytes a second; unlimited unless set."""
    rate = ConfigDefinition(name, "LONG", _MAX_LONG, minimum=0, only_set=True, since=(4, 3))
    return rate, replace(rate, called_read_only=True, since=EVER, until=(4, 2))


_BROKER = (
    *_rate("follower.replication.throttled.rate"),
    *_rate("leader.replication.throttled.rate"),
    *_rate("replica.alter.log.dirs.io.max.bytes.per.second"),
)
"""Those that Kafka keeps apart from the others."""


_SUBSCRIPTION: Final[tuple[tuple[str, ConfigType, str], ...]] = (
    ("interval.ms", "INT", "300000"),
    ("match", "LIST", ""),
    ("metrics", "LIST", ""),
)
_CLIENT_METRICS: Final = (
    *(
        ConfigDefinition(name, type_, default, only_set=only_set, since=since, until=until)
        for name, type_, default in _SUBSCRIPTION
        for only_set, since, until in ((True, (3, 7), (4, 0)), (False, (4, 1), _STILL))
    ),
)


@by_release
def config_definitions(release: Release) -> ConfigDefinitions:
    """Those of a release."""
    topic = _by_name(_TOPIC, release)
    group = _by_name(_GROUP, release)
    given = {each.synonym: each for each in (*topic.values(), *group.values()) if each.synonym}
    broker = _by_name(_BROKER, release)
    for name, type_, flags, default, least, most, since, until in BROKER_FACTS:
        if release.is_in_lines(since, until):
            row, internal = given.get(name), "i" in flags
            broker[name] = ConfigDefinition(
                name, cast("ConfigType", type_), default, least, most,
                _choices(name, row, release), dynamic="d" in flags, only_set=internal,
                internal=internal, of_formats="" if row is None else row.of_formats,
                of_levels=row is not None and row.of_levels,
            )  # fmt: skip
    if release.has(facts.LIST_ITEMS_CHECKED):
        for name, each in topic.items():
            if each.type == "LIST" and not each.of_replicas:
                topic[name] = replace(each, items_once=True)
        for name, each in broker.items():
            if each.type == "LIST":
                broker[name] = replace(each, items_differ=True)
    return ConfigDefinitions(
        topic, dict(sorted(broker.items())), group, _by_name(_CLIENT_METRICS, release)
    )


def _choices(name: str, row: ConfigDefinition | None, release: Release) -> tuple[str, ...]:
    """The choices of a broker config, which may give the default of ``row``."""
    if name == "ssl.client.auth":
        return ("required", "requested", "none")
    if row is None or (name == "compression.type" and not release.has(facts.CODECS_DEFINED)):
        return ()
    return row.choices


def _by_name(rows: Iterable[ConfigDefinition], release: Release) -> dict[str, ConfigDefinition]:
    held = [row for row in rows if release.is_in_lines(row.since, row.until)]
    return {row.name: row for row in sorted(held, key=lambda row: row.name)}
