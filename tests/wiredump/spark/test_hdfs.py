"""Captures and tables in HDFS."""

from __future__ import annotations

import random
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.full import FULL
from tests.support.hdfs import hdfs
from tests.wiredump.spark.fake_session import FakeSession, session
from tests.wiredump.spark.remote_tables import check_captures_and_tables
from tests.wiredump.spark.rotating import FEW, cut_off, killed
from wiredump.storage import ChangedError, Location, expand

__all__ = ["session"]

TABLES = ("connections", "requests", "topics")

pytestmark = [pytest.mark.slow, pytest.mark.java]


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    with hdfs(tmp_path_factory.mktemp("hdfs")) as uri:
        yield uri


def test_captures_and_tables(session: FakeSession, cluster: str, tmp_path: Path) -> None:
    Location(f"{cluster}/day").mkdir()
    check_captures_and_tables(
        session, lambda path: f"{cluster}/{path}", tmp_path, seed=60, tables=TABLES
    )


def test_a_stream_that_is_killed(
    session: FakeSession, cluster: str, tmp_path: Path, rng: random.Random
) -> None:
    """By kill -9 at any moment and, in a full run, before any operation on a file, too."""
    killed(session, rng, tmp_path / "killed", Location(f"{cluster}/killed"), FEW)
    if FULL:
        after, root = (rng.randint(1, 80),), Location(f"{cluster}/cut-off")
        cut_off(session, rng.randrange(1 << 32), after, tmp_path / "cut-off", root, FEW)


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
