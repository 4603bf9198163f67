"""Random values, damaged bytes and wrong values for as long as asked, both engines on each.

    .venv/bin/python -m tests.native.burn --seconds 60 [--seed 7]

The first difference ends it with an AssertionError that names the message and the seed. Most use is
under sanitizers (``scripts/sanitize.py``), where a wrong read ends it too.
"""

import argparse
import random
import time
from typing import Any

from kproto.columns import MOST_BYTES, select
from kproto.reference.random_trees import random_tree
from tests.columns.exploded import some_of
from tests.native.printed_both import same_text
from tests.native.test_differential import RELEASED, Codecs, same_decoding, same_encoding
from tests.support import engines
from tests.support.instances import to_instance
from tests.support.shaken import shake

TELLING = (0, 1, 2, 0x7F, 0x80, 0xC2, 0xED, 0xF4, 0xFE, 0xFF)


def damage(data: bytes, rng: random.Random) -> bytes:
    changed = bytearray(data)
    for _ in range(rng.choice((1, 1, 2, 3))):
        at = rng.randrange(len(changed) + 1)
        kind = rng.randrange(4)
        byte = rng.choice((*TELLING, rng.randrange(256)))
        if kind == 0:
            del changed[at:]
        elif kind == 1:
            changed.insert(at, byte)
        elif at < len(changed):
            changed[at] = byte
    return bytes(changed)


def same_columns(
    cls: Any, version: int, paths: list[str], bodies: list[bytes], rng: random.Random
) -> None:
    if not paths:
        return
    selection = select(cls, version, paths)
    for limit in (MOST_BYTES, rng.choice((4, 20, 100, 1000))):
        arguments = tuple(bodies), limit, True
        assert selection._compiled.read(*arguments) == selection._pure.read(*arguments), (
            f"{cls.__name__} v{version}: {paths}"
        )


def burn(seconds: float, seed: int) -> int:
    """Returns how many inputs were tried."""
    tried, end = 0, time.monotonic() + seconds
    rng = random.Random(seed)
    pairs = [(schema, version) for schema in RELEASED for version in schema.valid_versions]
    with engines.running("native"):
        while time.monotonic() < end:
            schema, version = rng.choice(pairs)
            codecs = Codecs(schema, version)
            tree = random_tree(schema, version, rng, size=rng.choice((5, 40)), nan=True)
            message = to_instance(codecs.cls, tree, schema)
            data = codecs.native.encode(message)
            same_encoding(codecs, message)
            same_decoding(codecs, data)
            damaged = [damage(data, rng) for _ in range(10)]
            same_text(codecs.cls, version, data)
            for each in damaged:
                same_decoding(codecs, each)
                same_text(codecs.cls, version, each)
                same_encoding(codecs, shake(message, rng, rng.choice((1, 3))))
            same_columns(codecs.cls, version, some_of(schema, rng), [data, *damaged, data], rng)
            tried += 23
    return tried


def main() -> None:
    parser = argparse.ArgumentParser(description="Both engines on random inputs.")
    parser.add_argument("--seconds", type=float, default=10)
    parser.add_argument("--seed", type=int, default=random.randrange(2**32))
    arguments = parser.parse_args()
    print(f"burn: seed {arguments.seed}", flush=True)
    print(f"burn: {burn(arguments.seconds, arguments.seed)} inputs, no difference")


if __name__ == "__main__":
    main()
