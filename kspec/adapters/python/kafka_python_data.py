"""Drive kafka-python's ``KafkaProducer`` and ``KafkaConsumer``."""

from __future__ import annotations

import time
from collections.abc import Mapping
from contextlib import suppress
from typing import Any, Final

from kafka import KafkaConsumer, KafkaProducer, OffsetAndMetadata, TopicPartition
from kafka.coordinator.assignors.cooperative_sticky import CooperativeStickyAssignor
from kafka.coordinator.assignors.range import RangePartitionAssignor
from kafka.coordinator.assignors.roundrobin import RoundRobinPartitionAssignor
from kafka.coordinator.assignors.sticky.sticky_assignor import StickyPartitionAssignor

from kspec.adapters.python.lines import (
    PENDING,
    Operation,
    Raised,
    Returned,
    bytes_of,
    chosen,
    classic_only,
    client_call,
    keys_of,
    outcome_seconds,
    partition_of,
    polled,
    record_of,
    record_outcome,
)

__all__ = ["OPTIONS", "DataClients"]

OPTIONS: Final = {
    "max_block_ms of KafkaProducer": "timeout_ms, three times that with a transactional_id",
    "enable_auto_commit of KafkaConsumer": False,
}
_PRODUCER: Final = {
    "acks": "acks",
    "idempotence": "enable_idempotence",
    "compression": "compression_type",
    "linger_ms": "linger_ms",
    "batch_bytes": "batch_size",
    "max_in_flight": "max_in_flight_requests_per_connection",
    "delivery_timeout_ms": "delivery_timeout_ms",
    "transactional_id": "transactional_id",
    "transaction_timeout_ms": "transaction_timeout_ms",
    "metadata_age_ms": "metadata_max_age_ms",
}
_CONSUMER: Final = {
    "group": "group_id",
    "offset_reset": "auto_offset_reset",
    "isolation": "isolation_level",
    "max_wait_ms": "fetch_max_wait_ms",
    "partition_max_bytes": "max_partition_fetch_bytes",
    "rack": "client_rack",
    "instance_id": "group_instance_id",
    "session_timeout_ms": "session_timeout_ms",
    "heartbeat_ms": "heartbeat_interval_ms",
    "metadata_age_ms": "metadata_max_age_ms",
    "max_poll_ms": "max_poll_interval_ms",
    "assignors": "partition_assignment_strategy",
}
_ASSIGNORS: Final = {
    "range": RangePartitionAssignor,
    "roundrobin": RoundRobinPartitionAssignor,
    "sticky": StickyPartitionAssignor,
    "cooperative-sticky": CooperativeStickyAssignor,
}


