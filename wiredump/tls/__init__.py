"""What is inside TLS, where a key log has its secrets. No files, no sockets, no clock.

::

    keylog      secrets by connection, as NSS's SSLKEYLOGFILE has them
    handshake   the few messages of a handshake that have to be read
    session     what both ends agreed on, and the keys that follow from it
    protection  opening one record (AEAD; needs the extra ``tls``)
    records     one direction: its records, across what the capture lacks
    talk        both directions around a ``Conversation`` of the plaintext

TLS 1.2 and 1.3 with AES-GCM, AES-CCM and ChaCha20-Poly1305. All of these authenticate a record, and
its number in the stream: what opens is certain, also behind a gap of unknown length. Older suites
(CBC, RC4) and versions are reported and not read; early data (0-RTT), which no Kafka client sends,
counts as records that do not open.
"""

from __future__ import annotations

import importlib.util

from kproto.errors import MissingExtraError

__all__ = ["require_cryptography"]


def require_cryptography() -> None:
    """Raise MissingExtraError if cryptography is not installed."""
    if importlib.util.find_spec("cryptography") is None:
        raise MissingExtraError("reading TLS needs cryptography", extra="wiredump")
