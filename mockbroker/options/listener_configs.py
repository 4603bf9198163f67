"""The listeners of a broker, as Kafka's configs say: ``listeners``, ``advertised.listeners``,
``listener.security.protocol.map``, ``inter.broker.listener.name``, ``controller.listener.names``
and the configs with a listener's prefix, ``listener.name.NAME.``.

Refusals have Kafka's texts. Opens no files and no sockets.
"""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Iterable, Mapping, Sequence
from types import MappingProxyType
from typing import Final

import msgspec
from msgspec.structs import replace

from mockbroker.errors import ClusterError

__all__ = [
    "FILES",
    "PROTOCOLS",
    "BrokerListeners",
    "ListenerConfig",
    "ListenerConfigError",
    "controller_listener",
    "listener_prefix",
    "listeners_of",
    "of_listeners",
]

_LISTENERS: Final = "listeners"
_ADVERTISED: Final = "advertised.listeners"
_MAP: Final = "listener.security.protocol.map"
_INTER_BROKER: Final = "inter.broker.listener.name"
_INTER_BROKER_PROTOCOL: Final = "security.inter.broker.protocol"
_CONTROLLERS: Final = "controller.listener.names"
_ROLES: Final = "process.roles"
PROTOCOLS: Final = ("PLAINTEXT", "SSL", "SASL_PLAINTEXT", "SASL_SSL")
_PREFIX: Final = "listener.name."
_ENDPOINT: Final = re.compile(r"(.*)://\[?([0-9a-zA-Z\-%._:]*)\]?:(-?[0-9]+)")
_NAMELESS: Final = "The provided listener name is null or empty string"
_SECURITY: Final = ("ssl.", "sasl.")
_MECHANISM: Final = re.compile(r"[a-z0-9-]+\.sasl\..+")

FILES: Final = ("ssl.keystore.location", "ssl.truststore.location")
"""The configs of a listener whose value is a file."""


class ListenerConfigError(ClusterError):
    """``config`` is the name of the config that is refused."""

    def __init__(self, config: str, problem: str) -> None:
        super().__init__(f"broker config {config}: {problem}")
        self.config = config
        self.problem = problem


class ListenerConfig(msgspec.Struct, frozen=True):
    """One listener of one broker.

    ``host`` is "" for every address; port 0 takes a free one. ``advertised`` is where clients are
    sent, with port 0 for the port that the listener gets, and None if they are not. ``configs``
    are the ``ssl.`` and ``sasl.`` configs that the listener follows, without its prefix, and
    ``own`` the names that have it.
    """

    name: str
    protocol: str
    host: str
    port: int
    advertised: tuple[str, int] | None = None
    configs: Mapping[str, str] = MappingProxyType({})
    own: frozenset[str] = frozenset()

    @property
    def encrypted(self) -> bool:
        return self.protocol in ("SSL", "SASL_SSL")

    @property
    def authenticates(self) -> bool:
        """Whether clients authenticate by SASL."""
        return self.protocol.startswith("SASL_")

    def refuse(self, config: str, problem: str) -> ListenerConfigError:
        """The refusal of a config of this listener."""
        return ListenerConfigError(listener_prefix(self.name) + config, problem)


class BrokerListeners(msgspec.Struct, frozen=True):
    """The listeners for clients, in the order of the configs, and those of the controller.
    ``inter_broker`` is the name of the listener at which other brokers reach the broker."""

    clients: tuple[ListenerConfig, ...]
    controllers: tuple[ListenerConfig, ...]
    inter_broker: str


def listener_prefix(name: str) -> str:
    """How the configs of a listener begin."""
    return f"{_PREFIX}{name.lower()}."


def controller_listener(configs: Mapping[str, str]) -> ListenerConfig:
    """The listener of a controller apart from brokers, with any address: the first that
    ``controller.listener.names`` has. Raises ListenerConfigError."""
    names = _names(configs, _CONTROLLERS) or ("CONTROLLER",)
    protocols = _protocol_map(configs, names)
    if names[0] not in protocols:
        raise ListenerConfigError(
            _MAP, f"Controller listener with name {names[0]} defined in {_CONTROLLERS} not found "
            f"in {_MAP}",
        )  # fmt: skip
    found = ListenerConfig(names[0], protocols[names[0]], "", 0)
    return replace(found, **_security(configs, names[0]))


def of_listeners(name: str, listeners: Iterable[str]) -> bool:
    """Whether a config is one of these listeners' own."""
    return any(name.startswith(listener_prefix(each)) for each in listeners)


