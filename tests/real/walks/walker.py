"""One side of a program: what each step sends, and what stands for ids that brokers draw.

A step names members, fetch sessions and topics by short names of the program's own. The walker
knows their ids on its side from the answers it got. Requests that may wait are left open;
``answered`` says which of them have an answer by now.
"""

from __future__ import annotations

import asyncio
import re
import time
import uuid
from base64 import urlsafe_b64encode
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from kproto.messages import (
    AlterPartitionReassignmentsRequest,
    DeleteGroupsRequest,
    DeleteTopicsRequest,
    DescribeConfigsRequest,
    DescribeGroupsRequest,
    DescribeProducersRequest,
    ElectLeadersRequest,
    IncrementalAlterConfigsRequest,
    InitProducerIdRequest,
    ListGroupsRequest,
    ListOffsetsRequest,
    MetadataRequest,
    MetadataRequestTopic,
    OffsetDeleteRequest,
)
from kproto.messages.alter_partition_reassignments_request import (
    ReassignablePartition,
    ReassignableTopic,
)
from kproto.messages.delete_records_request import (
    DeleteRecordsPartition,
    DeleteRecordsRequest,
    DeleteRecordsTopic,
)
from kproto.messages.describe_configs_request import DescribeConfigsResource
from kproto.messages.describe_producers_request import TopicRequest
from kproto.messages.elect_leaders_request import TopicPartitions
from kproto.messages.incremental_alter_configs_request import AlterableConfig, AlterConfigsResource
from kproto.messages.list_offsets_request import ListOffsetsPartition, ListOffsetsTopic
from kproto.messages.offset_delete_request import (
    OffsetDeleteRequestPartition,
    OffsetDeleteRequestTopic,
)
from kproto.messages.offset_for_leader_epoch_request import (
    OffsetForLeaderEpochRequest,
    OffsetForLeaderPartition,
    OffsetForLeaderTopic,
)
from kproto.schema.versions import Versions
from tests.real.data.normal import Names, normal
from tests.real.data.requests import (
    commit,
    committed,
    fetch,
    fetch_row,
    heartbeat,
    join,
    leave,
    produce_rows,
    sync,
)
from tests.real.data.side import CLOSED, Cluster, Failed, Side
from tests.real.programs.model import ProgramStep
from tests.real.walks.batches import batch_of, timestamp_of
from tests.real.walks.consumers import HEARTBEAT, Consumers
from tests.real.walks.generator import CONSUMER_GROUPS, PRODUCERS, REPLICAS, UNKNOWN_TOPIC
from tests.real.walks.transactions import Transactions

__all__ = ["Walker"]

PATIENCE: Final = 60.0
POLL_SECONDS: Final = 0.02
SPREAD_SECONDS: Final = 0.05
"""How long a broker may take to use a config that it describes."""
MEMBER_ID_REQUIRED: Final = 79
LONG_MS: Final = 600_000
TOPIC: Final = 2
SET: Final = 0
DELETE: Final = 1
BROKERS: Final = (1, 2)

LEAST: Final[Mapping[int, int]] = {0: 3, 1: 4, 2: 1, 8: 1, 9: 1, 11: 4, 14: 0}
"""The lowest version that programs send, where it is not 0: older ones carry other formats, answer
from the clock, or give no member ids before a member waits."""
IN_SESSIONS: Final = 7
FETCHED_EPOCH_SINCE: Final = 12
STABLE_SINCE: Final = 7
SEVERAL_GROUPS_SINCE: Final = 8
MEMBER_EPOCH_SINCE: Final = 9

_UUID: Final = re.compile(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}")


class _Names(Names):
    """The id of a member that waits for its first answer is not known yet."""

    def of_text(self, value: str) -> str:
        return _UUID.sub("<uuid>", super().of_text(value))


@dataclass
class _Member:
    id: str = ""
    generation: int = -1
    members: tuple[str, ...] = ()
    """The ids of all members, if this one leads."""


