"""The queue of elections: when an election is held, and when its request is answered.

A request waits for the flag (KIP-183 only: check-and-set, then enqueue), then for the controller to
process its election, then for the broker that received it to learn of the new leaders, all within
its own time-out. After that it is answered with REQUEST_TIMED_OUT (7) for every pending partition;
an election that was enqueued is still held later. The znode ``/admin/preferred_replica_election``
is queued in the same way, without a request. Kafka's own brokers wait for the controller's queue
without a bound.

Time is the controller's clock. What is due happens after each step; a timer is set for the rest.
``elect`` decides who is elected.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial

import msgspec

from kproto.error_codes import ErrorCode
from kproto.znodes import MalformedZnodeError
from kproto.znodes.plan_znodes import PREFERRED_REPLICA_ELECTION, decode_preferred_replica_election
from mockbroker.simulation.elections.answers import ElectionAnswers
from mockbroker.simulation.elections.elect import PREFERRED, ElectionOutcome, LeaderElections
from mockbroker.simulation.state.actions import ElectionEnqueued, ElectionProcessed, Warned
from mockbroker.simulation.state.cluster_parts import (
    NO_CONTROLLER,
    PartitionsByTopic,
    TopicPartition,
    find_partition,
)
from mockbroker.simulation.state.controller import Controller
from mockbroker.simulation.state.results import ElectLeadersResult, PartitionResult, TopicResult

__all__ = ["ElectionQueue", "StartedElection"]

_ZNODE = "zookeeper"


class StartedElection(msgspec.Struct, eq=False):
    """The election of one request. ``result`` is None until it is answered."""

    election_type: int
    topics: PartitionsByTopic
    everything: bool
    broker_id: int
    deadline_ms: int
    controller_epoch: int
    result: ElectLeadersResult | None = None
    _outcome: ElectionOutcome | None = None
    _pending: dict[TopicPartition, int] = msgspec.field(default_factory=dict)
    _callbacks: list[Callable[[], None]] = msgspec.field(default_factory=list)

    @classmethod
    def refused(cls, result: ElectLeadersResult) -> StartedElection:
        """Return an election that was refused at once."""
        return cls(PREFERRED, (), False, -1, 0, 0, result)

    def when_done(self, callback: Callable[[], None]) -> None:
        """Call this when there is a result, or at once if there is one already."""
        if self.result is None:
            self._callbacks.append(callback)
        else:
            callback()

    def finish(self, result: ElectLeadersResult) -> None:
        """Set the result, unless there is one already."""
        if self.result is None:
            self.result = result
            for callback in self._callbacks:
                callback()

    def set_outcome(self, outcome: ElectionOutcome) -> None:
        self._outcome = outcome
        self._pending = dict(outcome.leaders)

    @property
    def is_processed(self) -> bool:
        return self._outcome is not None

    def is_known(self, leader_of: Callable[[TopicPartition], int | None]) -> bool:
        """Return whether every elected partition has its new leader in the metadata by now."""
        for tp, leader in list(self._pending.items()):
            if leader_of(tp) == leader:
                del self._pending[tp]
        return self.is_processed and not self._pending

    def current_result(self, elections: LeaderElections) -> ElectLeadersResult:
        """Return the result as of now: error 7 for each pending partition."""
        if self._outcome is None:
            return elections.refused(self.topics, ErrorCode.REQUEST_TIMED_OUT)
        decided = self._outcome.result
        topics = tuple(
            TopicResult(
                topic.name,
                tuple(
                    PartitionResult(row.partition_index, ErrorCode.REQUEST_TIMED_OUT)
                    if (topic.name, row.partition_index) in self._pending
                    else row
                    for row in topic.partitions
                ),
            )
            for topic in decided.topics
        )
        return ElectLeadersResult(decided.error_code, topics)


class _FromZnode(msgspec.Struct, frozen=True):
    """An election requested by ``/admin/preferred_replica_election``, which is read when held."""

    controller_epoch: int


_Election = StartedElection | _FromZnode


class ElectionQueue:
    """Elections that wait for their turn, and requests that wait for their answer.

    ``busy_is_error``: a request that finds KIP-183's flag set is answered with error 7 at once,
    instead of waiting for it. ``rules`` decide who is elected.
    """

    def __init__(
        self, controller: Controller, rules: LeaderElections, *, busy_is_error: bool = False
    ) -> None:
        self._controller = controller
        self.rules = rules
        self._busy_is_error = busy_is_error
        self._last_id = 0
        self._for_flag: list[_Election] = []
        self._enqueued: dict[int, _Election] = {}
        self._for_metadata: list[StartedElection] = []
        self._timer = controller.timers.timer(controller.turns.settle, "time-out of an election")
        self.turns = controller.turns
        if self.answers.queued:
            self.turns.reactions.append(self._settle)

    @property
    def answers(self) -> ElectionAnswers:
        """How requests are answered."""
        return self.rules.answers

    # ---- in ----------------------------------------------------------------------------------

    def elect(self, election_type: int, topics: PartitionsByTopic | None) -> ElectLeadersResult:
        """Elect leaders without waiting. Elections that are still pending have error 7."""
        started = self.start(election_type, topics, timeout_ms=0)
        assert started.result is not None, "the time-out has passed"
        return started.result

    def start(
        self,
        election_type: int,
        topics: PartitionsByTopic | None,
        *,
        broker_id: int | None = None,
        timeout_ms: int = 60_000,
    ) -> StartedElection:
        """Elect leaders, as one step. ``election_type`` 0 is preferred, 1 unclean; ``topics`` None
        means every partition. The result may be set later: when the broker that received the
        request (None is the controller) knows the new leaders, or after ``timeout_ms`` of the
        virtual clock.
        """
        refusal = self.rules.unknown_type(election_type, topics)
        if refusal is not None:
            return StartedElection.refused(refusal)
        receiver = self._controller.state.controller_id if broker_id is None else broker_id
        requested = self.rules.every_partition(receiver) if topics is None else topics
        with self.turns.step(by_controller=True):
            return self._start(election_type, requested, topics is None, receiver, timeout_ms)

    def _start(
        self,
        election_type: int,
        topics: PartitionsByTopic,
        everything: bool,
        broker_id: int,
        timeout_ms: int,
    ) -> StartedElection:
        controller = self._controller
        deadline = controller.now_ms + timeout_ms
        epoch = controller.state.controller_epoch
        started = StartedElection(election_type, topics, everything, broker_id, deadline, epoch)
        if not self.answers.queued:
            outcome = self.rules.elect(election_type, topics, everything=everything)
            started.finish(outcome.result)
        elif self._flag_is_set and self._busy_is_error:
            started.finish(started.current_result(self.rules))
        else:
            self._submit(started)
            self._set_timer()
        return started

    def start_from_znode(self) -> None:
        """Request the election of the znode, which is deleted once it is processed."""
        election = _FromZnode(self._controller.state.controller_epoch)
        if election not in self._for_flag and election not in self._enqueued.values():
            self._submit(election)

    def withdraw(self, started: StartedElection) -> None:
        """Stop waiting for the answer. An election that is already enqueued is still held."""
        started.finish(started.current_result(self.rules))
        if started in self._for_flag:
            self._for_flag.remove(started)
        if started in self._for_metadata:
            self._for_metadata.remove(started)
        self._set_timer()

    @property
    def _flag_is_set(self) -> bool:
        return self.answers.one_at_a_time and bool(self._controller.state.elections)

    def _submit(self, election: _Election) -> None:
        if self._flag_is_set:
            self._for_flag.append(election)
        else:
            self._enqueue(election)

    def _enqueue(self, election: _Election) -> None:
        """Enqueue the election, which sets the flag. If the controller dies before the change is
        recorded, the election is not enqueued."""
        number = self._last_id = self._last_id + 1
        if isinstance(election, StartedElection):
            topics = tuple((name, tuple(indexes)) for name, indexes in election.topics)
            change = ElectionEnqueued(number, election.election_type, topics)
            self._controller.record("elect_leaders", change)
        else:
            self._controller.record(_ZNODE, ElectionEnqueued(number, PREFERRED, None))
        self._enqueued[number] = election

    # ---- on ----------------------------------------------------------------------------------

    def _settle(self) -> bool:
        """Process and answer all elections that are due. Return whether any was processed."""
        self._preempt()
        processed = False
        while self._process_next() or self._pass_flag():
            processed = True
        self._answer()
        self._set_timer()
        return processed

    def _set_timer(self) -> None:
        """Set the timer to the next time-out, or to the next arrival of a change at the brokers."""
        times = [each.deadline_ms for each in self._callers()]
        arrival = self._controller.state.next_arrival(self._controller.now_ms) if times else None
        if arrival is not None:
            times.append(arrival)
        self._timer.set(min(times, default=None))

    def _callers(self) -> Iterator[StartedElection]:
        """Yield the requests that wait for an answer, in order."""
        for each in (*self._for_metadata, *self._enqueued.values(), *self._for_flag):
            if isinstance(each, StartedElection) and each.result is None:
                yield each

    def _preempt(self) -> None:
        """Drop the elections of the previous controller. The next one finds the znode by itself;
        requests are answered with NOT_CONTROLLER."""
        state = self._controller.state
        # Matches no election while there is no controller.
        epoch = -1 if state.controller_id == NO_CONTROLLER else state.controller_epoch
        for number, election in list(self._enqueued.items()):
            if election.controller_epoch != epoch:
                del self._enqueued[number]
                self._controller.record("failover", ElectionProcessed(number, preempted=True))
                self._refuse(election)
        for election in list(self._for_flag):
            if election.controller_epoch != epoch:
                self._for_flag.remove(election)
                self._refuse(election)

    def _refuse(self, election: _Election) -> None:
        if isinstance(election, StartedElection):
            election.finish(self.rules.refused(election.topics, ErrorCode.NOT_CONTROLLER))

    def _pass_flag(self) -> bool:
        """Enqueue the request that has waited for the flag the longest."""
        if not self._for_flag or self._flag_is_set:
            return False
        self._enqueue(self._for_flag[0])
        del self._for_flag[0]
        return True

    def _process_next(self) -> bool:
        if not self._enqueued or self._controller.state.elections_held:
            return False
        number, election = next(iter(self._enqueued.items()))
        if isinstance(election, StartedElection):
            outcome = self.rules.elect(
                election.election_type, election.topics, everything=election.everything
            )
            election.set_outcome(outcome)
            self._for_metadata.append(election)
        else:
            self._elect_from_znode()
        self._controller.record("elect_leaders", ElectionProcessed(number))
        del self._enqueued[number]
        return True

    def _elect_from_znode(self) -> None:
        """Hold the election of the znode and delete it. Failures are only logged."""
        controller, path = self._controller, PREFERRED_REPLICA_ELECTION
        text = controller.znodes.read(path, watch=True)
        if text is None:
            return
        try:
            requested = decode_preferred_replica_election(path, text)
        except MalformedZnodeError as error:
            controller.record(_ZNODE, Warned(f"{error}; nothing elected"))
            requested = []
        topics = [(name, (index,)) for name, index in requested]
        for topic in self.rules.elect(PREFERRED, topics, cause=_ZNODE).result.topics:
            for row in topic.partitions:
                if row.error_code not in (ErrorCode.NONE, ErrorCode.ELECTION_NOT_NEEDED):
                    where = f"{topic.name}-{row.partition_index}"
                    controller.record(_ZNODE, Warned(f"{path}: {where}: {row.error_message}"))
        controller.znodes.put(_ZNODE, path, None)

    # ---- out ---------------------------------------------------------------------------------

    def _answer(self) -> None:
        for started in list(self._callers()):
            seen = started.is_known(partial(self._leader, started.broker_id))
            if seen or started.deadline_ms <= self._controller.now_ms:
                started.finish(started.current_result(self.rules))
        self._for_metadata = [each for each in self._for_metadata if each.result is None]
        self._for_flag = [
            each for each in self._for_flag if isinstance(each, _FromZnode) or each.result is None
        ]

    def _leader(self, broker_id: int, tp: TopicPartition) -> int | None:
        """Return the leader in the metadata of this broker."""
        view = self._controller.state.view(broker_id, self._controller.now_ms)
        partition = find_partition(view.topics, tp)
        return None if partition is None else partition.leader
