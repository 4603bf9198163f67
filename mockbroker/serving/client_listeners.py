"""The listeners of a cluster's brokers, from its options and the configs of its brokers."""

from __future__ import annotations

import ssl
from collections.abc import Callable, Iterable, Mapping
from typing import Final, NamedTuple, TypeAlias

from msgspec.structs import replace

from mockbroker.errors import ClusterError
from mockbroker.options import ClusterOptions
from mockbroker.options.listener_configs import (
    BrokerListeners,
    ListenerConfig,
    ListenerConfigError,
    controller_listener,
    listeners_of,
)
from mockbroker.serving.endpoints import show
from mockbroker.serving.listener_security import listener_tls, listener_users
from mockbroker.serving.listeners import BrokerListener
from mockbroker.serving.server import BrokerProtocol, Listener
from mockbroker.simulation.security.sasl import SaslUsers

__all__ = [
    "ClientListener",
    "ListenerMaker",
    "all_listeners",
    "apart_listeners",
    "broker_listeners",
    "controller_ids",
    "made_listeners",
    "unnamed",
]

_FIRST_CONTROLLER: Final = 3000
_WILDCARDS: Final = ("", "0.0.0.0", "::")

ListenerMaker: TypeAlias = Callable[
    [int, str, int, Listener, "ssl.SSLContext | None"], BrokerListener[BrokerProtocol]
]
"""Makes the socket of a broker's listener at a host and a port."""


class ClientListener(NamedTuple):
    """A listener of a broker. ``config`` is None for the only one of a broker whose configs name
    none; ``name`` is then its protocol. ``between_brokers``: other brokers use it.
    ``of_controller``: the broker is a controller, too, and has it for that."""

    name: str
    socket: BrokerListener[BrokerProtocol]
    config: ListenerConfig | None = None
    between_brokers: bool = True
    of_controller: bool = False


def broker_listeners(
    options: ClusterOptions, broker_ids: Iterable[int]
) -> Mapping[int, BrokerListeners]:
    """The listeners of each broker whose configs name any. Of ports that all brokers share, broker
    n (counting from 0) gets the n-th from there. Raises ClusterError."""
    found: dict[int, BrokerListeners] = {}
    for place, broker_id in enumerate(broker_ids):
        own = options.own_broker_configs.get(broker_id, {})
        port = options.port + place if options.port else 0
        listeners = listeners_of(
            {**options.broker_configs, **own},
            default=f"{unnamed(options)}://{options.host}:{port}",
            shift=0 if "listeners" in own or "listeners" not in options.broker_configs else place,
            advertised_shift=0 if "advertised.listeners" in own else place,
        )
        if listeners is not None and broker_id not in options.external_brokers:
            found[broker_id] = listeners
    if found and "listeners" in options.broker_configs and (options.port or options.advertise):
        raise ListenerConfigError(
            "listeners", "the addresses of brokers come from these configs or from the options "
            "host, port and advertise (--listen, --advertise), not from both",
        )  # fmt: skip
    _check_ports(found)
    return found


def _check_ports(found: Mapping[int, BrokerListeners]) -> None:
    """Refuse two brokers at one port."""
    taken: dict[int, list[tuple[str, int, str]]] = {}
    for broker_id, listeners in found.items():
        for each in (*listeners.clients, *listeners.controllers):
            if not each.port:
                continue
            for host, other, name in taken.setdefault(each.port, []):
                if other != broker_id and (host == each.host or host in _WILDCARDS):
                    raise ListenerConfigError(
                        "listeners", f"listener {each.name} of broker {broker_id} would have "
                        f"{show(each.host, each.port)}, as listener {name} of broker {other}: "
                        f"broker n listens on PORT + n - 1; leave {len(found)} ports between "
                        f"listeners, take port 0, or give broker {broker_id} listeners of its own "
                        f"(--broker-config {broker_id}:listeners=...)",
                    )  # fmt: skip
            taken[each.port].append((each.host, broker_id, each.name))


def all_listeners(
    options: ClusterOptions, configured: Mapping[int, BrokerListeners]
) -> list[ListenerConfig]:
    """The listeners that have names, of brokers and of controllers."""
    apart = [controller_listener(options.broker_configs)] if options.controllers else []
    found = [each for own in configured.values() for each in (*own.clients, *own.controllers)]
    return found + apart


