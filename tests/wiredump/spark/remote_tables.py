"""Captures and tables in a remote file system, through a whole job: what the tests of each file
system share."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

import msgspec
import pyarrow.dataset as ds
import pytest

from tests.wiredump.spark import made_up
from tests.wiredump.spark.fake_session import FakeSession
from tests.wiredump.spark.pipeline import single
from wiredump.rows.schema import TABLES as SCHEMA
from wiredump.spark.connections import Options
from wiredump.spark.job import Job
from wiredump.spark.sinks import Layout
from wiredump.storage import Location, expand
from wiredump.tables.publishing import OutputError

__all__ = ["check_captures_and_tables"]


def check_captures_and_tables(
    session: FakeSession, uri_of: Callable[[str], str], tmp_path: Path, seed: int,
    tables: Sequence[str],
) -> None:  # fmt: skip
    """Read two captures from ``day`` and write their tables to ``lake/tables``, in every mode.
    ``uri_of`` returns the URI of a path in the file system, where ``day`` exists."""
    paths = []
    for number in range(2):
        data = made_up.capture(seed + number, kind="pcapng", back=0.5, odd=0.2)
        path = tmp_path / f"{number}.pcapng"
        path.write_bytes(data)
        paths.append(str(path))
        Location(uri_of(f"day/{number}.pcapng")).write_bytes(data)
    expected = single(paths, tmp_path / "one", tables=tables)
    out = Location(uri_of("lake/tables"))
    options = Options(
        out=str(out), paths=dict(enumerate(expand(uri_of("day/*.pcapng")))), run="r1",
        tables=tuple(tables),
    )  # fmt: skip
    made = Job(options=options, split_bytes=10_000, partitions=2).run(session)
    assert len(options.paths) == 2
    assert _found(out, tables) == expected
    assert made.connections > 0
    assert {each.name for each in out.iterdir()} == {*made.rows, "_SUCCESS", "_manifests"}

    options = msgspec.structs.replace(options, run="r2")
    layout = Layout(partition_by=("date", "api"))
    how = {"split_bytes": 1 << 20, "partitions": 1, "layout": layout}
    with pytest.raises(OutputError, match="is not empty"):
        Job(options=options, **how).run(session)
    Job(options=options, mode="overwrite", **how).run(session)
    assert list(out.glob("requests/run=r2/date=*/api=*/*.parquet"))
    assert _found(out, tables) == expected
    assert {each.name for each in (out / "requests").iterdir()} == {"run=r2"}


def _found(out: Location, tables: Sequence[str]) -> dict[str, list[str]]:
    """Return the rows of each table, with the columns that are names of folders."""
    return {
        name: sorted(
            repr(row)
            for row in ds.dataset((out / name).path, filesystem=out.filesystem, partitioning="hive")
            .to_table([each.name for each in SCHEMA[name].columns])
            .to_pylist()
        )
        for name in tables
    }
