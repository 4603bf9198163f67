"""The sockets of a cluster's brokers: their listeners for clients, and the inter-broker network."""

from __future__ import annotations

import asyncio
import itertools
import os
from collections.abc import Callable, Coroutine, Mapping, Sequence
from types import MappingProxyType
from typing import Any, TypeAlias

from mockbroker.errors import ClusterError
from mockbroker.options.addresses import parse_endpoint
from mockbroker.serving.client_listeners import ClientListener
from mockbroker.serving.endpoints import Advertised, dialable, show
from mockbroker.serving.inter_broker_network import InterBrokerNetwork
from mockbroker.serving.pacing import Paces, check_place
from mockbroker.simulation.cluster import Cluster
from mockbroker.simulation.operations import Place
from mockbroker.simulation.state.cluster_parts import BrokerEndpoint

__all__ = ["BrokerSockets", "SetEndpoint"]

SetEndpoint: TypeAlias = Callable[
    [int, str, int, Sequence[BrokerEndpoint]], Coroutine[Any, Any, None]
]
"""Takes a broker, its address, and the addresses of its named listeners."""


class BrokerSockets:
    """``set_endpoint`` records in the cluster where Metadata sends the clients of a broker.

    ``listeners`` are those for clients, by broker: every broker of this process has at least one,
    and brokers of other processes are absent. ``controllers`` are those of controllers apart from
    brokers.
    """

    def __init__(
        self,
        cluster: Cluster,
        listeners: Mapping[int, Sequence[ClientListener]],
        network: InterBrokerNetwork | None,
        advertised: Advertised,
        set_endpoint: SetEndpoint,
        paces: Paces,
        controllers: Mapping[int, ClientListener] = MappingProxyType({}),
    ) -> None:
        self.listeners = listeners
        self.controllers = controllers
        self.network = network
        self._cluster = cluster
        self._advertised = advertised
        self._set_endpoint = set_endpoint
        self.paces = paces
        self.own_advertised: dict[tuple[int, str], tuple[str, int]] = {}
        """What ``advertise`` has set, by broker and listener."""

    @property
    def addresses(self) -> dict[int, str]:
        """Broker id -> ``host:port`` of its first listener, that a client on this machine can
        dial."""
        return {broker_id: _address(each[0]) for broker_id, each in self.listeners.items()}

    @property
    def named_addresses(self) -> dict[int, dict[str, str]]:
        """Broker id -> name of a listener -> ``host:port`` that a client on this machine can
        dial."""
        apart = {node_id: [each] for node_id, each in self.controllers.items()}
        return {
            node_id: {each.name: _address(each) for each in listeners}
            for node_id, listeners in {**self.listeners, **apart}.items()
        }

    async def start(self) -> None:
        """Raises OSError if an address is not available."""
        for node_id, controller in self.controllers.items():
            await controller.socket.open()
            self._note_controller(node_id, controller)
        for broker in self._cluster.brokers.values():
            if broker.live and broker.broker_id in self.listeners:
                await self._listen(broker.broker_id)
        if self.network is not None:
            await self.network.start()

    async def stop(self) -> None:
        if self.network is not None:
            await self.network.stop()
        for broker_id in self.listeners:
            await self._close(broker_id)
        for each in self.controllers.values():
            await each.socket.close()

    async def disconnect(self) -> None:
        """Break all connections, and wait until nothing is left of their requests."""
        pending: set[asyncio.Future[Any]] = set()
        every = [*itertools.chain(*self.listeners.values()), *self.controllers.values()]
        while found := [each for listener in every for each in listener.socket.connections]:
            pending.update(each.pending for each in found if each.pending is not None)
            for connection in found:
                connection.abort()
            await asyncio.sleep(0)
        await asyncio.gather(*pending, return_exceptions=True)

    async def follow_brokers(self) -> None:
        """Listen for the brokers that are live, and for no others. Raises ClusterError."""
        for broker in self._cluster.brokers.values():
            await (self.reopen if broker.live else self.close)(broker.broker_id)

    async def close(self, broker_id: int) -> None:
        """Close a broker's listeners and connections, as when its process ends."""
        await self._close(broker_id)
        if self.network is not None:
            await self.network.close(broker_id)

    async def _close(self, broker_id: int) -> None:
        for each in self.listeners.get(broker_id, ()):
            await each.socket.close()

    async def reopen(self, broker_id: int) -> None:
        """Listen again on the same ports. Raises ClusterError, with none of them open, if one is
        not available."""
        closed = [each for each in self.listeners.get(broker_id, ()) if not each.socket.listening]
        for each in closed:
            try:
                await each.socket.open()
            except OSError as error:
                for other in closed:
                    await other.socket.close()
                reason = os.strerror(error.errno).lower() if error.errno else str(error)
                raise ClusterError(
                    f"broker {broker_id} cannot listen on {_address(each)} ({each.name}): {reason}"
                ) from None
        if closed:
            await self._listen(broker_id)
        if self.network is not None:
            await self.network.open(broker_id)

    def hang_up(self, broker_id: int) -> None:
        """Break a broker's connections; its listeners stay open."""
        for listener in self.listeners.get(broker_id, ()):
            for connection in list(listener.socket.connections):
                connection.abort()
        if self.network is not None:
            self.network.hang_up(broker_id)

    def set_latency(self, milliseconds: int, place: Place | None) -> None:
        """Raises ClusterError for an unknown place."""
        check_place(place, self.named_addresses)
        self.paces.set_latency(milliseconds / 1000, place)

    def set_bandwidth(self, bytes_per_second: int, place: Place | None) -> None:
        """Raises ClusterError for an unknown place."""
        check_place(place, self.named_addresses)
        self.paces.set_bandwidth(bytes_per_second, place)

    def advertise(self, broker_id: int, address: str) -> None:
        """Send clients of a broker to this ``host:port``, also after a restart, or those of one of
        its listeners to ``NAME://host:port``. Raises ClusterError for an unknown broker or listener
        and for text that is not an address with a port."""
        self._cluster.controller.broker(broker_id)
        name, _, where = address.rpartition("://")
        host, port = parse_endpoint(where)
        if not port:
            raise ClusterError(f"{address!r} has no port; use HOST:PORT")
        listeners = self.listeners.get(broker_id, ())
        names = [each.name for each in listeners]
        if name and name.upper() not in names:
            raise ClusterError(
                f"broker {broker_id} has no listener {name.upper()}; it has {', '.join(names)}"
            )
        self.own_advertised[broker_id, name.upper() or (names[0] if names else "")] = host, port
        self._cluster.brokers.set_endpoint(broker_id, *self._endpoints(broker_id, (host, port)))

    async def _listen(self, broker_id: int) -> None:
        for each in self.listeners[broker_id]:
            await each.socket.open()
            if each.of_controller:
                self._note_controller(broker_id, each)
        await self._set_endpoint(broker_id, *self._endpoints(broker_id))

    def _note_controller(self, node_id: int, listener: ClientListener) -> None:
        """Tell the quorum where the controller is reached."""
        address = _advertised(listener)
        assert address is not None, "a controller's listener has an address"
        self._cluster.quorum.endpoints.setdefault(node_id, (listener.name, *address))

    def _endpoints(
        self, broker_id: int, external: tuple[str, int] = ("", 0)
    ) -> tuple[str, int, tuple[BrokerEndpoint, ...]]:
        """Where Metadata sends clients, and those of each listener that configs name; of these, the
        first is where other brokers go. ``external`` is the address of a broker of another
        process."""
        listeners = self.listeners.get(broker_id, ())
        if not listeners:
            return *external, ()
        first = listeners[0]
        if first.config is None:
            place = list(self._cluster.brokers).index(broker_id)
            own = self.own_advertised.get((broker_id, first.name))
            socket = first.socket
            return *(own or self._advertised.endpoint(place, socket.host, socket.port)), ()
        endpoints, between = [], ("", 0)
        for each in listeners:
            found = self.own_advertised.get((broker_id, each.name), _advertised(each))
            if found is not None and each.config is not None and not each.of_controller:
                endpoints.append(BrokerEndpoint(each.name, each.config.protocol, *found))
                between = found if each.between_brokers else between
        return *between, tuple(endpoints)


def _address(listener: ClientListener) -> str:
    return show(dialable(listener.socket.host), listener.socket.port)


def _advertised(listener: ClientListener) -> tuple[str, int] | None:
    """Where clients of a listener are sent, None for one that is not advertised. Without a host it
    is this machine; port 0 is the one that the listener got."""
    if listener.config is None or listener.config.advertised is None:
        return None
    host, port = listener.config.advertised
    return dialable(host or listener.socket.host), port or listener.socket.port
