"""The configs that consumer groups follow, as values, and the bounds that this mock sets itself."""

from __future__ import annotations

from typing import Final

import msgspec

from mockbroker.simulation.configs.effective import EffectiveConfigs

__all__ = ["MOST_MEMBERS", "ConsumerSettings", "consumer_settings"]

MOST_MEMBERS: Final = 10_000
"""Of a group; a heartbeat that would make more is refused as in a full group."""


class ConsumerSettings(msgspec.Struct, frozen=True):
    """``assignors`` are the names of those enabled, the default first; ``upgrades`` and
    ``downgrades`` say which way groups with members may turn (``migration`` whether they may mix).
    ``enabled`` says whether the broker serves consumer groups at all."""

    enabled: bool
    max_size: int
    assignors: tuple[str, ...]
    upgrades: bool
    downgrades: bool
    regex_interval_ms: int

    @property
    def migrates(self) -> bool:
        return self.upgrades or self.downgrades


def _assignor(word: str) -> str:
    """The name of an assignor that is given by its name or, before 4.0, by its class."""
    return word.rpartition(".")[2].removesuffix("Assignor").lower() if "." in word else word


def consumer_settings(configs: EffectiveConfigs, broker_id: int) -> ConsumerSettings:
    """Read the settings of a broker, which are static. Releases without them lack such groups."""
    if "group.consumer.max.size" not in configs.definitions.broker:
        return ConsumerSettings(False, 0, (), False, False, 0)

    def value(name: str) -> str:
        return configs.broker(broker_id, name).value or ""

    def words(name: str) -> tuple[str, ...]:
        return tuple(word.strip() for word in value(name).split(",") if word.strip())

    policy = value("group.consumer.migration.policy").lower()
    regex_interval = "group.consumer.regex.refresh.interval.ms"
    return ConsumerSettings(
        enabled="consumer" in words("group.coordinator.rebalance.protocols"),
        max_size=min(int(value("group.consumer.max.size")), MOST_MEMBERS),
        assignors=tuple(map(_assignor, words("group.consumer.assignors"))),
        upgrades=policy in ("bidirectional", "upgrade"),
        downgrades=policy in ("bidirectional", "downgrade"),
        regex_interval_ms=(
            int(value(regex_interval)) if regex_interval in configs.definitions.broker else 600_000
        ),
    )
