"""A transactional producer of a ``Cluster`` in tests, without messages."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from kproto.records import Record, RecordBatches, build_batch, read_control_record
from mockbroker.simulation.cluster import Cluster
from mockbroker.simulation.coordinators.coordinator_kinds import CoordinatorKind
from mockbroker.simulation.log.producing.appender import AppendOutcome
from mockbroker.simulation.log.producing.produce_rules import RequestFacts
from mockbroker.simulation.state.cluster_parts import TopicPartition
from mockbroker.simulation.transactions.transaction_events import InitRequest
from mockbroker.simulation.transactions.transactional_ids import ProducerResult, Transaction
from mockbroker.simulation.transactions.verification import Verification, VerificationRequest
from tests.mockbroker.simulated import simulated_cluster

__all__ = [
    "BAR",
    "FOO",
    "FOO_1",
    "KIND",
    "NEWEST",
    "OLD",
    "Producer",
    "coordinator",
    "log_records",
    "markers",
]

OLD, NEWEST = (3, 9), (4, 4)
FOO, FOO_1, BAR = ("foo", 0), ("foo", 1), ("bar", 0)
NOW_MS = 1_000_000
TIMEOUT_MS = 60_000
KIND = CoordinatorKind.TRANSACTION


def coordinator(release: tuple[int, int] = NEWEST, brokers: int = 1, **options: Any) -> Cluster:
    """A cluster whose internal topics exist, with foo of two partitions and bar of one."""
    topics = options.pop("topics", (f"foo:2:{brokers}", f"bar:1:{brokers}"))
    cluster = simulated_cluster(brokers, topics=topics, release=release, now_ms=NOW_MS, **options)
    for kind in (KIND, CoordinatorKind.GROUP):
        assert cluster.coordinators.find(kind, "t", 1) is None
    return cluster


class Producer:
    """A producer with a transactional id. It remembers the id and epoch that it got last."""

    def __init__(self, cluster: Cluster, name: str = "t", *, version: int | None = None) -> None:
        self.cluster = cluster
        self.name = name
        level = cluster.transactions.machine.feature_level
        self.version = level if version is None else version
        self.producer_id = self.epoch = -1
        self.sequences: dict[TopicPartition, int] = {}

    @property
    def at(self) -> int:
        """The broker that coordinates it."""
        tp = self.cluster.coordinators.partition_of(KIND, self.name)
        return self.cluster.topics.partition(*tp).leader

    @property
    def transaction(self) -> Transaction:
        return self.cluster.transactions.transactions[self.name]

    @property
    def state(self) -> str:
        known = self.cluster.transactions.transactions
        return str(known[self.name].state) if self.name in known else "none"

    def ask_init(self, *, at: int | None = None, **fields: Any) -> list[ProducerResult]:
        """Ask for an id and epoch. The list has the answer once there is one."""
        answers: list[ProducerResult] = []
        request = InitRequest(**{"transactional_id": self.name, "timeout_ms": TIMEOUT_MS, **fields})
        transactions = self.cluster.transactions
        transactions.init_producer_id(self.at if at is None else at, request, answers.append)
        return answers

    def init(self, **fields: Any) -> ProducerResult:
        """Ask for an id and epoch, and remember them."""
        (answer,) = self.ask_init(**fields)
        if not answer.code:
            self._take(answer)
        return answer

    def _take(self, answer: ProducerResult) -> None:
        if (answer.producer_id, answer.epoch) != (self.producer_id, self.epoch):
            self.sequences.clear()
        self.producer_id, self.epoch = answer.producer_id, answer.epoch

    def again(self) -> ProducerResult:
        """Ask for the next epoch, with the present one (KIP-360)."""
        return self.init(producer_id=self.producer_id, epoch=self.epoch)

    def ask_add(
        self, *partitions: TopicPartition, at: int | None = None, **fields: Any
    ) -> list[int]:
        answers: list[int] = []
        given = {"producer_id": self.producer_id, "epoch": self.epoch, **fields}
        self.cluster.transactions.add_partitions(
            self.at if at is None else at, self.name, given["producer_id"], given["epoch"],
            partitions or (FOO,), answers.append, version=self.version,
        )  # fmt: skip
        return answers

    def add(self, *partitions: TopicPartition, **fields: Any) -> int:
        (code,) = self.ask_add(*partitions, **fields)
        return code

    def ask_end(self, *, commit: bool = True, **fields: Any) -> list[ProducerResult]:
        answers: list[ProducerResult] = []
        given = {"producer_id": self.producer_id, "epoch": self.epoch, "at": self.at, **fields}
        self.cluster.transactions.end(
            given["at"], self.name, given["producer_id"], given["epoch"], answers.append,
            committed=commit, version=self.version,
        )  # fmt: skip
        return answers

    def end(self, *, commit: bool = True, keep: bool = False, **fields: Any) -> int:
        """End the transaction. ``keep``: stay with the epoch, as if the answer were lost."""
        (answer,) = self.ask_end(commit=commit, **fields)
        if not answer.code and answer.epoch >= 0 and not keep:
            self._take(answer)
        return answer.code

    def verify(
        self, *partitions: TopicPartition, api_version: int | None = None, **fields: Any
    ) -> Verification:
        """What the leaders of partitions know before a batch of this version of Produce."""
        answers: list[Verification] = []
        sequences = {each: self.sequences.get(each, 0) for each in partitions or (FOO,)}
        self.cluster.verifier.verify(
            self.question(api_version, **fields), sequences, answers.append
        )
        (found,) = answers
        return found

    def question(self, api_version: int | None = None, **fields: Any) -> VerificationRequest:
        if api_version is None:
            api_version = 12 if self.version >= 2 else 9
        given = {"producer_id": self.producer_id, "epoch": self.epoch, **fields}
        return VerificationRequest(
            self.name, given["producer_id"], given["epoch"], api_version >= 12, api_version >= 11
        )

    def produce(
        self, *values: bytes, tp: TopicPartition = FOO, api_version: int | None = None,
        between: Callable[[], object] = lambda: None, sequence: int | None = None,
    ) -> AppendOutcome:  # fmt: skip
        """Write as Produce does: verify, then append. ``between`` happens between the two."""
        question = self.question(api_version)
        found = self.verify(tp, api_version=api_version)
        between()
        values = values or (b"v",)
        data = build_batch(
            [Record(timestamp=NOW_MS, value=each) for each in values],
            producer_id=self.producer_id, producer_epoch=self.epoch, is_transactional=True,
            base_sequence=self.sequences.get(tp, 0) if sequence is None else sequence,
        )  # fmt: skip
        guards = found.guards if self.cluster.verifier.guards(question) else None
        facts = RequestFacts(
            1, 12 if question.adds else 9, transactional_id=self.name,
            unverified=found.errors, guards=guards,
        )  # fmt: skip
        outcome = self.cluster.appender.append(
            self.cluster.topics.partition(*tp).leader,
            *tp,
            data,
            facts,
            may_write=True,
            is_known=True,
        )
        if not outcome.error:
            self.sequences[tp] = self.sequences.get(tp, 0) + len(values)
        return outcome

    def begun(self) -> Producer:
        """With an open transaction that has a record in foo-0."""
        assert self.init().code == 0
        self.write()
        return self

    def write(self, *values: bytes, tp: TopicPartition = FOO) -> None:
        """Write a batch to a partition that is added to the transaction."""
        if self.version < 2:
            assert self.add(tp) == 0
        assert self.produce(*values, tp=tp).error == 0


def markers(cluster: Cluster, tp: TopicPartition = FOO) -> list[tuple[str, int, int, int]]:
    """(COMMIT or ABORT, producer id, epoch, coordinator epoch) of each marker in a log."""
    log = cluster.logs.log(tp)
    data = b"".join(log.read(log.start_offset, log.end_offset, 1 << 30, at_least_one=True))
    found = []
    for batch in RecordBatches(data):
        for record in batch.records():
            if batch.is_control:
                control = read_control_record(record)
                found.append(
                    (control.type.name, batch.producer_id, batch.producer_epoch,
                     control.message.coordinator_epoch)  # type: ignore[union-attr]
                )  # fmt: skip
    return found


def log_records(cluster: Cluster, name: str = "t") -> list[Record]:
    """The records about a transactional id in ``__transaction_state``."""
    log = cluster.logs.log(cluster.coordinators.partition_of(KIND, name))
    data = b"".join(log.read(log.start_offset, log.end_offset, 1 << 30, at_least_one=True))
    return [
        record
        for batch in RecordBatches(data)
        for record in batch.records()
        if record.key == b"\0\0" + len(name).to_bytes(2, "big") + name.encode()
    ]
