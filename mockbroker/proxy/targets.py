"""Where connections go: the upstream's addresses, behind the proxy's listeners. No sockets."""

from __future__ import annotations

from typing import Final

import msgspec

__all__ = ["BOOTSTRAP", "Address", "Target"]

Address = tuple[str, int]

BOOTSTRAP: Final = -1
"""The id of the bootstrap listener in the journal, as clients number bootstrap servers."""


class Target(msgspec.Struct):
    """What a listener stands for: a broker of the upstream, a controller, or its bootstrap servers.

    ``addresses`` are tried in order; those of a broker change with the upstream's metadata. While
    ``refused``, connections are closed at once.
    """

    name: str
    node_id: int
    listener: str = ""
    addresses: list[Address] = msgspec.field(default_factory=list)
    refused: bool = False
