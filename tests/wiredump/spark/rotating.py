"""Captures cut into rotated ones, and what one process makes of them."""

from __future__ import annotations

import os
import random
import shutil
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from tests.wiredump.spark import made_up
from tests.wiredump.spark.fake_lake import FakeLake
from tests.wiredump.spark.fake_session import FakeSession
from tests.wiredump.spark.fake_streams import run_query
from tests.wiredump.spark.pipeline import Tables, load
from wiredump.rows.schema import TABLES
from wiredump.sources import open_sources
from wiredump.spark.connections import Options
from wiredump.spark.stream_folder import StreamFolder
from wiredump.spark.streaming import Stream
from wiredump.storage import Location
from wiredump.tables.making import Made, make_tables
from wiredump.tables.table_rows import TableRows

EVERY = tuple(TABLES)
FEW = ("lineage", "account", "connections", "batches", "topics", "fetches")
"""Of each kind one, for file systems that are slow."""
ROOT = Path(__file__).parents[3]


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


def one_process(paths: Sequence[Path], folder: Path, tables: tuple[str, ...] = EVERY) -> Tables:
    """The tables of all of them, in this order."""
    shutil.rmtree(folder, ignore_errors=True)
    sources = open_sources([str(path) for path in paths], rotated=True)
    make_tables(sources, TableRows(tables=tables), str(folder), tables)
    return load(folder, tables)


def follow(
    where: Path | Location | str,
    root: Path | Location,
    tables: tuple[str, ...] = EVERY,
    **changed: Any,
) -> Stream:
    """A stream whose tables and checkpoint are in ``root``."""
    about: dict[str, Any] = {
        "partitions": 2, "split_bytes": 1 << 20,
        "options": Options(out=str(root / "out"), paths={}, tables=tables),
    }  # fmt: skip
    return Stream(where=str(where), checkpoint=str(root / "checkpoint"), **about | changed)


def so_far(session: FakeSession, stream: Stream) -> Made:
    """Read the files that are complete; the tables as of now."""
    run_query(session, stream, available_now=True)
    return stream.complete(session, ending=False)


def to_the_end(session: FakeSession, stream: Stream) -> Made:
    """Read all files, and close what is open."""
    stream.closed = True
    run_query(session, stream, available_now=True)
    return stream.complete(session, ending=True)


def copied(folder: Location, into: Path) -> Path:
    """All files of a folder, on the local file system."""
    shutil.rmtree(into, ignore_errors=True)
    for file in folder.files():
        target = into / str(file.path).removeprefix(folder.path).lstrip("/")
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_bytes(file.read_bytes())
    return into


def killed(
    session: FakeSession,
    rng: random.Random,
    folder: Path,
    root: Location,
    tables: tuple[str, ...] = EVERY,
) -> None:
    """Follow in a process of its own (``killed_stream``), kill -9 it in the midst of a batch, and
    another; then follow to the end. The tables, in ``root``, have each row once."""
    capture = made_up.capture(21, connections=8, exchanges=8, kind="pcap")
    files = rotate(capture, [40, 70, 100], folder / "in")
    store, done = StreamFolder(str(root / "checkpoint" / "wiredump")), 0
    command = [sys.executable, "-m", "tests.wiredump.spark.killed_stream"]
    for _ in range(2):
        with subprocess.Popen(
            [*command, str(folder / "in"), str(root), *tables], cwd=ROOT, stderr=subprocess.PIPE
        ) as running:
            until = time.monotonic() + 240
            while store.batches == done:
                assert running.poll() is None, running.stderr and running.stderr.read()
                assert time.monotonic() < until, "no batch was committed"
                time.sleep(0.01)
            # Any moment of the next batch may be the last, but not the end, which is batches away.
            time.sleep(rng.random() / 20)
            running.kill()
        done = store.batches
    assert not (root / "out" / "_SUCCESS").exists()
    made = to_the_end(session, follow(folder / "in", root, tables, max_files=1))
    expected = one_process(files, folder / "one", tables)
    assert difference(expected, copied(root / "out", folder / "out")) == {}
    assert made.rows == {name: len(rows) for name, rows in expected.items()}


def cut_off(
    session: FakeSession,
    seed: int,
    after: Sequence[int],
    folder: Path,
    root: Location,
    tables: tuple[str, ...] = EVERY,
    lake: FakeLake | None = None,
    **how: Any,
) -> None:
    """Follow, killed after so many operations on files, and again; then to the end."""
    rng = random.Random(seed)
    capture = made_up.capture(seed, connections=4, exchanges=6, kind="pcap")
    files = rotate(capture, some_cuts(rng, len(records(capture)[1])), folder / "in")
    for each in after:
        with pytest.MonkeyPatch.context() as patch:
            scissors = Scissors(patch, each)
            try:
                to_the_end(session, follow(folder / "in", root, tables, max_files=1, **how))
            except Killed:
                assert scissors.left == 0
    to_the_end(session, follow(folder / "in", root, tables, max_bytes=30_000, **how))
    target = folder / "out"
    out = copied(root / "out", target) if lake is None else lake.copied(target)
    assert difference(one_process(files, folder / "one", tables), out) == {}
    assert lake is not None or (out / "_SUCCESS").exists()


def difference(expected: Tables, folder: Path) -> dict[str, tuple[list[str], list[str]]]:
    """By table, what is only in the one, and what only in the other."""
    found = load(folder, tuple(expected))
    return {
        name: (sorted(set(rows) - set(found[name])), sorted(set(found[name]) - set(rows)))
        for name, rows in expected.items()
        if rows != found[name]
    }


_CUT = (
    (os, ("replace", "mkdir")),
    (Location, ("publish", "unlink", "remove", "create")),
    (FakeLake, ("commit",)),
)


class Killed(BaseException):
    """Stands for kill -9: nothing that cleans up may be relied upon."""


class Scissors:
    """Kills at the ``after``-th time that a file is moved, made or removed, or that a table of a
    lake changes: before that or, half of the time, behind it."""

    def __init__(self, monkeypatch: Any, after: int) -> None:
        self.left, self._behind = after, after % 2 == 0
        for owner, names in _CUT:
            for name in names:
                monkeypatch.setattr(owner, name, self._cut(getattr(owner, name)))

    def _cut(self, real: Any) -> Any:
        def cut(*arguments: Any, **named: Any) -> Any:
            if self.left > 0:
                self.left -= 1
                if self.left == 0:
                    if self._behind:
                        real(*arguments, **named)
                    raise Killed
            return real(*arguments, **named)

        return cut


def some_cuts(rng: random.Random, count: int) -> list[int]:
    return [rng.randrange(1, max(2, count)) for _ in range(rng.randrange(6))]
