"""Any bytes as SASL tokens, to the mock's broker and to our own client.

**Holds:** the broker's ``SaslSession`` answers each token or raises SaslRefusedError, and
authenticates only tokens with the user's own password or proof; ``redact`` leaves no password in
its result. The client's exchange answers or raises SaslExchangeError, and succeeds only on tokens
that a broker with the password could send. Neither hashes more often than ``MOST_ITERATIONS`` (a
claim of 2,000,000,000 is rejected at once).

**Accepted:** SaslRefusedError from the broker, SaslExchangeError from the client. Also IndexError
from the client after its last step, which is the caller's mistake.

The input: side and mechanism (1 byte), then tokens with two length bytes each. ``$`` in a token
stands for the nonce that the other side must repeat.
"""

from __future__ import annotations

import random
from collections.abc import Iterator
from typing import Final

from fuzz import bounds
from fuzz.mutations import Mutate, with_words
from kproto.client.errors import SaslExchangeError
from kproto.client.sasl import SCRAM_MECHANISMS, SaslPlain, SaslScram
from mockbroker.simulation.security.sasl import (
    MECHANISMS,
    SaslRefusedError,
    SaslSession,
    SaslUsers,
    redact,
)

__all__ = ["check", "mutate", "seeds"]

USER: Final = "alice"
PASSWORD: Final = "wonderland-7"
A_BYTE: Final = 500
_USERS: Final = SaslUsers([f"{mechanism}:{USER}:{PASSWORD}" for mechanism in MECHANISMS])

_WORDS: Final = (
    b"n,,n=alice,r=", b"y,,", b"p=tls-unique,,", b"a=alice,", b"a=bob,", b"n=al=2Cice",
    b"c=biws,", b"r=$", b",s=AAAA", b",i=4096", b",i=2000000000", b",i=-1", b",i=1e9", b",p=AAAA",
    b"v=AAAA", b"e=other-error", b"\0", b"\0alice\0", b"wonderland-7", b"bob", b"=2C", b"=3D",
    b"=", b",", b"\xff", b"\xc2\xad", "\u2168".encode(), "\u00aa".encode(), b"m=ext,", b"n=*,",
    b"s=",
)  # fmt: skip


def check(data: bytes) -> None:
    head, tokens = (data[0] if data else 0), list(_tokens(data[1:]))
    bounds.allocating(
        lambda: _client(head, tokens) if head & 1 else _broker(head, tokens), data, a_byte=A_BYTE
    )


def _broker(head: int, tokens: list[bytes]) -> None:
    mechanism = MECHANISMS[(head >> 1) % len(MECHANISMS)]
    session = SaslSession(_USERS)
    assert session.begin(mechanism)
    nonce = b""
    for token in tokens:
        token = token.replace(b"$", nonce)
        hidden = redact(token, mechanism)
        if mechanism == "PLAIN" and token.count(b"\0") >= 2:
            password = token.split(b"\0", 2)[2]
            assert not password or hidden == token[: -len(password)] + b"[hidden]"
        try:
            answer = session.step(token, 0)
        except SaslRefusedError as error:
            assert "\n" not in str(error)
            assert session.user is None
            return
        assert isinstance(answer, bytes)
        if session.user is not None:
            parts = token.split(b"\0")
            assert mechanism == "PLAIN", "nobody here knows the proof"
            assert parts[1:] == [USER.encode(), PASSWORD.encode()]
            return
        nonce = answer.partition(b"r=")[2].partition(b",")[0]


def _client(head: int, tokens: list[bytes]) -> None:
    kind = (head >> 1) % 3
    mechanism = (
        SaslPlain(USER, PASSWORD)
        if kind == 2
        else SaslScram(SCRAM_MECHANISMS[kind], USER, PASSWORD)
    )
    exchange = mechanism.exchange()
    said = exchange(b"") or b""
    for token in tokens:
        nonce = said.partition(b"r=")[2].partition(b",")[0]
        try:
            answer = exchange(token.replace(b"$", nonce))
        except SaslExchangeError:
            return
        if answer is None:
            assert kind == 2, "nobody here knows the proof"
            return
        said = answer


def _tokens(data: bytes) -> Iterator[bytes]:
    at = 0
    while at + 2 <= len(data):
        size = int.from_bytes(data[at : at + 2], "big")
        yield data[at + 2 : at + 2 + size]
        at += 2 + size


def _joined(tokens: list[bytes]) -> bytes:
    return b"".join(len(token).to_bytes(2, "big") + token for token in tokens)


def seeds() -> Iterator[bytes]:
    yield b"\x00" + _joined([b"\0alice\0wonderland-7"])
    yield b"\x00" + _joined([b"bob\0alice\0wonderland-7"])
    yield b"\x00" + _joined([b"\0alice\0wrong"])
    for head in (2, 4):
        first = b"n,,n=alice,r=fyko+d2lbbFgONRv9qkxdawL"
        yield bytes((head,)) + _joined([first, b"c=biws,r=$,p=v0X8v3Bz2T0CJGbJQyF0X+HI4Ts="])
        yield bytes((head,)) + _joined([b"n,a=bob,n=alice,r=abc"])
    for head in (1, 3):
        yield bytes((head,)) + _joined(
            [b"r=$3rfcNHYJY1ZVvWVs7j,s=QSXCR+Q6sek8bf92,i=4096", b"v=AAAA"]
        )
        yield bytes((head,)) + _joined([b"r=$x,s=QSXCR+Q6sek8bf92,i=2000000000"])
        yield bytes((head,)) + _joined([b"e=unknown-user"])
    yield b"\x05" + _joined([b""])


def mutate(data: bytes, max_size: int, rng: random.Random, plainly: Mutate) -> bytes:
    tokens = list(_tokens(data[1:])) or [b""]
    at = rng.randrange(len(tokens))
    tokens[at] = with_words(tokens[at], _WORDS, rng)
    return data[:1] + _joined(tokens)