@dataclass
class _Waiting:
    """``noted`` has what was answered once the task is done."""

    task: asyncio.Task[None]
    noted: list[tuple[Any, int, Any]] = field(default_factory=list)


class Walker(Side):
    """``name`` begins the names of topics and groups."""

    def __init__(self, cluster: Cluster, name: str, served: Mapping[int, Versions]) -> None:
        super().__init__(cluster, name, -1, 0, served)
        own = _Names()
        own.coordinators, own.own = self.names.coordinators, name
        self.names = own
        self._shown = 0
        for producer in PRODUCERS:
            self.names.producer(producer, str(producer))
        for number, topic in enumerate((*REPLICAS, UNKNOWN_TOPIC)):
            topic_id = uuid.UUID(int=1000 + number)
            self.topic_ids[self._name(topic)] = topic_id
            text = urlsafe_b64encode(topic_id.bytes).decode().rstrip("=")
            self.names.text(text, f"unknown id of {topic}")
        self._brokers = cluster
        self._ranges = served
        self._members: dict[tuple[str, str], _Member] = {}
        self._fetches: dict[str, tuple[int, int]] = {}
        self._leaders: dict[tuple[str, int], int] = {}
        self._open: dict[str, _Waiting] = {}
        self._opened = 0
        self.consumers = Consumers(self)
        self._steps: Mapping[str, Callable[[ProgramStep], Awaitable[None]]] = {
            "create": self._create,
            "configs": self._configs,
            "move": self._move,
            "produce": self._produce,
            "init-producer": self._init_producer,
            "producers": self._producers,
            "fetch": self._fetch,
            "list-offsets": self._list_offsets,
            "delete-records": self._delete_records,
            "epoch-ends": self._epoch_ends,
            "join": self._join,
            "sync": self._sync,
            "heartbeat": self._heartbeat,
            "leave": self._leave,
            "commit": self._commit,
            "committed": self._committed,
            "delete-offsets": self._delete_offsets,
            "delete-groups": self._delete_groups,
            "list-groups": self._list_groups,
            **Transactions(self).steps,
            **self.consumers.steps,
        }

    # ---- a step ------------------------------------------------------------------------------

    async def prepare(self, steps: Sequence[ProgramStep]) -> None:
        """Create the topics that no step creates: a program that was made smaller lacks some."""
        created = {step["topic"] for step in steps if step["do"] == "create"}
        for topic in REPLICAS.keys() - created:
            await self._create({"topic": topic, "replicas": REPLICAS[topic], "configs": {}})
        if HEARTBEAT in self._ranges:
            await self.consumers.prepare()

    async def take(self, step: ProgramStep) -> None:
        """Send what the step says, and note what is answered at once."""
        await self._steps[step["do"]](step)
        if step["do"] in _OF_GROUPS:
            await self._describe(step["group"], quiet=True)

    async def end(self, step: ProgramStep) -> None:  # type: ignore[override]
        """Note what can be seen after the step and after what it let others answer."""
        if step.get("group") in CONSUMER_GROUPS:
            await self.consumers.describe(step["group"])
        if step["do"] in _OF_GROUPS:
            await self._describe(step["group"], quiet=False)

    @property
    def waiting(self) -> bool:
        return bool(self._open)

    @property
    def answered(self) -> frozenset[str]:
        """Which of the open requests have an answer."""
        return frozenset(name for name, each in self._open.items() if each.task.done())

    def take_answers(self, names: Iterable[str]) -> None:
        """Note the answers of these requests, which are open no longer."""
        for name in sorted(names):
            waiting = self._open.pop(name)
            error = waiting.task.exception()
            if error is not None:
                raise error
            self.remark("answered", name)
            for noted in waiting.noted:
                self.note(*noted)

    def new_notes(self) -> list[tuple[str, Any]]:
        """What was noted since the last call."""
        everything = self._noted[self._shown :]
        self._shown = len(self._noted)
        return [
            (label, answer if isinstance(answer, str) else normal(answer, key, version, self.names))
            for label, key, version, answer in everything
        ]

    async def delete_topics(self) -> None:
        names = sorted({f"{self.topic}.{topic}" for topic, _ in self._leaders})
        if names:
            body = DeleteTopicsRequest(timeout_ms=30_000, topic_names=names)
            await self.exchange(body, 4, 1, "main")

    # ---- versions and brokers ----------------------------------------------------------------

    def use(self, api_key: int, step: ProgramStep, since: int = 0, until: int = 99) -> int:
        """From now on requests of this API have the version that the step drew."""
        served = self._ranges[api_key]
        lowest = max(served.lowest, LEAST.get(api_key, 0), since)
        self.api_key = api_key
        self.version = lowest + int(step["at"]) % (min(served.highest, until) - lowest + 1)
        return self.version

    def served_version(self, api_key: int) -> int:
        """The newest version that both sides serve."""
        return self._ranges[api_key].highest

    def _name(self, topic: str) -> str:
        return f"{self.topic}.{topic}"

    def leader(self, topic: str, index: int) -> int:
        return self._leaders.get((topic, index), 1)

    def _by_broker(self, step: ProgramStep) -> list[tuple[int, list[Any]]]:
        """The rows of a step as each broker gets them: the leaders, unless the step names one."""
        if step.get("broker"):
            return [(step["broker"], list(step["rows"]))]
        found: dict[int, list[Any]] = {}
        for row in step["rows"]:
            found.setdefault(self.leader(row[0], row[1]), []).append(row)
        return sorted(found.items())

    def _grouped(self, rows: Sequence[Sequence[Any]]) -> list[tuple[str, list[Sequence[Any]]]]:
        """(topic's full name, rows without it); adjoining rows share a topic."""
        found: list[tuple[str, list[Sequence[Any]]]] = []
        for topic, *rest in rows:
            if not found or found[-1][0] != self._name(topic):
                found.append((self._name(topic), []))
            found[-1][1].append(rest)
        return found

    # ---- topics ------------------------------------------------------------------------------

    async def _create(self, step: ProgramStep) -> None:
        topic = step["topic"]
        for index, replicas in enumerate(step["replicas"]):
            self._leaders[topic, index] = replicas[0]
        await self.create(*step["replicas"], topic=self._name(topic), **step["configs"])

    async def _configs(self, step: ProgramStep) -> None:
        """Change configs of a topic, and wait until every broker uses them."""
        name = self._name(step["topic"])
        changes = [
            AlterableConfig(
                name=each, config_operation=DELETE if value is None else SET, value=value
            )
            for each, value in step["rows"]
        ]
        resource = AlterConfigsResource(resource_type=TOPIC, resource_name=name, configs=changes)
        body = IncrementalAlterConfigsRequest(resources=[resource])
        answer = await self.exchange(body, 1, 1, "main")
        self.remark("configs", str(answer.responses[0].error_code))
        if answer.responses[0].error_code:
            return
        described = DescribeConfigsRequest(
            resources=[
                DescribeConfigsResource(
                    resource_type=TOPIC,
                    resource_name=name,
                    configuration_keys=[each for each, _ in step["rows"]],
                )
            ]
        )

        async def seen() -> bool:
            for broker in BROKERS:
                shown = await self.exchange(described, 2, broker, "main")
                values = {row.name: row for row in shown.results[0].configs}
                for each, value in step["rows"]:
                    row = values[each]
                    dynamic = row.config_source == 1
                    if dynamic != (value is not None) or (dynamic and row.value != value):
                        return False
            return True

        await self._until(seen, f"configs of {name}")
        await asyncio.sleep(SPREAD_SECONDS)

    async def _move(self, step: ProgramStep) -> None:
        """Reassign a partition, elect its preferred leader, and wait until all of it is done."""
        topic, index, replicas = step["topic"], step["partition"], list(step["replicas"])
        name = self._name(topic)
        body = AlterPartitionReassignmentsRequest(
            timeout_ms=30_000,
            topics=[
                ReassignableTopic(
                    name=name,
                    partitions=[ReassignablePartition(partition_index=index, replicas=replicas)],
                )
            ],
        )
        await self.exchange(body, 0, 1, "main")
        await self._until_placed(name, index, replicas, None)
        elect = ElectLeadersRequest(
            election_type=0,
            topic_partitions=[TopicPartitions(topic=name, partitions=[index])],
            timeout_ms=30_000,
        )
        await self.exchange(elect, 1, 1, "main")
        row = await self._until_placed(name, index, replicas, replicas[0])
        self._leaders[topic, index] = replicas[0]
        await self._until_readable(name, index, replicas[0])
        self.remark(
            "moved", f"{row.replica_nodes} led by {row.leader_id}, epoch {row.leader_epoch}"
        )

    async def _until_placed(
        self, name: str, index: int, replicas: Sequence[int], leader: int | None
    ) -> Any:
        found: list[Any] = []

        async def placed() -> bool:
            found.clear()
            for broker in BROKERS:
                body = MetadataRequest(
                    topics=[MetadataRequestTopic(name=name)], allow_auto_topic_creation=False
                )
                answer = await self.exchange(body, 9, broker, "main")
                rows = {row.partition_index: row for row in answer.topics[0].partitions}
                row: Any = rows[index]
                if list(row.replica_nodes) != list(replicas):
                    return False
                if sorted(row.isr_nodes) != sorted(replicas) or row.leader_id not in replicas:
                    return False
                if leader is not None and row.leader_id != leader:
                    return False
                found.append(row)
            return bool(found[0].leader_epoch == found[1].leader_epoch)

        await self._until(placed, f"{name}-{index} on {replicas}")
        return found[0]

    async def _until_readable(self, name: str, index: int, leader: int) -> None:
        """A new leader learns from its followers how far all of them have the log."""

        def body(replica: int) -> ListOffsetsRequest:
            partition = ListOffsetsPartition(partition_index=index, timestamp=-1)
            return ListOffsetsRequest(
                replica_id=replica,
                topics=[ListOffsetsTopic(name=name, partitions=[partition])],
            )

        async def readable() -> bool:
            ends = []
            for replica in (-2, -1):
                answer = await self.exchange(body(replica), 5, leader, "main")
                ends.append(answer.topics[0].partitions[0])
            return all(row.error_code == 0 for row in ends) and ends[0].offset == ends[1].offset

        await self._until(readable, f"{name}-{index} readable at {leader}")

    async def _until(self, condition: Callable[[], Awaitable[bool]], what: str) -> None:
        deadline = time.monotonic() + PATIENCE
        while not await condition():
            if time.monotonic() > deadline:
                raise Failed(f"waited {PATIENCE} s for {what}")
            await asyncio.sleep(POLL_SECONDS)

    # ---- records -----------------------------------------------------------------------------

    async def _produce(self, step: ProgramStep) -> None:
        self.use(0, step)
        for broker, rows in self._by_broker(step):
            body = produce_rows(
                self,
                *((self._name(topic), index, batch_of(spec)) for topic, index, spec in rows),
                acks=step["acks"],
            )
            await self.ask(body, broker=broker)

    async def _init_producer(self, step: ProgramStep) -> None:
        version = self.use(22, step)
        body = InitProducerIdRequest(transactional_id=None, transaction_timeout_ms=60_000)
        answer = await self.exchange(body, version, step["broker"], "main")
        self.names.producer(answer.producer_id, "drawn")
        self.note(body, version, answer)

    async def _producers(self, step: ProgramStep) -> None:
        for broker, rows in self._by_broker(step):
            topics = [
                TopicRequest(name=name, partition_indexes=[row[0] for row in partitions])
                for name, partitions in self._grouped(rows)
            ]
            await self.ask(DescribeProducersRequest(topics=topics), broker=broker)

    async def _fetch(self, step: ProgramStep) -> None:
        session = step.get("session")
        version = self.use(1, step, since=IN_SESSIONS if session else 0)
        known = self._fetches.get(session, (0, 0)) if session else (0, -1)
        if session:
            known = {
                "new": (0, 0),
                "next": known,
                "same": (known[0], max(known[1] - 1, 0)),
                "gap": (known[0], known[1] + 3),
                "close": (known[0], -1),
            }[step["how"]]
        for broker, rows in self._by_broker(step) or [(1, [])]:
            body = fetch(
                self,
                topics=[
                    (name, [self._fetch_row(row, version) for row in partitions])
                    for name, partitions in self._grouped(rows)
                ],
                max_wait_ms=step.get("wait", 0),
                min_bytes=step.get("min_bytes", 0 if not step.get("wait") else 1),
                max_bytes=step["max_bytes"],
                isolation=step.get("isolation", 0),
                session=known,
                forget=[
                    (name, [row[0] for row in partitions])
                    for name, partitions in self._grouped(step.get("forget", ()))
                ],
            )
            if step.get("wait"):
                self._start(body, version, broker, "fetch")
                continue
            answer = await self.exchange(body, version, broker, "main")
            if session and answer is not CLOSED:
                self._follow(session, step["how"], known, answer)
            self.note(body, version, answer)

    @staticmethod
    def _fetch_row(row: Sequence[Any], version: int) -> Any:
        index, offset, limit, fetched = row
        return fetch_row(
            index,
            offset,
            partition_max_bytes=limit,
            fetched_epoch=fetched if version >= FETCHED_EPOCH_SINCE else -1,
        )

    def _follow(self, name: str, how: str, sent: tuple[int, int], answer: Any) -> None:
        """Keep the session's id and its next epoch, as a client does."""
        if answer.session_id:
            self.names.session(answer.session_id, name)
        if how == "new":
            self._fetches[name] = (answer.session_id, 1)
        elif how == "next" and answer.error_code == 0 and answer.session_id:
            self._fetches[name] = (sent[0], sent[1] + 1)

    async def _list_offsets(self, step: ProgramStep) -> None:
        self.use(2, step)
        for broker, rows in self._by_broker(step):
            body = ListOffsetsRequest(
                replica_id=-1,
                isolation_level=step.get("isolation", 0) if self.version >= 2 else 0,
                timeout_ms=10_000,
                topics=[
                    ListOffsetsTopic(
                        name=name,
                        partitions=[
                            ListOffsetsPartition(
                                partition_index=index,
                                timestamp=timestamp_of(delta) if special is None else special,
                                current_leader_epoch=step.get("epoch", -1)
                                if self.version >= 4
                                else -1,
                            )
                            for index, special, delta in partitions
                        ],
                    )
                    for name, partitions in self._grouped(rows)
                ],
            )
            await self.ask(body, broker=broker)

    async def _delete_records(self, step: ProgramStep) -> None:
        self.use(21, step)
        for broker, rows in self._by_broker(step):
            topics = [
                DeleteRecordsTopic(
                    name=name,
                    partitions=[
                        DeleteRecordsPartition(partition_index=index, offset=offset)
                        for index, offset in partitions
                    ],
                )
                for name, partitions in self._grouped(rows)
            ]
            await self.ask(DeleteRecordsRequest(topics=topics, timeout_ms=10_000), broker=broker)

    async def _epoch_ends(self, step: ProgramStep) -> None:
        self.use(23, step)
        for broker, rows in self._by_broker(step):
            topics = [
                OffsetForLeaderTopic(
                    topic=name,
                    partitions=[
                        OffsetForLeaderPartition(
                            partition=index, current_leader_epoch=-1, leader_epoch=epoch
                        )
                        for index, epoch in partitions
                    ],
                )
                for name, partitions in self._grouped(rows)
            ]
            body = OffsetForLeaderEpochRequest(topics=topics)
            await self.ask(body, broker=broker)

    # ---- groups ------------------------------------------------------------------------------

    def _group(self, name: str) -> str:
        return f"{self.group}.{name}"

    def _member(self, step: ProgramStep) -> _Member:
        key = (step["group"], step["member"])
        if step["group"] in CONSUMER_GROUPS:
            return _Member(step["member"], self.consumers.epoch(*key))
        return self._members.setdefault(key, _Member())

    def _start(self, body: Any, version: int, broker: int, label: str) -> None:
        async def ask() -> None:
            answer = await self._patient(body, version, broker, connection)
            waiting.noted.append((body, version, answer))

        connection = self._open_name(label)
        waiting = self._open[connection] = _Waiting(asyncio.ensure_future(ask()))
        self._waiting.append(waiting.task)  # type: ignore[arg-type]

    def _open_name(self, label: str) -> str:
        self._opened += 1
        return f"{self._opened} {label}"

    async def _patient(self, body: Any, version: int, broker: int, connection: str) -> Any:
        return await self.exchange(body, version, broker, connection, patience=None)

    async def _join(self, step: ProgramStep) -> None:
        version = self.use(11, step, since=5 if step.get("instance") else 4)
        known = self._member(step)
        if step["member"] == "nobody":
            known.id = "nobody"
        protocols = [(each, f"{step['member']}{step.get('data', '')}".encode())
                     for each in step["protocols"]]  # fmt: skip

        def body(member: str) -> Any:
            return join(
                self,
                member,
                protocols=protocols,
                group=self._group(step["group"]),
                kind=step.get("kind", "consumer"),
                session_ms=LONG_MS,
                rebalance_ms=LONG_MS,
                instance=step.get("instance"),
            )

        async def ask() -> None:
            first = body(known.id)
            answer = await self._patient(first, version, self.coordinator, connection)
            self._joined(step, known, answer)
            waiting.noted.append((first, version, answer))
            if answer is not CLOSED and answer.error_code == MEMBER_ID_REQUIRED:
                again = body(answer.member_id)
                answer = await self._patient(again, version, self.coordinator, connection)
                self._joined(step, known, answer)
                waiting.noted.append((again, version, answer))

        connection = self._open_name(f"join of {step['member']}")
        waiting = self._open[connection] = _Waiting(asyncio.ensure_future(ask()))
        self._waiting.append(waiting.task)  # type: ignore[arg-type]
        await self._first_of(waiting)

    async def _first_of(self, waiting: _Waiting) -> None:
        """Give a join that gets an id time to join with it before the next step begins."""
        await asyncio.wait([waiting.task], timeout=SPREAD_SECONDS)

    def _joined(self, step: ProgramStep, known: _Member, answer: Any) -> None:
        if answer is CLOSED or step["member"] == "nobody":
            return
        if answer.member_id:
            known.id = answer.member_id
            self.names.text(answer.member_id, f"{step['group']}.{step['member']}")
        if answer.error_code == 0:
            known.generation = answer.generation_id
            leads = answer.leader == answer.member_id
            known.members = tuple(each.member_id for each in answer.members) if leads else ()

    async def _sync(self, step: ProgramStep) -> None:
        version = self.use(14, step)
        known = self._member(step)
        generation = known.generation + step.get("generation", 0)
        body = sync(
            self,
            known.id or "nobody",
            generation,
            [
                (each, f"{generation}: {self.names.of_text(each)}".encode())
                for each in sorted(known.members, key=self.names.of_text)
            ],
            instance=step.get("instance") if version >= 3 else None,
            protocol=step.get("protocol") if version >= 5 else None,
            group=self._group(step["group"]),
        )
        self._start(body, version, self.coordinator, f"sync of {step['member']}")

    async def _heartbeat(self, step: ProgramStep) -> None:
        version = self.use(12, step)
        known = self._member(step)
        body = heartbeat(
            self,
            known.id or "nobody",
            known.generation + step.get("generation", 0),
            instance=step.get("instance") if version >= 3 else None,
            group=self._group(step["group"]),
        )
        await self.ask(body)

    async def _leave(self, step: ProgramStep) -> None:
        self.use(13, step)
        rows = []
        for member, instance in step["rows"]:
            known = self._members.get((step["group"], member), _Member())
            if self._succession_is_random(step["group"], known):
                rows.append(("nobody", None))
            else:
                rows.append((known.id or "nobody", instance))
        await self.ask(leave(self, *rows, group=self._group(step["group"])))

    def _succession_is_random(self, group: str, leader: _Member) -> bool:
        """Whether a leader leaves others behind: Kafka makes the first of a hash map the next
        one."""
        others = [
            each
            for (name, _), each in self._members.items()
            if name == group and each is not leader
        ]
        return bool(leader.members) and len(others) > 1

    async def _commit(self, step: ProgramStep) -> None:
        version = self.use(8, step)
        member, generation = "", -1
        if step.get("member") is not None:
            known = self._member(step)
            member = known.id
            generation = known.generation + step.get("generation", 0)
        body = commit(
            self,
            *(
                (index, offset, None if length is None else "m" * length)
                for index, offset, length in step["rows"]
            ),
            member=member,
            generation=generation,
            topic=self._name(step["topic"]),
            group=self._group(step["group"]),
            instance=step.get("instance") if version >= 7 else None,
            leader_epoch=step["epoch"] if version >= 6 else -1,
        )
        await self.ask(body)

    async def _committed(self, step: ProgramStep) -> None:
        everything, stable = bool(step.get("everything")), bool(step.get("stable"))
        names = step.get("groups", [step["group"]])
        since = max(2 * everything, STABLE_SINCE * stable, SEVERAL_GROUPS_SINCE * (len(names) > 1))
        since = MEMBER_EPOCH_SINCE if step.get("member") is not None else since
        self.use(9, step, since=since)
        body = committed(
            self,
            *(row[0] for row in step.get("rows", ())),
            topic=self._name(step.get("topic", "a")),
            groups=[self._group(name) for name in names],
            everything=everything,
            stable=stable,
        )
        if step.get("member") is not None:
            known = self._member(step)
            body.groups[0].member_id = known.id
            body.groups[0].member_epoch = known.generation + step.get("generation", 0)
        await self.ask(body)

    async def _delete_offsets(self, step: ProgramStep) -> None:
        body = OffsetDeleteRequest(
            group_id=self._group(step["group"]),
            topics=[
                OffsetDeleteRequestTopic(
                    name=self._name(step["topic"]),
                    partitions=[
                        OffsetDeleteRequestPartition(partition_index=index)
                        for (index,) in step["rows"]
                    ],
                )
            ],
        )
        await self.ask(body)

    async def _delete_groups(self, step: ProgramStep) -> None:
        self.use(42, step)
        names = [self._group(name) for (name,) in step["rows"]]
        await self.ask(DeleteGroupsRequest(groups_names=names))

    async def _list_groups(self, step: ProgramStep) -> None:
        version = self.use(16, step)
        await self.ask(ListGroupsRequest(states_filter=step["states"] if version >= 4 else []))

    async def _describe(self, group: str, *, quiet: bool) -> None:
        body = DescribeGroupsRequest(groups=[self._group(group)])
        version = self._ranges[15].highest
        await self.ask(body, version=version, quiet=quiet)


_OF_GROUPS: Final = frozenset({"join", "sync", "heartbeat", "leave", "commit", "delete-offsets"})
