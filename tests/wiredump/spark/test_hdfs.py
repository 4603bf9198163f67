"""Captures and tables in HDFS."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from tests.support.hdfs import hdfs
from tests.wiredump.spark import made_up
from tests.wiredump.spark.fake_session import FakeSession, session
from tests.wiredump.spark.pipeline import single
from wiredump.spark.connections import Options
from wiredump.spark.job import Job
from wiredump.storage import ChangedError, Location, expand

__all__ = ["session"]

TABLES = ("connections", "requests", "topics")

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
    made = Job(options=options, split_bytes=3_000, partitions=2).run(session)
    for name in TABLES:
        rows = [
            repr({key: value for key, value in row.items() if key != "run"})
            for file in out.glob(f"{name}/run=r1/*.parquet")
            for row in pq.ParquetFile(file.open_input()).read().to_pylist()
        ]
        assert sorted(rows) == expected[name], name
    assert made.connections > 0
    assert {each.name for each in out.iterdir()} == {
        *made.rows, "_SUCCESS", "_manifests",
    }  # fmt: skip


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
