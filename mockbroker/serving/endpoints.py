"""Addresses: to listen on, to connect to, and to advertise in Metadata."""

from __future__ import annotations

import ipaddress

from mockbroker.errors import ClusterError

__all__ = ["Advertised", "dialable", "is_loopback", "parse_endpoint", "show"]

_WILDCARDS = {"0.0.0.0": "127.0.0.1", "::": "::1", "": "127.0.0.1"}


def parse_endpoint(text: str, *, default_port: int | None = None) -> tuple[str, int | None]:
    """Parse ``host:port``, ``[::1]:port`` or, given a default, ``host``. Raises ClusterError."""
    host, port = text, ""
    if text.startswith("["):
        host, bracket, rest = text[1:].partition("]")
        if not bracket or (rest and not rest.startswith(":")):
            raise ClusterError(f"{text!r} is not an address; use [::1]:9092")
        port = rest[1:]
    elif text.count(":") == 1:
        host, _, port = text.partition(":")
    elif ":" in text:
        raise ClusterError(f"{text!r} is not an address; put an IPv6 host in brackets: [::1]:9092")
    if not host or any(char.isspace() for char in host):
        raise ClusterError(f"{text!r} has no host; use HOST:PORT")
    try:
        host.encode("idna")
    except UnicodeError as error:
        raise ClusterError(f"{text!r} has an invalid host name: {error}") from None
    if not port:
        return host, default_port
    if not (port.isascii() and port.isdigit() and int(port) < 65536):
        raise ClusterError(f"{text!r}: the port must be a number from 0 to 65535")
    return host, int(port)


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
