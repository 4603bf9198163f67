"""Any text as fault rules, YAML or JSON.

**Holds:** ``read_faults`` returns rules or raises FaultError with a one-line text. Each rule
describes itself in one line, and its dict, which JSON can carry, parses to an equal rule. At most
2000 bytes per byte of input and one MiB (YAML's nodes) are reserved.

**Accepted:** FaultError from reading.

The input: JSON or YAML (1 byte), then the text.
"""

from __future__ import annotations

import json
import random
from collections.abc import Iterator
from typing import Any, Final

from fuzz import bounds
from fuzz.mutations import Mutate, with_words
from mockbroker.errors import FaultError
from mockbroker.faults import Fault, fault_of, read_faults

__all__ = ["check", "mutate", "seeds"]

A_BYTE: Final = 2000
BESIDES: Final = 1 << 20
_SOURCES: Final = ("rules.json", "rules.yaml", "")

_NAMES: Final = tuple(f"{name}: ".encode() for name in Fault.__struct_fields__)
_WORDS: Final = (
    *_NAMES, *(b'"%s":' % name[:-2] for name in _NAMES), b"- ", b"\n", b"\n  ", b"[", b"]", b"{",
    b"}", b"1", b"-1", b"45", b"NOT_CONTROLLER", b"500ms", b"true", b"null", b"~", b"1e999",
    b".nan", b".inf", b"0x10", b"0o7", b"2020-01-01", b"!!python/object:os", b"!!binary AAAA",
    b"!!set {a}", b"&a", b"*a", b"<<: ", b"? ", b"| \n", b"> \n", b"'", b'"', b"# ",
    b"%YAML 1.1\n---\n", b"...", b"\t", b"\\ud800", b"\\x00", b"\xff", b"\xc2\x85",
    b"\xe2\x80\xa8", b"[" * 1500, b"99999999999999999999", b"1:30", b"yes", b"=",
    b"!!timestamp 1", b"!!int 0b", b"0b_", b"_1_",
)  # fmt: skip


def check(data: bytes) -> None:
    source = _SOURCES[(data[0] if data else 0) % len(_SOURCES)]
    text = data[1:].decode("utf-8", "replace")

    def read() -> Any:
        try:
            return read_faults(text, source=source)
        except FaultError as error:
            assert "\n" not in str(error), str(error)
            return []

    for fault in bounds.allocating(read, data, a_byte=A_BYTE, besides=BESIDES):
        assert "\n" not in fault.describe(), fault.describe()
        document = fault.to_dict()
        assert fault_of(document) == fault, (document, fault)
        assert fault_of(json.loads(json.dumps(document))) == fault


def seeds() -> Iterator[bytes]:
    yield b"\x00" + b'{"faults": [{"name": "a", "api": 45, "error": "NOT_CONTROLLER", "times": 1}]}'
    yield (
        b"\x00"
        + b'[{"api": "Metadata", "delay": "500ms", "probability": 0.5}, {"disconnect": true}]'
    )
    yield b"\x01" + b"faults:\n  - name: moved\n    api: 46\n    error: 41\n    times: 1\n"
    yield b"\x01" + b"- api: [Metadata, 45]\n  broker: 1\n  versions: 0-3\n  raw: 00000000\n"
    yield (
        b"\x02"
        + b"api: ListPartitionReassignments\ntopic: foo\npartition: 0\nsteps_before: [failover 2]\n"
    )


def mutate(data: bytes, max_size: int, rng: random.Random, plainly: Mutate) -> bytes:
    return data[:1] + with_words(data[1:], _WORDS, rng)
