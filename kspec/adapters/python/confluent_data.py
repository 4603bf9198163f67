"""Drive confluent-kafka's ``Producer`` and ``Consumer``."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar, Final

from confluent_kafka import (
    TIMESTAMP_NOT_AVAILABLE,
    Consumer,
    KafkaException,
    Producer,
    TopicPartition,
)

from kspec.adapters.python.confluent_errors import described
from kspec.adapters.python.data_clients import DataClients
from kspec.adapters.python.lines import DONE, Raised, Returned, client_call
from kspec.adapters.python.values import (
    PENDING,
    bytes_of,
    given_headers,
    header_texts,
    key_of,
    partition_of,
    text_of,
)

__all__ = ["OPTIONS", "ConfluentDataClients"]

OPTIONS: Final = {
    "request.timeout.ms of Producer": "timeout_ms",
    "timeout of calls about transactions": "three times timeout_ms",
    "enable.auto.commit of Consumer": "False, but with auto_commit_ms",
    "group.id of Consumer": "kspec, where the case has none: it is required",
}
_ASSIGNORS: Final = "partition.assignment.strategy"
_PLACE: Final = ("topic", "partition", "offset")


class ConfluentDataClients(DataClients):
    """The outcomes of records come by callback, and lists of partitions carry offsets."""

    producer_options: ClassVar[Mapping[str, str]] = {
        "acks": "acks",
        "idempotence": "enable.idempotence",
        "compression": "compression.type",
        "linger_ms": "linger.ms",
        "batch_bytes": "batch.size",
        "max_in_flight": "max.in.flight",
        "delivery_timeout_ms": "delivery.timeout.ms",
        "transactional_id": "transactional.id",
        "transaction_timeout_ms": "transaction.timeout.ms",
        "metadata_age_ms": "topic.metadata.refresh.interval.ms",
        "partitioner": "partitioner",
    }
    ignored_options = ()
    producer_values: ClassVar[Mapping[str, Mapping[Any, Any]]] = {
        "partitioner": {"murmur2": "murmur2_random"}
    }
    consumer_options: ClassVar[Mapping[str, str]] = {
        "group": "group.id",
        "offset_reset": "auto.offset.reset",
        "isolation": "isolation.level",
        "max_wait_ms": "fetch.wait.max.ms",
        "partition_max_bytes": "max.partition.fetch.bytes",
        "rack": "client.rack",
        "protocol": "group.protocol",
        "instance_id": "group.instance.id",
        "session_timeout_ms": "session.timeout.ms",
        "heartbeat_ms": "heartbeat.interval.ms",
        "metadata_age_ms": "topic.metadata.refresh.interval.ms",
        "max_poll_ms": "max.poll.interval.ms",
        "assignors": _ASSIGNORS,
        "remote_assignor": "group.remote.assignor",
        "auto_commit_ms": "auto.commit.interval.ms",
    }
    consumer_values: ClassVar[Mapping[str, Mapping[Any, Any]]] = {
        "offset_reset": {"none": "error", "earliest": "earliest", "latest": "latest"},
        "assignors": {name: name for name in ("range", "roundrobin", "cooperative-sticky")},
    }
    partition_type = TopicPartition

    def __init__(self, options: Mapping[str, Any], call: Mapping[str, Any]) -> None:
        super().__init__(options, call)
        self.transaction_limit = (3 * self.timeout_ms / 1000,)

    def new_producer(self, options: dict[str, Any]) -> Producer:
        return Producer({**self.options, "request.timeout.ms": self.timeout_ms, **options})

    def consumer_settings(self) -> dict[str, Any]:
        return {"group": "kspec", **self.for_consumer}

    def new_consumer(self, options: dict[str, Any]) -> Consumer:
        if _ASSIGNORS in options:
            options[_ASSIGNORS] = ",".join(options[_ASSIGNORS])
        automatic = {"enable.auto.commit": self.commits_by_itself}
        return Consumer({**self.options, **automatic, **options})

    def abandon(self, producer: Any, consumer: Any) -> None:
        if producer is not None:
            producer.purge()
            producer.flush(0.1)
        if consumer is not None:
            consumer.close()

    def send_record(self, producer: Producer, record: Mapping[str, Any]) -> list[Any]:
        """The callback puts the outcome into the list. Without a partition the client chooses."""
        delivered: list[Any] = []

        def on_delivery(error: Any, message: Any) -> None:
            delivered.append(_place(message) if error is None else Raised(error))

        partition = record.get("partition")
        producer.produce(
            record["topic"],
            value=bytes_of(record.get("value")),
            key=bytes_of(record.get("key")),
            on_delivery=on_delivery,
            **({} if partition is None else {"partition": partition}),
            **given_headers(record),
        )
        return delivered

    def outcome(self, future: list[Any], seconds: float) -> Any:
        with client_call():
            self.producer.flush(max(seconds, 0))
        return future[0] if future else PENDING

    def described(self, error: Any) -> dict[str, Any]:
        return described(error)

    def send_offsets(self, call: dict[str, Any]) -> Returned:
        producer, consumer = self.producer, self.consumer
        offsets = self.offsets(call["offsets"])
        with client_call():
            group = consumer.consumer_group_metadata()
            producer.send_offsets_to_transaction(offsets, group, *self.transaction_limit)
        return DONE

    def assign(self, call: dict[str, Any]) -> Returned:
        wanted = [
            self.partition(key) if offset is None else TopicPartition(*partition_of(key), offset)
            for key, offset in call["offsets"].items()
        ]
        self.perform(lambda consumer: consumer.assign(wanted), self.consumer)
        return DONE

    def seek(self, call: dict[str, Any]) -> Returned:
        def seek(consumer: Consumer) -> None:
            for each in self.offsets(call["offsets"]):
                consumer.seek(each)

        self.perform(seek, self.consumer)
        return DONE

    def pause(self, call: dict[str, Any]) -> Returned:
        wanted = [self.partition(each) for each in call["partitions"]]
        self.perform(lambda consumer: consumer.pause(wanted), self.consumer)
        return DONE

    def resume(self, call: dict[str, Any]) -> Returned:
        wanted = [self.partition(each) for each in call["partitions"]]
        self.perform(lambda consumer: consumer.resume(wanted), self.consumer)
        return DONE

    def subscribe(self, call: dict[str, Any]) -> Returned:
        topics = [call["pattern"]] if "pattern" in call else call["topics"]
        self.perform(lambda consumer: consumer.subscribe(topics), self.consumer)
        return DONE

    def close_one(self, consumer: Consumer) -> None:
        consumer.close()

    def fetch(self, consumer: Consumer, seconds: float) -> Any:
        message = consumer.poll(seconds)
        if message is not None and message.error() is not None:
            raise KafkaException(message.error())
        return message

    def records(self, fetched: Any) -> list[dict[str, Any]]:
        if fetched is None:
            return []
        kind, timestamp = fetched.timestamp()
        return [
            {
                **_place(fetched),
                "timestamp": -1 if kind == TIMESTAMP_NOT_AVAILABLE else timestamp,
                "key": text_of(fetched.key()),
                "value": text_of(fetched.value()),
                "headers": header_texts(fetched.headers()),
            }
        ]

    def position(self, call: dict[str, Any]) -> Returned:
        """The offset after the last record that the application got; negative if there is none."""
        wanted = [self.partition(key) for key in call["partitions"]]
        found = self.perform(lambda consumer: consumer.position(wanted), self.consumer)
        return Returned(found, {key_of(each): each.offset for each in found})

    def committed(self, call: dict[str, Any]) -> Returned:
        wanted = [self.partition(key) for key in call["partitions"]]
        seconds = self.timeout_ms / 1000
        found = self.perform(
            lambda consumer: consumer.committed(wanted, timeout=seconds), self.consumer
        )
        return Returned(found, {key_of(each): each.offset for each in found})

    def commit(self, call: dict[str, Any]) -> Returned:
        given = call.get("offsets")
        offsets = {} if given is None else {"offsets": self.offsets(given)}
        found = self.perform(
            lambda consumer: consumer.commit(asynchronous=False, **offsets), self.consumer
        )
        return Returned(
            found,
            {key_of(each): None if each.error is None else described(each.error) for each in found},
        )

    def offsets(self, given: Mapping[str, int]) -> Any:
        return [TopicPartition(*partition_of(key), offset) for key, offset in given.items()]


def _place(message: Any) -> dict[str, Any]:
    return {name: getattr(message, name)() for name in _PLACE}
