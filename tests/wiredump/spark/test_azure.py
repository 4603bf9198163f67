"""Captures and tables in Azure Blob Storage."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import msgspec
import pyarrow.dataset as ds
import pytest

from tests.support.azurite import azurite
from tests.wiredump.spark import made_up
from tests.wiredump.spark.fake_session import FakeSession, session
from tests.wiredump.spark.pipeline import single
from wiredump.rows.schema import TABLES as SCHEMA
from wiredump.spark.connections import Options
from wiredump.spark.job import Job
from wiredump.storage import ChangedError, Location, StorageError, expand
from wiredump.tables.publishing import OutputError

__all__ = ["session"]

TABLES = ("connections", "requests", "topics")

pytestmark = [pytest.mark.slow, pytest.mark.node]


@pytest.fixture(scope="module")
def container(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[str, str]]:
    with azurite(tmp_path_factory.mktemp("azurite")) as found:
        yield found


def test_captures_and_tables(
    session: FakeSession, container: tuple[str, str], tmp_path: Path
) -> None:
    uri, query = container
    paths = []
    for number in range(2):
        data = made_up.capture(80 + number, kind="pcapng", back=0.5, odd=0.2)
        path = tmp_path / f"{number}.pcapng"
        path.write_bytes(data)
        paths.append(str(path))
        Location(f"{uri}/day/{number}.pcapng{query}").write_bytes(data)
    expected = single(paths, tmp_path / "one", tables=TABLES)
    out = Location(f"{uri}/lake/tables{query}")
    options = Options(
        out=str(out), paths=dict(enumerate(expand(f"{uri}/day/*.pcapng{query}"))), run="r1",
        tables=TABLES,
    )  # fmt: skip
    made = Job(options=options, split_bytes=10_000, partitions=2).run(session)
    assert len(options.paths) == 2
    assert found(out) == expected
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


def test_what_does_not_exist(container: tuple[str, str]) -> None:
    uri, query = container
    with pytest.raises(FileNotFoundError, match=r"captures/none'"):
        Location(f"{uri}/none{query}").open()
    with pytest.raises(StorageError, match=r"captures2/a\.pcap: there is no such bucket or cont"):
        Location(f"{uri}2/a.pcap{query}").open()


def test_a_changed_capture(container: tuple[str, str]) -> None:
    uri, query = container
    place = Location(f"{uri}/a.pcap{query}")
    place.write_bytes(b"some")
    with place.open_ranged() as file:
        assert file.read_at(1, 2) == b"om"
        version = file.version
    place.write_bytes(b"other")
    with place.open_ranged() as file, pytest.raises(ChangedError, match="changed"):
        file.require(version)
