"""Addresses: what to listen on, what can be dialled, what Metadata tells clients. Pure."""

from __future__ import annotations

import ipaddress

from mockbroker.errors import ClusterError

__all__ = ["Advertised", "dialable", "is_loopback", "parse_endpoint", "show"]

_WILDCARDS = {"0.0.0.0": "127.0.0.1", "::": "::1", "": "127.0.0.1"}


def parse_endpoint(text: str, *, default_port: int | None = None) -> tuple[str, int | None]:
    """``host:port``, ``[::1]:port`` or, given a default, ``host`` alone. Raises ClusterError."""
    host, port = text, ""
    if text.startswith("["):
        host, bracket, rest = text[1:].partition("]")
        if not bracket or (rest and not rest.startswith(":")):
            raise ClusterError(f"{text!r} is no address; use [::1]:9092")
        port = rest[1:]
    elif text.count(":") == 1:
        host, _, port = text.partition(":")
    elif ":" in text:
        raise ClusterError(f"{text!r} is no address; put an IPv6 host in brackets: [::1]:9092")
    if not host or any(char.isspace() for char in host):
        raise ClusterError(f"{text!r} has no host; use HOST:PORT")
    try:
        host.encode("idna")
    except UnicodeError as error:
        raise ClusterError(f"{text!r} has no host name: {error}") from None
    if not port:
        return host, default_port
    if not (port.isascii() and port.isdigit() and int(port) < 65536):
        raise ClusterError(f"{text!r}: a port is a number from 0 to 65535")
    return host, int(port)


def show(host: str, port: int) -> str:
    """``host:port`` as clients take it."""
    return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"


def dialable(host: str) -> str:
    """The address a client on this machine reaches a listener on ``host`` by."""
    return _WILDCARDS.get(host, host)


def is_loopback(host: str) -> bool:
    """Whether only this machine can reach a listener on ``host``."""
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


class Advertised:
    """What Metadata gives for each broker: ``advertise``, or where it listens.

    With a port of its own broker n (counting from 0) is given ``port + n``, as the listeners
    themselves count, so that a row of forwarded ports reaches a row of brokers.
    """

    def __init__(self, advertise: tuple[str, int | None] | None = None) -> None:
        self._advertise = advertise

    def endpoint(self, place: int, host: str, port: int) -> tuple[str, int]:
        if self._advertise is None:
            return dialable(host), port
        advertised_host, advertised_port = self._advertise
        return advertised_host, port if advertised_port is None else advertised_port + place