def listeners_of(
    configs: Mapping[str, str], *, default: str, shift: int = 0, advertised_shift: int = 0
) -> BrokerListeners | None:
    """The listeners of a broker with these configs; None if they name none. ``default`` takes the
    place of ``listeners``. The shifts move ports other than 0. Raises ListenerConfigError."""
    if _LISTENERS not in configs and _ADVERTISED not in configs:
        return None
    _check_inter_broker_protocol(configs)
    controllers = _names(configs, _CONTROLLERS)
    protocols = _protocol_map(configs, controllers)
    listed = _parsed(configs, _LISTENERS, configs.get(_LISTENERS, default), protocols)
    _check_distinct_ports(configs, listed)
    advertised = listed
    if _ADVERTISED in configs:
        advertised = _parsed(configs, _ADVERTISED, configs[_ADVERTISED], protocols)
    addresses = {each.name: (each.host, each.port) for each in advertised}
    advertised = [each for each in advertised if each.name not in controllers]
    _check_roles(configs, controllers, listed)
    inter_broker = _inter_broker(configs, protocols)
    _check_advertised(listed, advertised, controllers, inter_broker)
    _check_prefixes(configs, listed)
    moved = advertised_shift if _ADVERTISED in configs else shift
    clients, own_controllers = [], []
    for each in listed:
        found = replace(
            each, port=_moved(each.port, shift, _LISTENERS), **_security(configs, each.name)
        )
        address = addresses.get(each.name)
        if address is not None:
            address = address[0], _moved(address[1], moved, _ADVERTISED)
        if each.name in controllers:
            own_controllers.append(replace(found, advertised=address or (found.host, found.port)))
        else:
            clients.append(replace(found, advertised=address))
    return BrokerListeners(tuple(clients), tuple(own_controllers), inter_broker)


# ---- reading -------------------------------------------------------------------------------------


def _items(text: str) -> list[str]:
    return [each for part in text.split(",") if (each := part.strip())]


def _names(configs: Mapping[str, str], config: str) -> tuple[str, ...]:
    return tuple(each.upper() for each in _items(configs.get(config, "")))


def _protocol_map(configs: Mapping[str, str], controllers: Sequence[str]) -> dict[str, str]:
    """Protocol by listener name. Without the config, the protocols themselves are names, and the
    listeners of controllers speak PLAINTEXT."""
    text = configs.get(_MAP)
    if text is None:
        return dict.fromkeys(controllers, "PLAINTEXT") | {each: each for each in PROTOCOLS}
    found = {}
    for pair in _items(text):
        name, colon, protocol = pair.rpartition(":")
        if not colon:
            raise ListenerConfigError(_MAP, f"{pair!r} is not LISTENER:PROTOCOL")
        if not name.strip():
            raise ListenerConfigError(_MAP, _NAMELESS)
        if protocol.strip().upper() not in PROTOCOLS:
            raise ListenerConfigError(
                _MAP,
                f"Invalid security protocol `{protocol}` defined in listener.security.protocol.map;"
                f" use {', '.join(PROTOCOLS)}",
            )
        found[name.strip().upper()] = protocol.strip().upper()
    return found


def _parsed(
    configs: Mapping[str, str], config: str, text: str, protocols: Mapping[str, str]
) -> list[ListenerConfig]:
    found: list[ListenerConfig] = []
    for each in _items(text):
        match = _ENDPOINT.fullmatch(each)
        if match is None:
            raise ListenerConfigError(
                config, f"Unable to parse {each} to a broker endpoint; use NAME://HOST:PORT"
            )
        name, host, port = match[1].strip().upper(), match[2], match[3]
        if not name:
            raise ListenerConfigError(config, _NAMELESS)
        if name not in protocols:
            raise ListenerConfigError(
                config,
                f"No security protocol defined for listener {name}; add {name}:PLAINTEXT, or "
                f"another protocol, to {_MAP}",
            )
        if not 0 <= int(port) < 65536:
            raise ListenerConfigError(config, f"{each}: the port must be from 0 to 65535")
        found.append(ListenerConfig(name, protocols[name], host, int(port)))
    if len({each.name for each in found}) < len(found):
        raise ListenerConfigError(
            config, f"Each listener must have a different name, listeners: {text}"
        )
    return found


def _security(configs: Mapping[str, str], name: str) -> dict[str, object]:
    prefix = listener_prefix(name)
    own = {key.removeprefix(prefix): value for key, value in configs.items()
           if key.startswith(prefix)}  # fmt: skip
    shared = {
        key: value
        for key, value in configs.items()
        if key.startswith(_SECURITY) or _MECHANISM.fullmatch(key)
    }
    return {"configs": shared | own, "own": frozenset(own)}


def _moved(port: int, by: int, config: str) -> int:
    if port == 0 or port + by < 65536:
        return port and port + by
    raise ListenerConfigError(config, f"the ports from {port} on exceed 65535, the highest port")


# ---- checks --------------------------------------------------------------------------------------


def _check_distinct_ports(configs: Mapping[str, str], listed: Sequence[ListenerConfig]) -> None:
    """Two listeners share a port if one has an IPv4 address and the other an IPv6 address."""
    text = configs.get(_LISTENERS, "")
    by_port: dict[int, list[str]] = {}
    for each in listed:
        if each.port:
            by_port.setdefault(each.port, []).append(each.host)
    for port, hosts in by_port.items():
        versions = sorted(map(_ip_version, hosts))
        if len(hosts) == 1 or versions == [4, 6]:
            continue
        why = "Each listener must have a different port"
        if not any(versions):
            raise ListenerConfigError(_LISTENERS, f"{why}, listeners: {text}")
        if all(versions) or len(hosts) > 2:
            why = "If you have two listeners on the same port then one needs to be IPv4 and the "
            why += "other IPv6"
        else:
            why += " unless exactly one listener has an IPv4 address and the other IPv6 address"
        raise ListenerConfigError(_LISTENERS, f"{why}, listeners: {text}, port: {port}")


