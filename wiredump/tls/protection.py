"""Derive keys from secrets, and decrypt single records.

The key schedules are TLS 1.2's PRF (RFC 5246), which needs only HMAC, and TLS 1.3's HKDF (RFC
8446); that and the ciphers are those of cryptography.
"""

from __future__ import annotations

import hmac
from typing import Final, NamedTuple, TypeAlias

from kproto.errors import MissingExtraError

try:
    from cryptography.exceptions import InvalidTag
    from cryptography.hazmat.primitives.ciphers.aead import AESCCM, AESGCM, ChaCha20Poly1305
    from cryptography.hazmat.primitives.hashes import SHA256, SHA384
    from cryptography.hazmat.primitives.kdf.hkdf import HKDFExpand
except ImportError as error:  # pragma: no cover (where the extra is not installed)
    raise MissingExtraError("reading TLS needs cryptography", extra="wiredump") from error

__all__ = ["HEADER", "SUITES", "Keys", "Suite", "keys_12", "keys_13", "updated"]

HEADER: Final = 5
"""The length of a record's type, version and length."""

_HASHES: Final = {"sha256": SHA256(), "sha384": SHA384()}
_TAG: Final = 16
_EXPLICIT: Final = 8

_Aead: TypeAlias = AESGCM | AESCCM | ChaCha20Poly1305


class Suite(NamedTuple):
    """``hash`` is that of the key schedule; ``cipher`` is "gcm", "ccm" or "chacha"."""

    cipher: str
    key_length: int
    hash: str


_GCM_128, _GCM_256 = Suite("gcm", 16, "sha256"), Suite("gcm", 32, "sha384")
_CHACHA: Final = Suite("chacha", 32, "sha256")

SUITES: Final[dict[int, Suite]] = {
    0x1301: _GCM_128,
    0x1302: _GCM_256,
    0x1303: _CHACHA,
    0x1304: Suite("ccm", 16, "sha256"),
    # TLS 1.2: the key exchange does not matter here, and suites with GCM come in pairs.
    **{
        first + more: suite
        for first in (
            0x009C, 0x009E, 0x00A0, 0x00A2, 0x00A4, 0x00A6, 0x00A8, 0x00AA, 0x00AC,
            0xC02B, 0xC02D, 0xC02F, 0xC031,
        )
        for more, suite in enumerate((_GCM_128, _GCM_256))
    },
    **dict.fromkeys(range(0xCCA8, 0xCCAF), _CHACHA),
    **dict.fromkeys((0xC09C, 0xC09E, 0xC0AC), Suite("ccm", 16, "sha256")),
    **dict.fromkeys((0xC09D, 0xC09F, 0xC0AD), Suite("ccm", 32, "sha256")),
}  # fmt: skip
"""The supported suites, by IANA number."""


class Keys:
    """Decrypts the records of one direction between two changes of keys. ``overhead`` is how many
    bytes a record has beside its plaintext (without TLS 1.3's padding); ``before`` of them precede
    it."""

    def __init__(self, suite: Suite, key: bytes, iv: bytes, *, is_13: bool) -> None:
        self._aead = _aead(suite, key)
        self._iv = iv
        self._is_13 = is_13
        self._explicit = 0 if is_13 or suite.cipher == "chacha" else _EXPLICIT
        self.before = HEADER + self._explicit
        self.overhead = self.before + _TAG + is_13

    def open(self, number: int, record: bytes) -> tuple[int, bytes] | None:
        """Return the content type and the plaintext of a whole record if it is the direction's
        record ``number`` under these keys; None otherwise."""
        body = record[self.before :]
        if len(body) < _TAG:
            return None
        sequence = number.to_bytes(8)
        if self._is_13:
            extra = record[:HEADER]
        else:
            extra = sequence + record[:3] + (len(body) - _TAG).to_bytes(2)
        try:
            plaintext = self._aead.decrypt(self._nonce(sequence, record), body, extra)
        except InvalidTag:
            return None
        if not self._is_13:
            return record[0], plaintext
        unpadded = plaintext.rstrip(b"\0")
        return (unpadded[-1], unpadded[:-1]) if unpadded else (0, b"")

    def _nonce(self, sequence: bytes, record: bytes) -> bytes:
        if self._explicit:
            return self._iv + record[HEADER : HEADER + _EXPLICIT]
        mask = int.from_bytes(self._iv) ^ int.from_bytes(sequence)
        return mask.to_bytes(len(self._iv))


def _aead(suite: Suite, key: bytes) -> _Aead:
    if suite.cipher == "chacha":
        return ChaCha20Poly1305(key)
    return AESGCM(key) if suite.cipher == "gcm" else AESCCM(key, _TAG)


# ---- TLS 1.2 ---------------------------------------------------------------------------------


def keys_12(
    suite: Suite, master_secret: bytes, client_random: bytes, server_random: bytes
) -> tuple[Keys, Keys]:
    """Return the keys of the client and of the server."""
    iv = 12 if suite.cipher == "chacha" else 4
    seed = b"key expansion" + server_random + client_random
    block = _prf(suite.hash, master_secret, seed, 2 * (suite.key_length + iv))
    length = suite.key_length
    client_key, server_key, rest = block[:length], block[length : 2 * length], block[2 * length :]
    return (
        Keys(suite, client_key, rest[:iv], is_13=False),
        Keys(suite, server_key, rest[iv:], is_13=False),
    )


def _prf(hash_: str, secret: bytes, seed: bytes, length: int) -> bytes:
    out, each = b"", seed
    while len(out) < length:
        each = hmac.digest(secret, each, hash_)
        out += hmac.digest(secret, each + seed, hash_)
    return out[:length]


# ---- TLS 1.3 ---------------------------------------------------------------------------------


def keys_13(suite: Suite, traffic_secret: bytes) -> Keys:
    """Return the keys of one direction."""
    key = _expand(suite.hash, traffic_secret, b"key", suite.key_length)
    return Keys(suite, key, _expand(suite.hash, traffic_secret, b"iv", 12), is_13=True)


def updated(suite: Suite, traffic_secret: bytes) -> bytes:
    """Return the secret that follows a KeyUpdate."""
    return _expand(suite.hash, traffic_secret, b"traffic upd", len(traffic_secret))


def _expand(hash_: str, secret: bytes, label: bytes, length: int) -> bytes:
    """Compute HKDF-Expand-Label without a context."""
    label = b"tls13 " + label
    info = length.to_bytes(2) + bytes([len(label)]) + label + b"\0"
    return HKDFExpand(_HASHES[hash_], length, info).derive(secret)
