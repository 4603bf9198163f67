"""Integration tests of Kafka Connect, ``connect-runtime``, and MirrorMaker, ``connect-mirror``."""

from typing import Final

from tests.suites.kafka_tests import RELEASE, KafkaTests

__all__ = ["KafkaConnect", "MirrorMaker"]

WORKERS: Final = "each test starts workers, which look for plugins on the whole class path"


class KafkaConnect(KafkaTests):
    name = "kafka-connect"
    artifact = "connect-runtime"
    package = f"Maven org.apache.kafka:{artifact}:{RELEASE}:test"
    prefix = "org.apache.kafka.connect.integration."
    test_seconds = 300
    seconds = 7200.0
    only_whole = WORKERS


class MirrorMaker(KafkaTests):
    name = "mirror-maker"
    artifact = "connect-mirror"
    package = f"Maven org.apache.kafka:{artifact}:{RELEASE}:test"
    prefix = "org.apache.kafka.connect.mirror.integration."
    test_seconds = 300
    seconds = 7200.0
    only_whole = WORKERS
