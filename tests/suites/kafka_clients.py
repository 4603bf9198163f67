"""Kafka's own integration tests of its Java clients, ``kafka-clients-integration-tests``."""

from tests.suites.kafka_tests import RELEASE, KafkaTests

__all__ = ["KafkaClients"]


class KafkaClients(KafkaTests):
    name = "kafka-clients"
    artifact = "kafka-clients-integration-tests"
    package = f"Maven org.apache.kafka:{artifact}:{RELEASE}:test"
    prefix = "org.apache.kafka.clients."
    quick = (
        "admin.DescribeProducersWithBrokerIdTest#testDescribeProducersFromFollower",
        "admin.ListOffsetsIntegrationTest#testListMaxTimestampWithEmptyLog",
        "consumer.PlaintextConsumerCallbackTest"
        "#testOnPartitionsAssignedCalledWithNewPartitionsOnlyForClassicCooperative",
        "consumer.PlaintextConsumerCommitTest#testAsyncConsumerAsyncCommit",
        "consumer.PlaintextConsumerFetchTest"
        "#testClassicConsumerFetchRecordLargerThanMaxPartitionFetchBytes",
    )
