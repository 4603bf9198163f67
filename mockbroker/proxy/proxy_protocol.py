"""The header of the PROXY protocol, version 2, which names the client of a proxied connection. No
I/O.

The specification is HAProxy's (proxy-protocol.txt, section 2.2). Kafka's brokers do not read the
header; load balancers and gateways in front of them do.
"""

from __future__ import annotations

import ipaddress
from struct import pack
from typing import Any, Final

__all__ = ["own_header", "proxy_header"]

_SIGNATURE: Final = b"\r\n\r\n\0\r\nQUIT\n"
_LOCAL: Final = 0x20
"""Version 2, and a connection of the proxy's own, without a client's address."""
_PROXY: Final = 0x21
_TCP_OF_IP_VERSION: Final = {4: 0x11, 6: 0x21}


def own_header() -> bytes:
    """Return the header of a connection that the proxy opens for itself."""
    return _SIGNATURE + pack(">BBH", _LOCAL, 0, 0)


def proxy_header(client: Any, listener: Any) -> bytes:
    """Return the header of a connection from ``client`` to ``listener``: names of a socket's ends,
    of which IP addresses begin with host and port. Other ends are not named."""
    try:
        hosts = [ipaddress.ip_address(each[0].partition("%")[0]) for each in (client, listener)]
        ports = pack(">HH", client[1], listener[1])
    except (ValueError, TypeError, IndexError, AttributeError):
        return own_header()
    if hosts[0].version != hosts[1].version:
        return own_header()
    addresses = hosts[0].packed + hosts[1].packed + ports
    return (
        _SIGNATURE
        + pack(">BBH", _PROXY, _TCP_OF_IP_VERSION[hosts[0].version], len(addresses))
        + addresses
    )
