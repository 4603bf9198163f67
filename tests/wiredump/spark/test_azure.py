"""Captures and tables in Azure Blob Storage."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.azurite import azurite
from tests.wiredump.spark.fake_session import FakeSession, session
from tests.wiredump.spark.remote_tables import check_captures_and_tables
from wiredump.storage import ChangedError, Location, StorageError

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
    check_captures_and_tables(
        session, lambda path: f"{uri}/{path}{query}", tmp_path, seed=80, tables=TABLES
    )


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
