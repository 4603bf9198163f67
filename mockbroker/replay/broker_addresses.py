"""Replaces the hosts and ports of recorded brokers by those of the mock's listeners.

It does so wherever a response gives the id and the address of a broker: Metadata, FindCoordinator,
DescribeCluster, DescribeQuorum, and the node endpoints of Produce, Fetch and the share APIs. An
address without an id is not a broker's (the host of an access rule, the endpoint of a member), and
an empty host stays empty.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import msgspec

__all__ = ["restamp"]


def restamp(value: Any, endpoint_of: Callable[[int], tuple[str, int]]) -> None:
    """Change a response in place; ``endpoint_of`` returns the address for a recorded broker id."""
    _restamp(value, endpoint_of, None)


def _restamp(
    value: Any, endpoint_of: Callable[[int], tuple[str, int]], node_id: int | None
) -> None:
    if isinstance(value, list):
        if value and isinstance(value[0], msgspec.Struct):
            for each in value:
                _restamp(each, endpoint_of, node_id)
        return
    if not isinstance(value, msgspec.Struct):
        return
    names = value.__struct_fields__
    for name in ("node_id", "broker_id"):
        if name in names:
            node_id = int(getattr(value, name))
    if "host" in names and "port" in names and node_id is not None:
        _place(value, endpoint_of(node_id))
    for name in names:
        _restamp(getattr(value, name), endpoint_of, node_id)


def _place(value: Any, endpoint: tuple[str, int]) -> None:
    if value.host:
        value.host, value.port = endpoint
