"""Many bodies, of any bytes, as columns: selected fields of one (message, version).

**Holds:** the C engine and Python return identical buffers, reject the same bodies with the same
errors, and stop at the same body if the rows exceed a limit. A rejected body leaves no row. At most
4000 bytes per byte of input are reserved.

**Accepted:** nothing: with ``collect``, invalid bodies are results too. LimitError is compared as a
result.

The input: the choice of message and version, a seed for the fields, the limit, then bodies with a
length byte each.
"""

from __future__ import annotations

import random
from collections.abc import Iterator
from functools import cache, partial
from typing import Any, Final

from fuzz import bounds, message_choice
from fuzz.mutations import Mutate, telling
from kproto.columns import MOST_BYTES, select
from kproto.errors import LimitError
from tests.columns.exploded import some_of
from tests.support import engines

__all__ = ["check", "mutate", "seeds"]

A_BYTE: Final = 4000
LIMITS: Final = (MOST_BYTES, 4, 20, 100, 1000)
AFTER_HEAD: Final = message_choice.HEAD + 2
MOST_SELECTIONS: Final = 32


@cache
def _selection(choice: message_choice.Choice, which: int) -> Any:
    paths = some_of(choice.schema, random.Random(which))
    with engines.running("native"):
        return select(choice.message, choice.version, paths) if paths else None


def check(data: bytes) -> None:
    head = data[:AFTER_HEAD].ljust(AFTER_HEAD, b"\0")
    selection = _selection(message_choice.choice_of(head), head[-2] % MOST_SELECTIONS)
    if selection is None:
        return
    bodies = tuple(_bodies(data[AFTER_HEAD:]))
    limit = LIMITS[head[-1] % len(LIMITS)]

    def extract(engine: Any) -> Any:
        try:
            return engine.read(bodies, limit, True)
        except LimitError as error:
            return str(error), error.index

    compiled, pure = extract(selection._compiled), extract(selection._pure)
    assert compiled == pure, (compiled, pure)
    for engine in (selection._compiled, selection._pure):
        bounds.allocating(partial(extract, engine), data, a_byte=A_BYTE)


def _bodies(data: bytes) -> Iterator[bytes]:
    at = 0
    while at < len(data):
        yield data[at + 1 : at + 1 + data[at]]
        at += 1 + data[at]


def seeds() -> Iterator[bytes]:
    """Yield bodies of a few messages: two valid ones of each and a truncated third."""
    for number, (choice, body) in enumerate(message_choice.of_vectors(31)):
        if 0 < len(body) < 200:
            head = message_choice.head_of(choice) + bytes((number % 32, number % 5))
            cut = body[: len(body) // 2]
            yield head + b"".join(bytes((len(each),)) + each for each in (body, cut, body))


def mutate(data: bytes, max_size: int, rng: random.Random, plainly: Mutate) -> bytes:
    """Change, duplicate or remove one body, or change the fields and the limit."""
    head, bodies = data[:AFTER_HEAD], list(_bodies(data[AFTER_HEAD:]))
    if not bodies or rng.random() < 0.2:
        return head[: message_choice.HEAD] + rng.randbytes(2) + data[AFTER_HEAD:]
    at = rng.randrange(len(bodies))
    match rng.randrange(4):
        case 0:
            bodies[at] = plainly(bodies[at], 255)
        case 1:
            bodies[at] = telling(bodies[at], rng)
        case 2:
            bodies.insert(at, rng.choice(bodies))
        case _:
            del bodies[at]
    return head + b"".join(bytes((len(body[:255]),)) + body[:255] for body in bodies)
