"""Captures and tables in HDFS."""

from __future__ import annotations

import random
from collections.abc import Iterator
from pathlib import Path

import msgspec
import pyarrow.dataset as ds
import pytest

from tests.support.hdfs import hdfs
from tests.wiredump.spark import made_up
from tests.wiredump.spark.fake_session import FakeSession, session
from tests.wiredump.spark.pipeline import single
from tests.wiredump.spark.rotating import cut_off, killed
from wiredump.rows.schema import TABLES as SCHEMA
from wiredump.spark.connections import Options
from wiredump.spark.job import Job
from wiredump.storage import ChangedError, Location, expand
from wiredump.tables.publishing import OutputError

__all__ = ["session"]

TABLES = ("connections", "requests", "topics")
STREAMED = ("lineage", "account", "connections", "batches", "topics", "fetches")
"""Few, because a client waits for half a second whenever it closes a file."""

pytestmark = [pytest.mark.slow, pytest.mark.java]


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    with hdfs(tmp_path_factory.mktemp("hdfs")) as uri:
        yield uri


def test_captures_and_tables(session: FakeSession, cluster: str, tmp_path: Path) -> None:
    paths = []
    for number in range(2):
        data = made_up.capture(60 + number, kind="pcapng", back=0.5, odd=0.2)
        path = tmp_path / f"{number}.pcapng"
        path.write_bytes(data)
        paths.append(str(path))
        place = Location(f"{cluster}/day/{number}.pcapng")
        place.parent.mkdir()
        place.write_bytes(data)
    expected = single(paths, tmp_path / "one", tables=TABLES)
    out = Location(f"{cluster}/lake/tables")
    options = Options(
        out=str(out), paths=dict(enumerate(expand(f"{cluster}/day/*.pcapng"))), run="r1",
        tables=TABLES,
    )  # fmt: skip
    made = Job(options=options, split_bytes=10_000, partitions=2).run(session)
    assert found(out) == expected
    assert made.connections > 0
    assert {each.name for each in out.iterdir()} == {*made.rows, "_SUCCESS", "_manifests"}

    options = msgspec.structs.replace(options, run="r2")
    how = {"split_bytes": 1 << 20, "partitions": 1, "partition_by": ("date", "api")}
    with pytest.raises(OutputError, match="is not empty"):
        Job(options=options, **how).run(session)
    Job(options=options, mode="overwrite", **how).run(session)
    assert list(out.glob("requests/run=r2/date=*/api=*/*.parquet"))
    assert found(out) == expected
    assert {each.name for each in (out / "requests").iterdir()} == {"run=r2"}


def found(out: Location) -> dict[str, list[str]]:
    """The rows of each table, with the columns that are names of folders."""
    return {
        name: sorted(
            repr(row)
            for row in ds.dataset((out / name).path, filesystem=out.filesystem, partitioning="hive")
            .to_table([each.name for each in SCHEMA[name].columns])
            .to_pylist()
        )
        for name in TABLES
    }


def test_a_stream_that_is_killed(
    session: FakeSession, cluster: str, tmp_path: Path, rng: random.Random
) -> None:
    """By kill -9 at any moment, and before any operation on a file: each row once."""
    killed(session, rng, tmp_path / "killed", Location(f"{cluster}/killed"), STREAMED)
    after, root = (rng.randint(1, 80),), Location(f"{cluster}/cut-off")
    cut_off(session, rng.randrange(1 << 32), after, tmp_path / "cut-off", root, STREAMED)


def test_what_does_not_exist(cluster: str) -> None:
    with pytest.raises(FileNotFoundError, match=r"'hdfs://.*/none'"):
        Location(f"{cluster}/none").open()
    with pytest.raises(FileNotFoundError, match=r"none/\*"):
        expand(f"{cluster}/none/*.pcap")


def test_a_changed_capture(cluster: str) -> None:
    place = Location(f"{cluster}/a.pcap")
    place.write_bytes(b"some")
    with place.open_ranged() as file:
        assert file.read_at(1, 2) == b"om"
        version = file.version
    place.unlink()
    place.write_bytes(b"other")
    with place.open_ranged() as file, pytest.raises(ChangedError, match="changed"):
        file.require(version)
