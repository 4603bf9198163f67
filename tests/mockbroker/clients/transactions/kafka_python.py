"""kafka-python."""

from __future__ import annotations

from typing import Any

import kafka

from tests.mockbroker.clients.transactions.words import COMMANDS, serve


class Commands:
    def __init__(self) -> None:
        self.bootstrap = ""
        self.producers: dict[str, Any] = {}
        self.consumers: dict[str, Any] = {}

    def connect(self, bootstrap: str) -> None:
        self.bootstrap = bootstrap

    def open(self, name: str, transactional_id: str, timeout_ms: str, *source: str) -> None:
        self.producers[name] = kafka.KafkaProducer(
            bootstrap_servers=self.bootstrap,
            transactional_id=transactional_id,
            transaction_timeout_ms=int(timeout_ms),
        )
        self.producers[name].init_transactions()
        if source:
            group, topic = source
            self.consumers[name] = self.consumer(group, "read_committed")
            self.consumers[name].subscribe([topic])

    def begin(self, name: str) -> None:
        self.producers[name].begin_transaction()

    def send(self, name: str, topic: str, *values: str) -> None:
        sent = [self.producers[name].send(topic, each.encode(), partition=0) for each in values]
        for each in sent:
            each.get(60)

    def move(self, name: str, target: str, last: str) -> None:
        consumer = self.consumers[name]
        self.send(name, target, *self.values(consumer, last))
        offsets = {
            each: kafka.OffsetAndMetadata(consumer.position(each), "", -1)
            for each in consumer.assignment()
        }
        self.producers[name].send_offsets_to_transaction(offsets, consumer.group_metadata())

    def commit(self, name: str) -> None:
        self.producers[name].commit_transaction()

    def abort(self, name: str) -> None:
        self.producers[name].abort_transaction()

    def close(self, name: str) -> None:
        self.producers.pop(name).close()
        self.consumers.pop(name).close()

    def read(self, topic: str, isolation_level: str, last: str) -> list[str]:
        consumer = self.consumer(None, isolation_level)
        consumer.assign([kafka.TopicPartition(topic, 0)])
        values = self.values(consumer, last)
        consumer.close()
        return values

    def consumer(self, group: str | None, isolation_level: str) -> Any:
        return kafka.KafkaConsumer(
            bootstrap_servers=self.bootstrap,
            group_id=group,
            auto_offset_reset="earliest",
            enable_auto_commit=False,
            isolation_level=isolation_level,
            metadata_max_age_ms=1000,
        )

    @staticmethod
    def values(consumer: Any, last: str) -> list[str]:
        values: list[str] = []
        while not values or values[-1] != last:
            for records in consumer.poll(timeout_ms=1000).values():
                values += [each.value.decode() for each in records]
        return values


if __name__ == "__main__":
    commands = Commands()
    serve({name: getattr(commands, name) for name in COMMANDS})
