"""The way from a controller to its brokers: a listener of their own for it, and who talks to them.

As with Kafka's ``inter.broker.listener.name``, brokers talk among themselves on a listener apart
from their clients'. Here it is plaintext, on loopback and any free port, which no client learns: so
clients' listeners, their requests and their connections stay the test's alone. A broker
in another process is reached where it says.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping

from kproto.dialects import Dialect
from kproto.journal import Journal
from kproto.schema.versions import Versions
from mockbroker.profiles import Profile
from mockbroker.serving.dispatch import Dispatcher
from mockbroker.serving.listeners import BrokerListener
from mockbroker.serving.scripts import Scripts
from mockbroker.serving.server import BrokerProtocol
from mockbroker.simulation.brokers.inter_broker.client import InterBroker
from mockbroker.simulation.cluster import Cluster

__all__ = ["InterBrokerNetwork"]

_HOST = "127.0.0.1"


class InterBrokerNetwork:
    """Started after the cluster's own listeners, stopped before them.

    ``external`` are the brokers of other processes. Scripts and the numbers of connections are
    shared with the clients' listeners.
    """

    def __init__(
        self,
        *,
        cluster: Cluster,
        profile: Profile,
        codec: Dialect,
        served: Mapping[int, Versions],
        journal: Journal,
        scripts: Scripts,
        connection_ids: Iterator[int],
        external: Collection[int] = (),
    ) -> None:
        self._cluster = cluster
        self._dispatcher = Dispatcher(
            cluster=cluster,
            profile=profile,
            codec=codec,
            served=served,
            journal=journal,
            connection_ids=connection_ids,
            scripts=scripts,
        )
        self._listeners = {
            broker_id: BrokerListener(
                broker_id, _HOST, 0, self._make_protocol, refuse=self._dispatcher.note_refused
            )
            for broker_id in cluster.brokers
            if broker_id not in external
        }
        self._controller = InterBroker(
            log=cluster.log,
            codec=codec,
            address=self._address,
            registered=cluster.brokers.__getitem__,
            journal=journal,
            journalled=external,
            next_connection_id=self._dispatcher.next_connection_id,
        )
        cluster.turns.on_step.append(self._controller.collect)

    async def start(self) -> None:
        """Open the listeners of live brokers, and send what is on record by now."""
        for broker_id, broker in self._cluster.brokers.items():
            if broker.live:
                await self.open(broker_id)
        self._controller.start()

    async def stop(self) -> None:
        await self._controller.stop()
        for broker_id in self._listeners:
            await self.close(broker_id)

    async def open(self, broker_id: int) -> None:
        """The broker's process has come up."""
        listener = self._listeners.get(broker_id)
        if listener is not None:
            await listener.open()

    async def close(self, broker_id: int) -> None:
        """The broker's process has ended."""
        listener = self._listeners.get(broker_id)
        if listener is not None:
            await listener.close()

    def hang_up(self, broker_id: int) -> None:
        """The broker's process is another from now on."""
        listener = self._listeners.get(broker_id)
        for connection in list(listener.connections) if listener is not None else ():
            connection.abort()

    async def settled(self, timeout: float) -> None:
        """As ``InterBroker.settled``."""
        await self._controller.settled(timeout)

    def _make_protocol(self, broker_id: int, connections: set[BrokerProtocol]) -> BrokerProtocol:
        return BrokerProtocol(self._dispatcher, broker_id, connections)

    def _address(self, broker_id: int) -> tuple[str, int]:
        """Where the broker takes requests of controllers."""
        listener = self._listeners.get(broker_id)
        return self._endpoint(broker_id) if listener is None else (_HOST, listener.port)

    def _endpoint(self, broker_id: int) -> tuple[str, int]:
        """Where clients reach it."""
        broker = self._cluster.brokers[broker_id]
        return broker.host, broker.port
