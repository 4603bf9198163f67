"""Addresses as text."""

from __future__ import annotations

from mockbroker.errors import ClusterError

__all__ = ["parse_endpoint"]


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
