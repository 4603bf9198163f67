"""``Segment.flow``: two addresses and two ports in the form of the wire."""

from __future__ import annotations

from functools import lru_cache
from ipaddress import IPv4Address, IPv6Address
from typing import Final

from wiredump.readers.model import Endpoint

__all__ = ["endpoints_of", "port_of", "reverse"]

_IPV4_FLOW: Final = 12


def reverse(flow: bytes) -> bytes:
    """Return the flow of the opposite direction."""
    address = 4 if len(flow) == _IPV4_FLOW else 16
    ports = 2 * address
    return (
        flow[address:ports] + flow[:address] + flow[ports + 2 : ports + 4] + flow[ports : ports + 2]
    )


def port_of(flow: bytes, which: int) -> int:
    """Return a port: 0 for the source's, 1 for the destination's."""
    at = len(flow) - 4 + 2 * which
    return int.from_bytes(flow[at : at + 2])


def endpoints_of(flow: bytes) -> tuple[Endpoint, Endpoint]:
    """Return the source and the destination."""
    size = (len(flow) - 4) // 2
    return (
        Endpoint(_address(flow[:size]), port_of(flow, 0)),
        Endpoint(_address(flow[size : 2 * size]), port_of(flow, 1)),
    )


@lru_cache(maxsize=4096)
def _address(raw: bytes) -> str:
    return str(IPv4Address(raw) if len(raw) == 4 else IPv6Address(raw))
