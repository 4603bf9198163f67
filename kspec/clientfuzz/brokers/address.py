"""Where damaged requests may go: this machine, unless told otherwise."""

from __future__ import annotations

import ipaddress
import socket
from typing import NamedTuple

from kspec.errors import KspecError

__all__ = ["Address", "AimError", "parse_address"]


class AimError(KspecError):
    """An address that is none, cannot be found, or is not this machine's."""


class Address(NamedTuple):
    """``host`` is numeric: what was checked is what is dialled."""

    host: str
    port: int

    def __str__(self) -> str:
        return f"[{self.host}]:{self.port}" if ":" in self.host else f"{self.host}:{self.port}"


def parse_address(text: str, *, anywhere: bool = False) -> Address:
    """``HOST:PORT``. Raises AimError unless every address of the host is a loopback one; with
    ``anywhere`` any will do."""
    host, separator, port = text.rpartition(":")
    if not separator or not port.isdigit() or not 0 < int(port) < 65536 or not host:
        raise AimError(f"{text!r} is no HOST:PORT")
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
            f"{host} is {elsewhere[0]}, which is not this machine: damaged requests can harm a "
            "broker and what it keeps; --not-loopback aims at it all the same"
        )
    return Address(numeric[0], int(port))
