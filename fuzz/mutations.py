"""Mutations that are independent of any format, for the guide ``none`` and for targets' own
mutations.

``Mutate`` is the type of the guide's own mutation, which a target's ``mutate`` receives: it takes
bytes and a maximum size, and returns bytes.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Final, TypeAlias

__all__ = ["TELLING", "Mutate", "plain", "telling", "with_words"]

Mutate: TypeAlias = Callable[[bytes, int], bytes]

TELLING: Final = (
    b"\x7f\xff\xff\xff", b"\xff\xff\xff\xff\x07", b"\xff\xff\xff\xff\x0f", b"\x80\x00",
    b"\xff\xff\xff\xff", b"\x80\x00\x00\x00", b"\x7f\xff", b"\xff\xff", b"\x80", b"\x00", b"\x01",
    b"\x02", b"\x7f", b"\xff", b"\xc3", b"\xed\xa0\x80", b"\xf4\x90\x80\x80",
    b"\xff" * 9 + b"\x01", b"\x80" * 5 + b"\x00", bytes(8), b"\x7f" + b"\xff" * 7,
    b"\x80" + bytes(7),
)  # fmt: skip
"""Lengths, counts, varints and UTF-8 at and beyond their limits."""


def plain(data: bytes, max_size: int, rng: random.Random) -> bytes:
    """Set, insert, delete or duplicate a few bytes."""
    out = bytearray(data)
    for _ in range(rng.choice((1, 1, 2, 4))):
        at = rng.randrange(len(out) + 1)
        end = min(len(out), at + rng.choice((1, 1, 2, 4, 8, 32)))
        match rng.randrange(5):
            case 0:
                out[at:end] = b""
            case 1:
                out[at:at] = rng.randbytes(rng.choice((1, 2, 4)))
            case 2:
                out[at:at] = out[at:end]
            case 3:
                out[at:end] = rng.randbytes(end - at)
            case _:
                out = bytearray(telling(bytes(out), rng))
    return bytes(out[:max_size])


def telling(data: bytes, rng: random.Random) -> bytes:
    """Write one of ``TELLING`` somewhere, over the existing bytes or before them."""
    word = rng.choice(TELLING)
    at = rng.randrange(len(data) + 1)
    return data[:at] + word + data[at + (len(word) if rng.random() < 0.7 else 0) :]


def with_words(data: bytes, words: tuple[bytes, ...], rng: random.Random) -> bytes:
    """Write a word of a text format somewhere, before the existing text or over as much of it."""
    word = rng.choice(words)
    at = rng.randrange(len(data) + 1)
    over = rng.choice((0, 0, len(word), rng.randrange(12)))
    return data[:at] + word + data[at + over :]
