"""Released clients run into rules: seen on the wire, and in what their own API makes of it."""

from typing import Any

from mockbroker import MockCluster
from tests.mockbroker.serving.test_real_clients import in_thread, sent
from tests.support.toolchain import require_module


async def test_kafka_python_asks_again_where_the_controller_is():
    kafka: Any = require_module("kafka")

    async with MockCluster(topics=["foo:2:3"], profile="kafka-3.9-zk", strict_faults=True) as mock:
        mock.fault(api=46, error="NOT_CONTROLLER", times=1)

        def ask() -> Any:
            admin = kafka.KafkaAdminClient(
                bootstrap_servers=mock.bootstrap, request_timeout_ms=10_000, client_id="admin"
            )
            try:
                return admin.list_partition_reassignments()
            finally:
                admin.close()

        assert await in_thread(ask) == {}
        assert sent(mock, 46) == [0, 0]
        said = mock.journal.select(api=46, direction="response")
        assert [each.decode().body.error_code for each in said] == [41, 0]
        assert [each.event for each in said] == ["fault: fault-1", ""]


async def test_librdkafka_takes_unknown_tags_in_pieces():
    confluent: Any = require_module("confluent_kafka.admin")

    async with MockCluster(topics=["foo:2:3"], strict_faults=True) as mock:
        rule = mock.fault(api=3, unknown_tags=["header", "body", "elements"], split=9)

        def ask() -> Any:
            client = confluent.AdminClient({"bootstrap.servers": mock.bootstrap})
            return client.list_topics(timeout=10).topics

        assert list(await in_thread(ask)) == ["foo"]
        assert rule.hits >= 1
