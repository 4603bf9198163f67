"""Drive confluent-kafka's ``Producer`` and ``Consumer``."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import suppress
from typing import Any, Final

from confluent_kafka import (
    TIMESTAMP_NOT_AVAILABLE,
    Consumer,
    KafkaException,
    Producer,
    TopicPartition,
)

from kspec.adapters.python.lines import (
    PENDING,
    Operation,
    Raised,
    Returned,
    bytes_of,
    chosen,
    client_call,
    keys_of,
    outcome_seconds,
    partition_of,
    polled,
    text_of,
)

__all__ = ["OPTIONS", "DataClients"]

OPTIONS: Final = {
    "request.timeout.ms of Producer": "timeout_ms",
    "timeout of calls about transactions": "three times timeout_ms",
    "enable.auto.commit of Consumer": False,
    "group.id of Consumer": "kspec, where the case has none: it is required",
}
_PRODUCER: Final = {
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
}
_CONSUMER: Final = {
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
    "assignors": "partition.assignment.strategy",
    "remote_assignor": "group.remote.assignor",
}
_ASSIGNORS: Final = "partition.assignment.strategy"
_VALUES: Final = {
    "offset_reset": {"none": "error", "earliest": "earliest", "latest": "latest"},
    "assignors": {name: name for name in ("range", "roundrobin", "cooperative-sticky")},
}
_PLACE: Final = ("topic", "partition", "offset")


class DataClients:
    """A producer and a consumer, each made by its first call."""

    def __init__(
        self,
        options: Mapping[str, Any],
        call: Mapping[str, Any],
        described: Callable[[Any], dict[str, Any]],
    ) -> None:
        self._options = options
        self._seconds = call["timeout_ms"] / 1000
        self._outcome_seconds = outcome_seconds(call)
        self._for_producer = call.get("producer", {})
        self._for_consumer = call.get("consumer", {})
        self._described = described
        self._producer: Producer | None = None
        self._is_ready = False
        self._consumer: Consumer | None = None

    def operations(self) -> Mapping[str, Operation]:
        return {
            "produce": self.produce,
            "send": self.send,
            "begin_transaction": self.begin_transaction,
            "send_offsets": self.send_offsets,
            "commit_transaction": self.commit_transaction,
            "abort_transaction": self.abort_transaction,
            "assign": self.assign,
            "subscribe": self.subscribe,
            "unsubscribe": self.unsubscribe,
            "assignment": self.assignment,
            "close_consumer": self.close_consumer,
            "poll": self.poll,
            "position": self.position,
            "commit": self.commit,
            "committed": self.committed,
        }

    def close(self) -> None:
        producer, consumer = self._producer, self._consumer
        self._producer = self._consumer = None
        with suppress(Exception):  # its state may not allow a clean close
            if producer is not None:
                producer.purge()
                producer.flush(0.1)
        with suppress(Exception):
            if consumer is not None:
                consumer.close()

    @property
    def producer(self) -> Producer:
        if self._producer is None:
            given = chosen(self._for_producer, _PRODUCER)
            time_out = {"request.timeout.ms": int(self._seconds * 1000)}
            with client_call():
                self._producer = Producer({**self._options, **time_out, **given})
        return self._producer

    @property
    def consumer(self) -> Consumer:
        if self._consumer is None:
            given = chosen(self._for_consumer, _CONSUMER, values=_VALUES)
            given.setdefault("group.id", "kspec")
            if _ASSIGNORS in given:
                given[_ASSIGNORS] = ",".join(given[_ASSIGNORS])
            with client_call():
                self._consumer = Consumer({**self._options, "enable.auto.commit": False, **given})
        return self._consumer

    def produce(self, call: dict[str, Any]) -> Returned:
        producer = self.producer
        found: list[Any] = [None] * len(call["records"])
        for number, record in enumerate(call["records"]):
            self._send(producer, number, record, found)
        with client_call():
            producer.flush(self._outcome_seconds)
        given = [PENDING if each is None else each for each in found]
        return Returned(given, given)

    def send(self, call: dict[str, Any]) -> Returned:
        producer = self.producer
        with client_call():
            for record in call["records"]:
                producer.produce(
                    record["topic"],
                    value=bytes_of(record.get("value")),
                    key=bytes_of(record.get("key")),
                    **_partition_of(record),
                )
        return Returned(None, None)

    def begin_transaction(self, _call: dict[str, Any]) -> Returned:
        producer = self.producer
        with client_call():
            if not self._is_ready:
                producer.init_transactions(3 * self._seconds)
                self._is_ready = True
            producer.begin_transaction()
        return Returned(None, None)

    def send_offsets(self, call: dict[str, Any]) -> Returned:
        producer, consumer = self.producer, self.consumer
        offsets = [_partition(key, offset) for key, offset in call["offsets"].items()]
        with client_call():
            group = consumer.consumer_group_metadata()
            producer.send_offsets_to_transaction(offsets, group, 3 * self._seconds)
        return Returned(None, None)

    def commit_transaction(self, _call: dict[str, Any]) -> Returned:
        producer = self.producer
        with client_call():
            producer.commit_transaction(3 * self._seconds)
        return Returned(None, None)

    def abort_transaction(self, _call: dict[str, Any]) -> Returned:
        producer = self.producer
        with client_call():
            producer.abort_transaction(3 * self._seconds)
        return Returned(None, None)

    def _send(
        self, producer: Producer, number: int, record: Mapping[str, Any], found: list[Any]
    ) -> None:
        def on_delivery(error: Any, message: Any) -> None:
            place = {name: getattr(message, name)() for name in _PLACE}
            found[number] = place if error is None else self._described(error)

        try:
            with client_call():
                producer.produce(
                    record["topic"],
                    value=bytes_of(record.get("value")),
                    key=bytes_of(record.get("key")),
                    on_delivery=on_delivery,
                    **_partition_of(record),
                )
        except Raised as raised:
            found[number] = self._described(raised.error)

    def assign(self, call: dict[str, Any]) -> Returned:
        consumer = self.consumer
        wanted = [
            _partition(key) if offset is None else _partition(key, offset)
            for key, offset in call["offsets"].items()
        ]
        with client_call():
            consumer.assign(wanted)
        return Returned(None, None)

    def subscribe(self, call: dict[str, Any]) -> Returned:
        consumer = self.consumer
        topics = [call["pattern"]] if "pattern" in call else call["topics"]
        with client_call():
            consumer.subscribe(topics)
        return Returned(None, None)

    def unsubscribe(self, _call: dict[str, Any]) -> Returned:
        consumer = self.consumer
        with client_call():
            consumer.unsubscribe()
        return Returned(None, None)

    def assignment(self, _call: dict[str, Any]) -> Returned:
        consumer = self.consumer
        with client_call():
            found = consumer.assignment()
        return Returned(found, keys_of(found))

    def close_consumer(self, _call: dict[str, Any]) -> Returned:
        consumer, self._consumer = self.consumer, None
        with client_call():
            consumer.close()
        return Returned(None, None)

    def poll(self, call: dict[str, Any]) -> Returned:
        consumer = self.consumer

        def once(seconds: float) -> list[dict[str, Any]]:
            with client_call():
                message = consumer.poll(seconds)
                if message is not None and message.error() is not None:
                    raise KafkaException(message.error())
            if message is None:
                return []
            place = {name: getattr(message, name)() for name in _PLACE}
            kind, timestamp = message.timestamp()
            return [
                {
                    **place,
                    "timestamp": -1 if kind == TIMESTAMP_NOT_AVAILABLE else timestamp,
                    "key": text_of(message.key()),
                    "value": text_of(message.value()),
                }
            ]

        return polled(call["records"], call["ms"], once)

    def position(self, call: dict[str, Any]) -> Returned:
        """The offset after the last record that the application got; negative if there is none."""
        consumer = self.consumer
        with client_call():
            found = consumer.position([_partition(key) for key in call["partitions"]])
        return Returned(found, {f"{each.topic}-{each.partition}": each.offset for each in found})

    def commit(self, call: dict[str, Any]) -> Returned:
        consumer = self.consumer
        given = call.get("offsets")
        offsets = (
            {}
            if given is None
            else {"offsets": [_partition(key, offset) for key, offset in given.items()]}
        )
        with client_call():
            found = consumer.commit(asynchronous=False, **offsets)
        return Returned(
            found,
            {
                f"{each.topic}-{each.partition}": None
                if each.error is None
                else self._described(each.error)
                for each in found
            },
        )

    def committed(self, call: dict[str, Any]) -> Returned:
        consumer = self.consumer
        wanted = [_partition(key) for key in call["partitions"]]
        with client_call():
            found = consumer.committed(wanted, timeout=self._seconds)
        return Returned(found, {f"{each.topic}-{each.partition}": each.offset for each in found})


def _partition_of(record: Mapping[str, Any]) -> dict[str, Any]:
    """Return the argument that chooses a partition; without one the client chooses."""
    return {} if record.get("partition") is None else {"partition": record["partition"]}


def _partition(key: str, offset: int | None = None) -> TopicPartition:
    place = partition_of(key)
    return TopicPartition(*place) if offset is None else TopicPartition(*place, offset)
