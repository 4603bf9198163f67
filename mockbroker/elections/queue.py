"""When an election is held, and when its caller hears of it: the queue, KIP-183's flag, the waits.

A caller waits for the flag (KIP-183 only: check-and-set, then enqueue), for the controller to
process its election, then for the broker that it asked to show the new leaders; all of it within
its own time-out. Then it is told REQUEST_TIMED_OUT(7) for every partition still pending; but what
was enqueued is held all the same, later. The znode ``/admin/preferred_replica_election`` goes the
same way, without a caller. Kafka's own brokers wait for their controller's queue without bound.

Pure: time is the controller's clock, and whoever moves that calls ``settle`` at each ``next_due``.
Who is elected is ``elections``' to say.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import partial

from kproto.error_codes import ErrorCode
from kproto.znodes import MalformedZnodeError
from kproto.znodes.plan_znodes import (
    PREFERRED_REPLICA_ELECTION,
    decode_preferred_replica_election,
)
from mockbroker.elections.elect import PREFERRED, Elected, Wanted, elect, refused
from mockbroker.elections.eras import ElectionEra
from mockbroker.state.actions import ElectionEnqueued, ElectionProcessed, Warned
from mockbroker.state.controller import Controller
from mockbroker.state.controller_znodes import bytes_of
from mockbroker.state.model import NO_CONTROLLER, TopicPartition
from mockbroker.state.results import ElectLeadersResult, PartitionResult, TopicResult

__all__ = ["ElectionQueue", "StartedElection"]

_ZNODE = "zookeeper"


@dataclass(eq=False, slots=True)
class StartedElection:
    """One caller's election. ``result`` is None until there is an answer."""

    election_type: int
    wanted: Wanted
    everything: bool
    broker_id: int
    deadline_ms: int
    controller_epoch: int
    result: ElectLeadersResult | None = None
    _elected: Elected | None = None
    _pending: dict[TopicPartition, int] = field(default_factory=dict)
    _told: list[Callable[[], None]] = field(default_factory=list)

    @classmethod
    def refused(cls, result: ElectLeadersResult) -> StartedElection:
        """One that is over before it began."""
        return cls(PREFERRED, (), False, -1, 0, 0, result)

    def when_done(self, callback: Callable[[], None]) -> None:
        """Call this as soon as there is a result: at once, if there is one."""
        if self.result is None:
            self._told.append(callback)
        else:
            callback()

    def finish(self, result: ElectLeadersResult) -> None:
        """Only the first result counts."""
        if self.result is None:
            self.result = result
            for callback in self._told:
                callback()

    def processed(self, elected: Elected) -> None:
        self._elected = elected
        self._pending = dict(elected.leaders)

    @property
    def is_processed(self) -> bool:
        return self._elected is not None

    def look(self, leader_of: Callable[[TopicPartition], int | None]) -> bool:
        """Whether every partition that was elected shows its leader by now."""
        for tp, leader in list(self._pending.items()):
            if leader_of(tp) == leader:
                del self._pending[tp]
        return self.is_processed and not self._pending

    def outcome(self, era: ElectionEra) -> ElectLeadersResult:
        """As things stand: 7 for what is pending, and the rest as it was decided."""
        if self._elected is None:
            return refused(era, self.wanted, ErrorCode.REQUEST_TIMED_OUT)
        decided = self._elected.result
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


@dataclass(frozen=True, slots=True)
class _FromZnode:
    """What ``/admin/preferred_replica_election`` asks for, whatever it says when it is read."""

    controller_epoch: int


_Election = StartedElection | _FromZnode


