"""The recorded brokers' hosts and ports, replaced by the mock's listeners.

Wherever a response names a broker by its id and says where it is: Metadata, FindCoordinator,
DescribeCluster, DescribeQuorum, the endpoints of nodes in Produce, Fetch and the shares' answers.
A place without an id is no broker's (an access rule's host, a member's own endpoint), and one
without a host stays empty.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import msgspec

__all__ = ["restamp"]


def restamp(value: Any, endpoint_of: Callable[[int], tuple[str, int]]) -> None:
    """Change a response in place; ``endpoint_of`` says where the broker of a recorded id is."""
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
