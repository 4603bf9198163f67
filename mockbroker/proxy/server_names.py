"""The host names by which TLS clients ask for a broker (SNI), where brokers share one listener.

A pattern such as ``broker-{id}.kafka.test`` gives each broker a name. OpenSSL tells the name that a
client asked for only during the handshake, so ``ServerNames`` keeps it until the connection is
made. No sockets.
"""

from __future__ import annotations

import re
import ssl
from typing import Any, Final
from weakref import WeakKeyDictionary

from mockbroker.errors import ClusterError
from mockbroker.options.addresses import parse_endpoint

__all__ = ["NamePattern", "ServerNames"]

_PLACE: Final = "{id}"


class NamePattern:
    """``HOST`` or ``HOST:PORT`` in which ``{id}`` is a broker's id. Clients connect to ``port``;
    None stands for the listener's own. Raises ClusterError."""

    def __init__(self, text: str) -> None:
        host, self.port = parse_endpoint(text)
        if host.count(_PLACE) != 1:
            raise ClusterError(f"{text!r} names no broker; use a host such as broker-{{id}}.test")
        before, after = host.split(_PLACE)
        self._host = host
        self._names = re.compile(
            re.escape(before) + "([0-9]{1,10})" + re.escape(after), re.IGNORECASE | re.ASCII
        )

    def host(self, broker_id: int) -> str:
        return self._host.replace(_PLACE, str(broker_id))

    def broker_id(self, name: str) -> int | None:
        """Return the broker of that name, known or not; None for another name."""
        found = self._names.fullmatch(name)
        return None if found is None else int(found[1])


class ServerNames:
    """The names that clients of ``context`` ask for."""

    def __init__(self, context: ssl.SSLContext) -> None:
        self._requested: WeakKeyDictionary[Any, str] = WeakKeyDictionary()
        context.sni_callback = self._note

    def _note(self, connection: Any, name: str | None, _context: ssl.SSLContext) -> None:
        if name is not None:
            self._requested[connection] = name

    def requested(self, connection: Any) -> str:
        """Return the name that this SSL object's client asked for, or nothing."""
        return "" if connection is None else self._requested.get(connection, "")
