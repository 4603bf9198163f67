"""Real captures damaged at random: no command raises, every byte is accounted for, and whoever
reads them, in C, in Python or on Spark, makes the same tables."""

import random
import shutil
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from tests.captures.damage import COMMANDS, KINDS, damaged, rows, run
from tests.captures.test_captures import uncompressed
from tests.captures.worse import HEADER, RECORD, records_of
from tests.support.full import either, quickly_drawn
from tests.wiredump.spark.pipeline import pipeline, single
from wiredump import native

QUICK = [command for command in COMMANDS if command != "spark"]


def check(capture: Path, folder: Path, commands: list[str]) -> None:
    payloads = set()
    for command in commands:
        outcome = run(command, capture, folder)
        assert not outcome.failure, f"{command}: {outcome.failure}"
        assert outcome.unaccounted == 0, command
        if outcome.payload is not None:
            payloads.add(outcome.payload)
    assert len(payloads) <= 1


@pytest.mark.slow
@pytest.mark.parametrize("kind", quickly_drawn("damage", [*KINDS], 1))
def test_every_command(kind: str, rng: random.Random, tmp_path: Path) -> None:
    for number in range(either(40, sampled=1)):
        folder = tmp_path / str(number)
        folder.mkdir()
        capture = folder / "damaged.pcap"
        capture.write_bytes(damaged(kind, rng, either(600, sampled=200)))
        check(capture, folder, QUICK)
        pure = folder / "pure"
        pure.mkdir()
        with native.using(None):
            check(capture, pure, ["table"])
        assert ((folder / "table").exists()) == ((pure / "table").exists())
        if (pure / "table").exists():
            assert rows(folder / "table") == rows(pure / "table")


def snapped(name: str, length: int) -> bytes:
    """As ``editcap -s`` writes it."""
    capture = uncompressed(name)
    kept = [record[: RECORD + length] for record in records_of(capture)]
    return capture[:HEADER] + b"".join(
        record[:8] + (len(record) - RECORD).to_bytes(4, "little") + record[12:] for record in kept
    )


@pytest.mark.slow
@pytest.mark.parametrize("length", [96, 128, 200, 320])
def test_a_response_that_ends_inside_a_range(length: int, tmp_path: Path) -> None:
    """ApiVersions responses cut in the midst of an api key and its two versions."""
    capture = tmp_path / "snapped.pcap"
    capture.write_bytes(snapped("kafka-4.4.0-admin", length))
    check(capture, tmp_path, ["table", "audit", "report"])
    offers = rows(tmp_path / "table")["negotiations"]
    assert all("'lowest': None" not in row and "'highest': None" not in row for row in offers)


@pytest.mark.slow
def test_a_response_that_comes_decades_later(tmp_path: Path) -> None:
    """A packet with a wrong time: latencies of more nanoseconds than a double holds exactly."""
    capture = uncompressed("kafka-4.4.0-admin")
    records = records_of(capture)
    early = b"".join(
        bytes(8) + each[8:] if number % 9 == 0 else each for number, each in enumerate(records)
    )
    path = tmp_path / "early.pcap"
    path.write_bytes(capture[:HEADER] + early)
    check(path, tmp_path, ["table", "report"])
    assert any(
        (latency or 0) > 2**53
        for file in (tmp_path / "table" / "requests").rglob("*.parquet")
        for latency in pq.read_table(file)["latency_ns"].to_pylist()
    )


@pytest.mark.slow
@pytest.mark.parametrize("kind", KINDS)
def test_stages_of_the_spark_job(kind: str, rng: random.Random, tmp_path: Path) -> None:
    """In this process; ``tests/wiredump/spark/test_tables.py`` has Spark itself."""
    capture = tmp_path / "damaged.pcap"
    for _ in range(either(40, sampled=1)):
        capture.write_bytes(damaged(kind, rng, either(600, sampled=200)))
        expected = single([str(capture)], tmp_path / "single")
        made, _, _ = pipeline([str(capture)], tmp_path / "stages", split_bytes=20_000, tasks=2)
        assert made == expected
        shutil.rmtree(tmp_path / "single")
