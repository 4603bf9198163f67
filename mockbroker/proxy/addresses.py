"""Which fields of which responses give an address, and what the proxy does with each.

``REWRITTEN`` and ``LEFT`` together name every struct of a message that has a field Host or Port; a
test compares them with the schemas. ``rewrite`` changes a decoded response. No sockets: the caller
knows the proxy's listeners.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable
from functools import cache
from typing import Any, Final, Literal, NamedTuple, TypeAlias

from kproto.schema.versions import Versions
from mockbroker.replay import restamp

__all__ = [
    "LEFT",
    "REWRITTEN",
    "AddressRow",
    "EndpointFor",
    "LeftRow",
    "Role",
    "may_hold_addresses",
    "only_tagged_addresses",
    "rewrite",
]

Role: TypeAlias = Literal["broker", "controller"]
"""``controller``: the endpoint is of a controller's listener, which has other ports than the broker
of the same id."""

EndpointFor: TypeAlias = Callable[[Role, int, str, int], tuple[str, int]]
"""Takes the role, the id and the upstream's host and port; returns the proxy's host and port."""


class AddressRow(NamedTuple):
    """The struct at ``path`` of a response, from the body down, has a host and a port in these
    versions. An empty path is the body itself. ``tagged``: its field of the body is a tagged one,
    which most responses lack."""

    requirement: str
    api_key: int
    message: str
    path: str
    versions: str
    role: Role = "broker"
    tagged: bool = False


class LeftRow(NamedTuple):
    """The struct at ``path`` of ``message`` has a host or a port that the proxy does not change."""

    requirement: str
    message: str
    path: str
    reason: str


REWRITTEN: Final = (
    AddressRow("DP-PROXY-01", 3, "MetadataResponse", "Brokers", "0+"),
    AddressRow("DP-PROXY-02", 10, "FindCoordinatorResponse", "", "0-3"),
    AddressRow("DP-PROXY-03", 10, "FindCoordinatorResponse", "Coordinators", "4+"),
    AddressRow("DP-PROXY-04", 60, "DescribeClusterResponse", "Brokers", "0+"),
    AddressRow("DP-PROXY-05", 0, "ProduceResponse", "NodeEndpoints", "10+", tagged=True),
    AddressRow("DP-PROXY-06", 1, "FetchResponse", "NodeEndpoints", "16+", tagged=True),
    AddressRow("DP-PROXY-07", 78, "ShareFetchResponse", "NodeEndpoints", "0+"),
    AddressRow("DP-PROXY-08", 79, "ShareAcknowledgeResponse", "NodeEndpoints", "0+"),
    AddressRow("DP-PROXY-09", 55, "DescribeQuorumResponse", "Nodes.Listeners", "2+", "controller"),
    *(
        AddressRow("DP-PROXY-10", key, name, "NodeEndpoints", "1+", "controller", tagged=True)
        for key, name in (
            (52, "VoteResponse"), (53, "BeginQuorumEpochResponse"),
            (54, "EndQuorumEpochResponse"), (59, "FetchSnapshotResponse"),
        )
    ),
    AddressRow(
        "DP-PROXY-11", 82, "UpdateRaftVoterResponse", "CurrentLeader", "0+", "controller",
        tagged=True,
    ),
)  # fmt: skip

_CLIENT: Final = "the address of a client, as the upstream sees it"
_ACCESS: Final = "the host of an access rule, without a port"
_REQUEST: Final = "a request, which goes from the client to the upstream"

LEFT: Final = (
    LeftRow("DP-PROXY-12", "DescribeAclsResponse", "Resources.Acls", _ACCESS),
    LeftRow("DP-PROXY-12", "DeleteAclsResponse", "FilterResults.MatchingAcls", _ACCESS),
    LeftRow(
        "DP-PROXY-12", "StreamsGroupHeartbeatResponse", "PartitionsByUserEndpoint.UserEndpoint",
        "the endpoint of a member's application",
    ),
    LeftRow(
        "DP-PROXY-12", "StreamsGroupDescribeResponse", "Groups.Members.UserEndpoint",
        "the endpoint of a member's application",
    ),
    LeftRow("DP-PROXY-13", "CreateAclsRequest", "Creations", _REQUEST),
    LeftRow("DP-PROXY-13", "AddRaftVoterRequest", "Listeners", _REQUEST),
    LeftRow("DP-PROXY-13", "UpdateRaftVoterRequest", "Listeners", _REQUEST),
    LeftRow("DP-PROXY-13", "BeginQuorumEpochRequest", "LeaderEndpoints", _REQUEST),
    LeftRow("DP-PROXY-13", "EndQuorumEpochRequest", "LeaderEndpoints", _REQUEST),
    LeftRow("DP-PROXY-13", "BrokerRegistrationRequest", "Listeners", _REQUEST),
    LeftRow("DP-PROXY-13", "ControllerRegistrationRequest", "Listeners", _REQUEST),
    LeftRow("DP-PROXY-13", "StreamsGroupHeartbeatRequest", "UserEndpoint", _REQUEST),
    LeftRow("DP-PROXY-13", "LeaderAndIsrRequest", "LiveLeaders", _REQUEST),
    LeftRow("DP-PROXY-13", "UpdateMetadataRequest", "LiveBrokers.Endpoints", _REQUEST),
)  # fmt: skip

_CONTROLLERS: Final = 2
"""EndpointType of a DescribeCluster response that lists controllers (KIP-919)."""


def _by_key() -> dict[int, list[tuple[Versions, str, Role]]]:
    found: dict[int, list[tuple[Versions, str, Role]]] = defaultdict(list)
    for row in REWRITTEN:
        field = _snake(row.path.partition(".")[0])
        found[row.api_key].append((Versions.parse(row.versions), field, row.role))
    return dict(found)


def _snake(name: str) -> str:
    return "".join(f"_{char.lower()}" if char.isupper() else char for char in name).lstrip("_")


_FIELDS: Final = _by_key()


@cache
def may_hold_addresses(api_key: int, version: int) -> bool:
    """Whether a response of this key and version has to be decoded to see if it gives addresses."""
    return any(version in versions for versions, _, _ in _FIELDS.get(api_key, ()))


@cache
def only_tagged_addresses(api_key: int, version: int) -> bool:
    """Whether a response of this key and version without tagged fields gives no addresses."""
    return all(
        row.tagged
        for row in REWRITTEN
        if row.api_key == api_key and version in Versions.parse(row.versions)
    )


def rewrite(api_key: int, version: int, body: Any, endpoint_for: EndpointFor) -> bool:
    """Put the proxy's addresses into a response. Returns whether it gave any.

    ``endpoint_for`` is called for each address. An empty host stays, as brokers send it with an
    error.
    """
    found = False
    for versions, field, role in _FIELDS.get(api_key, ()):
        if version not in versions:
            continue
        if getattr(body, "endpoint_type", 1) == _CONTROLLERS:
            role = "controller"

        def place(node_id: int, host: str, port: int, role: Role = role) -> tuple[str, int]:
            nonlocal found
            found = True
            return endpoint_for(role, node_id, host, port)

        restamp(getattr(body, field) if field else body, place)
    return found
