"""What producers and consumers do to logs, and what a tester does to both, as rules of hypothesis.

Answers that come later are handed to their requests at the next step (``settle``). ``group_rules``
adds the members of groups.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from typing import Any

from hypothesis import strategies as st
from hypothesis.stateful import initialize, invariant, rule

from fuzz.stateful import data_bodies
from fuzz.stateful.data_invariants import (
    DATA_ALWAYS,
    acknowledged_records_are_lost_only_unclean,
    values_of,
)
from fuzz.stateful.data_model import OFFSETS_TOPIC, Batch, DataModel, Producer
from fuzz.stateful.machine import ClusterMachine
from fuzz.stateful.strategies import BROKER, DATA_FAULTS, MISSING, PICK, TOPICS
from fuzz.stateful.transaction_model import STATE_TOPIC
from fuzz.stateful.wire import PendingRequest
from fuzz.stateful.world import World
from kproto.error_codes import ErrorCode
from kproto.messages.init_producer_id_request import InitProducerIdRequest
from kproto.records import Compression, RecordBatches
from mockbroker.faults import Fault
from mockbroker.simulation.operations import parse_operation
from mockbroker.simulation.operations.simulated import Operations
from mockbroker.simulation.state.actions import Action
from mockbroker.simulation.state.cluster_parts import TopicPartition

__all__ = ["DataRules"]

_SLOT = st.integers(0, 3)
_VERSION = st.integers(0, 20)
_ACKS = st.sampled_from([-1, -1, -1, 1, 1, 0])
_ELSEWHERE = st.none() | st.none() | st.none() | BROKER
"""The broker that a request is sent to; None is the leader."""
LOG_DIRS = ("/disk-1", "/disk-2")
_CONFIGS = {
    "offsets.topic.num.partitions": "2",
    "transaction.state.log.num.partitions": "2",
    "group.initial.rebalance.delay.ms": "0",
    "log.dirs": ",".join(LOG_DIRS),
}
_JBOD_SINCE = (1, 0)
_FIRST_SLOT = 10
"""Administrators have other connections: theirs must not wait behind fetches and joins."""
_NEVER_CUT = 1 << 60
_MOST_IN_LINE = 40
"""More requests than ever wait on a connection."""
_MAGIC_2_SINCE = 3
_MAGIC_2_FETCHED_SINCE = 4
_START_ANEW = frozenset(
    {
        ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER,
        ErrorCode.UNKNOWN_PRODUCER_ID,
        ErrorCode.INVALID_PRODUCER_EPOCH,
        ErrorCode.DUPLICATE_SEQUENCE_NUMBER,
    }
)
"""Errors after which an idempotent producer needs another id."""
_LOG_STEPS = st.sampled_from(
    ["append {tp} appended", "truncate {tp} {offset}", "truncate {tp} {offset}",
     "unclean-election {tp} {broker}", "jump-log-start {tp} {offset}", "roll-segment {tp}",
     "apply-retention", "forget-producer {tp}", "diverge {tp} 0"]
)  # fmt: skip
_HOLDS = st.sampled_from(
    ["hold-replication {tp}", "hold-replication {tp} {broker}", "replicate {tp} {broker}",
     "release-replication {tp}", "lag-high-watermark {tp} 2", "lag-high-watermark {tp} 0",
     "hold-produces {tp}", "release-produces", "hold-fetches {tp}", "release-fetches",
     "complete-fetches", "expire-fetch-session"]
)  # fmt: skip


class DataRules(ClusterMachine):
    """``data`` is what clients may expect, ``unanswered`` the requests whose answers are still to
    come, each with what they mean."""

    anything: Any = None
    """Random requests would commit and produce what the model does not know."""
    # ``ClusterMachine`` alone has the rules that say little about data.
    unserved = api_versions = metadata = list_ongoing = create_partitions = propagation = anything
    ask_by_znode = write_znode = delete_by_znode = fault = elections = anything
    hold_metadata = release_metadata = auto_progress = failover = die_after = advance = anything

    data: DataModel

    @initialize(topics=TOPICS, reply35=st.booleans())
    def start(self, topics: list[str], reply35: bool) -> None:
        self.world = World(self.profile, topics, reply35=reply35, configs=_CONFIGS)
        self.codec = self.world.mock.dialect
        self.prepare()
        name = sorted(self.world.cluster.topics)[0]
        assert self.world.do(Operations(self.world.cluster).set_offset, "other", (name, 0), 0)
        for step in ("load-coordinator transaction t", "finish-loading transaction t"):
            assert self.world.do(self.world.mock.carry_out, parse_operation(step))
        self.world.model.learn(self.world.cluster)
        self.read = len(self.world.cluster.log)
        for number in range(2):
            self.new_producer(1 + number, 20)
        self.look()

    def prepare(self) -> None:
        """What is known before the first request."""
        self.data = DataModel(self.profile.line)
        self.unanswered: list[tuple[PendingRequest, Callable[[Any], None]]] = []
        self.read = 0

    @invariant()
    def data_holds(self) -> None:
        if getattr(self, "world", None) is not None:
            self.settle()
            for holds in DATA_ALWAYS:
                holds(self.world, self.data)

    def pick(self, number: int) -> TopicPartition:
        """Few partitions are picked often, so that their logs fill, and an internal one rarely."""
        topics = sorted(self.world.cluster.topics.items())
        known = [
            (name, each.index)
            for name, topic in topics
            for each in topic.partitions
            if (name == OFFSETS_TOPIC) == (number == 10) and name != STATE_TOPIC
        ]
        often = known[: 2 + number % 3]
        return often[number % len(often)] if often and number < 11 else MISSING

    # ---- answers ---------------------------------------------------------------------------------

    def settle(self) -> None:
        """Hand out the answers that have come, and read what the action log says about logs."""
        waiting = {id(each) for client in self.world.clients for each in client.waiting}
        unanswered, self.unanswered = self.unanswered, []
        for request, heard in unanswered:
            if request.faulted:
                heard(None)
            elif request.answer is not None:
                heard(request.answer)
            elif id(request) in waiting:
                self.unanswered.append((request, heard))
            else:
                heard(None)  # the connection is gone
        actions = self.world.cluster.log.since(self.read)
        self.read += len(actions)
        acknowledged_records_are_lost_only_unclean(self.world, actions)
        self.follow(actions)

    def follow(self, actions: Sequence[Action]) -> None:
        self.data.follow(actions)

    def send(
        self, name: str, slot: int, broker: int, body: Any, version: int,
        heard: Callable[[Any], None],
    ) -> None:  # fmt: skip
        """Send a request and call ``heard`` with its answer, or with None if there is none or if it
        proves nothing."""
        self.settle()
        if broker < 0:
            return
        client = self.world.client(_FIRST_SLOT + slot, broker)
        request = None if client is None else self.world.ask(client, body, version)
        if request is None:
            return heard(None)
        self.world.fired[name] += 1
        self.unanswered.append((request, heard))
        return self.settle()

    def leader_of(self, tp: TopicPartition, at: int | None) -> int:
        """The broker to send to: the leader, or ``at``."""
        topic = self.world.cluster.topics.get(tp[0])
        partition = None if topic is None else topic.partition(tp[1])
        if at is not None:
            return at
        return 1 if partition is None else partition.leader

    @property
    def ids(self) -> dict[str, Any]:
        return {name: each.topic_id for name, each in self.world.cluster.topics.items()}

    # ---- producers -------------------------------------------------------------------------------

    @rule(at=BROKER, version=_VERSION)
    def new_producer(self, at: int, version: int) -> None:
        found = self.world.version(22, version)
        if found is None or len(self.data.producers) > 3:
            return

        def heard(answer: Any) -> None:
            if answer is not None and not answer.error_code:
                known = {each.producer_id for each in self.data.producers}
                assert answer.producer_id not in known, "a producer id was given twice"
                self.data.producers.append(Producer(answer.producer_id))

        body = InitProducerIdRequest(transactional_id=None, transaction_timeout_ms=60_000)
        self.send("new_producer", 0, at, body, found, heard)

    @rule(pick=PICK, number=st.integers(1, 3))
    def fill(self, pick: int, number: int) -> None:
        """Batches of both kinds of producers, one after another."""
        for each in range(number):
            self.produce(each, pick, None, 2, -1, Compression.NONE, 9)
            self.produce_idempotently(each, pick, None, 1, each, 9)

    @rule(pick=PICK, what=st.sampled_from(["replication", "produces", "fetches"]),
          released=st.booleans())  # fmt: skip
    def wait(self, pick: int, what: str, released: bool) -> None:
        """Produce and fetch while replicas or answers are held, and perhaps release them."""
        self.tester(f"hold-{what} {{tp}}", pick, 0, 0)
        self.produce(0, pick, None, 1, -1, Compression.NONE, 9)
        self.fetch(1, pick, None, 1, 11, 500, 0, 1)
        self.fetch(2, pick, None, -1, 11, 30_000, 0, 1)
        if released:
            self.tester(f"release-{what} {{tp}}", pick, 0, 0)

    @rule(slot=_SLOT, pick=PICK, at=_ELSEWHERE, count=st.integers(1, 3), acks=_ACKS,
          codec=st.sampled_from([Compression.NONE, Compression.NONE, Compression.GZIP]),
          version=_VERSION)  # fmt: skip
    def produce(
        self, slot: int, pick: int, at: int | None, count: int, acks: int, codec: Compression,
        version: int,
    ) -> None:  # fmt: skip
        """Produce without idempotence: each batch is sent once."""
        tp = self.pick(pick)
        self.produce_batch(slot, at, self.data.new_batch(tp, count, acks, codec, None), version)

    @rule(slot=_SLOT, pick=PICK, at=_ELSEWHERE, count=st.integers(1, 3), which=st.integers(0, 3),
          version=_VERSION)  # fmt: skip
    def produce_idempotently(
        self, slot: int, pick: int, at: int | None, count: int, which: int, version: int
    ) -> None:
        """The next batch of a producer, or its last one again if nobody acknowledged that."""
        if not self.data.producers:
            return
        self.settle()
        tp, producers = self.pick(pick), self.data.producers
        producer = producers[which % len(producers)]
        history = producer.history(tp)
        if history and history[-1].offset is None:
            batch = history[-1]
        else:
            batch = self.data.new_batch(tp, count, -1, Compression.NONE, producer)
        self.produce_batch(slot, at, batch, version)

    @rule(slot=_SLOT, pick=PICK, at=_ELSEWHERE, which=st.integers(0, 3), age=st.integers(0, 4),
          version=_VERSION)  # fmt: skip
    def send_again(
        self, slot: int, pick: int, at: int | None, which: int, age: int, version: int
    ) -> None:
        """One of the newest batches of a producer again, although it was acknowledged."""
        if not self.data.producers:
            return
        self.settle()
        tp, producers = self.pick(pick), self.data.producers
        history = producers[which % len(producers)].history(tp)
        if history:
            self.produce_batch(slot, at, history[-1 - age % len(history)], version)

    def produce_batch(self, slot: int, at: int | None, batch: Batch, version: int) -> None:
        newest = self.world.served(0).highest
        found = _MAGIC_2_SINCE + version % (newest - _MAGIC_2_SINCE + 1)
        batch.sent, batch.lost_on_the_way = batch.sent + 1, False
        data = batch.data(self.world.cluster.timers.now_ms)
        body = data_bodies.produce(found, batch.tp, self.ids, data, batch.acks)
        broker = self.leader_of(batch.tp, at)

        def heard(answer: Any) -> None:
            if answer is None:
                return
            part = answer.responses[0].partition_responses[0]
            if not part.error_code:
                if part.base_offset >= 0:  # a duplicate that is too old to be found has none
                    self.data.acknowledge(batch, part.base_offset)
            elif part.error_code in _START_ANEW:
                self.data.producers = [
                    each for each in self.data.producers if each.producer_id != batch.producer_id
                ]

        self.send("produce", slot, broker, body, found, heard)

    # ---- consumers -------------------------------------------------------------------------------

    @rule(slot=_SLOT, pick=PICK, at=_ELSEWHERE, back=st.integers(-1, 6), version=_VERSION,
          wait_ms=st.sampled_from([0, 0, 500, 30_000]), isolation=st.sampled_from([0, 1]),
          min_bytes=st.sampled_from([1, 1, 200]))  # fmt: skip
    def fetch(
        self, slot: int, pick: int, at: int | None, back: int, version: int, wait_ms: int,
        isolation: int, min_bytes: int,
    ) -> None:  # fmt: skip
        found, tp = self.world.version(1, version), self.pick(pick)
        if found is None:
            return
        log = self.world.cluster.logs.find(tp)
        offset = 0 if log is None else max(log.high_watermark - back, 0)
        body = data_bodies.fetch(
            found, tp, self.ids, offset, wait_ms=wait_ms, min_bytes=min_bytes, isolation=isolation
        )

        def heard(answer: Any) -> None:
            if answer is not None and answer.responses:
                self.check_fetched(tp, offset, found, answer.responses[0].partitions[0])

        self.send("fetch", slot, self.leader_of(tp, at), body, found, heard)

    def check_fetched(self, tp: TopicPartition, offset: int, version: int, part: Any) -> None:
        """Records are those of the log, in order, replicated, and reach the fetch offset."""
        if part.error_code or not part.records:
            return
        if version < _MAGIC_2_FETCHED_SINCE:
            return  # converted to older messages, which end with a part of a batch
        cut = min(self.cut_now(tp), self.data.cut.get(tp, _NEVER_CUT))
        log, offsets = self.world.cluster.logs.find(tp), []
        values = {} if log is None else values_of(self.world, tp)
        for batch in RecordBatches(part.records):
            for record in batch.records():
                offsets.append(record.offset)
                if log is not None and record.offset < cut:
                    assert record.offset < log.high_watermark, (tp, record.offset)
                    gone = batch.is_control or record.offset < log.start_offset
                    assert gone or values.get(record.offset) == record.value, (tp, record.offset)
        assert offsets == sorted(set(offsets)), (tp, offsets)
        assert not offsets or offsets[-1] >= offset, (tp, offset, offsets)

    def cut_now(self, tp: TopicPartition) -> int:
        """Where the log was cut by actions that have not been read yet."""
        found = _NEVER_CUT
        for action in self.world.cluster.log.since(self.read):
            if action.kind == "TopicDeleted" and action.change.name == tp[0]:  # type: ignore[union-attr]
                return 0
            if action.kind == "RecordsLost":
                lost: Any = action.change
                if (lost.topic, lost.index) == tp:
                    found = min(found, lost.first_offset)
        return found

    @rule(slot=_SLOT, pick=PICK, at=_ELSEWHERE, timestamp=st.sampled_from([-1, -2]),
          version=_VERSION)  # fmt: skip
    def list_offsets(
        self, slot: int, pick: int, at: int | None, timestamp: int, version: int
    ) -> None:
        found, tp = self.world.version(2, version), self.pick(pick)
        if not found:
            return

        def heard(answer: Any) -> None:
            if answer is None or answer.topics[0].partitions[0].error_code:
                return
            log = self.world.cluster.logs.find(tp)
            if log is None or self.cut_now(tp) < _NEVER_CUT or cuts != self.data.cuts:
                return  # the answer may be about what is gone
            # It may have waited behind other answers of its connection.
            highest = log.high_watermark if timestamp == -1 else log.start_offset
            offset = answer.topics[0].partitions[0].offset
            assert lowest <= offset <= highest, (tp, timestamp, answer, lowest, highest)

        self.settle()
        known = self.world.cluster.logs.find(tp)
        lowest, cuts = 0, self.data.cuts
        if known is not None:
            lowest = known.high_watermark if timestamp == -1 else known.start_offset
        body = data_bodies.list_offsets(tp, timestamp)
        self.send("list_offsets", slot, self.leader_of(tp, at), body, found, heard)

    @rule(slot=_SLOT, pick=PICK, at=_ELSEWHERE, back=st.integers(0, 5), version=_VERSION)
    def delete_records(self, slot: int, pick: int, at: int | None, back: int, version: int) -> None:
        found, tp = self.world.version(21, version), self.pick(pick)
        if found is None:
            return
        log = self.world.cluster.logs.find(tp)
        offset = -1 if log is None or not back else max(log.high_watermark - back, 0)

        def heard(answer: Any) -> None:
            if answer is None:
                return
            part = answer.topics[0].partitions[0]
            if not part.error_code:
                assert part.low_watermark >= offset, (tp, offset, part)
                log = self.world.cluster.logs.find(tp)
                assert log is None or log.start_offset >= part.low_watermark, (tp, part)

        body = data_bodies.delete_records(tp, offset)
        self.send("delete_records", slot, self.leader_of(tp, at), body, found, heard)

    # ---- a tester --------------------------------------------------------------------------------

    @rule(step=_LOG_STEPS, pick=PICK, which=st.integers(0, 3), back=st.integers(0, 4))
    def change_log(self, step: str, pick: int, which: int, back: int) -> None:
        """What a tester does to logs, and no client can."""
        self.tester(step, pick, which, back)

    @rule(step=_HOLDS, pick=PICK, which=st.integers(0, 3))
    def hold(self, step: str, pick: int, which: int) -> None:
        """What a tester lets replicas and requests wait for."""
        self.tester(step, pick, which, 0)

    def tester(self, step: str, pick: int, which: int, back: int) -> None:
        self.settle()
        tp, cluster = self.pick(pick), self.world.cluster
        log = cluster.logs.find(tp)
        offset = 0 if log is None else max(log.end_offset - back, 0)
        hosts = (1,) if log is None else cluster.topics.partition(*tp).hosts
        broker = hosts[which % len(hosts)]
        text = step.format(tp=f"{tp[0]}-{tp[1]}", broker=broker, offset=offset)
        partition = None if log is None else cluster.topics.partition(*tp)
        if step.startswith("unclean") and (partition is None or partition.reassigning):
            return
        if step.startswith("unclean") and self.world.keeps_znodes:
            return  # a reassignment may then leave a leader that is no replica, as in Kafka
        if step.startswith("forget-producer"):
            self.data.forgotten.add(tp)
        call = parse_operation(text)
        self.step(call.operation.name, self.world.mock.carry_out, call)

    @rule(broker=BROKER, directory=st.sampled_from([*LOG_DIRS, None]))
    def fail_log_dir(self, broker: int, directory: str | None) -> None:
        """A disk of a broker fails, or all of them. Before Kafka 1.0 the broker stops."""
        cluster = self.world.cluster
        failed = self.failed_dirs(broker)
        may_fail = broker in self.world.model.live and set(LOG_DIRS) - failed
        if may_fail and (directory is None or directory not in failed):
            if self.profile.line < _JBOD_SINCE:
                self.world.model.stopped(broker)
            assert self.step("fail_log_dir", Operations(cluster).fail_log_dir, broker, directory)

    @rule(broker=BROKER, directory=st.sampled_from([*LOG_DIRS, None]))
    def mend_log_dir(self, broker: int, directory: str | None) -> None:
        """A disk is replaced, if one has failed; a live broker restarts for that."""
        hurt = sorted(self.world.state.replica_dirs.failed)
        broker = hurt[broker % len(hurt)] if hurt else broker
        failed = self.failed_dirs(broker)
        if failed and (directory is None or directory in failed):
            if broker in self.world.model.live:
                self.world.model.stopped(broker)
                self.world.model.started(broker)
            assert self.step(
                "mend_log_dir", Operations(self.world.cluster).mend_log_dir, broker, directory
            )

    def failed_dirs(self, broker: int) -> frozenset[str]:
        return self.world.state.replica_dirs.failed.get(broker, frozenset())

    @rule(milliseconds=st.sampled_from([500, 5_000, 11_000, 61_000]))
    def let_time_pass(self, milliseconds: int) -> None:
        self.step("let_time_pass", self.world.advance, milliseconds)

    @rule(fault=DATA_FAULTS)
    def data_fault(self, fault: Fault) -> None:
        self.step("data_fault", self.world.fault, fault)

    # ---- the end ---------------------------------------------------------------------------------

    def release(self) -> None:
        """Let everything go that a tester holds."""
        cluster, mock = self.world.cluster, self.world.mock
        for tp, _ in list(cluster.logs):
            name = f"{tp[0]}-{tp[1]}"
            for text in (f"release-replication {name}", f"lag-high-watermark {name} 0"):
                call = parse_operation(text)
                self.world.do(mock.carry_out, call)
        for text in ("release-produces", "release-fetches"):
            self.world.do(mock.carry_out, parse_operation(text))

    def finish(self) -> None:
        """After ``heal``: whatever was held is released, and then no request waits for ever."""
        self.release()
        self.settle()
        if not self.data.cuts:  # else a produce request may wait for records that are gone
            self.nothing_waits({0, 8, 21})
        for _ in range(_MOST_IN_LINE):
            if any(client.waiting for client in self.world.clients):
                self.world.advance(61_000)  # the next request in line begins to wait
        self.world.advance(301_000)
        self.settle()
        self.nothing_waits()
        for tp, data in self.world.cluster.logs:
            log = data.log
            assert log.high_watermark == log.end_offset, f"{tp} is not replicated: {log.end_offset}"
        self.data_holds()

    def nothing_waits(self, keys: Collection[int] = ()) -> None:
        """No request of these APIs waits, or of any."""
        for client in self.world.clients:
            late = [each for each in client.waiting if not each.faulted]
            if late and keys and late[0].api_key not in keys:
                continue  # those behind it wait for it
            assert not late, f"these still wait: {late}"
