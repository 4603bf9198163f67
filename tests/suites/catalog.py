"""Every suite, in the order in which ``make suites`` runs them."""

from collections.abc import Mapping
from typing import Final

from tests.suites.kafka_clients import KafkaClients
from tests.suites.kafka_connect import KafkaConnect, MirrorMaker
from tests.suites.kafka_go import KafkaGo
from tests.suites.kafka_python import KafkaPython
from tests.suites.kafka_streams import KafkaStreams
from tests.suites.kgo import Kgo
from tests.suites.librdkafka import Librdkafka
from tests.suites.model import Suite
from tests.suites.rdkafka import RustRdkafka
from tests.suites.sarama import Sarama

__all__ = ["SUITES"]

SUITES: Final[Mapping[str, Suite]] = {
    suite.name: suite
    for suite in (
        Kgo(),
        KafkaGo(),
        Sarama(),
        KafkaPython(),
        Librdkafka(),
        RustRdkafka(),
        KafkaClients(),
        KafkaStreams(),
        KafkaConnect(),
        MirrorMaker(),
    )
}
