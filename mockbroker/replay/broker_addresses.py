"""Replaces the hosts and ports of brokers in a response by those of listeners of ours.

It does so wherever a response gives the id and the address of a broker: Metadata, FindCoordinator,
DescribeCluster, DescribeQuorum, and the node endpoints of Produce, Fetch, the share APIs and the
controllers' own requests. An address without an id is not a broker's (the host of an access rule,
the endpoint of a member), and an empty host stays empty.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeAlias

import msgspec

__all__ = ["EndpointOf", "restamp"]

EndpointOf: TypeAlias = Callable[[int, str, int], tuple[str, int]]
"""Takes a broker's id, host and port in the response; returns the host and port to put there."""


def restamp(value: Any, endpoint_of: EndpointOf) -> None:
    """Change a response in place."""
    _restamp(value, endpoint_of, None)


def _restamp(value: Any, endpoint_of: EndpointOf, node_id: int | None) -> None:
    if isinstance(value, list):
        if value and isinstance(value[0], msgspec.Struct):
            for each in value:
                _restamp(each, endpoint_of, node_id)
        return
    if not isinstance(value, msgspec.Struct):
        return
    struct: Any = value
    names = struct.__struct_fields__
    for name in ("node_id", "broker_id", "leader_id"):
        if name in names:
            node_id = int(getattr(struct, name))
    if "host" in names and "port" in names and node_id is not None and struct.host:
        struct.host, struct.port = endpoint_of(node_id, struct.host, struct.port)
    for name in names:
        _restamp(getattr(struct, name), endpoint_of, node_id)
