"""Addresses that mutated requests may be sent to: loopback ones, unless the user allows others."""

from __future__ import annotations

import ipaddress
import socket
from typing import NamedTuple

from kspec.errors import KspecError

__all__ = ["Address", "AimError", "parse_address"]


class AimError(KspecError):
    """An address that is malformed, does not resolve, or is not a loopback address."""


class Address(NamedTuple):
    """``host`` is numeric, so that the address checked is the address connected to."""

    host: str
    port: int

    def __str__(self) -> str:
        return f"[{self.host}]:{self.port}" if ":" in self.host else f"{self.host}:{self.port}"


def parse_address(text: str, *, anywhere: bool = False) -> Address:
    """Parse ``HOST:PORT``.

    Raises AimError unless every address of the host is a loopback address or ``anywhere`` is set.
    """
    host, separator, port = text.rpartition(":")
    if not separator or not port.isdigit() or not 0 < int(port) < 65536 or not host:
        raise AimError(f"{text!r} is not of the form HOST:PORT")
    try:
        found = socket.getaddrinfo(host.strip("[]"), int(port), type=socket.SOCK_STREAM)
    except OSError as error:
        raise AimError(f"{host}: {error.strerror or error}") from None
    numeric = [str(row[4][0]) for row in found]
    elsewhere = [
        each for each in numeric if not ipaddress.ip_address(each.split("%")[0]).is_loopback
    ]
    if elsewhere and not anywhere:
        raise AimError(
            f"{host} is {elsewhere[0]}, which is not this machine: mutated requests can damage a "
            "broker and its data; pass --not-loopback to send them anyway"
        )
    return Address(numeric[0], int(port))
