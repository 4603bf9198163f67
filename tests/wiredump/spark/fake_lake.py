"""A lake without Java: each table changes at once, a batch that a table has is not added again."""

from __future__ import annotations

import shutil
from collections.abc import Sequence
from pathlib import Path

from wiredump.spark.sinks import Files, Layout
from wiredump.storage import Location


class FakeLake:
    """Its tables are lists of files, with the run, the stream, and the number of the batch."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._tables: dict[str, list[tuple[str, str, int | None, Path]]] = {}
        self._copied = 0

    def sink(self, layout: Layout, out: str, run: str, stream: str = "") -> FakeSink:
        """Stands for ``sink_of``."""
        assert layout.form == "delta"
        return FakeSink(self, run, stream)

    def keep(self, file: Location) -> Path:
        """Copy a file that a task wrote, which no reader sees."""
        self._copied += 1
        place = self._folder / f"{self._copied}.parquet"
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_bytes(file.read_bytes())
        return place

    def commit(self, table: str, rows: list[tuple[str, str, int | None, Path]]) -> None:
        """Change a table."""
        self._tables[table] = rows

    def rows(self, table: str) -> list[tuple[str, str, int | None, Path]]:
        """The rows of a table, by files."""
        return self._tables.get(table, [])

    def copied(self, into: Path) -> Path:
        """Write all tables as folders of files."""
        shutil.rmtree(into, ignore_errors=True)
        for table, rows in self._tables.items():
            (into / table).mkdir(parents=True)
            for *_, file in rows:
                shutil.copy(file, into / table)
        return into


class FakeSink:
    """What a stream writes to."""

    def __init__(self, lake: FakeLake, run: str, stream: str) -> None:
        self._lake, self._run, self._stream = lake, run, stream

    def prepare(self, spark: object, tables: Sequence[str]) -> None:
        for table in tables:
            self._lake.commit(table, self._lake.rows(table))

    def write(self, spark: object, files: Files, batch: int | None = None) -> None:
        for table, sources in files.items():
            rows = self._lake.rows(table)
            if batch is None:
                rows = [each for each in rows if each[0] != self._run]
            elif any(
                each[1] == self._stream and each[2] is not None and each[2] >= batch
                for each in rows
            ):
                continue
            added = [(self._run, self._stream, batch, self._lake.keep(file)) for file in sources]
            self._lake.commit(table, [*rows, *added])

    def has_run(self, spark: object, tables: Sequence[str]) -> bool:
        return any(each[0] == self._run for table in tables for each in self._lake.rows(table))
