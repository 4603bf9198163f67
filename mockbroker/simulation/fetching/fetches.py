"""The fetches of a cluster: sessions, fetches that wait, and what a tester does to them."""

from __future__ import annotations

import uuid
from collections.abc import Callable, Iterator
from functools import partial
from typing import Final

from kproto.error_codes import ErrorCode
from mockbroker.errors import ClusterError
from mockbroker.simulation.configs.effective import EffectiveConfigs
from mockbroker.simulation.fetching.down_conversion import (
    CONVERSION,
    FORMAT_REFUSALS,
    OLDEST_AS_STORED,
    Conversion,
)
from mockbroker.simulation.fetching.query import (
    REQUEST_FAILURES,
    FetchQuery,
    FetchResult,
    PartitionAnswer,
    PartitionPosition,
)
from mockbroker.simulation.fetching.reading import PartitionReader
from mockbroker.simulation.fetching.replica_selection import SELECTORS
from mockbroker.simulation.fetching.sessions import FetchSession, FetchSessions, SessionContext
from mockbroker.simulation.fetching.waiting import FetchWait
from mockbroker.simulation.log.logs import Logs
from mockbroker.simulation.releases.release import Release
from mockbroker.simulation.releases.rows import apply_first, rows_of_release
from mockbroker.simulation.state.actions import BrokerChanged, Change
from mockbroker.simulation.state.cluster_parts import TopicPartition, find_partition
from mockbroker.simulation.state.controller import Controller
from mockbroker.simulation.state.settings import SimulationOptions

__all__ = ["Fetches", "StartedFetch"]

_UNLIMITED: Final = 2**31 - 1
_DEFAULT_SLOTS: Final = 1000


class StartedFetch:
    """A fetch that has been read once. ``wait`` is there if it has to wait; ``answer`` ends it."""

    def __init__(self, fetches: Fetches, context: SessionContext) -> None:
        self._fetches = fetches
        self._context = context
        self._refused: dict[int, PartitionAnswer] = {}
        self._positions: list[PartitionPosition] = []
        self.max_bytes = min(context.query.max_bytes, fetches.max_bytes)
        self.wait: FetchWait | None = None
        for number, position in enumerate(context.positions):
            refusal = fetches.reader.refusal(context.query, position)
            if refusal is None:
                self._positions.append(position)
            else:
                self._refused[number] = refusal
        self._answers = self._read()
        query = context.query
        min_bytes = min(query.min_bytes, self.max_bytes)
        if (
            query.max_wait_ms > 0
            and self._answers
            and not any(each.urgent for each in self._answers)
            and sum(each.size for each in self._answers) < min_bytes
        ):
            self.wait = FetchWait(fetches.reader, query, self._positions, min_bytes)

    @property
    def fails(self) -> bool:
        """Whether the broker fails because of the session id or of what it has read."""
        return self._context.fails or any(each.fails_request for each in self._answers)

    @property
    def reads_partitions(self) -> bool:
        """Whether there is a partition to read, which the broker knows and the client may read."""
        return bool(self._positions)

    def _read(self) -> list[PartitionAnswer]:
        query, room, first = self._context.query, self.max_bytes, True
        reader, has_remote = self._fetches.reader, False
        answers = []
        for position in self._positions:
            answer = reader.read(query, position, room, first=first)
            if reader.reads_one_remote and answer.size and reader.is_remote(position):
                if has_remote:
                    answer.records, answer.size, answer.aborted = (), 0, None
                has_remote = True
            if answer.size:
                first = False
                room = max(room - answer.size, 0)
            answers.append(answer)
        return answers

    def read_again(self) -> list[PartitionAnswer]:
        """Read once more, after a wait."""
        self.wait = None
        self._answers = self._read()
        return self._answers

    @property
    def size(self) -> int:
        """The bytes of the records that it would return, as last read."""
        return sum(each.size for each in self._answers)

    def withhold(self) -> FetchResult:
        """Return an answer without partitions, for a client that is throttled."""
        return self._context.withhold()

    def answer(self) -> FetchResult:
        """Return the answer. A fetch that has waited is read again."""
        answers = self._answers if self.wait is None else self.read_again()
        if self._refused:
            rest = iter(answers)
            count = len(answers) + len(self._refused)
            answers = [self._refused.get(number) or next(rest) for number in range(count)]
        result = self._context.finish(answers)
        self._fetches.convert(self._context.query, result)
        return result


