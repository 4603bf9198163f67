"""confluent-kafka (librdkafka)."""

from __future__ import annotations

from typing import Any

import confluent_kafka as kafka

from tests.mockbroker.clients.transactions.words import COMMANDS, serve

PATIENCE = 60.0


class Commands:
    def __init__(self) -> None:
        self.bootstrap = ""
        self.producers: dict[str, Any] = {}
        self.consumers: dict[str, Any] = {}

    def connect(self, bootstrap: str) -> None:
        self.bootstrap = bootstrap

    def open(self, name: str, transactional_id: str, timeout_ms: str, *source: str) -> None:
        producer = kafka.Producer(
            {
                "bootstrap.servers": self.bootstrap,
                "transactional.id": transactional_id,
                "transaction.timeout.ms": int(timeout_ms),
                "linger.ms": 0,
                "log_level": 0,
            }
        )
        producer.init_transactions(PATIENCE)
        self.producers[name] = producer
        if source:
            group, topic = source
            self.consumers[name] = self.consumer(group, "read_committed")
            self.consumers[name].subscribe([topic])

    def begin(self, name: str) -> None:
        self.producers[name].begin_transaction()

    def send(self, name: str, topic: str, *values: str) -> None:
        for value in values:
            self.producers[name].produce(topic, value, partition=0)
        assert self.producers[name].flush(PATIENCE) == 0

    def move(self, name: str, target: str, last: str) -> None:
        consumer = self.consumers[name]
        self.send(name, target, *self.values(consumer, last))
        offsets = consumer.position(consumer.assignment())
        self.producers[name].send_offsets_to_transaction(
            offsets, consumer.consumer_group_metadata(), PATIENCE
        )

    def commit(self, name: str) -> None:
        self.producers[name].commit_transaction(PATIENCE)

    def abort(self, name: str) -> None:
        self.producers[name].abort_transaction(PATIENCE)

    def close(self, name: str) -> None:
        del self.producers[name]
        self.consumers.pop(name).close()

    def read(self, topic: str, isolation_level: str, last: str) -> list[str]:
        consumer = self.consumer("unused", isolation_level)
        consumer.assign([kafka.TopicPartition(topic, 0, kafka.OFFSET_BEGINNING)])
        values = self.values(consumer, last)
        consumer.close()
        return values

    def consumer(self, group: str, isolation_level: str) -> Any:
        return kafka.Consumer(
            {
                "bootstrap.servers": self.bootstrap,
                "group.id": group,
                "auto.offset.reset": "earliest",
                "enable.auto.commit": False,
                "isolation.level": isolation_level,
                "log_level": 0,
            }
        )

    @staticmethod
    def values(consumer: Any, last: str) -> list[str]:
        values: list[str] = []
        while not values or values[-1] != last:
            message = consumer.poll(1.0)
            if message is not None:
                assert message.error() is None, message.error()
                values.append(message.value().decode())
        return values


if __name__ == "__main__":
    commands = Commands()
    serve({name: getattr(commands, name) for name in COMMANDS})
