"""Where connections go: the upstream's addresses, behind the proxy's listeners. No sockets."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import msgspec

__all__ = ["BOOTSTRAP", "PORTS_BETWEEN", "Address", "Target", "UpstreamListener"]

Address = tuple[str, int]

BOOTSTRAP: Final = -1
"""The id of the bootstrap listener in the journal, as clients number bootstrap servers."""


PORTS_BETWEEN: Final = 100
"""What the ports of one listener are above those of the listener before, if ports are given."""


class UpstreamListener(msgspec.Struct, frozen=True):
    """A listener of the upstream: its name, and addresses for bootstrapping. With a ``protocol`` of
    Kafka's it has TLS and SASL, here as there, as that says; without one, as the proxy's options
    say."""

    name: str
    addresses: Sequence[Address]
    protocol: str | None = None

    @property
    def may_use_tls(self) -> bool:
        return self.protocol is None or self.protocol.endswith("SSL")

    @property
    def may_use_sasl(self) -> bool:
        return self.protocol is None or self.protocol.startswith("SASL")


class Target(msgspec.Struct):
    """What a listener stands for: a broker of the upstream, a controller, or bootstrap servers, at
    one of the upstream's listeners.

    ``addresses`` are tried in order; those of a broker change with the upstream's metadata. While
    ``refused``, connections are closed at once.
    """

    name: str
    node_id: int
    upstream: UpstreamListener
    addresses: list[Address] = msgspec.field(default_factory=list)
    refused: bool = False

    @property
    def listener(self) -> str:
        return self.upstream.name
