"""The asyncio connection against somebody else's broker: librdkafka's mock cluster.

It refuses ApiVersions v4 and up in a layout of no version, which negotiation has to survive, and
ends its flexible Metadata (v9 and up) in a byte too many, which a strict decoder refuses: hence
the versions asked for here.
"""

from collections.abc import Iterator
from typing import Any

import pytest

from kproto.client import Connection
from kproto.errors import UnsupportedVersionError
from kproto.messages import AlterPartitionReassignmentsRequest, MetadataRequest
from kproto.schema.versions import Versions
from tests.support.toolchain import require_module


@pytest.fixture(scope="module")
def mock_cluster() -> Iterator[tuple[str, int]]:
    confluent_kafka: Any = require_module("confluent_kafka")
    owner = confluent_kafka.Producer({"bootstrap.servers": "", "test.mock.num.brokers": 2})
    broker = next(iter(owner.list_topics(timeout=20).brokers.values()))
    yield broker.host, broker.port
    del owner


async def test_negotiate_and_ask_for_metadata(mock_cluster: tuple[str, int]) -> None:
    async with await Connection.open(*mock_cluster, timeout=20) as connection:
        assert connection.version_for(3) >= 8
        assert len((await connection.request(MetadataRequest(topics=[]), 8)).brokers) == 2
        with pytest.raises(UnsupportedVersionError, match="does not support ALTER_PARTITION_RE"):
            await connection.request(AlterPartitionReassignmentsRequest())


async def test_the_metadata_versions_before_flexible_ones(mock_cluster: tuple[str, int]) -> None:
    async with await Connection.open(*mock_cluster, timeout=20) as connection:
        assert connection.peer_versions is not None
        for version in connection.peer_versions[3].intersect(Versions(0, 8)):
            response = await connection.request(MetadataRequest(topics=[]), version)
            assert {broker.node_id for broker in response.brokers} == {1, 2}
