"""The tools' requests to a cluster, as coroutines that return plain values.

They use ``Admin``, and requests that it has no method for: CreatePartitions (37), DescribeLogDirs
(35), AlterReplicaLogDirs (34). Nothing is printed here; ``doing`` receives a text for each wait.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from functools import partial
from socket import gaierror
from ssl import SSLContext
from typing import Any, Final, TypeVar

import msgspec

from kproto.client import reassignments
from kproto.client.admin import Admin
from kproto.client.calls import Attempt, Where
from kproto.client.connection import Connection
from kproto.client.errors import (
    BrokerError,
    ConnectionClosedError,
    NodeUnavailableError,
    broker_error,
    raise_for_code,
)
from kproto.client.nodes import Address
from kproto.client.sasl import SaslMechanism
from kproto.client.values import (
    AlterConfigOp,
    ClusterDescription,
    ConfigEntry,
    ConfigResource,
    ElectionType,
    NewPartitionReassignment,
    NewTopic,
    PartitionReassignment,
    TopicDescription,
    TopicPartition,
)
from kproto.dialects import DIALECTS, Dialect
from kproto.error_codes import ErrorCode
from kproto.errors import KprotoError
from kproto.tools.controllers import Controllers, describe_controllers
from kproto.tools.errors import ToolError
from kproto.tools.plan import Replica

__all__ = ["Access", "ReplicaLogDir"]

T = TypeVar("T")

_RELEASED: Final = "kafka"
_PROBE_MS: Final = 5_000

_OPTIONAL: Final = frozenset({ErrorCode.REPLICA_NOT_AVAILABLE})
NewPartitions = Mapping[str, tuple[int, Sequence[Sequence[int]] | None]]
"""By topic: the new number of partitions, and the brokers of the new ones unless chosen by the
cluster."""


class ReplicaLogDir(msgspec.Struct, frozen=True):
    """The directory of a replica, and the one to which it is moving; None if there is none."""

    current: str | None = None
    future: str | None = None


class Access(Admin):
    """An ``Admin`` for the tools; made and closed like one.

    With ``controllers`` the bootstrap addresses are those of a KRaft quorum's controllers, and all
    requests go to them (KIP-919, Kafka 3.7).
    """

    doing: Callable[[str], None] = staticmethod(lambda _what: None)

    _HOPELESS: Final = (ConnectionRefusedError, gaierror)
    """What ends a command if every address fails like that before the first connection."""

    def __init__(
        self,
        bootstrap: str,
        *,
        client_id: str,
        default_timeout_ms: int,
        ssl: SSLContext | None = None,
        sasl: SaslMechanism | None = None,
        controllers: bool = False,
        dialect: str | Dialect = "kafka",
    ) -> None:
        if controllers:
            self._kind_of_nodes = Controllers
        super().__init__(
            bootstrap,
            dialect=dialect,
            client_id=client_id,
            default_timeout_ms=default_timeout_ms,
            ssl=ssl,
            sasl=sasl,
        )
        self._of_controllers = controllers
        self._connected = False
        self._speaking = partial(
            Access, bootstrap, client_id=client_id, default_timeout_ms=default_timeout_ms, ssl=ssl,
            sasl=sasl, controllers=controllers,
        )  # fmt: skip

    async def _open(self, address: Address, seconds: float) -> Connection:
        connection = await super()._open(address, seconds)
        self._connected = True
        return connection

    async def _check_failure(self, error: Exception) -> None:
        """End the call if another attempt cannot help."""
        failures = error.failures if isinstance(error, NodeUnavailableError) else ()
        refused = bool(failures) and all(isinstance(each, self._HOPELESS) for each in failures)
        if refused and not self._connected:
            raise error
        closed = isinstance(error, ConnectionClosedError)
        if closed and self.dialect.name != _RELEASED and await self._speak_released():
            raise ToolError(_mismatch(self.dialect.name), printed=f"Error: {error}") from None
        self.doing(f"trying again after: {error}")

    async def _speak_released(self) -> bool:
        """Whether the brokers answer a released request. They consider a draft's malformed, and
        close the connection."""
        try:
            async with self._speaking(dialect=_RELEASED) as released:
                await released.list_partition_reassignments(timeout_ms=_PROBE_MS)
        except (BrokerError, KprotoError, OSError):
            return False
        return True

    def _broker(self, broker_id: int | None) -> Where:
        # A controller accepts the configs of every broker.
        return self._nodes.controller if self._of_controllers else super()._broker(broker_id)

    # ---- reassignments -----------------------------------------------------------------------

    async def reassignments(
        self, partitions: Iterable[TopicPartition] | None = None
    ) -> dict[TopicPartition, PartitionReassignment]:
        """Return reassignments in progress, of these partitions or of all."""
        self.doing("listing reassignments")
        if partitions is None:
            return await self.list_partition_reassignments()
        return await self.list_partition_reassignments(partitions)

    async def alter_reassignments(
        self,
        targets: Mapping[TopicPartition, Sequence[int] | None],
        *,
        allow_replication_factor_change: bool = True,
    ) -> dict[TopicPartition, Exception]:
        """Start or (None) cancel reassignments. Returns the errors of refused partitions."""
        self.doing("altering reassignments")
        wanted: dict[tuple[str, int], Sequence[int] | NewPartitionReassignment | None] = {}
        wanted.update(targets.items())
        result = self.alter_partition_reassignments(
            wanted, allow_replication_factor_change=allow_replication_factor_change
        )
        return {key: each for key, each in (await _settled(result.values)).items() if each}

    async def cancel_all_reassignments(self) -> list[BrokerError | None]:
        """Cancel all reassignments. Returns the outcome of each affected partition.

        A released broker considers a draft's request malformed and closes the connection; the
        reassignments are then listed and cancelled one by one.
        """
        self.doing("cancelling reassignments")
        outcomes = await self._once(reassignments.cancel_all)
        if outcomes is not None:
            return outcomes
        async with self._speaking(dialect="kafka") as released:
            released.doing = self.doing
            if await released._once(lambda each: reassignments.list_ongoing(each, None)) is None:
                # If the broker closed that connection too, it may just have stopped.
                return await self.cancel_all_partition_reassignments()
            return await released.cancel_all_partition_reassignments()

    async def _once(self, work: Callable[[Attempt], Awaitable[T]]) -> T | None:
        """Send a request to the controller. Returns None if it closes the connection instead of
        responding."""

        async def attempt(each: Attempt) -> T | None:
            try:
                return await work(each)
            except ConnectionClosedError:
                return None

        return await self._calls.run(self._nodes.controller, attempt, None)

    async def elect(
        self, election_type: ElectionType, partitions: Iterable[TopicPartition] | None
    ) -> dict[TopicPartition, BrokerError | None]:
        """Return the outcome of each partition for which an election was attempted."""
        self.doing("electing leaders")
        return await self.elect_leaders(election_type, partitions).partitions()

    # ---- topics and the cluster --------------------------------------------------------------

    async def cluster(self) -> ClusterDescription:
        """Return the brokers, or the controllers if requests go to those."""
        self.doing("listing the brokers")
        if not self._of_controllers:
            return await self.describe_cluster()
        return await self._call(self._nodes.any, describe_controllers, None)

    async def topic_names(self) -> list[str]:
        """Return all topics in ascending order, internal ones included."""
        self.doing("listing topics")
        return sorted(await self.list_topics(list_internal=True))

    async def topics_or_errors(
        self, names: Iterable[str]
    ) -> dict[str, TopicDescription | Exception]:
        self.doing("describing topics")
        futures = self.describe_topics(sorted(set(names))).values
        errors = await _settled(futures)
        return {name: errors[name] or futures[name].result() for name in futures}

    async def create_topic(self, topic: NewTopic) -> None:
        self.doing(f"creating {topic.name}")
        await self.create_topics([topic]).all()

    async def remove_topics(self, names: Iterable[str]) -> None:
        self.doing("deleting topics")
        await self.delete_topics(names).all()

    async def create_partitions(self, wanted: NewPartitions) -> None:
        """Add partitions (CreatePartitions (37), KIP-195). Raises the first topic's error."""
        self.doing("creating partitions")
        attempt = partial(_create_partitions, wanted=wanted)
        for error in await self._call(self._nodes.controller, attempt, None):
            raise error

    # ---- configs -----------------------------------------------------------------------------

    async def topic_configs(self, names: Iterable[str]) -> dict[str, list[ConfigEntry]]:
        """Return all configs of each topic, defaults included, in the broker's order."""
        self.doing("describing configs")
        found = await self.describe_configs(map(ConfigResource.topic, names)).all()
        return {resource.name: [*entries.values()] for resource, entries in found.items()}

    async def alter_configs(
        self, changes: Mapping[ConfigResource, Sequence[AlterConfigOp]]
    ) -> None:
        self.doing("setting throttles")
        await self.incremental_alter_configs(changes).all()

    # ---- log directories (KIP-113) -----------------------------------------------------------

    async def replica_log_dirs(self, replicas: Iterable[Replica]) -> dict[Replica, ReplicaLogDir]:
        """Return the directory of each replica; replicas that their broker does not have are left
        out."""
        found = dict.fromkeys(replicas, ReplicaLogDir())
        for broker_id, mine in sorted(_by_broker(found).items()):
            self.doing(f"querying log directories of broker {broker_id}")
            where = self._broker(broker_id)
            response = await self._call(where, partial(_describe_log_dirs, wanted=mine), None)
            for replica, directory, is_future in _placed(response, broker_id):
                if replica not in found:
                    continue
                known = found[replica]
                found[replica] = (
                    ReplicaLogDir(known.current, directory)
                    if is_future
                    else ReplicaLogDir(directory, known.future)
                )
        return found

    async def alter_replica_log_dirs(self, targets: Mapping[Replica, str]) -> set[Replica]:
        """Move replicas. Returns the accepted moves; the other replicas are not on their broker
        yet.

        Raises ToolError for any other error.
        """
        accepted: set[Replica] = set()
        for broker_id, mine in sorted(_by_broker(targets).items()):
            self.doing(f"moving log directories on broker {broker_id}")
            by_directory = {replica: targets[replica] for replica in mine}
            attempt = partial(_alter_log_dirs, targets=by_directory)
            codes = await self._call(self._broker(broker_id), attempt, None)
            for replica in mine:
                code = codes.get(replica, ErrorCode.UNKNOWN_SERVER_ERROR)
                if code == ErrorCode.NONE:
                    accepted.add(replica)
                elif code not in _OPTIONAL:
                    message = f"Failed to alter dir for {'-'.join(map(str, replica))}"
                    raise ToolError(f"{message}: {broker_error(code)}", printed=f"Error: {message}")
        return accepted


