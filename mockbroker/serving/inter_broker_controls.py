"""What users of a running mock cluster do about the traffic between its brokers: levels of
software, what brokers were told, waiting until all of it is said. ``MockCluster`` has these as its
own.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from functools import partial
from typing import TypeAlias

from kproto.dialects import AutoDialect, Dialect, dialect
from kproto.journal import Journal
from kproto.schema.versions import Versions
from mockbroker.cluster import Cluster
from mockbroker.errors import ClusterError
from mockbroker.inter_broker.broker_memory import BrokerMemory
from mockbroker.inter_broker.software_versions import INTER_BROKER, own_apis
from mockbroker.profiles import Profile
from mockbroker.reassignment import reassignment_controller
from mockbroker.serving.dispatch import Dispatcher
from mockbroker.serving.inter_broker_network import InterBrokerNetwork
from mockbroker.serving.operations import Operations
from mockbroker.serving.served_versions import check_release, own_versions
from mockbroker.serving.server import BrokerListener
from mockbroker.state.model import Broker

__all__ = ["InterBrokerControls", "Level", "brokers_of"]

Level: TypeAlias = str | Mapping[int, Versions | None]
"""A release (``"kafka-2.3"``), versions where they differ from the cluster's (``"4=0-2,45=off"``,
or by api key, None hiding one), ``"cluster"`` for no difference."""


class InterBrokerControls:
    cluster: Cluster
    profile: Profile
    dialect: Dialect
    journal: Journal
    follow_clock: Callable[[], None]
    operations: Operations
    _dispatcher: Dispatcher
    _external: Mapping[int, tuple[str, int]]
    _listeners: dict[int, BrokerListener]
    _network: InterBrokerNetwork | None

    async def settled(self, timeout: float = 10.0) -> None:
        """Wait until brokers have answered all that the controller is recorded to have sent them.
        Raises ClusterError after ``timeout`` seconds, with those that have not."""
        if self._network is not None:
            await self._network.settled(timeout)

    def broker_knows(self, broker_id: int) -> BrokerMemory:
        """What LeaderAndIsr, StopReplica and UpdateMetadata have told a broker of this process
        since it came up. ``settled`` first."""
        self.cluster.broker(broker_id)
        return self.cluster.memory(broker_id)

    async def set_level(self, broker_id: int, level: Level) -> None:
        """Up- or downgrade a broker's software. Its connections break. The controller sends it
        nothing on that account, and goes on at versions the broker has; if the broker is the
        controller, that has come up anew, and tells all brokers again."""
        self.follow_clock()
        own = self._own_versions(level)
        await self.operations.run(partial(self.cluster.set_level, broker_id, own))
        listener = self._listeners.get(broker_id)
        for connection in list(listener.connections) if listener is not None else ():
            connection.abort()
        if self._network is not None:
            self._network.hang_up(broker_id)

    def _own_versions(self, level: Level) -> Mapping[int, Versions | None]:
        return _own_versions(self.profile, self.dialect, self._dispatcher.served, level)

    def _inter_broker_network(self, wanted: bool) -> InterBrokerNetwork | None:
        """Controllers of the ZooKeeper kind only: brokers of KRaft fetch what they have to know.
        Raises ClusterError where nothing would be sent to an external broker."""
        sends = reassignment_controller(self.profile.machine).keeps_znodes
        if self._external and not (sends and wanted):
            why = "inter-broker requests are off" if sends else f"{self.profile.name} sends none"
            raise ClusterError(f"an external broker would get nothing from the controller: {why}")
        if not (sends and wanted):
            return None
        several = isinstance(self.dialect, AutoDialect)
        return InterBrokerNetwork(
            cluster=self.cluster,
            profile=self.profile,
            codec=dialect(self.profile.dialect) if several else self.dialect,
            served=self._dispatcher.served,
            journal=self.journal,
            scripts=self._dispatcher.scripts,
            connection_ids=self._dispatcher.connection_ids,
            external=self._external,
        )


def brokers_of(
    brokers: int | Iterable[Broker],
    external: Mapping[int, tuple[str, int]],
    profile: Profile,
    codec: Dialect,
    served: Mapping[int, Versions],
    levels: Mapping[int, Level],
) -> list[Broker]:
    """The brokers to register: as given, those of other processes where they are, with the levels
    of those that have one. Raises ClusterError."""
    listed = [Broker(i) for i in range(1, brokers + 1)] if isinstance(brokers, int) else brokers
    found = {each.broker_id: each for each in listed}
    for broker_id, (host, port) in external.items():
        found[broker_id] = replace(found.get(broker_id, Broker(broker_id)), host=host, port=port)
    for broker_id, level in levels.items():
        if broker_id not in found:
            raise ClusterError(f"no broker {broker_id} to give versions to")
        own = _own_versions(profile, codec, served, level)
        found[broker_id] = replace(found[broker_id], apis=own_apis(own))
    if external and min(found) in external:
        raise ClusterError(
            f"broker {min(found)} is the controller, and so one of this process: give an external "
            "broker a higher id"
        )
    return list(found.values())


def _own_versions(
    profile: Profile, codec: Dialect, served: Mapping[int, Versions], level: Level
) -> Mapping[int, Versions | None]:
    """What one broker serves otherwise. Of a controller's requests it may know newer versions than
    the cluster's release does, as in a rolling upgrade; of clients' requests it may not."""
    own = own_versions(codec, served, level) if isinstance(level, str) else level
    clients = {key: versions for key, versions in own.items() if key not in INTER_BROKER}
    check_release(profile, codec, clients)
    return own
