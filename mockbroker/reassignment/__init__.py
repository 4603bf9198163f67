"""How a controller reassigns partitions: one ``ReassignmentController`` for each design of it.

Each folder holds one design: ``tables.py`` has its rules as rows, ``controller.py`` applies them.

======================  ===========================================================================
``kraft``               Kafka's KRaft controllers.
``zookeeper``           Kafka's ZooKeeper controllers, 0.10 to 3.9; ``zookeeper.eras`` names them.
``kip_455``             The two revisions of KIP-455 that preceded its implementation:
                        ``kip-455-old`` and ``kip-455-new``.
``kip_236_old``         The older revision of KIP-236: ``kip-236-old``, and ``kip-236-old-literal``,
                        which drops replicas exactly as the page is worded.
``kip_236_new``         The newer revision of KIP-236: ``kip-236-new``.
======================  ===========================================================================

The modules beside the folders hold what several designs share. ``zookeeper_controller`` is the base
of all that keep their metadata in ZooKeeper.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from mockbroker.errors import ClusterError
from mockbroker.reassignment.controller import ReassignmentController
from mockbroker.reassignment.kip_236_new.controller import Kip236NewController
from mockbroker.reassignment.kip_236_old.controller import Kip236OldController
from mockbroker.reassignment.kip_455.controller import Kip455Controller
from mockbroker.reassignment.kip_455.tables import NEW, OLD
from mockbroker.reassignment.kraft.controller import KRaftController
from mockbroker.reassignment.zookeeper.controller import KafkaZooKeeperController
from mockbroker.reassignment.zookeeper.eras import ERAS

__all__ = ["CONTROLLERS", "ReassignmentController", "reassignment_controller"]

_ALL: Final[tuple[ReassignmentController, ...]] = (
    KRaftController(),
    Kip455Controller(OLD),
    Kip455Controller(NEW),
    Kip236OldController(),
    Kip236OldController("kip-236-old-literal", literal=True),
    Kip236NewController(),
    *(KafkaZooKeeperController(era) for era in ERAS),
)

CONTROLLERS: Final[Mapping[str, ReassignmentController]] = {each.name: each for each in _ALL}
"""By name. They are stateless: the state and the action log are the cluster's."""


def reassignment_controller(name: str) -> ReassignmentController:
    """Raises ClusterError if there is none of that name."""
    found = CONTROLLERS.get(name)
    if found is None:
        raise ClusterError(
            f"unknown reassignment controller {name!r}; choose from {', '.join(CONTROLLERS)}"
        )
    return found