def controller_ids(
    options: ClusterOptions, configured: Mapping[int, BrokerListeners], broker_ids: Iterable[int]
) -> tuple[int, ...]:
    """The KRaft controllers: those apart from brokers, or the brokers with listeners for them.
    Raises ClusterError."""
    combined = tuple(broker_id for broker_id, each in configured.items() if each.controllers)
    apart = tuple(range(_FIRST_CONTROLLER, _FIRST_CONTROLLER + options.controllers))
    if combined and apart:
        raise ClusterError(
            f"broker {combined[0]} is a controller by process.roles, so that there are none apart "
            "from brokers (the option controllers)"
        )
    if set(apart) & set(broker_ids):
        raise ClusterError(f"controllers have the ids from {_FIRST_CONTROLLER}, which brokers have")
    return combined or apart


def apart_listeners(
    options: ClusterOptions,
    node_ids: Iterable[int],
    brokers: int,
    users: SaslUsers | None,
    make: ListenerMaker,
) -> dict[int, ClientListener]:
    """The listeners of controllers apart from brokers. If the brokers' ports are given, theirs
    follow. Raises ClusterError."""
    if not options.controllers:
        return {}
    config = controller_listener(options.broker_configs)
    security = _Security(options.tls, users)
    found = {}
    for place, node_id in enumerate(node_ids):
        port = options.port + brokers + place if options.port else 0
        named = Listener(config.name, security.users(config), node_id)
        socket = make(node_id, options.host, port, named, security.tls(config))
        found[node_id] = ClientListener(config.name, socket, replace(config, advertised=("", 0)))
    return found


def unnamed(options: ClusterOptions) -> str:
    """The name of the only listener of brokers whose configs name none: its protocol."""
    sasl = "SASL_" if (*options.sasl, *options.oauth_clients) else ""
    return sasl + ("PLAINTEXT" if options.tls is None else "SSL")


def made_listeners(
    options: ClusterOptions,
    broker_ids: Iterable[int],
    configured: Mapping[int, BrokerListeners],
    users: SaslUsers | None,
    make: ListenerMaker,
) -> dict[int, tuple[ClientListener, ...]]:
    """The listeners of each broker of this process; ``users`` are those of the cluster, if a client
    of any listener authenticates. Raises
    ClusterError for key stores and users that cannot be used."""
    security = _Security(options.tls, users)
    found: dict[int, tuple[ClientListener, ...]] = {}
    for place, broker_id in enumerate(broker_ids):
        if broker_id in options.external_brokers:
            continue
        if broker_id not in configured:
            port = options.port + place if options.port else 0
            named = Listener("", users if users is not None and users.mechanisms else None)
            socket = make(broker_id, options.host, port, named, options.tls)
            found[broker_id] = (ClientListener(unnamed(options), socket),)
            continue
        own = configured[broker_id]
        found[broker_id] = tuple(
            ClientListener(
                each.name,
                make(
                    broker_id, each.host, each.port,
                    Listener(each.name, security.users(each), controller), security.tls(each),
                ),
                each,
                each.name == own.inter_broker,
                controller is not None,
            )
            for controller, listed in ((None, own.clients), (broker_id, own.controllers))
            for each in listed
        )  # fmt: skip
    return found


class _Security:
    """Brokers share what listeners with equal configs make of these."""

    def __init__(self, tls: ssl.SSLContext | None, users: SaslUsers | None) -> None:
        self._default = tls
        self._users = users
        self._contexts: dict[object, ssl.SSLContext | None] = {}
        self._found: dict[object, SaslUsers | None] = {}

    def tls(self, listener: ListenerConfig) -> ssl.SSLContext | None:
        key = _key(listener)
        if key not in self._contexts:
            self._contexts[key] = listener_tls(listener, self._default)
        return self._contexts[key]

    def users(self, listener: ListenerConfig) -> SaslUsers | None:
        key = _key(listener)
        if self._users is None:
            return None
        if key not in self._found:
            self._found[key] = listener_users(listener, self._users)
        return self._found[key]


def _key(listener: ListenerConfig) -> object:
    return listener.name, listener.protocol, tuple(sorted(listener.configs.items())), listener.own
