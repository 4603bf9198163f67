"""The releases that are searched, and one broker of each: Kafka's and the mock's."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Final, NamedTuple

from mockbroker import MockCluster
from mockbroker.simulation.security.authorizer import ANONYMOUS, Authorizer
from tests.real.data.clusters import DATA_CONFIGS, KAFKA_CONFIGS
from tests.real.kafka import COMMON_CONFIGS, RealKafka

__all__ = ["BROKER", "RELEASES", "Release", "SearchKafka", "search_mock"]

BROKER: Final = 1
_LISTENERS: Final = "listeners"


class Release(NamedTuple):
    """``kafka`` is the version of the broker, ``profile`` the mock's."""

    kafka: str
    profile: str
    zookeeper: bool

    @property
    def name(self) -> str:
        """How it is chosen."""
        return next(name for name, each in RELEASES.items() if each == self)


RELEASES: Final[Mapping[str, Release]] = {
    "0.10.2.2": Release("0.10.2.2", "kafka-0.10.2", True),
    "0.11.0.3": Release("0.11.0.3", "kafka-0.11.0", True),
    "1.1.1": Release("1.1.1", "kafka-1.1", True),
    "2.0.1": Release("2.0.1", "kafka-2.0", True),
    "2.4.1": Release("2.4.1", "kafka-2.4", True),
    "2.8.2-zk": Release("2.8.2", "kafka-2.8-zk", True),
    "2.8.2": Release("2.8.2", "kafka-2.8", False),
    "3.0.2": Release("3.0.2", "kafka-3.0", False),
    "3.3.2": Release("3.3.2", "kafka-3.3", False),
    "3.6.2": Release("3.6.2", "kafka-3.6", False),
    "3.9.2-zk": Release("3.9.2", "kafka-3.9-zk", True),
    "3.9.2": Release("3.9.2", "kafka-3.9", False),
    "4.0.2": Release("4.0.2", "kafka-4.0", False),
    "4.1.2": Release("4.1.2", "kafka-4.1", False),
    "4.2.2": Release("4.2.2", "kafka-4.2", False),
    "4.3.1": Release("4.3.1", "kafka-4.3", False),
    "4.4.0": Release("4.4.0", "kafka-4.4", False),
}

_BOTH: Final[Mapping[str, str]] = {
    **DATA_CONFIGS,
    "group.max.size": "10",
    "group.streams.initial.rebalance.delay.ms": "0",
    "group.consumer.assignment.interval.ms": "0",
    "group.share.assignment.interval.ms": "0",
    "group.streams.assignment.interval.ms": "0",
    "transaction.abort.timed.out.transaction.cleanup.interval.ms": "500",
    "delete.topic.enable": "true",
    **{
        f"group.{kind}.min.{name}.ms": "1000"
        for kind in ("consumer", "share", "streams")
        for name in ("heartbeat.interval", "session.timeout")
    },
}
"""Neither side waits for more members, or with the next assignment. Sessions may be short."""


_LEVELS: Final[Mapping[str, str]] = {
    "rootLogger": "INFO",
    "logger.kafka": "INFO",
    "logger.kafka.authorizer.logger": "INFO",
    "logger.kafka.controller": "TRACE",
    "logger.kafka.log.LogCleaner": "INFO",
    "logger.kafka.network.RequestChannel$": "WARN",
    "logger.kafka.request.logger": "WARN",
    "logger.org.apache.kafka": "INFO",
    "logger.state.change.logger": "INFO",
}
"""Those of the file that Kafka comes with, as far as the mock has them."""


def _log4j2(name: str, level: str) -> str:
    """Lines for the successor of log4j, which Kafka has since 4.0."""
    kind, _, logger = name.partition(".")
    if not logger:
        return f"{kind}.level={level}\n"
    label = logger.replace(".", "_").replace("$", "_")
    return f"logger.{label}.name={logger}\nlogger.{label}.level={level}\n"


_HEAP: Final = "-Xmx512m"
"""With half of it a broker of 2.8 that answers thousands of requests runs out of memory."""


class SearchKafka(RealKafka):
    """One broker, which keeps access rules: everybody may do everything."""

    def __init__(self, release: Release, folder: Path) -> None:
        super().__init__(release.kafka, folder, zookeeper=release.zookeeper, broker_ids=(BROKER,))
        levels = folder / "log4j.properties"
        levels.write_text("".join(f"log4j.{name}={level}\n" for name, level in _LEVELS.items()))
        levels2 = folder / "log4j2.properties"
        levels2.write_text("".join(_log4j2(name, level) for name, level in _LEVELS.items()))
        self.options = (
            f"-Dlog4j.configuration={levels.as_uri()}",
            f"-Dlog4j2.configurationFile={levels2.as_uri()}",
            _HEAP,
        )
        self._own = {
            **_BOTH, **KAFKA_CONFIGS,
            **({"authorizer.class.name": name} if (name := _authorizer(release)) else {}),
            "super.users": ANONYMOUS,
            # Internal topics appear in ListOffsets and logs; their retention is nothing that
            # requests show.
            "log.retention.check.interval.ms": "3600000",
            # With expired offsets Kafka deletes groups that have neither members nor offsets.
            "offsets.retention.check.interval.ms": "3600000",
        }  # fmt: skip

    @property
    def configs(self) -> dict[str, str]:
        """What the broker's properties file says."""
        of_broker = self._zookeeper_configs if self.zookeeper else self._kraft_configs
        return of_broker(BROKER)

    def _kraft_configs(self, broker_id: int) -> dict[str, str]:
        return {**super()._kraft_configs(broker_id), **self._own}

    def _zookeeper_configs(self, broker_id: int) -> dict[str, str]:
        return {**super()._zookeeper_configs(broker_id), **self._own}


def _authorizer(release: Release) -> str:
    """Releases with KRaft before 3.2 have none for it."""
    major, minor = map(int, release.kafka.split(".")[:2])
    if not release.zookeeper:
        standard = "org.apache.kafka.metadata.authorizer.StandardAuthorizer"
        return standard if (major, minor) >= (3, 2) else ""
    if (major, minor) >= (2, 4):
        return "kafka.security.authorizer.AclAuthorizer"
    return "kafka.security.auth.SimpleAclAuthorizer"


def search_mock(release: Release, configs: Mapping[str, str] | None = None) -> MockCluster:
    """The mock of the same cluster, by wall time. ``configs`` are those of the broker beside it."""
    given = {**COMMON_CONFIGS, **_BOTH} if configs is None else configs
    mock = MockCluster(
        1,
        profile=release.profile,
        broker_configs={
            name: re.sub(r":\d+", ":0", value) if name == _LISTENERS else value
            for name, value in given.items()
        },
        cut_last_batch=True,
        authorizer=Authorizer(frozenset({ANONYMOUS})) if _authorizer(release) else None,
    )
    # The port is that of the broker beside it, whose configs the mock describes.
    if _LISTENERS in given:
        state = mock.cluster.state
        state.static_configs = {**state.static_configs, _LISTENERS: given[_LISTENERS]}
    return mock