def _ip_version(host: str) -> int:
    """4 or 6; 0 for a name."""
    try:
        return ipaddress.ip_address(host).version
    except ValueError:
        return 0


def _check_inter_broker_protocol(configs: Mapping[str, str]) -> None:
    protocol = configs.get(_INTER_BROKER_PROTOCOL, "PLAINTEXT")
    if protocol not in PROTOCOLS:
        raise ListenerConfigError(
            _INTER_BROKER_PROTOCOL,
            f"Invalid value {protocol} for configuration {_INTER_BROKER_PROTOCOL}: String must be "
            f"one of: {', '.join(PROTOCOLS)}",
        )


def _inter_broker(configs: Mapping[str, str], protocols: Mapping[str, str]) -> str:
    """The name of the listener for brokers."""
    name = configs.get(_INTER_BROKER)
    if name is None:
        return configs.get(_INTER_BROKER_PROTOCOL, "PLAINTEXT")
    if _INTER_BROKER_PROTOCOL in configs:
        raise ListenerConfigError(
            _INTER_BROKER,
            f"Only one of {_INTER_BROKER} and {_INTER_BROKER_PROTOCOL} should be set.",
        )
    if name.strip().upper() not in protocols:
        raise ListenerConfigError(
            _INTER_BROKER,
            f"Listener with name {name.strip().upper()} defined in {_INTER_BROKER} not found in "
            f"{_MAP}.",
        )
    return name.strip().upper()


def _check_roles(
    configs: Mapping[str, str], controllers: Sequence[str], listed: Sequence[ListenerConfig]
) -> None:
    roles = set(_items(configs.get(_ROLES, "")))
    if not roles:
        return
    unknown = roles - {"broker", "controller"}
    if unknown:
        raise ListenerConfigError(
            _ROLES, f"Unknown process role '{min(unknown)}' (only 'broker' and 'controller' are "
            "allowed roles)",
        )  # fmt: skip
    if "broker" not in roles:
        raise ListenerConfigError(
            _ROLES, "these are the configs of a controller; give those of a broker, with "
            "process.roles=broker,controller or process.roles=broker",
        )  # fmt: skip
    listed_controllers = [each.name for each in listed if each.name in controllers]
    if "controller" in roles and not listed_controllers:
        raise ListenerConfigError(
            _CONTROLLERS, f"{_CONTROLLERS} must contain at least one value appearing in the "
            "'listeners' configuration when running the KRaft controller role",
        )  # fmt: skip
    if "controller" not in roles and listed_controllers:
        raise ListenerConfigError(
            _CONTROLLERS, f"{_CONTROLLERS} must not contain a value appearing in the 'listeners' "
            "configuration when running KRaft with just the broker role",
        )  # fmt: skip


def _check_advertised(
    listed: Sequence[ListenerConfig],
    advertised: Sequence[ListenerConfig],
    controllers: Sequence[str],
    inter_broker: str,
) -> None:
    if not advertised:
        raise ListenerConfigError(
            _ADVERTISED, "There must be at least one broker advertised listener."
            + (f" Perhaps all listeners appear in {_CONTROLLERS}?" if controllers else ""),
        )  # fmt: skip
    known = [each.name for each in listed if each.name not in controllers]
    found = [each.name for each in advertised]
    if inter_broker not in found:
        raise ListenerConfigError(
            _INTER_BROKER, f"{_INTER_BROKER} must be a listener name defined in {_ADVERTISED}. The "
            f"valid options based on currently configured listeners are {','.join(found)}",
        )  # fmt: skip
    if not set(found) <= set(known):
        raise ListenerConfigError(
            _ADVERTISED, f"{_ADVERTISED} listener names must be equal to or a subset of the ones "
            f"defined in {_LISTENERS}. Found {','.join(found)}. The valid options based on the "
            f"current configuration are {','.join(known)}",
        )  # fmt: skip
    if any(each.host == "0.0.0.0" for each in advertised):
        raise ListenerConfigError(
            _ADVERTISED, f"{_ADVERTISED} cannot use the nonroutable meta-address 0.0.0.0. Use a "
            "routable IP address.",
        )  # fmt: skip


def _check_prefixes(configs: Mapping[str, str], listed: Sequence[ListenerConfig]) -> None:
    """Kafka ignores a prefix in upper case."""
    for key in configs:
        name = key.removeprefix(_PREFIX).partition(".")[0]
        if key.startswith(_PREFIX) and name != name.lower():
            raise ListenerConfigError(
                key, f"Kafka ignores the prefix of a listener in upper case; use "
                f"{_PREFIX}{name.lower()}.",
            )  # fmt: skip
