"""How a controller reassigns partitions: one ``ReassignmentController`` for each design of it.

Each folder holds one design: a module of rules as rows, and a controller that applies them.

======================  ===========================================================================
``kraft``               Kafka's KRaft controllers.
``zookeeper``           Kafka's ZooKeeper controllers, 0.10 to 3.9, named after the first
                        release that has them (``ZOOKEEPER_CONTROLLER``).
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

from collections.abc import Callable, Mapping
from functools import partial
from typing import Final

from mockbroker.errors import ClusterError
from mockbroker.simulation.reassignment.kraft.kraft_controller import KRaftController
from mockbroker.simulation.reassignment.reassignment_controller import (
    Dependencies,
    ReassignmentController,
)
from mockbroker.simulation.releases import facts
from mockbroker.simulation.releases.release import Release, ReleaseNumber

__all__ = ["CONTROLLERS", "ReassignmentController", "keeps_znodes", "reassignment_controller"]

# Most clusters are KRaft's, and start without the modules of all other designs.


def _kip_455(draft: str, dependencies: Dependencies) -> ReassignmentController:
    from mockbroker.simulation.reassignment.kip_455 import kip_455_rules
    from mockbroker.simulation.reassignment.kip_455.kip_455_controller import Kip455Controller

    drafts = {each.name: each for each in (kip_455_rules.OLD, kip_455_rules.NEW)}
    return Kip455Controller(drafts[draft], dependencies)


def _kip_236_old(
    name: str, dependencies: Dependencies, *, literal: bool = False
) -> ReassignmentController:
    from mockbroker.simulation.reassignment.kip_236_old.kip_236_old_controller import (
        Kip236OldController,
    )

    return Kip236OldController(name, dependencies, literal=literal)


def _kip_236_new(dependencies: Dependencies) -> ReassignmentController:
    from mockbroker.simulation.reassignment.kip_236_new.kip_236_new_controller import (
        Kip236NewController,
    )

    return Kip236NewController(dependencies)


def _zookeeper(
    name: str, since: ReleaseNumber, dependencies: Dependencies
) -> ReassignmentController:
    from mockbroker.simulation.reassignment.zookeeper.kafka_zookeeper_controller import (
        KafkaZooKeeperController,
    )

    release = Release(since, dependencies.release.fixes)
    return KafkaZooKeeperController(name, release, dependencies)


CONTROLLERS: Final[Mapping[str, Callable[[Dependencies], ReassignmentController]]] = {
    "kraft": KRaftController,
    "kip-455-old": partial(_kip_455, "kip-455-old"),
    "kip-455-new": partial(_kip_455, "kip-455-new"),
    "kip-236-old": partial(_kip_236_old, "kip-236-old"),
    "kip-236-old-literal": partial(_kip_236_old, "kip-236-old-literal", literal=True),
    "kip-236-new": _kip_236_new,
    **{name: partial(_zookeeper, name, since) for since, name in facts.ZOOKEEPER_CONTROLLER.values},
}
"""How to make each kind of reassignment controller, by name."""


def reassignment_controller(name: str, dependencies: Dependencies) -> ReassignmentController:
    """Return a new controller of this kind. Raises ClusterError if the kind does not exist."""
    return _maker(name)(dependencies)


def keeps_znodes(name: str) -> bool:
    """Return whether controllers of this kind store their state in ZooKeeper.

    Raises ClusterError if the kind does not exist.
    """
    return _maker(name) is not KRaftController


def _maker(name: str) -> Callable[[Dependencies], ReassignmentController]:
    found = CONTROLLERS.get(name)
    if found is None:
        raise ClusterError(
            f"unknown reassignment controller {name!r}; choose from {', '.join(CONTROLLERS)}"
        )
    return found
