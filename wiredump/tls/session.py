"""The parameters that both ends of a connection agreed on, and the keys that a key log gives for
them.

The keys of a direction are numbered in the order of use: in TLS 1.3, 0 are the handshake's, 1 the
application's, and each KeyUpdate begins the next; in TLS 1.2 there are only 1.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from kproto.errors import MissingExtraError
from wiredump.tls.handshake import ServerHello
from wiredump.tls.keylog import KeyLog

if TYPE_CHECKING:
    from wiredump.tls.protection import Keys, Suite

__all__ = ["Session"]

_NAMES: Final = {0x0300: "SSL 3.0", 0x0301: "TLS 1.0", 0x0302: "TLS 1.1", 0x0303: "TLS 1.2"}
_TLS_12: Final = 0x0303
_TLS_13: Final = 0x0304


class Session:
    """``client_random`` and ``server`` are set by the hellos. ``problem`` is the reason why there
    are no keys, once it is known; empty as long as there may be keys."""

    def __init__(self, log: KeyLog) -> None:
        self.client_random: bytes | None = None
        self.server: ServerHello | None = None
        self.problem = ""
        self._log = log
        self._secrets: dict[tuple[bool, int], bytes] = {}
        self._keys: dict[tuple[bool, int], Keys] = {}

    @property
    def is_13(self) -> bool:
        return self.server is not None and self.server.version == _TLS_13

    def hello(self, client_random: bytes | None = None, server: ServerHello | None = None) -> None:
        """Take a hello, which determines the keys used from now on."""
        self.client_random = client_random or self.client_random
        self.server = server or self.server
        self._secrets.clear()
        self._keys.clear()

    def keys(self, from_client: bool, number: int) -> Keys | None:
        """Return the keys; None if there are none, or none yet: see ``problem``."""
        found = self._keys.get((from_client, number))
        if found is None and not self.problem:
            try:
                self._make(from_client, number)
            except MissingExtraError as error:
                self.problem = str(error)
            found = self._keys.get((from_client, number))
        return found

    def _make(self, from_client: bool, number: int) -> None:
        from wiredump.tls.protection import SUITES, keys_12, keys_13

        random, server = self.client_random, self.server
        if random is None or server is None:
            return
        suite = SUITES.get(server.suite)
        if server.version not in (_TLS_12, _TLS_13):
            name = _NAMES.get(server.version, f"version {server.version:#06x}")
            self.problem = f"{name}, of which nothing is read"
        elif suite is None:
            self.problem = f"cipher suite {server.suite:#06x}, which is not read: AEAD suites are"
        elif server.version == _TLS_13:
            secret = self._secret(suite, from_client, number)
            if secret is not None:
                self._keys[from_client, number] = keys_13(suite, secret)
        else:
            master = self._logged("CLIENT_RANDOM")
            if master is not None:
                client, broker = keys_12(suite, master, random, server.random)
                self._keys[True, 1], self._keys[False, 1] = client, broker

    def _secret(self, suite: Suite, from_client: bool, number: int) -> bytes | None:
        from wiredump.tls.protection import updated

        if number > 1:
            before = self._secrets.get((from_client, number - 1))
            if before is not None:
                self._secrets[from_client, number] = updated(suite, before)
            return self._secrets.get((from_client, number))
        which = "TRAFFIC_SECRET_0" if number else "HANDSHAKE_TRAFFIC_SECRET"
        secret = self._logged(f"{'CLIENT' if from_client else 'SERVER'}_{which}")
        if secret is not None:
            self._secrets[from_client, number] = secret
        return secret

    def _logged(self, label: str) -> bytes | None:
        assert self.client_random is not None
        secret = self._log.secret(label, self.client_random)
        if secret is None and not self._log.grows:
            self.problem = "the key log has no secrets of this connection"
        return secret
