"""Corpora for other people's fuzzers: frames, good and damaged, as libFuzzer, Go and Jazzer read.

- ``libfuzzer``: a folder of raw files, each called by the SHA-1 of its bytes, as libFuzzer calls
  its own; so ``-merge=1`` and AFL take it as it is.
- ``go``: ``DIR/FuzzX/`` as it stands under ``testdata/fuzz``: text files of a header line and one
  ``[]byte`` literal, for a target that takes one.
- ``jazzer``: raw files, one folder a message, called by what is in them.

The same arguments give the same files. What is asked for and where it goes is the command's.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Final, NamedTuple

from kproto import Dialect
from kspec.clientfuzz.bases import Direction, bases_of
from kspec.clientfuzz.frame_cases import case_of

__all__ = ["FORMATS", "Seed", "go_literal", "seeds", "write_seeds"]


class Seed(NamedTuple):
    """``data`` is a whole frame, size included; ``kind`` of a mutation, or the values' pattern."""

    message: str
    version: int
    kind: str
    data: bytes


def seeds(
    dialect: Dialect,
    api_keys: Sequence[int],
    direction: Direction,
    *,
    seed: int = 0,
    mutated: int = 20,
    version: int | None = None,
) -> Iterator[Seed]:
    """Every good frame of the apis (of all, where none is named), then ``mutated`` damaged ones of
    each api."""
    for api_key in api_keys or sorted(dialect.apis):
        frames = bases_of(dialect, [api_key], direction, version)
        message = _name(dialect, api_key, direction)
        for base in frames:
            yield Seed(message, base.version, base.pattern, base.frame)
        for number in range(mutated):
            case = case_of(dialect, frames, seed, number)
            mutation = case.mutation
            yield Seed(message, case.base.version, mutation.kind, mutation.frame)


def _name(dialect: Dialect, api_key: int, direction: Direction) -> str:
    api = dialect.apis[api_key]
    return (api.request if direction == "request" else api.response).MESSAGE_NAME


# ---- how they are written ------------------------------------------------------------------------


def go_literal(data: bytes) -> str:
    """A file of Go's corpus for a target of one ``[]byte``: an interpreted string literal."""
    inside = "".join(_GO[byte] for byte in data)
    return f'go test fuzz v1\n[]byte("{inside}")\n'


_GO: Final = [
    f"\\{chr(byte)}" if chr(byte) in '"\\'
    else chr(byte) if 0x20 <= byte < 0x7F
    else f"\\x{byte:02x}"
    for byte in range(256)
]  # fmt: skip


def _raw(folder: Path, seed: Seed) -> None:
    (folder / hashlib.sha1(seed.data, usedforsecurity=False).hexdigest()).write_bytes(seed.data)


def _go(folder: Path, seed: Seed) -> None:
    place = folder / f"Fuzz{seed.message}"
    place.mkdir(exist_ok=True)
    name = hashlib.sha256(seed.data).hexdigest()[:16]
    (place / name).write_bytes(go_literal(seed.data).encode("ascii"))


def _jazzer(folder: Path, seed: Seed) -> None:
    place = folder / seed.message
    place.mkdir(exist_ok=True)
    digest = hashlib.sha256(seed.data).hexdigest()[:12]
    (place / f"v{seed.version}-{seed.kind}-{digest}").write_bytes(seed.data)


FORMATS: Final[dict[str, Callable[[Path, Seed], None]]] = {
    "libfuzzer": _raw,
    "go": _go,
    "jazzer": _jazzer,
}


def write_seeds(format_name: str, folder: Path, made: Iterator[Seed]) -> int:
    """Write all into ``folder``, which is made where it is not there; equal bytes once. Returns how
    many files it holds of these. Raises KeyError for a format that is none of FORMATS, OSError
    where it cannot be written."""
    write = FORMATS[format_name]
    folder.mkdir(parents=True, exist_ok=True)
    written: set[tuple[str, bytes]] = set()
    for seed in made:
        key = "" if format_name == "libfuzzer" else seed.message, seed.data
        if key not in written:
            written.add(key)
            write(folder, seed)
    return len(written)
