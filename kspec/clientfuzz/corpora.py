"""Write corpora of valid and mutated frames for other fuzzers: libFuzzer, Go and Jazzer.

- ``libfuzzer``: a folder of raw files, each named by the SHA-1 of its bytes, as libFuzzer names its
  own, so that ``-merge=1`` and AFL accept it.
- ``go``: ``DIR/FuzzX/`` as under ``testdata/fuzz``: text files with a header line and one
  ``[]byte`` literal, for a target with one such parameter.
- ``jazzer``: raw files in a folder per message, named by their contents.

The same arguments give the same files.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Final, NamedTuple

from kproto import Dialect
from kproto.outputs import open_folder_output
from kspec.clientfuzz.bases import Direction, bases_of
from kspec.clientfuzz.frame_cases import case_of

__all__ = ["FORMATS", "Seed", "go_literal", "seeds", "write_seeds"]


class Seed(NamedTuple):
    """``data`` is a whole frame, size included. ``kind`` names a mutation or the values'
    pattern."""

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
    """Yield every valid frame of the APIs (by default all), then ``mutated`` mutated ones of each
    API."""
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


# ---- file formats --------------------------------------------------------------------------------


def go_literal(data: bytes) -> str:
    """Return a file of Go's corpus for a target with one ``[]byte``: an interpreted string
    literal."""
    inside = "".join(_GO[byte] for byte in data)
    return f'go test fuzz v1\n[]byte("{inside}")\n'


_GO: Final = [
    f"\\{chr(byte)}" if chr(byte) in '"\\'
    else chr(byte) if 0x20 <= byte < 0x7F
    else f"\\x{byte:02x}"
    for byte in range(256)
]  # fmt: skip


def _raw(seed: Seed) -> tuple[str, bytes]:
    return hashlib.sha1(seed.data, usedforsecurity=False).hexdigest(), seed.data


def _go(seed: Seed) -> tuple[str, bytes]:
    name = hashlib.sha256(seed.data).hexdigest()[:16]
    return f"Fuzz{seed.message}/{name}", go_literal(seed.data).encode("ascii")


def _jazzer(seed: Seed) -> tuple[str, bytes]:
    digest = hashlib.sha256(seed.data).hexdigest()[:12]
    return f"{seed.message}/v{seed.version}-{seed.kind}-{digest}", seed.data


FORMATS: Final[dict[str, Callable[[Seed], tuple[str, bytes]]]] = {
    "libfuzzer": _raw,
    "go": _go,
    "jazzer": _jazzer,
}
"""The name and the content of each seed's file, by format."""


def write_seeds(format_name: str, folder: Path, made: Iterator[Seed]) -> int:
    """Write all into ``folder``, equal bytes once, and return the number of files.

    The folder is created if necessary. Raises KeyError for an unknown format, and OutputError or
    OSError if it is not writable; then it is as before.
    """
    file_of = FORMATS[format_name]
    written: set[tuple[str, bytes]] = set()
    with open_folder_output(folder) as out:
        for seed in made:
            key = "" if format_name == "libfuzzer" else seed.message, seed.data
            if key not in written:
                written.add(key)
                out.write(*file_of(seed))
    return len(written)
