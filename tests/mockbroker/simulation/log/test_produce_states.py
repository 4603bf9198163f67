"""Any sequence of appends, retries, elections and held replicas keeps what a log promises."""

from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from kproto.error_codes import ErrorCode
from kproto.records import RecordBatches, end_transaction_marker
from mockbroker.errors import ClusterError
from mockbroker.simulation.log.producing.appender import AppendOutcome, ReplicationWait
from mockbroker.simulation.operations.simulated import Operations
from mockbroker.simulation.state.cluster_parts import NO_LEADER
from tests.mockbroker.simulation.log.producing import (
    FOO,
    NOW_MS,
    batch,
    changed,
    new_cluster,
    produce,
    stored,
)
from tests.mockbroker.simulation.log.records import append_batch

BROKERS = st.sampled_from([1, 2, 3])
PRODUCERS = st.sampled_from([7, 8])
RELEASES = [(0, 11), (2, 3), (2, 4), (3, 5), (4, 4)]


class Producing(RuleBasedStateMachine):
    """Two idempotent producers and a plain one, three replicas, and a tester who holds them."""

    @initialize(release=st.sampled_from(RELEASES), unclean=st.booleans())
    def start(self, release: tuple[int, int], unclean: bool) -> None:
        configs = {"unclean.leader.election.enable": "true"} if unclean else {}
        self.release = release
        self.cluster = new_cluster(release, configs)
        self.log = self.cluster.logs.log(FOO)
        self.waits: list[tuple[AppendOutcome, ReplicationWait]] = []
        self.watermark = self.end = 0
        self.number = 0

    # ---- producers -----------------------------------------------------------------------------

    def _send(self, data: bytes, acks: int = 1) -> AppendOutcome:
        leader = self.cluster.topics.partition(*FOO).leader
        outcome = produce(self.cluster, data, acks=acks, broker_id=leader)
        if acks == -1:
            self.waits.append((outcome, self.cluster.appender.wait([outcome])))
        return outcome

    def _values(self, count: int) -> list[bytes]:
        self.number += count
        return [b"%d" % each for each in range(self.number - count, self.number)]

    @rule(count=st.integers(1, 3), acks=st.sampled_from([1, -1]))
    def append(self, count: int, acks: int) -> None:
        before = self.log.end_offset
        outcome = self._send(batch(*self._values(count)), acks)
        if outcome.base_offset >= 0:
            assert (outcome.base_offset, self.log.end_offset) == (before, before + count)

    @rule(producer=PRODUCERS, count=st.integers(1, 3), transactional=st.booleans())
    def append_in_sequence(self, producer: int, count: int, transactional: bool) -> None:
        known = self.log.producers.get(producer)
        sequence = 0 if known is None else known.last_sequence + 1
        data = batch(
            *self._values(count), producer_id=producer, producer_epoch=0, base_sequence=sequence,
            is_transactional=transactional,
        )  # fmt: skip
        before = self.log.end_offset
        outcome = self._send(data)
        if not outcome.error:
            assert outcome.base_offset == before
        else:
            assert self.log.end_offset == before

    @rule(producer=PRODUCERS, place=st.integers(0, 6))
    def send_again(self, producer: int, place: int) -> None:
        """Repeat one of the newest batches of a producer, as the log has it."""
        kept = [
            each for each in self._batches() if each.producer_id == producer and not each.is_control
        ][::-1]
        if place >= len(kept) or self.cluster.topics.partition(*FOO).leader == NO_LEADER:
            return
        found = kept[place]
        before = self.log.end_offset
        outcome = self._send(changed(found.data, base_offset=0))
        assert self.log.end_offset == before, "a duplicate is never appended"
        remembered = place < (5 if self.release >= (1, 0) else 1)
        if remembered:
            assert (outcome.error, outcome.base_offset) == (0, found.base_offset)
        else:
            assert outcome.error == ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER

    @rule()
    def fail_leader(self) -> None:
        self._step(Operations(self.cluster).stop_broker, self.cluster.topics.partition(*FOO).leader)

    @rule(producer=PRODUCERS, commit=st.booleans())
    def end_transaction(self, producer: int, commit: bool) -> None:
        known = self.log.producers.get(producer)
        if known is not None and self.cluster.topics.partition(*FOO).leader != NO_LEADER:
            append_batch(
                self.cluster,
                end_transaction_marker(
                    commit=commit, producer_id=producer, producer_epoch=known.epoch,
                    coordinator_epoch=0, timestamp=NOW_MS,
                ),
            )  # fmt: skip

    # ---- replicas ------------------------------------------------------------------------------

    def _step(self, step: Callable[..., Any], *args: Any) -> None:
        """Take a step of the cluster, which may be impossible now."""
        try:
            step(*args)
        except ClusterError:
            return

    @rule(broker_id=BROKERS)
    def hold(self, broker_id: int) -> None:
        self._step(self.cluster.logs.hold_replication, FOO, broker_id)

    @rule(broker_id=BROKERS, offset=st.integers(0, 20))
    def replicate(self, broker_id: int, offset: int) -> None:
        self._step(self.cluster.logs.replicate, FOO, broker_id, offset)

    @rule(broker_id=BROKERS)
    def release_replica(self, broker_id: int) -> None:
        self._step(self.cluster.logs.release_replication, FOO, broker_id)

    @rule(broker_id=BROKERS)
    def leave_isr(self, broker_id: int) -> None:
        self._step(Operations(self.cluster).leave_isr, FOO, broker_id)

    @rule(broker_id=BROKERS)
    def join_isr(self, broker_id: int) -> None:
        self._step(Operations(self.cluster).join_isr, FOO, broker_id)

    @rule(broker_id=BROKERS)
    def stop(self, broker_id: int) -> None:
        self._step(Operations(self.cluster).stop_broker, broker_id)

    @rule(broker_id=BROKERS)
    def start_again(self, broker_id: int) -> None:
        self._step(Operations(self.cluster).start_broker, broker_id)

    @rule(offset=st.integers(0, 20))
    def advance_start(self, offset: int) -> None:
        self.cluster.logs.advance_start("delete_records", FOO, offset)

    # ---- what holds ----------------------------------------------------------------------------

    def _batches(self) -> list[Any]:
        return [*RecordBatches(stored(self.log))]

    @invariant()
    def offsets_are_in_order(self) -> None:
        log = self.log
        assert log.start_offset <= log.last_stable_offset <= log.high_watermark <= log.end_offset

    @invariant()
    def no_offset_is_given_twice(self) -> None:
        following = None
        for each in self._batches():
            assert following in (None, each.base_offset)
            following = each.next_offset
        assert following in (None, self.log.end_offset)

    @invariant()
    def the_high_watermark_falls_only_with_the_end(self) -> None:
        log = self.log
        if log.high_watermark < self.watermark:
            assert log.end_offset < self.end
        self.watermark, self.end = log.high_watermark, log.end_offset

    def _kept(self, producer: int) -> list[tuple[int, int]]:
        """(base sequence, base offset) of the batches of a producer that the log has."""
        return [
            (each.base_sequence, each.base_offset)
            for each in self._batches()
            if each.producer_id == producer and not each.is_control
        ]

    @invariant()
    def the_state_of_producers_is_that_of_the_log(self) -> None:
        stored_from = next((each.base_offset for each in self._batches()), self.log.end_offset)
        for producer in (7, 8):
            known = self.log.producers.get(producer)
            batches = () if known is None else known.batches
            assert [
                (each.first_sequence, each.first_offset)
                for each in batches
                if each.first_offset >= stored_from
            ] == self._kept(producer)[-5:]

    @invariant()
    def transactions_are_those_of_the_log(self) -> None:
        starts: dict[int, int] = {}
        for each in self._batches():
            if each.is_control:
                starts.pop(each.producer_id, None)
            elif each.is_transactional:
                starts.setdefault(each.producer_id, each.base_offset)
        if self.log.start_offset == 0:
            opened = {
                each.producer_id: each.transaction_start
                for each in self.log.producers
                if each.transaction_start is not None
            }
            assert opened == starts

    @invariant()
    def answers_are_right(self) -> None:
        for outcome, wait in self.waits:
            if wait.is_over and outcome.error == ErrorCode.NONE:
                assert outcome.end_offset is not None
        self.waits = [each for each in self.waits if not each[1].is_over]
        if not self.waits:
            assert not self.log.watched

    def teardown(self) -> None:
        for _, wait in getattr(self, "waits", []):
            wait.expire()
            assert wait.is_over


TestProducing = pytest.mark.requirement("DP-LOG-04", "DP-LOG-06", "DP-IDEM-01", "DP-IDEM-15")(
    Producing.TestCase
)
TestProducing.settings = settings(max_examples=60, stateful_step_count=30, deadline=None)
