"""segmentio's kafka-go, whose oldest parts speak the first versions of each request."""

from tests.suites.golang import GoSuite
from tests.suites.model import ClusterNeeds, Run

__all__ = ["KafkaGo"]


class KafkaGo(GoSuite):
    name = "kafka-go"
    module = "github.com/segmentio/kafka-go"
    version = "v0.4.51"
    package = f"Go {module}@{version}"
    packages = (".", "topics", "compress")
    build_flags = ("-mod=mod",)
    # The tests connect to this address and expect it in metadata.
    private_network = True
    needs = ClusterNeeds(
        port=9092,
        advertised=("localhost", 9092),
        authorizer=True,
        configs={
            "message.max.bytes": "200000000",
            # Kafka's default, in which some tests create the topic of a group that has joined.
            "group.initial.rebalance.delay.ms": "3000",
        },
    )
    program_seconds = 900.0
    quick = (
        "TestClientAlterConfigs", "TestClientDescribeACLs", "TestClientFetchCompressed",
        "TestClientListOffsets", "TestClientMetadata", "TestClientProduceCompressed",
        "TestClientRawProduceCompressed", "TestConn", "TestReader",
    )  # fmt: skip
    split = ("TestReaderConsumerGroup", "TestWriter")

    def environment(self, run: Run) -> dict[str, str]:
        # The module's own CI leaves out net/http's tests of connections, too: they need a broker
        # that forgets no write when a deadline passes.
        return {"KAFKA_VERSION": run.target.version, "KAFKA_SKIP_NETTEST": "1"}
