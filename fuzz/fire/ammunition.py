"""The frames that are sent: every kind that a broker must reject, and some that it may accept.

Valid and invalid bodies come from ``kspec.vectors``, so that the expected outcome is known by
construction and does not depend on the decoder under test. Nothing here opens a socket.
"""

from __future__ import annotations

import random
import struct
from collections.abc import Callable
from typing import Final, NamedTuple

import kproto
from kproto.messages import SaslAuthenticateRequest, SaslHandshakeRequest
from kspec.vectors import vectors
from mockbroker.profiles import profile
from mockbroker.serving.served_versions import served_versions

__all__ = ["ANSWERED_ID", "Magazine", "Shooter", "Shot", "load"]

ANSWERED_ID: Final = 77
_ANSWERED: Final = struct.pack(">ihhih", 10, 18, 0, ANSWERED_ID, -1)
"""An ApiVersions request v0, the valid frame in front of an invalid one."""

_MAX_SIZE: Final = 104_857_600
_HELLO: Final = bytes.fromhex("1603010200010001fc0303")
"""The first bytes of a TLS client."""
_SPOKEN_ELSEWHERE: Final = (
    b"GET / HTTP/1.1\r\nHost: broker\r\n\r\n",
    b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
    b"SSH-2.0-OpenSSH_9.6\r\n",
    _HELLO,
    b"\x00\x00\x00\x00",
    b"\xff" * 64,
)
_HANDSHAKES: Final = tuple(
    kproto.encode_request(
        SaslHandshakeRequest(mechanism="PLAIN"),
        api_version=version,
        correlation_id=1,
        client_id="f",
    )
    for version in (0, 1)
)


class Shot(NamedTuple):
    """``ends`` is how the connection must end: "refused" if the broker closes without an answer;
    "answered" if it closes after one answer, to the valid frame in front; "closed" if it closes
    with or without an answer. ``half_close`` means that the sender shuts down its side."""

    kind: str
    data: bytes
    ends: str = "refused"
    half_close: bool = False
    malformed: bool = True


class Magazine(NamedTuple):
    """The material for shots; it can be pickled. ``damaged`` is by kind of damage, ``served`` by
    API key."""

    damaged: dict[str, list[bytes]]
    sound: list[bytes]
    lenient: list[bytes]
    served: dict[int, tuple[int, int]]
    sasl: bool
    tls: bool


def load(
    profile_name: str,
    seed: int,
    *,
    sasl: bool = False,
    tls: bool = False,
    messages: int | None = None,
) -> Magazine:
    """Load from every request that the profile serves, or ``messages`` of them."""
    found = profile(profile_name)
    codec = kproto.dialect(found.dialect)
    served = served_versions(found, codec)
    names = sorted(codec.apis[key].request.MESSAGE_NAME for key in served)
    if messages is not None and messages < len(names):
        names = random.Random(seed).sample(names, messages)
    damaged: dict[str, list[bytes]] = {}
    sound: list[bytes] = []
    lenient: list[bytes] = []
    for vector in vectors(codec, names):
        if vector.api_key is None or vector.version not in served[vector.api_key]:
            continue
        if vector.verdict == "invalid":
            damaged.setdefault(vector.kind, []).append(vector.data)
        else:
            (sound if vector.verdict == "valid" else lenient).append(vector.data)
    ranges = {key: (each.lowest, each.highest) for key, each in served.items()}
    return Magazine(damaged, sound, lenient, ranges, sasl, tls)


