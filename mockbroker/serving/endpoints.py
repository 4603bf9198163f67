"""Addresses: to connect to, and to advertise in Metadata."""

from __future__ import annotations

import ipaddress

__all__ = ["Advertised", "dialable", "is_loopback", "show"]

_WILDCARDS = {"0.0.0.0": "127.0.0.1", "::": "::1", "": "127.0.0.1"}


def show(host: str, port: int) -> str:
    """Return ``host:port`` in the form that clients accept."""
    return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"


def dialable(host: str) -> str:
    """Return the host by which a client on this machine reaches a listener on ``host``."""
    return _WILDCARDS.get(host, host)


def is_loopback(host: str) -> bool:
    """Return whether only this machine can reach a listener on ``host``."""
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


class Advertised:
    """The address of each broker in Metadata: ``advertise``, or where the broker listens.

    If ``advertise`` has a port, broker n (counting from 0) gets ``port + n``, as the listeners do,
    so that a range of forwarded ports reaches all brokers.
    """

    def __init__(self, advertise: tuple[str, int | None] | None = None) -> None:
        self._advertise = advertise

    def endpoint(self, place: int, host: str, port: int) -> tuple[str, int]:
        if self._advertise is None:
            return dialable(host), port
        advertised_host, advertised_port = self._advertise
        return advertised_host, port if advertised_port is None else advertised_port + place
