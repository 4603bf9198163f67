"""The configs of a topic that its logs follow, as values."""

from __future__ import annotations

from typing import Final

import msgspec

from mockbroker.simulation.configs.effective import EffectiveConfigs
from mockbroker.simulation.releases import facts
from mockbroker.simulation.releases.release import EVER, Release
from mockbroker.simulation.state.cluster_parts import INTERNAL_TOPICS

__all__ = ["LogSettings", "log_settings"]

_UNLIMITED: Final = 2**63 - 1
_FORMAT: Final = "message.format.version"
_BOTH_SIDES: Final = "message.timestamp.difference.max.ms"


class LogSettings(msgspec.Struct, frozen=True):
    """Sizes are bytes, times milliseconds. A config that the release lacks has the value of which
    nothing is seen.
    """

    max_message_bytes: int
    segment_bytes: int
    segment_ms: int
    index_interval_bytes: int
    retention_bytes: int
    retention_ms: int
    delete_retention_ms: int
    min_compaction_lag_ms: int
    compacted: bool
    deleted: bool
    append_time: bool
    timestamp_before_max_ms: int
    timestamp_after_max_ms: int
    min_insync_replicas: int
    compression_type: str
    down_conversion: bool
    is_tiered: bool
    """Whether remote storage keeps segments of the topic (KIP-405)."""
    magic: int
    """The message format that clients see in the log: 0 or 1 before 0.11, or by
    ``message.format.version`` before 3.0; else 2."""


def log_settings(configs: EffectiveConfigs, topic: str) -> LogSettings:
    """Read the settings of a topic."""
    definitions = configs.definitions

    def text(name: str, otherwise: str) -> str:
        if name not in definitions.topic:
            return otherwise
        value = configs.topic(topic, name).value
        return otherwise if value is None else value

    def number(name: str, otherwise: int) -> int:
        return int(text(name, str(otherwise)))

    policies = {each.strip() for each in text("cleanup.policy", "delete").split(",")}

    def limit(name: str) -> int:
        """A limit of its own (KIP-937) counts before the one for both sides."""
        own = number(name, _UNLIMITED)
        return own if own != _UNLIMITED else number(_BOTH_SIDES, _UNLIMITED)

    return LogSettings(
        max_message_bytes=number("max.message.bytes", 1_048_588),
        segment_bytes=number("internal.segment.bytes", number("segment.bytes", 1 << 30)),
        segment_ms=number("segment.ms", _UNLIMITED),
        index_interval_bytes=number("index.interval.bytes", 4096),
        retention_bytes=number("retention.bytes", -1),
        retention_ms=number("retention.ms", -1),
        delete_retention_ms=number("delete.retention.ms", 86_400_000),
        min_compaction_lag_ms=number("min.compaction.lag.ms", 0),
        compacted="compact" in policies,
        deleted="delete" in policies,
        append_time=text("message.timestamp.type", "CreateTime") == "LogAppendTime",
        timestamp_before_max_ms=limit("message.timestamp.before.max.ms"),
        timestamp_after_max_ms=limit("message.timestamp.after.max.ms"),
        min_insync_replicas=number("min.insync.replicas", 1),
        compression_type=text("compression.type", "producer"),
        is_tiered=(
            text("remote.storage.enable", "false") == "true"
            and configs.controller_value("remote.log.storage.system.enable") == "true"
            and "compact" not in policies
            and topic not in INTERNAL_TOPICS
        ),
        magic=_magic(configs, topic),
        down_conversion=text("message.downconversion.enable", "true") == "true",
    )


def _magic(configs: EffectiveConfigs, topic: str) -> int:
    definition = configs.definitions.topic.get(_FORMAT)
    if definition is None or _release(definition.default).has(facts.MESSAGE_FORMAT_FIXED):
        return 2
    return _release(configs.topic(topic, _FORMAT).value).value_of(facts.MESSAGE_FORMAT_MAGIC)


def _release(version: str | None) -> Release:
    """The release whose format this is: 0.10 for "0.10.2-IV0"."""
    numbers = (version or "").partition("-")[0].split(".")[:2]
    return Release(tuple(int(each) for each in numbers if each.isdigit()) or EVER)
