"""Captures cut into rotated ones, and what one process makes of them."""

from __future__ import annotations

import os
import random
import shutil
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from tests.wiredump.spark.pipeline import Tables, load
from wiredump.rows.schema import TABLES
from wiredump.sources import open_sources
from wiredump.spark.connections import Options
from wiredump.spark.follow import Follow
from wiredump.tables.making import make_tables
from wiredump.tables.table_rows import TableRows

EVERY = tuple(TABLES)


def records(capture: bytes) -> tuple[bytes, list[bytes]]:
    """The header of a little-endian pcap, and its records."""
    found, at = [], 24
    while at < len(capture):
        end = at + 16 + int.from_bytes(capture[at + 8 : at + 12], "little")
        found.append(capture[at:end])
        at = end
    return capture[:24], found


def rotate(capture: bytes, cuts: Sequence[int], folder: Path, name: str = "r.pcap") -> list[Path]:
    """Files as ``tcpdump -C`` names them, cut behind so many records each."""
    folder.mkdir(parents=True, exist_ok=True)
    head, every = records(capture)
    ends = sorted({min(cut, len(every)) for cut in cuts} | {len(every)})
    paths = []
    for number, (start, end) in enumerate(zip([0, *ends], ends, strict=False)):
        path = folder / f"{name}{number or ''}"
        path.write_bytes(head + b"".join(every[start:end]))
        paths.append(path)
    return paths


def one_process(paths: Sequence[Path], folder: Path) -> Tables:
    """The tables of all of them, in this order."""
    shutil.rmtree(folder, ignore_errors=True)
    sources = open_sources([str(path) for path in paths], rotated=True)
    make_tables(sources, TableRows(), str(folder), EVERY)
    return load(folder, EVERY)


def follow(where: Path | str, root: Path, **changed: Any) -> Follow:
    """A stream whose tables and checkpoint are in ``root``."""
    about: dict[str, Any] = {
        "partitions": 2, "split_bytes": 1 << 20, "batch_bytes": 1 << 30,
        "options": Options(out=str(root / "out"), paths={}, tables=EVERY),
    }  # fmt: skip
    return Follow(where=str(where), checkpoint=str(root / "checkpoint"), **about | changed)


def never() -> bool:
    """Nobody waits."""
    return False


def difference(expected: Tables, folder: Path) -> dict[str, tuple[list[str], list[str]]]:
    """By table, what is only in the one, and what only in the other."""
    found = load(folder, EVERY)
    return {
        name: (sorted(set(rows) - set(found[name])), sorted(set(found[name]) - set(rows)))
        for name, rows in expected.items()
        if rows != found[name]
    }


class Killed(BaseException):
    """Stands for kill -9: nothing that cleans up may be relied upon."""


class Scissors:
    """Kills at the ``after``-th time that a file is moved or removed."""

    def __init__(self, monkeypatch: Any, after: int) -> None:
        self.left = after
        for name in ("replace", "unlink", "mkdir"):
            monkeypatch.setattr(os, name, self._cut(getattr(os, name)))

    def _cut(self, real: Any) -> Any:
        def cut(*arguments: Any, **named: Any) -> Any:
            self.left -= 1
            if self.left == 0:
                raise Killed
            return real(*arguments, **named)

        return cut


def some_cuts(rng: random.Random, count: int) -> list[int]:
    return [rng.randrange(1, max(2, count)) for _ in range(rng.randrange(6))]
