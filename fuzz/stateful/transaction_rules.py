"""What transactional producers do, as rules of hypothesis, and a tester who disturbs them.

A producer behaves as clients do: it ends a transaction once every batch is acknowledged, and asks
for a new epoch after any error. ``DataMachine`` is the machine of the whole data plane.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from typing import Any, Final

from hypothesis import strategies as st
from hypothesis.stateful import invariant, rule

from fuzz.stateful import data_bodies, transaction_bodies
from fuzz.stateful.data_model import Batch
from fuzz.stateful.group_rules import GroupRules
from fuzz.stateful.strategies import BROKER, PICK
from fuzz.stateful.transaction_invariants import (
    TRANSACTIONS_ALWAYS,
    ReadCommitted,
    committed_offsets_are_the_newest,
    read_committed,
    what_is_read_is_committed,
)
from fuzz.stateful.transaction_model import (
    Course,
    Transaction,
    TransactionalProducer,
    TransactionModel,
)
from kproto.error_codes import ErrorCode
from kproto.records import Compression
from mockbroker.profiles import Profile, all_profiles
from mockbroker.simulation.operations import parse_operation
from mockbroker.simulation.state.actions import Action
from mockbroker.simulation.state.cluster_parts import TopicPartition

__all__ = ["DataMachine", "data_machine_of", "data_profiles"]

_ID = st.sampled_from(["t", "t", "u"])
_VERSION = st.integers(0, 20)
_COMMITS = st.sampled_from([True, True, False])
_GROUP: Final = "of-transactions"
_SLOT: Final = 8
"""Producers have connections of their own."""
_READER: Final = 30
_IMPLICIT_PRODUCE: Final = 12
_IMPLICIT_OFFSETS: Final = 5
_EPOCH_IN_END: Final = 5
_ADD_NEWEST: Final = 3
"""The first versions of the second protocol of transactions (KIP-890), and the last one of
AddPartitionsToTxn that clients send."""
_STEPS = st.sampled_from(
    [
        "hold-markers {id}", "release-markers", "release-markers", "expire-transaction {id}",
        "abort-transaction {id}", "fence-producer {id}",
        "move-coordinator transaction {id} {broker}", "load-coordinator transaction {id}",
        "finish-loading transaction {id}", "finish-loading transaction {id}",
    ]
)  # fmt: skip
_ABORTS: Final = ("expire-transaction", "abort-transaction", "fence-producer")


class DataMachine(GroupRules):
    """``of_transactions`` is what transactional producers may expect."""

    of_transactions: TransactionModel

    def prepare(self) -> None:
        super().prepare()
        self.of_transactions = TransactionModel()

    @invariant()
    def transactions_hold(self) -> None:
        if getattr(self, "world", None) is not None:
            for holds in TRANSACTIONS_ALWAYS:
                holds(self.world, self.data, self.of_transactions)

    def follow(self, actions: Sequence[Action]) -> None:
        super().follow(actions)
        self.of_transactions.follow(actions)

    def transactional(self, name: str) -> TransactionalProducer | None:
        """The newest process of a transactional id, if no request of its own is on the way."""
        self.settle()
        found = self.of_transactions.producers.get(name)
        return None if found is None or found.waiting else found

    def transaction_coordinator(self, name: str) -> int:
        coordinators = self.world.cluster.coordinators
        for broker in sorted(self.world.model.live):
            if coordinators.transaction_error(name, broker) != ErrorCode.NOT_COORDINATOR:
                return broker
        return min(self.world.model.live, default=-1)

    def request(
        self, label: str, producer: TransactionalProducer, broker: int, body: Any, version: int,
        heard: Callable[[Any], None],
    ) -> None:  # fmt: skip
        """Send a producer's request; it waits for the answer."""
        if broker < 0:
            producer.broken = True
            return
        producer.waiting += 1

        def answered(answer: Any) -> None:
            producer.waiting -= 1
            heard(answer)

        self.send(label, _SLOT, broker, body, version, answered)

    # ---- a producer ------------------------------------------------------------------------------

    @rule(name=_ID, another=st.booleans(), timeout_ms=st.sampled_from([10_000, 60_000]),
          version=_VERSION)  # fmt: skip
    def init_transactions(self, name: str, another: bool, timeout_ms: int, version: int) -> None:
        """A process begins, or begins anew: whatever was open is aborted."""
        self.settle()
        found, model = self.world.version(22, version), self.of_transactions
        former = model.producers.get(name)
        if found is None or (former is not None and former.waiting):
            return
        producer = former
        if producer is None or another:
            producer = model.producers[name] = TransactionalProducer(name, timeout_ms)
            if former is not None:
                producer.replaced = [former, *former.replaced]
        producer.broken, producer.transaction = True, None
        self.end_open(name)

        def heard(answer: Any) -> None:
            if answer is None or answer.error_code:
                return
            producer_id, epoch = answer.producer_id, answer.producer_epoch
            known = model.epochs.get(producer_id, -1)
            assert epoch > known, f"{name}: epoch {epoch} of {producer_id} after {known}"
            model.epochs[producer_id] = epoch
            producer.takes(producer_id, epoch)
            producer.broken = False
            model.fenced += producer.replaced
            producer.replaced = []

        body = transaction_bodies.init(name, producer.timeout_ms)
        self.request("init_transactions", producer, self.transaction_coordinator(name), body,
                     found, heard)  # fmt: skip

    def end_open(self, name: str) -> None:
        for each in self.of_transactions.transactions:
            if each.transactional_id == name:
                each.end()

    def open_transaction(self, name: str, *, newer: bool) -> Transaction | None:
        """The transaction of a producer that may go on, which begins if there is none."""
        producer = self.transactional(name)
        if producer is None or producer.broken:
            return None
        found = producer.transaction
        if found is None:
            served = [self.world.served(key).highest for key in (0, 28, 26)]
            level = self.world.cluster.features.level("transaction.version") or 0
            least = (_IMPLICIT_PRODUCE, _IMPLICIT_OFFSETS, _EPOCH_IN_END)
            can = level >= 2 and all(a >= b for a, b in zip(served, least, strict=True))
            now_ms = self.world.cluster.timers.now_ms
            found = self.of_transactions.begin(producer, now_ms, newer=newer and can)
        return found if found.course is Course.OPEN else None

    @rule(name=_ID, pick=PICK, count=st.integers(1, 3), newer=st.booleans(), version=_VERSION)
    def send_in_transaction(
        self, name: str, pick: int, count: int, newer: bool, version: int
    ) -> None:
        tp, transaction = self.pick(pick), self.open_transaction(name, newer=newer)
        if transaction is None or tp[0].startswith("__") or self.leader_of(tp, None) < 0:
            return
        producer = self.of_transactions.producers[name]
        if transaction.newer:
            transaction.added.add(tp)
        elif tp not in transaction.added:
            self.add_partition(producer, transaction, tp, version)
            if not transaction.accepts(producer, tp):
                return
        batch = self.data.new_batch(tp, count, -1, Compression.NONE, None)
        batch.producer_id, batch.epoch = transaction.producer_id, transaction.epoch
        batch.sequence, batch.transactional = producer.sequences.get(tp, 0), True
        producer.sequences[tp] = batch.sequence + count
        transaction.batches.append(batch)
        self.of_transactions.of_batch[batch.number] = transaction
        self.send_batch_of(producer, transaction, batch, version)

    @rule(name=_ID, age=st.integers(0, 4), version=_VERSION)
    def send_again_in_transaction(self, name: str, age: int, version: int) -> None:
        """One of the newest batches of the transaction, although it was acknowledged."""
        producer = self.transactional(name)
        if producer is None or producer.broken or producer.transaction is None:
            return
        transaction = producer.transaction
        if transaction.course is Course.OPEN and transaction.batches:
            batch = transaction.batches[-1 - age % len(transaction.batches)]
            self.send_batch_of(producer, transaction, batch, version)

    def add_partition(
        self, producer: TransactionalProducer, transaction: Transaction, tp: TopicPartition,
        version: int,
    ) -> None:  # fmt: skip
        def heard(answer: Any) -> None:
            if answer is None:
                producer.broken = True
                return
            (topic,) = answer.results_by_topic_v3_and_below
            code = topic.results_by_partition[0].partition_error_code
            if not code:
                transaction.added.add(tp)
            elif code != ErrorCode.CONCURRENT_TRANSACTIONS:
                producer.broken = True

        name = producer.transactional_id
        body = transaction_bodies.add_partition(name, producer.producer_id, producer.epoch, tp)
        newest = min(_ADD_NEWEST, self.world.served(24).highest)
        self.request("add_partition", producer, self.transaction_coordinator(name), body,
                     version % (newest + 1), heard)  # fmt: skip

    def send_batch_of(
        self, producer: TransactionalProducer, transaction: Transaction, batch: Batch, version: int
    ) -> None:
        newest = self.world.served(0).highest
        lowest = _IMPLICIT_PRODUCE if transaction.newer else 3
        highest = newest if transaction.newer else min(newest, _IMPLICIT_PRODUCE - 1)
        found = lowest + version % (highest - lowest + 1)
        batch.sent, batch.lost_on_the_way = batch.sent + 1, False
        body = data_bodies.produce(
            found, batch.tp, self.ids, batch.data(self.world.cluster.timers.now_ms), batch.acks,
            producer.transactional_id,
        )  # fmt: skip

        def heard(answer: Any) -> None:
            part = None if answer is None else answer.responses[0].partition_responses[0]
            if part is None or part.error_code:
                producer.broken = True
            elif part.base_offset >= 0:
                self.data.acknowledge(batch, part.base_offset)

        self.request("send_in_transaction", producer, self.leader_of(batch.tp, None), body, found,
                     heard)  # fmt: skip

    @rule(name=_ID, pick=PICK, newer=st.booleans(), version=_VERSION)
    def send_offset(self, name: str, pick: int, newer: bool, version: int) -> None:
        """An offset of a group becomes part of the transaction."""
        tp, transaction = self.pick(pick), self.open_transaction(name, newer=newer)
        if transaction is None or tp[0].startswith("__"):
            return
        model = self.of_transactions
        producer = model.producers[name]
        if not transaction.newer and not transaction.has_group:
            self.add_group(producer, transaction, version)
            if not transaction.accepts_offsets(producer):
                return
        newest = self.world.served(28).highest
        lowest = _IMPLICIT_OFFSETS if transaction.newer else 0
        highest = newest if transaction.newer else min(newest, _IMPLICIT_OFFSETS - 1)
        offset, model.next_offset = model.next_offset, model.next_offset + 1
        transaction.offsets[offset] = tp
        model.of_offset[offset] = transaction

        def heard(answer: Any) -> None:
            if answer is None or answer.topics[0].partitions[0].error_code:
                producer.broken = True
            else:
                transaction.taken[tp] = offset

        body = transaction_bodies.commit_offset(
            name, producer.producer_id, producer.epoch, _GROUP, tp, self.ids, offset
        )
        self.request("send_offset", producer, self.coordinator(_GROUP, None), body,
                     lowest + version % (highest - lowest + 1), heard)  # fmt: skip

    def add_group(
        self, producer: TransactionalProducer, transaction: Transaction, version: int
    ) -> None:
        def heard(answer: Any) -> None:
            if answer is None:
                producer.broken = True
            elif not answer.error_code:
                transaction.has_group = True
            elif answer.error_code != ErrorCode.CONCURRENT_TRANSACTIONS:
                producer.broken = True

        name = producer.transactional_id
        body = transaction_bodies.add_group(name, producer.producer_id, producer.epoch, _GROUP)
        newest = min(_ADD_NEWEST, self.world.served(25).highest)
        self.request("add_group", producer, self.transaction_coordinator(name), body,
                     version % (newest + 1), heard)  # fmt: skip

    @rule(name=_ID, commit=_COMMITS, version=_VERSION)
    def end_transaction(self, name: str, commit: bool, version: int) -> None:
        """Commit or abort. A commit without an answer is asked for again."""
        producer = self.transactional(name)
        if producer is None or producer.broken or producer.transaction is None:
            return
        transaction = producer.transaction
        if transaction.course is Course.ASKED or commit:
            transaction.course = Course.ASKED
        else:
            transaction.end()
        self.send_end(producer, transaction, version, committed=transaction.course is Course.ASKED)

    def send_end(
        self, producer: TransactionalProducer, transaction: Transaction, version: int, *,
        committed: bool,
    ) -> None:  # fmt: skip
        model, newest = self.of_transactions, self.world.served(26).highest
        lowest = _EPOCH_IN_END if transaction.newer else 0
        highest = newest if transaction.newer else min(newest, _EPOCH_IN_END - 1)
        found = lowest + version % (highest - lowest + 1)

        def heard(answer: Any) -> None:
            if answer is None:
                producer.broken = not committed
                return
            if answer.error_code:
                producer.broken = True
                return
            if committed:
                transaction.course = Course.COMMITTED
            producer.transaction = None
            if found >= _EPOCH_IN_END:
                producer_id, epoch = answer.producer_id, answer.producer_epoch
                known = model.epochs.get(producer_id, -1)
                assert epoch >= known, f"{transaction}: epoch {epoch} after {known}"
                assert (producer_id, epoch) != (transaction.producer_id, transaction.epoch), answer
                model.epochs[producer_id] = epoch
                producer.takes(producer_id, epoch)

        name = producer.transactional_id
        body = transaction_bodies.end(
            name, transaction.producer_id, transaction.epoch, committed=committed
        )
        self.request("end_transaction", producer, self.transaction_coordinator(name), body, found,
                     heard)  # fmt: skip

    @rule(which=st.integers(0, 5), version=_VERSION)
    def zombie_commits(self, which: int, version: int) -> None:
        """A process that another one of its transactional id has replaced cannot commit."""
        self.settle()
        fenced = self.of_transactions.fenced
        if not fenced:
            return
        zombie = fenced[which % len(fenced)]
        if zombie.producer_id < 0:
            return
        newest = min(self.world.served(26).highest, _EPOCH_IN_END - 1)

        def heard(answer: Any) -> None:
            if zombie in self.of_transactions.fenced and answer is not None:
                assert answer.error_code, f"{zombie} is fenced, and may commit"

        body = transaction_bodies.end(
            zombie.transactional_id, zombie.producer_id, zombie.epoch, committed=True
        )
        broker = self.transaction_coordinator(zombie.transactional_id)
        self.send("zombie_commits", _SLOT, broker, body, version % (newest + 1), heard)

    @rule(name=_ID, picks=st.lists(PICK, min_size=1, max_size=3), newer=st.booleans(),
          offset=st.booleans(), ends=st.lists(_COMMITS, min_size=1, max_size=3),
          version=_VERSION)  # fmt: skip
    def whole_transactions(
        self, name: str, picks: list[int], newer: bool, offset: bool, ends: list[bool], version: int
    ) -> None:
        """One after another, as far as the cluster lets the producer, and what is read then."""
        self.ready(name, version)
        for commit in ends:
            for pick in picks:
                self.send_in_transaction(name, pick, 2, newer, version)
            if offset:
                self.send_offset(name, picks[0], newer, version)
            self.transactions_hold()
            self.end_transaction(name, commit, version)
            self.transactions_hold()
        self.read_committed(picks[0])

    @rule(name=_ID, pick=PICK, newer=st.booleans(), version=_VERSION)
    def replace_process(self, name: str, pick: int, newer: bool, version: int) -> None:
        """Another process begins while a transaction is open, and the former one tries to end its
        transaction."""
        self.ready(name, version)
        self.send_in_transaction(name, pick, 1, newer, version)
        self.init_transactions(name, True, 60_000, version)
        self.ready(name, version)
        self.send_in_transaction(name, pick, 1, newer, version)
        self.zombie_commits(len(self.of_transactions.fenced) - 1, version)
        self.transactions_hold()
        self.end_transaction(name, True, version)
        self.read_committed(pick)

    def ready(self, name: str, version: int) -> None:
        """Let the producer have an epoch, as far as the cluster lets it."""
        for _ in range(2):  # the first time perhaps what is open is aborted
            producer = self.transactional(name)
            if producer is None or producer.broken:
                self.init_transactions(name, False, 60_000, version)

    # ---- a consumer ------------------------------------------------------------------------------

    @rule(pick=PICK)
    def read_committed(self, pick: int) -> None:
        self.settle()
        self.read_partition(self.pick(pick))

    def read_partition(self, tp: TopicPartition) -> ReadCommitted | None:
        """Read a log from its start as a consumer with ``read_committed`` does."""
        log, broker = self.world.cluster.logs.find(tp), self.leader_of(tp, None)
        if log is None or broker < 0 or tp[0].startswith("__"):
            return None
        start = log.start_offset
        found = read_committed(self.world, self.ids, _READER, broker, tp, start)
        self.settle()
        if found is not None:
            what_is_read_is_committed(self.data, self.of_transactions, found)
        return found

    # ---- a tester --------------------------------------------------------------------------------

    @rule(step=_STEPS, name=_ID, broker=BROKER)
    def transaction_tester(self, step: str, name: str, broker: int) -> None:
        self.settle()
        if step.startswith(_ABORTS):
            self.end_open(name)
            producer = self.of_transactions.producers.get(name)
            if producer is not None:
                producer.broken = True
        call = parse_operation(step.format(id=name, broker=broker))
        self.step(call.operation.name, self.world.mock.carry_out, call)

    def release(self) -> None:
        super().release()
        for step in ("release-markers", *(f"finish-loading transaction {each}" for each in "tu")):
            self.world.do(self.world.mock.carry_out, parse_operation(step))

    def finish(self) -> None:
        super().finish()
        self.transactions_hold()
        for tp, _ in list(self.world.cluster.logs):
            read = self.read_partition(tp)
            assert read is None or read.end >= read.stable, f"{read} ends too early"
        committed_offsets_are_the_newest(self.world, self.data, self.of_transactions, _GROUP)


def data_machine_of(profile: Profile) -> type[DataMachine]:
    """Return a new class with its own tally."""
    name = "".join(part.capitalize() for part in profile.name.replace(".", "-").split("-"))
    return type(f"Data{name}", (DataMachine,), {"profile": profile, "tally": Counter()})


def data_profiles() -> list[Profile]:
    """The profiles whose producers send batches of magic 2, those of drafts left out: 0.11 and
    newer."""
    return [each for each in all_profiles() if each.dialect == "kafka" and each.line >= (0, 11)]
