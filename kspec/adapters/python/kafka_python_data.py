"""Drive kafka-python's ``KafkaProducer`` and ``KafkaConsumer``."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from typing import Any, ClassVar, Final

from kafka import KafkaConsumer, KafkaProducer, OffsetAndMetadata, TopicPartition
from kafka.coordinator.assignors.range import RangePartitionAssignor
from kafka.coordinator.assignors.roundrobin import RoundRobinPartitionAssignor
from kafka.coordinator.assignors.sticky.sticky_assignor import StickyPartitionAssignor

from kspec.adapters.python.data_clients import DataClients
from kspec.adapters.python.lines import DONE, Raised, Returned, client_call
from kspec.adapters.python.values import PENDING

__all__ = ["OPTIONS", "KafkaPythonDataClients"]

_COOPERATIVE: Final[dict[str, type]] = {}
with suppress(ImportError):  # kafka-python 2 has none
    from kafka.coordinator.assignors.cooperative_sticky import CooperativeStickyAssignor

    _COOPERATIVE["cooperative-sticky"] = CooperativeStickyAssignor

OPTIONS: Final = {
    "max_block_ms of KafkaProducer": "timeout_ms, three times that with a transactional_id",
    "enable_auto_commit of KafkaConsumer": "False, but with auto_commit_ms",
}


class KafkaPythonDataClients(DataClients):
    producer_options: ClassVar[Mapping[str, str]] = {
        **DataClients.producer_options,
        "batch_bytes": "batch_size",
        "max_in_flight": "max_in_flight_requests_per_connection",
        "delivery_timeout_ms": "delivery_timeout_ms",
    }
    consumer_values: ClassVar[Mapping[str, Mapping[Any, Any]]] = {
        "assignors": {
            "range": RangePartitionAssignor,
            "roundrobin": RoundRobinPartitionAssignor,
            "sticky": StickyPartitionAssignor,
            **_COOPERATIVE,
        }
    }
    partition_type = TopicPartition

    def __init__(self, options: Mapping[str, Any], call: Mapping[str, Any]) -> None:
        super().__init__(options, call)
        self.limit = {"timeout_ms": self.timeout_ms}

    def new_producer(self, options: dict[str, Any]) -> KafkaProducer:
        block_ms = (3 if "transactional_id" in options else 1) * self.timeout_ms
        return KafkaProducer(**self.options, max_block_ms=block_ms, **options)

    def new_consumer(self, options: dict[str, Any]) -> KafkaConsumer:
        automatic = {"enable_auto_commit": self.commits_by_itself}
        return KafkaConsumer(**{**self.options, **automatic, **options})

    def abandon(self, producer: Any, consumer: Any) -> None:
        if producer is not None:
            producer.close(timeout=0.2)
        if consumer is not None:
            consumer.close(autocommit=False, timeout_ms=200)

    def outcome(self, future: Any, seconds: float) -> Any:
        try:
            with client_call():
                return future.get(timeout=max(seconds, 0.001))
        except Raised as raised:
            return raised if future.is_done else PENDING

    def send_offsets(self, call: dict[str, Any]) -> Returned:
        producer, consumer = self.producer, self.consumer
        offsets = self.offsets(call["offsets"])
        with client_call():
            producer.send_offsets_to_transaction(offsets, consumer.group_metadata())
        return DONE

    def close_one(self, consumer: KafkaConsumer) -> None:
        consumer.close(autocommit=self.commits_by_itself, **self.limit)

    def fetch(self, consumer: KafkaConsumer, seconds: float) -> Any:
        return consumer.poll(timeout_ms=int(seconds * 1000))

    def offsets(self, given: Mapping[str, int]) -> Any:
        return {
            self.partition(key): OffsetAndMetadata(offset, "", -1) for key, offset in given.items()
        }