# ---- requests ------------------------------------------------------------------------------------


async def _create_partitions(attempt: Attempt, *, wanted: NewPartitions) -> list[BrokerError]:
    request: Any = attempt.dialect.message("CreatePartitionsRequest")
    topic = request.STRUCTS["CreatePartitionsTopic"]
    assignment = request.STRUCTS["CreatePartitionsAssignment"]
    body = request(
        topics=[
            topic(
                name=name,
                count=count,
                assignments=(
                    None if new is None else [assignment(broker_ids=list(ids)) for ids in new]
                ),
            )
            for name, (count, new) in wanted.items()
        ],
        timeout_ms=attempt.timeout_ms,
    )
    rows = (await attempt.request(body)).results
    if rows and all(row.error_code == ErrorCode.NOT_CONTROLLER for row in rows):
        raise_for_code(rows[0].error_code, rows[0].error_message)
    return [broker_error(row.error_code, row.error_message) for row in rows if row.error_code]


async def _describe_log_dirs(attempt: Attempt, *, wanted: Iterable[Replica]) -> Any:
    request: Any = attempt.dialect.message("DescribeLogDirsRequest")
    topic = request.STRUCTS["DescribableLogDirTopic"]
    rows = [topic(topic=name, partitions=ids) for name, ids in _by_topic(wanted).items()]
    response = await attempt.request(request(topics=rows))
    raise_for_code(getattr(response, "error_code", ErrorCode.NONE))
    return response