class Fetches:
    """All fetches of a cluster. ``release`` is the one whose rules apply."""

    def __init__(
        self,
        controller: Controller,
        configs: EffectiveConfigs,
        logs: Logs,
        release: Release,
        options: SimulationOptions,
    ) -> None:
        self._controller = controller
        self._configs = configs
        self._logs = logs
        self._release = release
        self._sessions: dict[int, FetchSessions] = {}
        self._waits: dict[FetchWait, None] = {}
        release.follow(self._use_release)
        self.max_bytes = int(self._static("fetch.max.bytes") or _UNLIMITED)
        """The most bytes of one answer, apart from a first batch that is larger."""
        self.reader = PartitionReader(
            controller,
            logs,
            release,
            SELECTORS.get(self._static("replica.selector.class")),
            cuts_last_batch=options.cut_last_batch,
        )
        controller.add_hooks(
            (BrokerChanged,), before=lambda _cause, _change: None, after=self._broker_changed
        )

    @property
    def _has_older_formats(self) -> bool:
        return "message.format.version" in self._configs.definitions.topic

    def _use_release(self, release: Release) -> None:
        self._conversion = rows_of_release(CONVERSION, release)
        self._format_refusals = rows_of_release(FORMAT_REFUSALS, release)
        self._request_failures = rows_of_release(REQUEST_FAILURES, release)

    def _static(self, name: str) -> str:
        """A config of the properties file, which all brokers share; "" if it has no value."""
        definitions = self._configs.definitions.broker
        if name not in definitions:
            return ""
        given = self._controller.state.static_configs.get(name)
        return given if given is not None else definitions[name].default or ""

    # ---- fetching ------------------------------------------------------------------------------

    def start(self, query: FetchQuery) -> StartedFetch:
        """Read what a request asks for. If ``wait`` is set, ``begin_wait`` comes before the
        answer."""
        return StartedFetch(self, self.sessions(query.broker_id).context(query))

    def failed(self, position: PartitionPosition) -> PartitionAnswer:
        """Return the answer for a partition of a request that fails as a whole."""
        answer = PartitionAnswer(position)
        answer.fail(ErrorCode.UNKNOWN_SERVER_ERROR)
        apply_first(self._request_failures, answer, answer)
        return answer

    def convert(self, query: FetchQuery, result: FetchResult) -> None:
        """Replace records that the client's version does not know by older ones, or by errors."""
        if query.version >= OLDEST_AS_STORED and not self._has_older_formats:
            return
        for answer in result.partitions:
            topic = answer.position.topic
            index = answer.position.partition
            if topic is not None and self._hosts(query.broker_id, topic, index):
                conversion = Conversion(answer, self._logs.settings(topic), query)
                known = answer.error_code
                apply_first(self._conversion, conversion, conversion)
                if answer.error_code != known:
                    apply_first(self._format_refusals, answer, answer)

    def _hosts(self, broker_id: int, name: str, index: int) -> bool:
        """Whether a broker has a replica of the partition."""
        partition = find_partition(self._controller.state.topics, (name, index))
        return partition is not None and broker_id in partition.hosts

    def begin_wait(self, wait: FetchWait, call: Callable[[], None]) -> None:
        """Let a fetch wait, and call ``call`` once it is to be answered, perhaps now.

        ``end_wait`` must follow in any case: also if the time is over, or the client has gone.
        """
        self._waits[wait] = None
        wait.begin(call)

    def end_wait(self, wait: FetchWait) -> None:
        """Forget a fetch that has waited."""
        self._waits.pop(wait, None)
        wait.end()

    def waiting(self) -> tuple[FetchWait, ...]:
        """Return the fetches that wait, oldest first."""
        return tuple(self._waits)

    def sessions(self, broker_id: int) -> FetchSessions:
        """The sessions of a broker."""
        found = self._sessions.get(broker_id)
        if found is None:
            slots = self._static("max.incremental.fetch.session.cache.slots")
            found = self._sessions[broker_id] = FetchSessions(
                self._controller.timers,
                self._release,
                int(slots or _DEFAULT_SLOTS),
                broker_id,
                partial(self.topic_name, broker_id),
            )
        return found

    def topic_name(self, broker_id: int, topic_id: uuid.UUID) -> str | None:
        """Return the name of a topic that the broker knows; None if it knows none of this id."""
        state = self._controller.state
        topic = state.view(broker_id, self._controller.now_ms).topic_by_id(topic_id)
        return None if topic is None else topic.name

    def _broker_changed(self, _cause: str, change: Change) -> None:
        assert isinstance(change, BrokerChanged)
        if not change.after.live and change.after.broker_id in self._sessions:
            self._sessions[change.after.broker_id].clear()

    # ---- steps of a tester -----------------------------------------------------------------------

    def hold_fetches(self, tp: TopicPartition | None) -> None:
        """Hide the records of a partition, None: of all, from fetches, which then wait until their
        max wait time ends. Raises UnknownPartitionError."""
        if tp is None:
            self.reader.holds_all = True
        else:
            self._controller.partition(tp)
            self.reader.held.add(tp)
        for wait in self.waiting():
            wait.check()

    def release_fetches(self, tp: TopicPartition | None = None) -> None:
        """Show the records of a partition, None: of all, to fetches again."""
        if tp is None:
            self.reader.holds_all = False
            self.reader.held.clear()
        elif tp in self.reader.held:
            self.reader.held.remove(tp)
        else:
            raise ClusterError(f"fetches of {tp[0]}-{tp[1]} are not held")
        for wait in self.waiting():
            wait.check()

    def complete_fetches(self, tp: TopicPartition | None = None) -> int:
        """Answer the fetches that wait for a partition, None: all, with what there is. Returns how
        many there were. Raises UnknownPartitionError."""
        if tp is not None:
            self._controller.partition(tp)
        found = [wait for wait in self.waiting() if tp is None or tp in wait.partitions]
        for wait in found:
            wait.finish()
        return len(found)

    def expire_sessions(self, broker_id: int | None = None) -> int:
        """Drop the sessions of a broker, None: of every broker. Returns how many there were.
        Raises UnknownBrokerError."""
        if broker_id is not None:
            self._controller.broker(broker_id)
        brokers = self._sessions if broker_id is None else [broker_id]
        count = 0
        for each in brokers:
            sessions = self.sessions(each)
            count += len(sessions)
            sessions.clear()
        return count

    def all_sessions(self) -> Iterator[tuple[int, FetchSession]]:
        """Yield every session with the id of its broker."""
        for broker_id, sessions in sorted(self._sessions.items()):
            for session in sessions:
                yield broker_id, session

    def diverge(self, tp: TopicPartition, epoch: int, offset: int | None) -> None:
        """Make a leader epoch end at ``offset`` for clients that ask; None: where it does. Fetches
        of that epoch past the offset get a diverging epoch. Raises UnknownPartitionError."""
        self._logs.log(tp).epochs.pretend_end(epoch, offset)
        for wait in self.waiting():
            wait.check()
