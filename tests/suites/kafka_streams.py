"""Kafka Streams' own integration tests, ``kafka-streams-integration-tests``."""

from tests.suites.kafka_tests import RELEASE, KafkaTests

__all__ = ["KafkaStreams"]


class KafkaStreams(KafkaTests):
    name = "kafka-streams"
    artifact = "kafka-streams-integration-tests"
    package = f"Maven org.apache.kafka:{artifact}:{RELEASE}:test"
    prefix = "org.apache.kafka.streams.integration."
    test_seconds = 300
    classes_at_once = 3
    seconds = 7200.0
    quick = ("GlobalStateReprocessTest#shouldReprocessWithUserProvidedStore",)