class Shooter:
    """Makes shots without end, the same ones for the same seed."""

    def __init__(self, magazine: Magazine, seed: int) -> None:
        self._random = random.Random(seed)
        self._magazine = magazine
        self._kinds = sorted(magazine.damaged)
        weights: dict[Callable[[], Shot], int] = {
            self._damaged: 45,
            self._header: 8,
            self._size: 8,
            self._elsewhere: 6,
            self._garbage: 6,
            self._short: 5,
            self._unserved: 8,
            self._half: 4,
            self._shaken: 6,
            self._lenient: 2,
        }
        if magazine.sasl:
            weights[self._token] = 20
        elif not magazine.tls:
            weights[self._behind] = 6
        self._makers, self._weights = list(weights), list(weights.values())

    def shot(self) -> Shot:
        made = self._random.choices(self._makers, self._weights)[0]()
        if self._magazine.tls:
            # None of this is TLS, so the server may send an alert before it closes. For what looks
            # like the first bytes of a record, it waits until the handshake times out.
            return made._replace(ends="closed", half_close=True)
        return made

    def _damaged(self) -> Shot:
        kind = self._random.choice(self._kinds)
        return Shot(kind, self._random.choice(self._magazine.damaged[kind]))

    def _header(self) -> Shot:
        """A valid body behind a client id that is longer than the frame or has a length of -2."""
        frame = bytearray(self._random.choice(self._magazine.sound))
        length = self._random.choice((-2, -32768, 32767))
        if len(frame) > 32767 or len(frame) < 14:
            return self._short()
        struct.pack_into(">h", frame, 12, length)
        return Shot("header", bytes(frame))

    def _size(self) -> Shot:
        size = self._random.choice(
            (-1, -(2**31), 2**31 - 1, _MAX_SIZE + 1, self._random.randrange(_MAX_SIZE + 1, 2**31))
        )
        return Shot("size", struct.pack(">i", size) + self._random.randbytes(16))

    def _elsewhere(self) -> Shot:
        return Shot("other protocol", self._random.choice(_SPOKEN_ELSEWHERE))

    def _garbage(self) -> Shot:
        """A valid size, and behind it an unknown API key."""
        data = bytearray(self._random.randbytes(self._random.randrange(8, 400)))
        data[0] |= 0x40
        return Shot("garbage", struct.pack(">i", len(data)) + bytes(data))

    def _short(self) -> Shot:
        """An incomplete header."""
        data = self._random.randbytes(self._random.randrange(8))
        return Shot("short", struct.pack(">i", len(data)) + data)

    def _unserved(self) -> Shot:
        """A version that is not served, of an API other than ApiVersions, which would be
        answered."""
        key = self._random.choice([each for each in self._magazine.served if each != 18])
        lowest, highest = self._magazine.served[key]
        version = self._random.choice((lowest - 1, highest + 1, 32767, -32768))
        return Shot("unserved", struct.pack(">ihhihb", 11, key, version, 5, -1, 0))

    def _half(self) -> Shot:
        frame = self._random.choice(self._magazine.sound)
        return Shot("half a frame", frame[: self._random.randrange(1, len(frame))], half_close=True)

    def _behind(self) -> Shot:
        """An invalid frame behind a valid one, which must still be answered."""
        return Shot("behind a sound one", _ANSWERED + self._damaged().data, ends="answered")

    def _token(self) -> Shot:
        """A handshake and tokens that prove nothing."""
        token = self._random.choice(
            (
                self._random.randbytes(self._random.randrange(64)),
                b"\0" * self._random.randrange(1000),
                b"\0fire\0wrong",
                b"n,,n=fire,r=",
            )
        )
        version = self._random.randrange(2)
        raw = struct.pack(">i", len(token)) + token
        if version:
            body = SaslAuthenticateRequest(auth_bytes=token)
            raw = kproto.encode_request(body, api_version=1, correlation_id=2, client_id="f")
        return Shot("SASL token", _HANDSHAKES[version] + raw, ends="closed", half_close=True)

    # ---- frames that may be accepted -------------------------------------------------------------

    def _shaken(self) -> Shot:
        """A valid frame with changed bytes, which may still be valid."""
        frame = bytearray(self._random.choice(self._magazine.sound))
        for _ in range(self._random.randrange(1, 4)):
            frame[self._random.randrange(4, len(frame))] = self._random.randrange(256)
        return Shot("shaken", bytes(frame), ends="closed", half_close=True, malformed=False)

    def _lenient(self) -> Shot:
        """Frames that Kafka's own classes accept and no correct peer sends."""
        frame = self._random.choice(self._magazine.lenient)
        return Shot("lenient", frame, ends="closed", half_close=True, malformed=False)
