"""How a controller reassigns partitions: one machine a design of it, chosen by the profile.

``kraft`` is what Kafka ships; ``zookeeper`` is what it shipped to 3.9 for clusters that keep their
metadata in ZooKeeper, with a name of its own where older releases did otherwise
(``zookeeper_eras``). ``kip-455-old`` and ``kip-455-new`` are the two revisions of KIP-455
before it was built: tables of rows (``kip_455``) that one small engine (``engine``) runs.
``kip-236-old`` is the older revision of KIP-236, and ``kip-236-old-literal`` drops replicas as its
words have it (``kip_236_old_effects``). ``kip-236-new`` is the newer one (``kip_236_new``).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from mockbroker.errors import ClusterError
from mockbroker.reassignment.controller import Machine
from mockbroker.reassignment.kip_236_new.controller import CancellableMachine
from mockbroker.reassignment.kip_236_old.controller import Kip236Old
from mockbroker.reassignment.kip_455.controller import DraftMachine
from mockbroker.reassignment.kip_455.tables import NEW, OLD
from mockbroker.reassignment.kraft.controller import KRaft
from mockbroker.reassignment.zookeeper.controller import ZooKeeperMachine
from mockbroker.reassignment.zookeeper.eras import ERAS

__all__ = ["MACHINES", "Machine", "machine"]

_ALL: Final[tuple[Machine, ...]] = (
    KRaft(),
    DraftMachine(OLD),
    DraftMachine(NEW),
    Kip236Old(),
    Kip236Old("kip-236-old-literal", literal=True),
    CancellableMachine(),
    *(ZooKeeperMachine(era) for era in ERAS),
)

MACHINES: Final[Mapping[str, Machine]] = {each.name: each for each in _ALL}
"""By name. Machines keep nothing: state and log are the controller's."""


def machine(name: str) -> Machine:
    """Raises ClusterError."""
    found = MACHINES.get(name)
    if found is None:
        raise ClusterError(f"no machine {name!r}; there are {', '.join(MACHINES)}")
    return found
