"""Mutations that know no format: what the guide ``none`` does, and what targets mix into theirs.

``Mutate`` is what a target's ``mutate`` is given for the guide's own: bytes and the most there may
be of them, to bytes.
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
    """A few bytes set, put in, taken out, doubled."""
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
    """One of ``TELLING`` somewhere, over what was there or before it."""
    word = rng.choice(TELLING)
    at = rng.randrange(len(data) + 1)
    return data[:at] + word + data[at + (len(word) if rng.random() < 0.7 else 0) :]


def with_words(data: bytes, words: tuple[bytes, ...], rng: random.Random) -> bytes:
    """A word of a text format somewhere, before what was there or over as much of it."""
    word = rng.choice(words)
    at = rng.randrange(len(data) + 1)
    over = rng.choice((0, 0, len(word), rng.randrange(12)))
    return data[:at] + word + data[at + over :]
