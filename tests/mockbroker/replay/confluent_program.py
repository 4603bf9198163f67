"""A producer and a consumer of confluent-kafka, for several topics: ``BOOTSTRAP TOPIC:COUNT...``.

A process of its own, because an answer about another topic may abort it. Prints as JSON what was
delivered (topic, partition, offset) and what was consumed (with the timestamp as well).
"""

import json
import sys
import time
from typing import Any

from confluent_kafka import Consumer, KafkaError, Message, Producer, TopicPartition

SECONDS = 8.0


def main() -> None:
    bootstrap, *topics = sys.argv[1:]
    wanted = []
    for each in topics:
        name, count = each.rsplit(":", 1)
        wanted += [TopicPartition(name, number, 0) for number in range(int(count))]
    common = {"bootstrap.servers": bootstrap, "client.id": "again", "log_level": 0}
    print(json.dumps({"delivered": produced(common, wanted), "consumed": consumed(common, wanted)}))


def produced(common: dict[str, Any], wanted: list[TopicPartition]) -> list[Any]:
    delivered: list[Any] = []

    def done(error: KafkaError | None, message: Message) -> None:
        place = [message.topic(), message.partition()]
        delivered.append([*place, message.offset() if error is None else error.name()])

    producer = Producer({**common, "linger.ms": 5, "message.timeout.ms": int(SECONDS * 1000)})
    for each in wanted:
        producer.produce(each.topic, b"again", partition=each.partition, on_delivery=done)
    producer.flush(SECONDS)
    return delivered


def consumed(common: dict[str, Any], wanted: list[TopicPartition]) -> list[Any]:
    consumer = Consumer({**common, "group.id": "again", "fetch.wait.max.ms": 50})
    consumer.assign(wanted)
    found: list[Any] = []
    reached: set[tuple[str, int]] = set()
    until = time.monotonic() + SECONDS
    while time.monotonic() < until and len(reached) < len(wanted):
        for message in consumer.consume(500, 0.3):
            place = (message.topic(), message.partition())
            if message.error() is None:
                found.append([*place, message.offset(), message.timestamp()[1]])
                reached.add(place)
    consumer.close()
    return found


if __name__ == "__main__":
    main()
