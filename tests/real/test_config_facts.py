"""The mock knows every config that Kafka's own classes define: by name, type and default, which
numbers it accepts, and whether it is internal and a running broker changes it."""

from __future__ import annotations

from typing import Final

import pytest

from mockbroker.simulation.configs.definitions import config_definitions
from mockbroker.simulation.releases.release import Release
from tests.real.config_facts import RELEASES, ConfigFact, config_facts, line_of
from tests.support.full import FULL
from tests.support.toolchain import require

SAMPLE: Final = ("0.11.0.3", "2.4.1", "2.8.2", "3.9.2", "4.3.1", "4.4.0")

OF_QUOTAS: Final = {
    "follower.replication.throttled.rate", "leader.replication.throttled.rate",
    "replica.alter.log.dirs.io.max.bytes.per.second",
}  # fmt: skip
"""Kafka keeps these dynamic configs apart from the others, in DynamicConfig."""


@pytest.mark.slow
@pytest.mark.java
@pytest.mark.parametrize("release", RELEASES if FULL else SAMPLE)
def test_configs_are_those_of_kafka(release: str) -> None:
    require("java", "maven")
    kafkas = {(fact.kind, fact.name): fact for fact in config_facts(release)}
    assert len(kafkas) > 160
    definitions = config_definitions(Release(line_of(release)))
    ours = {
        (kind, name): ConfigFact(
            kind, each.name, each.type, each.internal, kind == "broker" and each.dynamic,
            each.default, each.minimum, each.maximum,
        )
        for kind, configs in (("topic", definitions.topic), ("broker", definitions.broker))
        for name, each in configs.items()
        if name not in OF_QUOTAS
    }  # fmt: skip
    assert {key: ours.get(key) for key in kafkas} == kafkas
    assert ours.keys() == kafkas.keys()