def _placed(response: Any, broker_id: int) -> Iterable[tuple[Replica, str, bool]]:
    for directory in response.results:
        if directory.error_code == ErrorCode.KAFKA_STORAGE_ERROR:
            continue  # Offline: its replicas are in no live directory.
        raise_for_code(directory.error_code)
        for topic in directory.topics:
            for row in topic.partitions:
                replica = (topic.name, row.partition_index, broker_id)
                yield replica, directory.log_dir, row.is_future_key


async def _alter_log_dirs(
    attempt: Attempt, *, targets: Mapping[Replica, str]
) -> dict[Replica, int]:
    request: Any = attempt.dialect.message("AlterReplicaLogDirsRequest")
    directory = request.STRUCTS["AlterReplicaLogDir"]
    topic = request.STRUCTS["AlterReplicaLogDirTopic"]
    broker_id = next(iter(targets))[2]
    body = request(
        dirs=[
            directory(
                path=path,
                topics=[
                    topic(name=name, partitions=ids)
                    for name, ids in _by_topic(r for r in targets if targets[r] == path).items()
                ],
            )
            for path in sorted(set(targets.values()))
        ]
    )
    response = await attempt.request(body)
    return {
        (row.topic_name, each.partition_index, broker_id): each.error_code
        for row in response.results
        for each in row.partitions
    }


def _by_broker(replicas: Iterable[Replica]) -> dict[int, list[Replica]]:
    groups: defaultdict[int, list[Replica]] = defaultdict(list)
    for replica in sorted(replicas):
        groups[replica[2]].append(replica)
    return groups


def _by_topic(replicas: Iterable[Replica]) -> dict[str, list[int]]:
    groups: defaultdict[str, list[int]] = defaultdict(list)
    for topic, index, _ in sorted(replicas):
        groups[topic].append(index)
    return groups


def _mismatch(draft: str) -> str:
    option = "--profile" if draft in DIALECTS else "--dialect"
    return (
        f"the brokers do not speak {draft}: they close the connection on its requests, and answer "
        f"those of released Kafka; leave out {option} {draft}, or use brokers of that draft, such "
        f"as `mockbroker serve {option} {draft}`"
    )


async def _settled(futures: Mapping[Any, Any]) -> dict[Any, Exception | None]:
    """Return each future's error, None for none. Being cancelled is not an outcome and
    propagates."""
    errors: dict[Any, Exception | None] = {}
    for key, future in futures.items():
        try:
            await future
        except Exception as error:
            errors[key] = error
        else:
            errors[key] = None
    return errors