class DataClients:
    """A producer and a consumer, each made by its first call."""

    def __init__(self, options: Mapping[str, Any], call: Mapping[str, Any]) -> None:
        self._options = options
        self._timeout_ms = call["timeout_ms"]
        self._outcome_seconds = outcome_seconds(call)
        self._for_producer = call.get("producer", {})
        self._for_consumer = call.get("consumer", {})
        self._producer: KafkaProducer | None = None
        self._is_ready = False
        self._consumer: KafkaConsumer | None = None

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
                producer.close(timeout=0.2)
        with suppress(Exception):
            if consumer is not None:
                consumer.close(autocommit=False, timeout_ms=200)

    @property
    def producer(self) -> KafkaProducer:
        if self._producer is None:
            given = chosen(self._for_producer, _PRODUCER)
            if given.get("compression_type") == "none":
                given["compression_type"] = None
            block_ms = (3 if "transactional_id" in given else 1) * self._timeout_ms
            with client_call():
                self._producer = KafkaProducer(**self._options, max_block_ms=block_ms, **given)
        return self._producer

    @property
    def consumer(self) -> KafkaConsumer:
        if self._consumer is None:
            given = chosen(
                classic_only(self._for_consumer), _CONSUMER, values={"assignors": _ASSIGNORS}
            )
            with client_call():
                self._consumer = KafkaConsumer(**self._options, enable_auto_commit=False, **given)
        return self._consumer

    def produce(self, call: dict[str, Any]) -> Returned:
        producer = self.producer
        ends = time.monotonic() + self._outcome_seconds
        sent = [self._sent(producer, record) for record in call["records"]]
        found = [each if isinstance(each, Raised) else _awaited(each, ends) for each in sent]
        return Returned(found, [record_outcome(each) for each in found])

    def send(self, call: dict[str, Any]) -> Returned:
        producer = self.producer
        found = [self._sent(producer, record) for record in call["records"]]
        raised = next((each for each in found if isinstance(each, Raised)), None)
        if raised is not None:
            raise raised
        return Returned(None, None)

    def begin_transaction(self, _call: dict[str, Any]) -> Returned:
        producer = self.producer
        with client_call():
            if not self._is_ready:
                producer.init_transactions()
                self._is_ready = True
            producer.begin_transaction()
        return Returned(None, None)

    def send_offsets(self, call: dict[str, Any]) -> Returned:
        producer, consumer = self.producer, self.consumer
        offsets = {
            _partition(key): OffsetAndMetadata(offset, "", -1)
            for key, offset in call["offsets"].items()
        }
        with client_call():
            producer.send_offsets_to_transaction(offsets, consumer.group_metadata())
        return Returned(None, None)

    def commit_transaction(self, _call: dict[str, Any]) -> Returned:
        producer = self.producer
        with client_call():
            producer.commit_transaction()
        return Returned(None, None)

    def abort_transaction(self, _call: dict[str, Any]) -> Returned:
        producer = self.producer
        with client_call():
            producer.abort_transaction()
        return Returned(None, None)

    @staticmethod
    def _sent(producer: KafkaProducer, record: Mapping[str, Any]) -> Any:
        try:
            with client_call():
                return producer.send(
                    record["topic"],
                    value=bytes_of(record.get("value")),
                    key=bytes_of(record.get("key")),
                    partition=record.get("partition"),
                )
        except Raised as raised:
            return raised

    def assign(self, call: dict[str, Any]) -> Returned:
        consumer = self.consumer
        wanted = {_partition(key): offset for key, offset in call["offsets"].items()}
        with client_call():
            consumer.assign(list(wanted))
            for partition, offset in wanted.items():
                if offset is not None:
                    consumer.seek(partition, offset)
        return Returned(None, None)

    def subscribe(self, call: dict[str, Any]) -> Returned:
        consumer = self.consumer
        with client_call():
            if "pattern" in call:
                consumer.subscribe(pattern=call["pattern"])
            else:
                consumer.subscribe(call["topics"])
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
            consumer.close(autocommit=False, timeout_ms=self._timeout_ms)
        return Returned(None, None)

    def poll(self, call: dict[str, Any]) -> Returned:
        consumer = self.consumer

        def once(seconds: float) -> list[dict[str, Any]]:
            with client_call():
                found = consumer.poll(timeout_ms=int(seconds * 1000))
            return [record_of(each) for records in found.values() for each in records]

        return polled(call["records"], call["ms"], once)

    def position(self, call: dict[str, Any]) -> Returned:
        consumer = self.consumer
        found = {}
        for key in call["partitions"]:
            with client_call():
                found[key] = consumer.position(_partition(key), timeout_ms=self._timeout_ms)
        return Returned(found, found)

    def commit(self, call: dict[str, Any]) -> Returned:
        consumer = self.consumer
        given = call.get("offsets")
        offsets = None if given is None else {
            _partition(key): OffsetAndMetadata(offset, "", -1) for key, offset in given.items()
        }  # fmt: skip
        with client_call():
            consumer.commit(offsets, timeout_ms=self._timeout_ms)
        return Returned(None, None)

    def committed(self, call: dict[str, Any]) -> Returned:
        consumer = self.consumer
        found = {}
        for key in call["partitions"]:
            with client_call():
                found[key] = consumer.committed(_partition(key), timeout_ms=self._timeout_ms)
        return Returned(found, found)


def _awaited(future: Any, ends: float) -> Any:
    """Return what the client made of a record: PENDING if it did not in time."""
    try:
        with client_call():
            return future.get(timeout=max(ends - time.monotonic(), 0.001))
    except Raised as raised:
        return raised if future.is_done else PENDING


def _partition(key: str) -> TopicPartition:
    return TopicPartition(*partition_of(key))