class ElectionQueue:
    """``busy_is_error``: who finds the flag set is told 7 at once, and does not wait for it."""

    def __init__(
        self, controller: Controller, era: ElectionEra, *, busy_is_error: bool = False
    ) -> None:
        self._controller = controller
        self.era = era
        self._busy_is_error = busy_is_error
        self._ids = itertools.count(1)
        self._for_flag: list[_Election] = []
        self._enqueued: dict[int, _Election] = {}
        self._for_metadata: list[StartedElection] = []

    # ---- in ----------------------------------------------------------------------------------

    def start(
        self, election_type: int, wanted: Wanted, everything: bool, broker_id: int, timeout_ms: int
    ) -> StartedElection:
        """Ask for an election. A result may be there only after ``settle``."""
        controller = self._controller
        deadline = controller.now_ms + timeout_ms
        epoch = controller.state.controller_epoch
        started = StartedElection(election_type, wanted, everything, broker_id, deadline, epoch)
        if not self.era.queued:
            elected = elect(controller, self.era, election_type, wanted, everything=everything)
            started.finish(elected.result)
        elif self._flag_is_set and self._busy_is_error:
            started.finish(started.outcome(self.era))
        else:
            self._submit(started)
        return started

    def start_from_znode(self) -> None:
        """The znode is there; it stays until its election is processed."""
        election = _FromZnode(self._controller.state.controller_epoch)
        if election not in self._for_flag and election not in self._enqueued.values():
            self._submit(election)

    def withdraw(self, started: StartedElection) -> None:
        """The caller is gone. What it enqueued is held all the same, and nobody is told."""
        started.finish(started.outcome(self.era))
        if started in self._for_flag:
            self._for_flag.remove(started)
        if started in self._for_metadata:
            self._for_metadata.remove(started)

    @property
    def _flag_is_set(self) -> bool:
        return self.era.one_at_a_time and bool(self._controller.state.elections)

    def _submit(self, election: _Election) -> None:
        if self._flag_is_set:
            self._for_flag.append(election)
        else:
            self._enqueue(election)

    def _enqueue(self, election: _Election) -> None:
        """The flag is set by being in the queue, before anything else can happen. What a controller
        that dies here has not put on record is in no queue."""
        number = next(self._ids)
        if isinstance(election, StartedElection):
            topics = tuple((name, tuple(indexes)) for name, indexes in election.wanted)
            change = ElectionEnqueued(number, election.election_type, topics)
            self._controller.record("elect_leaders", change)
        else:
            self._controller.record(_ZNODE, ElectionEnqueued(number, PREFERRED, None))
        self._enqueued[number] = election

    # ---- on ----------------------------------------------------------------------------------

    def settle(self) -> bool:
        """Do all that can be done now, and tell whoever has an answer. Whether any election was
        processed."""
        self._preempt()
        processed = False
        while self._process_next() or self._pass_flag():
            processed = True
        self._answer()
        return processed

    def next_due(self) -> int | None:
        """When to ``settle`` next, if nothing else happens before; None if there is no need."""
        waiting = list(self._callers())
        times = [each.deadline_ms for each in waiting]
        arrival = self._controller.state.next_arrival(self._controller.now_ms)
        if waiting and arrival is not None:
            times.append(arrival)
        return min(times, default=None)

    def _callers(self) -> Iterator[StartedElection]:
        """Who waits for an answer, in order."""
        for each in (*self._for_metadata, *self._enqueued.values(), *self._for_flag):
            if isinstance(each, StartedElection) and each.result is None:
                yield each

    def _preempt(self) -> None:
        """What the last controller had not got to is lost with it. The next one finds the znode by
        itself; callers are told to ask that one."""
        state = self._controller.state
        # Nobody's epoch while there is no controller.
        epoch = -1 if state.controller_id == NO_CONTROLLER else state.controller_epoch
        for number, election in list(self._enqueued.items()):
            if election.controller_epoch != epoch:
                del self._enqueued[number]
                self._controller.record("failover", ElectionProcessed(number, preempted=True))
                self._turn_away(election)
        for election in list(self._for_flag):
            if election.controller_epoch != epoch:
                self._for_flag.remove(election)
                self._turn_away(election)

    def _turn_away(self, election: _Election) -> None:
        if isinstance(election, StartedElection):
            election.finish(refused(self.era, election.wanted, ErrorCode.NOT_CONTROLLER))

    def _pass_flag(self) -> bool:
        """To the caller that has waited longest and still does."""
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
            elected = elect(
                self._controller,
                self.era,
                election.election_type,
                election.wanted,
                everything=election.everything,
            )
            election.processed(elected)
            self._for_metadata.append(election)
        else:
            self._elect_from_znode()
        self._controller.record("elect_leaders", ElectionProcessed(number))
        del self._enqueued[number]
        return True

    def _elect_from_znode(self) -> None:
        """What cannot be elected, or read, is only logged; the znode goes in any case."""
        controller, path = self._controller, PREFERRED_REPLICA_ELECTION
        text = controller.znodes.read(path, watch=True)
        if text is None:
            return
        try:
            asked = decode_preferred_replica_election(path, bytes_of(text))
        except MalformedZnodeError as error:
            controller.record(_ZNODE, Warned(f"{error}; nothing elected"))
            asked = []
        wanted = [(name, (index,)) for name, index in asked]
        for topic in elect(controller, self.era, PREFERRED, wanted, cause=_ZNODE).result.topics:
            for row in topic.partitions:
                if row.error_code not in (ErrorCode.NONE, ErrorCode.ELECTION_NOT_NEEDED):
                    where = f"{topic.name}-{row.partition_index}"
                    controller.record(_ZNODE, Warned(f"{path}: {where}: {row.error_message}"))
        controller.znodes.put(_ZNODE, path, None)

    # ---- out ---------------------------------------------------------------------------------

    def _answer(self) -> None:
        for started in list(self._callers()):
            seen = started.look(partial(self._leader, started.broker_id))
            if seen or started.deadline_ms <= self._controller.now_ms:
                started.finish(started.outcome(self.era))
        self._for_metadata = [each for each in self._for_metadata if each.result is None]
        self._for_flag = [
            each for each in self._for_flag if isinstance(each, _FromZnode) or each.result is None
        ]

    def _leader(self, broker_id: int, tp: TopicPartition) -> int | None:
        """As that broker's Metadata would have it."""
        view = self._controller.state.view(broker_id, self._controller.now_ms)
        topic = view.topics.get(tp[0])
        partition = None if topic is None else topic.partition(tp[1])
        return None if partition is None else partition.leader
