"""The tables through Spark are those of one process, whatever the size of parts."""

from __future__ import annotations

import asyncio
import random
from pathlib import Path

import msgspec
import pyarrow.parquet as pq
import pytest

from kproto.capture import JournalCapture
from kproto.journal import Entry
from kproto.messages import ApiVersionsRequest, MetadataRequest
from mockbroker import MockCluster
from tests.captures import damage
from tests.mockbroker.wire import connect
from tests.support.full import either
from tests.support.toolchain import require_module
from tests.wiredump.spark import made_up
from tests.wiredump.spark.pipeline import LOCAL, load, single
from wiredump.rows.schema import ON_REQUEST
from wiredump.spark.connections import Options
from wiredump.spark.job import Job, Made
from wiredump.tables.publishing import OutputError

pytestmark = [pytest.mark.slow, pytest.mark.java]


def through_spark(
    spark, paths: list[str], out: Path, split_bytes: int, tasks: int = 2, told: bool = False
) -> Made:
    tables = tuple(name for name in LOCAL if told or name not in ON_REQUEST)
    options = Options(out=str(out), paths=dict(enumerate(paths)), tables=tables)
    return Job(options=options, split_bytes=split_bytes, partitions=tasks).run(spark)


def compare(one: Path, other: Path) -> None:
    for names in (LOCAL, ("lineage", "account")):
        expected, found = load(one, names), load(other, names)
        for name, rows in expected.items():
            assert found[name] == rows, name


@pytest.fixture(scope="module")
def journal() -> list[Entry]:
    async def talk() -> list[Entry]:
        mock = MockCluster(brokers=3, topics=["foo:2:3"], clock="manual")
        async with mock:
            for _ in range(3):
                async with connect(mock) as wire:
                    hello = ApiVersionsRequest(
                        client_software_name="acc", client_software_version="1.2"
                    )
                    await wire.ask(hello, 3)
                    await wire.ask(MetadataRequest(topics=None), 12)
        return list(mock.journal)

    return asyncio.run(talk())


@pytest.mark.requirement("C-11")
@pytest.mark.parametrize("split_bytes", [3_000, 20_000, 10**8])
def test_one_torn_capture(spark, tmp_path: Path, split_bytes: int) -> None:
    path = tmp_path / "torn.pcap"
    path.write_bytes(made_up.capture(7, connections=5, exchanges=5, odd=0.0, kind="pcap"))
    single([str(path)], tmp_path / "one")
    made = through_spark(spark, [str(path)], tmp_path / "spark", split_bytes)
    compare(tmp_path / "one", tmp_path / "spark")
    assert made.account["payload"] == sum(
        made.account.get(name, 0) for name in ("frames", "retransmitted", "copies", "anomalies")
    )
    assert not (tmp_path / "spark" / "_staging").exists()
    assert (tmp_path / "spark" / "_SUCCESS").exists()


@pytest.mark.parametrize("share", [0.0, 0.2])
def test_parts_are_checked_first_as_of_large_captures(
    spark, tmp_path: Path, share: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Some captures have to be read once more, and fragments are to be joined."""
    monkeypatch.setattr("wiredump.spark.job._AT_ONCE", 0)
    paths = []
    for number in range(2):
        path = tmp_path / f"{number}.pcapng"
        path.write_bytes(made_up.capture(30 + number, share=share, kind="pcapng", back=0.5))
        paths.append(str(path))
    single(paths, tmp_path / "one")
    through_spark(spark, paths, tmp_path / "spark", 3_000)
    compare(tmp_path / "one", tmp_path / "spark")
    assert not (tmp_path / "spark" / "_staging").exists()


@pytest.mark.requirement("A-46", "C-11")
def test_several_captures_and_a_journal(spark, tmp_path: Path, journal) -> None:
    paths = []
    for number in range(2):
        path = tmp_path / f"{number}.pcapng"
        path.write_bytes(made_up.capture(20 + number, kind="pcapng", odd=0.3, back=0.5))
        paths.append(str(path))
    path = tmp_path / "mock.jsonl"
    path.write_text("".join(msgspec.json.encode(entry).decode() + "\n" for entry in journal))
    paths.append(str(path))
    single(paths, tmp_path / "one", told=True)
    made = through_spark(spark, paths, tmp_path / "spark", 10_000, told=True)
    compare(tmp_path / "one", tmp_path / "spark")
    assert made.connections > 3


def test_a_mock_clusters_traffic(spark, tmp_path: Path, journal) -> None:
    writer = JournalCapture()
    path = tmp_path / "mock.pcapng"
    path.write_bytes(writer.start() + b"".join(writer.add(entry) for entry in journal))
    single([str(path)], tmp_path / "one")
    through_spark(spark, [str(path)], tmp_path / "spark", 4_000)
    compare(tmp_path / "one", tmp_path / "spark")
    software = pq.read_table(tmp_path / "spark" / "connections")["software_name"].to_pylist()
    assert set(software) == {"acc"}


def test_groups_transactions_and_tls_of_a_real_kafka(spark, tmp_path: Path) -> None:
    """A compressed pcapng with its own secrets, which one task reads."""
    require_module("cryptography")
    paths = [str(Path(__file__).parents[1] / "questions" / "operations.pcapng.zst")]
    single(paths, tmp_path / "one")
    through_spark(spark, paths, tmp_path / "spark", 1 << 20)
    compare(tmp_path / "one", tmp_path / "spark")
    for name in ("groups", "transactions"):
        assert pq.read_table(tmp_path / "spark" / name).num_rows


def test_the_folder_has_to_be_empty(spark, tmp_path: Path) -> None:
    path = tmp_path / "a.pcap"
    path.write_bytes(made_up.capture(1))
    (tmp_path / "out").mkdir()
    (tmp_path / "out" / "theirs").touch()
    with pytest.raises(OutputError, match="is not empty"):
        through_spark(spark, [str(path)], tmp_path / "out", 1000)


def test_damaged_captures(spark, rng: random.Random, tmp_path: Path) -> None:
    """``wiredump spark`` accounts for every byte of what was cut, changed or lost."""
    capture = tmp_path / "damaged.pcap"
    for number in range(either(20, sampled=1)):
        folder = tmp_path / str(number)
        folder.mkdir()
        capture.write_bytes(damage.damaged(rng.choice([*damage.KINDS]), rng, 200))
        with damage.spark_kept(spark):
            outcomes = [damage.run(command, capture, folder) for command in ("table", "spark")]
        assert not any(outcome.failure or outcome.unaccounted for outcome in outcomes)
        assert outcomes[0].payload == outcomes[1].payload
        if outcomes[0].payload is not None:
            assert damage.rows(folder / "spark") == damage.rows(folder / "table")
