"""Differences between the releases of Kafka's ZooKeeper controller that are not rows: data only.

Rows of ``zookeeper.tables`` name the releases that have them; the columns here are versions of
texts in znodes. ``docs/explanation/zookeeper-eras.md`` describes every difference.
"""

from __future__ import annotations

from typing import Final

import msgspec
from msgspec.structs import replace

from mockbroker.simulation.releases.rows import Release

__all__ = ["ERAS", "Era", "era_of"]


class Era(msgspec.Struct, frozen=True):
    """``name`` is the name of the releases from ``since`` until the next era.

    ``topic_version``, ``broker_version`` and ``controller_version`` are those of the texts of
    ``/brokers/topics/T``, ``/brokers/ids/N`` and ``/controller``.
    ``leaders_write_isr``: leaders write their ISR themselves, not the controller (KIP-497).
    ``recovery_recorded``: the state znode says that an unclean election chose the leader (KIP-704).
    """

    name: str
    since: Release
    topic_version: int = 1
    broker_version: int = 4
    controller_version: int = 1
    leaders_write_isr: bool = True
    recovery_recorded: bool = False


_0_10: Final = Era("zookeeper-0.10", since=(0, 0))
_2_1: Final = replace(_0_10, name="zookeeper-2.1", since=(2, 1))
_2_3: Final = replace(_2_1, name="zookeeper-2.3", since=(2, 3))
_2_4: Final = replace(_2_3, name="zookeeper-2.4", since=(2, 4), topic_version=2)
_2_5: Final = replace(_2_4, name="zookeeper-2.5", since=(2, 5))
_2_7: Final = replace(
    _2_5, name="zookeeper-2.7", since=(2, 7), broker_version=5, leaders_write_isr=False
)
_2_8: Final = replace(_2_7, name="zookeeper-2.8", since=(2, 8), topic_version=3)
_3_0: Final = replace(_2_8, name="zookeeper-3.0", since=(3, 0))
_3_2: Final = replace(_3_0, name="zookeeper-3.2", since=(3, 2), recovery_recorded=True)
_3_4: Final = replace(_3_2, name="zookeeper", since=(3, 4), controller_version=2)

ERAS: Final = (_0_10, _2_1, _2_3, _2_4, _2_5, _2_7, _2_8, _3_0, _3_2, _3_4)
"""Oldest first. Before 2.4 the topic's text does not say what is added and removed: there a new
controller knows no more than what ``/admin/reassign_partitions`` still holds."""


def era_of(release: Release) -> Era:
    """The era that the release belongs to."""
    return [era for era in ERAS if era.since <= release][-1]
