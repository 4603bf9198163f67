"""The sockets of a cluster's brokers: a listener each for clients, and the inter-broker network."""

from __future__ import annotations

from collections.abc import Callable, Coroutine, Mapping
from typing import Any

from mockbroker.errors import ClusterError
from mockbroker.options.addresses import parse_endpoint
from mockbroker.serving.endpoints import Advertised, dialable, show
from mockbroker.serving.inter_broker_network import InterBrokerNetwork
from mockbroker.serving.listeners import BrokerListener
from mockbroker.serving.server import BrokerProtocol
from mockbroker.simulation.cluster import Cluster

__all__ = ["BrokerSockets"]


class BrokerSockets:
    """``set_endpoint`` records in the cluster where Metadata sends the clients of a broker.

    Brokers of other processes have no listener here.
    """

    def __init__(
        self,
        cluster: Cluster,
        listeners: Mapping[int, BrokerListener[BrokerProtocol]],
        network: InterBrokerNetwork | None,
        advertised: Advertised,
        set_endpoint: Callable[[int, str, int], Coroutine[Any, Any, None]],
    ) -> None:
        self.listeners = listeners
        self.network = network
        self._cluster = cluster
        self._advertised = advertised
        self._set_endpoint = set_endpoint
        self._own_advertised: dict[int, tuple[str, int]] = {}

    @property
    def addresses(self) -> dict[int, str]:
        """Broker id -> ``host:port`` that a client on this machine can dial."""
        return {
            broker_id: show(dialable(listener.host), listener.port)
            for broker_id, listener in self.listeners.items()
        }

    async def start(self) -> None:
        """Raises OSError if an address is not available."""
        for broker in self._cluster.brokers.values():
            if broker.live and broker.broker_id in self.listeners:
                await self._listen(broker.broker_id)
        if self.network is not None:
            await self.network.start()

    async def stop(self) -> None:
        if self.network is not None:
            await self.network.stop()
        for listener in self.listeners.values():
            await listener.close()

    async def close(self, broker_id: int) -> None:
        """Close a broker's listener and connections, as when its process ends."""
        listener = self.listeners.get(broker_id)
        if listener is not None:
            await listener.close()
        if self.network is not None:
            await self.network.close(broker_id)

    async def reopen(self, broker_id: int) -> None:
        """Listen again on the same port. Raises OSError if it is not available."""
        listener = self.listeners.get(broker_id)
        if listener is not None and not listener.listening:
            await self._listen(broker_id)
        if self.network is not None:
            await self.network.open(broker_id)

    def hang_up(self, broker_id: int) -> None:
        """Break a broker's connections; its listener stays open."""
        listener = self.listeners.get(broker_id)
        for connection in list(listener.connections) if listener is not None else ():
            connection.abort()
        if self.network is not None:
            self.network.hang_up(broker_id)

    def advertise(self, broker_id: int, address: str) -> None:
        """Send clients of a broker to this ``host:port``, also after a restart. Raises ClusterError
        for an unknown broker and for text that is not an address with a port."""
        self._cluster.controller.broker(broker_id)
        host, port = parse_endpoint(address)
        if not port:
            raise ClusterError(f"{address!r} has no port; use HOST:PORT")
        self._own_advertised[broker_id] = host, port
        self._cluster.brokers.set_endpoint(broker_id, host, port)

    async def _listen(self, broker_id: int) -> None:
        listener = self.listeners[broker_id]
        await listener.open()
        place = list(self._cluster.brokers).index(broker_id)
        host, port = self._own_advertised.get(
            broker_id, self._advertised.endpoint(place, listener.host, listener.port)
        )
        await self._set_endpoint(broker_id, host, port)
