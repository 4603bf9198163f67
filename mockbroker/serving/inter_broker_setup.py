"""What a cluster's brokers run, and whether its controller sends them requests: worked out from the
options before anything starts.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from types import MappingProxyType

from msgspec.structs import replace

from kproto.dialects import AutoDialect, Dialect, dialect
from kproto.errors import UnknownNameError
from kproto.journal import Journal
from kproto.schema.versions import Versions
from mockbroker.errors import ClusterError
from mockbroker.profiles import Profile
from mockbroker.profiles import profile as named
from mockbroker.serving.dispatch import Dispatcher
from mockbroker.serving.inter_broker_network import InterBrokerNetwork
from mockbroker.serving.served_versions import check_release, own_versions
from mockbroker.simulation.brokers.inter_broker.software_versions import INTER_BROKER, own_apis
from mockbroker.simulation.reassignment import keeps_znodes
from mockbroker.simulation.state.cluster_parts import Broker

__all__ = ["brokers_to_register", "inter_broker_network", "software_versions"]


def brokers_to_register(
    brokers: int | Iterable[Broker],
    external: Mapping[int, tuple[str, int]],
    profile: Profile,
    codec: Dialect,
    served: Mapping[int, Versions],
    levels: Mapping[int, str | Mapping[int, Versions | None]],
    racks: Mapping[int, str] = MappingProxyType({}),
) -> list[Broker]:
    """The brokers as given, with the addresses of external ones, their own API versions and racks.
    Raises ClusterError."""
    listed = [Broker(i) for i in range(1, brokers + 1)] if isinstance(brokers, int) else brokers
    found = {each.broker_id: each for each in listed}
    for broker_id, (host, port) in external.items():
        found[broker_id] = replace(found.get(broker_id, Broker(broker_id)), host=host, port=port)
    for broker_id, rack in racks.items():
        if broker_id not in found:
            raise ClusterError(f"no broker {broker_id}: its rack cannot be set")
        found[broker_id] = replace(found[broker_id], rack=rack)
    for broker_id, level in levels.items():
        if broker_id not in found:
            raise ClusterError(f"no broker {broker_id}: its API versions cannot be set")
        own = software_versions(level, profile, codec, served)
        found[broker_id] = replace(found[broker_id], apis=own_apis(own))
    if external and min(found) in external:
        raise ClusterError(
            f"broker {min(found)} is the controller and must run in this process: give the "
            "external broker a higher id"
        )
    return list(found.values())


def software_versions(
    level: str | Mapping[int, Versions | None],
    profile: Profile,
    codec: Dialect,
    served: Mapping[int, Versions],
) -> Mapping[int, Versions | None]:
    """The API versions in which a broker differs from the cluster. During a rolling upgrade a
    broker may support newer versions of the controller's requests than the cluster's release, but
    not of clients' requests. Raises ClusterError."""
    if isinstance(level, str) and level.startswith("kafka-"):
        try:
            software = named(level).software
        except UnknownNameError as error:
            raise ClusterError(str(error)) from None
        if software.is_newer_than(profile.software):
            raise ClusterError(
                f"{level} is newer than {profile.name}, whose versions a level can only narrow; "
                f"`upgrade BROKER {level}` changes the release"
            )
    own = own_versions(codec, served, level) if isinstance(level, str) else level
    clients = {key: versions for key, versions in own.items() if key not in INTER_BROKER}
    check_release(profile, codec, clients)
    return own


def inter_broker_network(
    dispatcher: Dispatcher,
    journal: Journal,
    external: Mapping[int, tuple[str, int]],
    requested: bool | None,
) -> InterBrokerNetwork | None:
    """The network on which a ZooKeeper-mode controller sends requests to its brokers; None if it
    sends none. KRaft brokers fetch their metadata instead. Raises ClusterError if an external
    broker would receive nothing."""
    profile, codec = dispatcher.profile, dispatcher.codec
    if requested is None:
        requested = profile.is_proposal or bool(external)
    sends = keeps_znodes(profile.reassignment)
    if external and not (sends and requested):
        why = "inter-broker requests are off" if sends else f"{profile.name} sends none"
        raise ClusterError(f"an external broker would get nothing from the controller: {why}")
    if not (sends and requested):
        return None
    return InterBrokerNetwork(
        cluster=dispatcher.cluster,
        profile=profile,
        codec=dialect(profile.dialect) if isinstance(codec, AutoDialect) else codec,
        served=dispatcher.served,
        journal=journal,
        scripts=dispatcher.scripts,
        connection_ids=dispatcher.connection_ids,
        external=external,
    )
