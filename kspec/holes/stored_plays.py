"""Plays of the right client, which a later search need not repeat.

They are files of the cache, by the hash of what decides a play: the sources of the client, the mock
and the runner, and what a case sets up and does. Expectations decide nothing.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from contextlib import suppress
from functools import cached_property
from pathlib import Path
from typing import Any, Final

import msgspec

import kproto
import kspec
import mockbroker
from kspec.holes.right_client import RightPlays
from kspec.model import CaseFile

__all__ = ["PlaysInFiles"]

_UNUSED: Final = (
    "adapters", "clientfuzz", "defects", "report", "vectors", "cli", "holes/reasons.py",
    "holes/search.py",
)  # fmt: skip
"""Folders and files of kspec without influence on a play of the right client."""
_MEMBERS: Final = ("profile", "cluster", "client", "others", "faults", "steps")


class PlaysInFiles:
    """Plays in files of a folder."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def find(self, case: CaseFile) -> RightPlays | None:
        try:
            return msgspec.msgpack.decode(self._path(case).read_bytes(), type=RightPlays)
        except (OSError, msgspec.DecodeError):  # there is none, or not a whole one
            return None

    def store(self, case: CaseFile, plays: RightPlays) -> None:
        with suppress(OSError):  # without a cache, every search plays
            self._folder.mkdir(parents=True, exist_ok=True)
            self._path(case).write_bytes(msgspec.msgpack.encode(plays))

    def _path(self, case: CaseFile) -> Path:
        played: list[Any] = [
            [getattr(variant.case, name) for name in _MEMBERS] for variant in case.variants
        ]
        content = msgspec.json.encode([case.id, played])
        digest = hashlib.sha256(self._sources + content).hexdigest()[:24]
        return self._folder / f"{digest}.plays"

    @cached_property
    def _sources(self) -> bytes:
        found = hashlib.sha256()
        for path in _source_files():
            found.update(path.read_bytes())
        return found.digest()


def _source_files() -> Iterator[Path]:
    for package in (kproto, mockbroker, kspec):
        root = Path(package.__path__[0])
        for path in sorted(root.rglob("*.py")):
            is_unused = package is kspec and path.relative_to(root).as_posix().startswith(_UNUSED)
            if not is_unused:
                yield path
