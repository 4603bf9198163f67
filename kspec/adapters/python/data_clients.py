"""What the adapters of Python clients share of a producer and a consumer."""

from __future__ import annotations

import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from typing import Any, ClassVar, Final

from kspec.adapters.python.lines import DONE, Operation, Raised, Returned, client_call, outcome
from kspec.adapters.python.values import (
    bytes_of,
    chosen,
    classic_only,
    given_headers,
    keys_of,
    outcome_seconds,
    partition_of,
    polled,
    record_of,
    record_outcome,
)

__all__ = ["DATA_CALLS", "DataClients"]

DATA_CALLS: Final = (
    "produce", "send", "begin_transaction", "send_offsets", "commit_transaction",
    "abort_transaction", "assign", "seek", "pause", "resume", "subscribe", "unsubscribe",
    "assignment", "poll", "position", "commit", "committed", "close_consumer",
)  # fmt: skip


class DataClients(ABC):
    """A producer and a consumer, each made by its first call.

    The calls are those of a client with the methods of Kafka's own. A subclass makes the two, and
    overrides what its client does in another way.
    """

    producer_options: ClassVar[Mapping[str, str]] = {
        "acks": "acks",
        "idempotence": "enable_idempotence",
        "compression": "compression_type",
        "linger_ms": "linger_ms",
        "transactional_id": "transactional_id",
        "transaction_timeout_ms": "transaction_timeout_ms",
        "metadata_age_ms": "metadata_max_age_ms",
    }
    consumer_options: ClassVar[Mapping[str, str]] = {
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
        "auto_commit_ms": "auto_commit_interval_ms",
    }
    """The client's names of the protocol's options; here those that kafka-python
    and aiokafka share."""
    ignored_options: ClassVar[tuple[str, ...]] = ("partitioner",)
    """Of those that this suite chooses, murmur2 is the default of both."""
    producer_values: ClassVar[Mapping[str, Mapping[Any, Any]]] = {
        "compression": {"none": None, **{name: name for name in ("gzip", "snappy", "lz4", "zstd")}}
    }
    consumer_values: ClassVar[Mapping[str, Mapping[Any, Any]]] = {}
    partition_type: ClassVar[type[Any]]

    def __init__(self, options: Mapping[str, Any], call: Mapping[str, Any]) -> None:
        self.options = options
        self.timeout_ms: int = call["timeout_ms"]
        self.outcome_seconds = outcome_seconds(call)
        self.for_producer = call.get("producer", {})
        self.for_consumer = call.get("consumer", {})
        self.limit: dict[str, Any] = {}
        """The arguments that limit the time of a consumer's call."""
        self.transaction_limit: tuple[float, ...] = ()
        self._producer: Any = None
        self._consumer: Any = None
        self._has_transactions = False

    def operations(self) -> Mapping[str, Operation]:
        return {name: getattr(self, name) for name in DATA_CALLS}

    # ---- the client ------------------------------------------------------------------------------

    @abstractmethod
    def new_producer(self, options: dict[str, Any]) -> Any: ...

    @abstractmethod
    def new_consumer(self, options: dict[str, Any]) -> Any: ...

    @abstractmethod
    def abandon(self, producer: Any, consumer: Any) -> None:
        """Close the one that is not None, for at most a second. May raise."""

    def perform(self, work: Callable[[Any], Any], client: Any) -> Any:
        """Call the client."""
        with client_call():
            return work(client)

    @property
    def producer(self) -> Any:
        if self._producer is None:
            given = chosen(
                self.for_producer, self.producer_options, self.ignored_options, self.producer_values
            )
            self._producer = self.perform(self.new_producer, given)
        return self._producer

    @property
    def commits_by_itself(self) -> bool:
        return "auto_commit_ms" in self.for_consumer

    @property
    def consumer(self) -> Any:
        if self._consumer is None:
            settings = self.consumer_settings()
            given = chosen(settings, self.consumer_options, values=self.consumer_values)
            self._consumer = self.perform(self.new_consumer, given)
        return self._consumer

    def described(self, error: Any) -> dict[str, Any]:
        return outcome(error)

    def consumer_settings(self) -> dict[str, Any]:
        return classic_only(self.for_consumer)

    def close(self) -> None:
        producer, consumer = self._producer, self._consumer
        self._producer = self._consumer = None
        for clients in ((producer, None), (None, consumer)):
            with suppress(Exception):  # the client's state may not allow a clean close
                self.abandon(*clients)

    def partition(self, key: str) -> Any:
        return self.partition_type(*partition_of(key))

    # ---- the producer ----------------------------------------------------------------------------

    def produce(self, call: dict[str, Any]) -> Returned:
        ends = time.monotonic() + self.outcome_seconds
        found = [
            each if isinstance(each, Raised) else self.outcome(each, ends - time.monotonic())
            for each in self._sent(call)
        ]
        return Returned(found, [record_outcome(each, self.described) for each in found])

    def send(self, call: dict[str, Any]) -> Returned:
        for each in self._sent(call):
            if isinstance(each, Raised):
                raise each
        return DONE

    def _sent(self, call: dict[str, Any]) -> list[Any]:
        """What the client returned or raised for each record."""
        producer = self.producer
        return [self._sent_record(producer, record) for record in call["records"]]

    def _sent_record(self, producer: Any, record: Mapping[str, Any]) -> Any:
        try:
            return self.perform(lambda client: self.send_record(client, record), producer)
        except Raised as raised:
            return raised

    def send_record(self, producer: Any, record: Mapping[str, Any]) -> Any:
        """Return what ``outcome`` waits for."""
        return producer.send(
            record["topic"],
            value=bytes_of(record.get("value")),
            key=bytes_of(record.get("key")),
            partition=record.get("partition"),
            **given_headers(record),
        )

    @abstractmethod
    def outcome(self, future: Any, seconds: float) -> Any:
        """What the client made of a record: PENDING if it did not in time."""

    def begin_transaction(self, _call: dict[str, Any]) -> Returned:
        def begin(producer: Any) -> Any:
            if not self._has_transactions:
                producer.init_transactions(*self.transaction_limit)
                self._has_transactions = True
            producer.begin_transaction()

        self.perform(begin, self.producer)
        return DONE

    @abstractmethod
    def send_offsets(self, call: dict[str, Any]) -> Returned: ...

    def commit_transaction(self, _call: dict[str, Any]) -> Returned:
        self.perform(
            lambda client: client.commit_transaction(*self.transaction_limit), self.producer
        )
        return DONE

    def abort_transaction(self, _call: dict[str, Any]) -> Returned:
        self.perform(
            lambda client: client.abort_transaction(*self.transaction_limit), self.producer
        )
        return DONE

    # ---- the consumer ----------------------------------------------------------------------------

    def assign(self, call: dict[str, Any]) -> Returned:
        wanted = {self.partition(key): offset for key, offset in call["offsets"].items()}

        def assign(consumer: Any) -> None:
            consumer.assign(list(wanted))
            for partition, offset in wanted.items():
                if offset is not None:
                    consumer.seek(partition, offset)

        self.perform(assign, self.consumer)
        return DONE

    def seek(self, call: dict[str, Any]) -> Returned:
        def seek(consumer: Any) -> None:
            for key, offset in call["offsets"].items():
                consumer.seek(self.partition(key), offset)

        self.perform(seek, self.consumer)
        return DONE

    def pause(self, call: dict[str, Any]) -> Returned:
        wanted = [self.partition(each) for each in call["partitions"]]
        self.perform(lambda consumer: consumer.pause(*wanted), self.consumer)
        return DONE

    def resume(self, call: dict[str, Any]) -> Returned:
        wanted = [self.partition(each) for each in call["partitions"]]
        self.perform(lambda consumer: consumer.resume(*wanted), self.consumer)
        return DONE

    def subscribe(self, call: dict[str, Any]) -> Returned:
        def subscribe(consumer: Any) -> None:
            if "pattern" in call:
                consumer.subscribe(pattern=call["pattern"])
            else:
                consumer.subscribe(call["topics"])

        self.perform(subscribe, self.consumer)
        return DONE

    def unsubscribe(self, _call: dict[str, Any]) -> Returned:
        self.perform(lambda consumer: consumer.unsubscribe(), self.consumer)
        return DONE

    def assignment(self, _call: dict[str, Any]) -> Returned:
        found = self.perform(lambda consumer: consumer.assignment(), self.consumer)
        return Returned(found, keys_of(found))

    def close_consumer(self, _call: dict[str, Any]) -> Returned:
        consumer, self._consumer = self.consumer, None
        self.perform(self.close_one, consumer)
        return DONE

    @abstractmethod
    def close_one(self, consumer: Any) -> Any: ...

    def poll(self, call: dict[str, Any]) -> Returned:
        consumer = self.consumer

        def once(seconds: float) -> list[dict[str, Any]]:
            return self.records(self.perform(lambda client: self.fetch(client, seconds), consumer))

        return polled(call["records"], call["ms"], once)

    @abstractmethod
    def fetch(self, consumer: Any, seconds: float) -> Any:
        """Poll once."""

    def records(self, fetched: Any) -> list[dict[str, Any]]:
        return [record_of(each) for records in fetched.values() for each in records]

    def position(self, call: dict[str, Any]) -> Returned:
        return self._by_partition("position", call["partitions"])

    def committed(self, call: dict[str, Any]) -> Returned:
        return self._by_partition("committed", call["partitions"])

    def _by_partition(self, method: str, keys: Sequence[str]) -> Returned:
        def ask(consumer: Any) -> Any:
            return getattr(consumer, method)(partition, **self.limit)

        found = {}
        for key in keys:
            partition = self.partition(key)
            found[key] = self.perform(ask, self.consumer)
        return Returned(found, found)

    def commit(self, call: dict[str, Any]) -> Returned:
        given = call.get("offsets")
        offsets = None if given is None else self.offsets(given)
        self.perform(lambda consumer: consumer.commit(offsets, **self.limit), self.consumer)
        return DONE

    def offsets(self, given: Mapping[str, int]) -> Any:
        """Offsets to commit, as the client takes them."""
        return {self.partition(key): offset for key, offset in given.items()}
