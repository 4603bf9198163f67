"""``Admin``: the operations of Kafka's own Admin client, under the same names.

This module checks arguments and starts calls. ``calls`` runs them, and one module for each subject
builds requests and interprets responses.
"""

from __future__ import annotations

import asyncio
import ssl as ssl_module
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from functools import partial
from types import TracebackType
from typing import Any, Self, TypeVar

from kproto.client import configs as config_calls
from kproto.client import elections, kip_240
from kproto.client import reassignments as reassigning
from kproto.client import topics as topic_calls
from kproto.client.arguments import (
    EVERYTHING,
    Everything,
    Partitions,
    distinct,
    fixed_dialect,
    milliseconds,
    partitions_or_topics,
    problem_of,
    refuse,
    replicas_of,
)
from kproto.client.calls import Attempt, Calls, Where
from kproto.client.connection import Connection
from kproto.client.elections import ElectLeadersResult
from kproto.client.errors import BrokerError, UnknownServerError
from kproto.client.kip_240 import DescribeReassignmentsResult, ListReassignmentsResult
from kproto.client.nodes import Address, Nodes, parse_bootstrap
from kproto.client.results import KeyedResult
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
    Reassignment,
    TopicDescription,
    TopicPartition,
    unrepresentable,
    unrepresentable_topic,
)
from kproto.dialects import Dialect

__all__ = ["Admin"]

T = TypeVar("T")


class Admin:
    """A client of one cluster, for its operators.

    ::

        async with Admin("localhost:9092") as admin:
            result = admin.alter_partition_reassignments({("foo", 0): [4, 5, 6]})
            await result.all()
            print(await admin.list_partition_reassignments())

    No method waits: each returns futures, or a result that holds futures. Requests for the
    controller are sent to it. If the controller has moved or a connection breaks, they are sent
    again after a pause that doubles from ``retry_backoff_ms`` to ``retry_backoff_max_ms``, until
    the call's ``timeout_ms`` (None: ``default_timeout_ms``) has passed. A request whose response
    was lost may therefore be executed twice, as with Kafka's own client.

    ``bootstrap`` is ``"host:port,host:port"`` or an iterable of addresses. ``dialect`` is a name or
    a result of ``kproto.load_dialect``; the drafts of KIP-455 and KIP-240 are selected by name.
    ``ssl`` is a context, or True for the system's certificates. ``sasl`` is ``SaslPlain`` or
    ``SaslScram``. ``sasl_handshake_version`` 0 sends raw tokens (None: the best that the broker
    supports).

    Futures raise BrokerError with the broker's code and text; UnsupportedVersionError, before
    anything is sent, if the broker lacks the API; RequestTimeoutError; SaslExchangeError;
    ``ssl.SSLError``; and ConnectionClosedError once the client is closed.
    """

    _kind_of_nodes: type[Nodes] = Nodes

    def __init__(
        self,
        bootstrap: str | Iterable[str],
        *,
        client_id: str | None = "kproto",
        dialect: str | Dialect = "kafka",
        default_timeout_ms: int = 60_000,
        connect_timeout: float = 10.0,
        retry_backoff_ms: int = 100,
        retry_backoff_max_ms: int = 1_000,
        ssl: ssl_module.SSLContext | bool | None = None,
        sasl: SaslMechanism | None = None,
        sasl_handshake_version: int | None = None,
    ) -> None:
        self.dialect = fixed_dialect(dialect)
        self._client_id = client_id
        self._connect_timeout = connect_timeout
        self._ssl = ssl
        self._sasl = sasl
        self._handshake_version = sasl_handshake_version
        self._nodes = self._kind_of_nodes(
            parse_bootstrap(bootstrap), self.dialect, self._open, self._authenticate
        )
        self._calls = Calls(
            self._nodes,
            self.dialect,
            timeout_ms=milliseconds(default_timeout_ms) or 0,
            backoff_ms=retry_backoff_ms,
            longest_backoff_ms=retry_backoff_max_ms,
            on_failure=self._check_failure,
        )

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        await self.close()

    async def close(self) -> None:
        """Fail all calls in progress with ConnectionClosedError and close all connections. A second
        call has no effect."""
        await self._calls.close()

    # ---- reassignments (KIP-455) -------------------------------------------------------------

    def alter_partition_reassignments(
        self,
        reassignments: Mapping[tuple[str, int], Sequence[int] | NewPartitionReassignment | None],
        *,
        timeout_ms: int | None = None,
        allow_replication_factor_change: bool = True,
    ) -> KeyedResult[TopicPartition, None]:
        """Start, change or (None) cancel reassignments. The futures are done once the controller
        recorded them.

        Raises ValueError for an empty list of replicas. A partition that no request can carry fails
        alone, with InvalidTopicError. An empty mapping sends nothing. With
        ``allow_replication_factor_change`` False (KIP-860, Kafka 4.1) a partition whose number of
        replicas would change fails with InvalidReplicationFactorError.
        """
        requested = {
            TopicPartition(*key): replicas_of(value) for key, value in reassignments.items()
        }
        result: KeyedResult[TopicPartition, None] = KeyedResult(requested)
        sendable = refuse(result, requested, unrepresentable)
        if sendable:
            self._follow(
                result,
                sendable,
                self._nodes.controller,
                lambda attempt: reassigning.alter(
                    attempt,
                    {each: requested[each] for each in sendable},
                    allow_replication_factor_change=allow_replication_factor_change,
                ),
                timeout_ms,
            )
        return result

    def cancel_all_partition_reassignments(
        self, *, timeout_ms: int | None = None
    ) -> asyncio.Future[list[BrokerError | None]]:
        """Cancel all reassignments in progress. Each partition has an outcome, None if it was
        cancelled.

        The drafts of KIP-455 have a request for this. For released Kafka, which has none, all
        reassignments are listed and cancelled one by one; one that ends in between fails with
        NoReassignmentInProgressError.
        """

        milliseconds(timeout_ms)

        async def work() -> list[BrokerError | None]:
            where = self._nodes.controller
            outcomes = await self._calls.run(where, reassigning.cancel_all, timeout_ms)
            if outcomes is not None:
                return outcomes
            found = await self.list_partition_reassignments(timeout_ms=timeout_ms)
            done = self.alter_partition_reassignments(dict.fromkeys(found), timeout_ms=timeout_ms)
            settled = await asyncio.gather(*done.values.values(), return_exceptions=True)
            for each in settled:
                if each is not None and not isinstance(each, BrokerError):
                    raise each
            return [each for each in settled if each is None or isinstance(each, BrokerError)]

        return self._calls.start(work())

    def list_partition_reassignments(
        self,
        partitions: Partitions | Iterable[str] | Everything = EVERYTHING,
        *,
        timeout_ms: int | None = None,
    ) -> asyncio.Future[dict[TopicPartition, PartitionReassignment]]:
        """List reassignments in progress: all, or those of these partitions, or of these whole
        topics.

        Raises TypeError for None and for a mixture of partitions and topics. Partitions that are
        idle or unknown are not in the result. A partition that no request can carry fails the whole
        call with InvalidTopicError.
        """
        requested = partitions_or_topics(partitions)
        problem = next(filter(None, map(problem_of, requested or ())), None)

        if problem is not None:
            return self._calls.start(_failing(problem))
        return self._call(
            self._nodes.controller,
            lambda attempt: reassigning.list_ongoing(attempt, requested),
            timeout_ms,
        )

    # ---- elections (KIP-183, KIP-460) --------------------------------------------------------

    def elect_leaders(
        self,
        election_type: ElectionType,
        partitions: Partitions | None = None,
        *,
        timeout_ms: int | None = None,
    ) -> ElectLeadersResult:
        """Elect leaders. None means every partition; a partition given twice is requested once."""
        kind = ElectionType(election_type)
        requested = None if partitions is None else distinct(partitions)
        call = self._call(
            self._nodes.controller,
            lambda attempt: elections.elect(attempt, kind, requested),
            timeout_ms,
        )
        return ElectLeadersResult(call, kind)

    def elect_preferred_leaders(
        self, partitions: Partitions | None = None, *, timeout_ms: int | None = None
    ) -> ElectLeadersResult:
        """Make the first replica of each partition its leader. None means every partition."""
        return self.elect_leaders(ElectionType.PREFERRED, partitions, timeout_ms=timeout_ms)

    # ---- reassignments with an identity (KIP-240; the dialect kip-240) -----------------------

    def list_reassignments(
        self, partitions: Partitions | None = None, *, timeout_ms: int | None = None
    ) -> ListReassignmentsResult:
        """List reassignments in progress; None means of all partitions. A partition that does not
        exist fails the whole call with UnknownTopicOrPartitionError."""
        requested = None if partitions is None else distinct(partitions)
        call = self._call(
            self._nodes.controller, lambda attempt: kip_240.list_all(attempt, requested), timeout_ms
        )
        return ListReassignmentsResult(call, requested)

    def describe_reassignments(
        self, reassignments: Iterable[Reassignment] | None = None, *, timeout_ms: int | None = None
    ) -> DescribeReassignmentsResult:
        """Describe these reassignments; None means all. Those that are over by then are left
        out."""
        requested = None if reassignments is None else list(dict.fromkeys(reassignments))
        call = self._call(
            self._nodes.controller, lambda attempt: kip_240.describe(attempt, requested), timeout_ms
        )
        return DescribeReassignmentsResult(call, requested)

    # ---- topics and the cluster --------------------------------------------------------------

    def describe_cluster(
        self, *, include_fenced_brokers: bool = False, timeout_ms: int | None = None
    ) -> asyncio.Future[ClusterDescription]:
        """Return the cluster's id, its controller and its live brokers; optionally fenced ones
        (Kafka 4.0)."""
        return self._call(
            self._nodes.any,
            lambda attempt: topic_calls.describe_cluster(
                attempt, include_fenced_brokers=include_fenced_brokers
            ),
            timeout_ms,
        )

    def list_topics(
        self, *, list_internal: bool = False, timeout_ms: int | None = None
    ) -> asyncio.Future[list[str]]:
        """Return the names of all topics in ascending order."""
        return self._call(
            self._nodes.any,
            lambda attempt: topic_calls.list_names(attempt, internal=list_internal),
            timeout_ms,
        )

    def describe_topics(
        self, names: Iterable[str], *, timeout_ms: int | None = None
    ) -> KeyedResult[str, TopicDescription]:
        """Describe each topic as one broker (any of them) knows it now."""
        result: KeyedResult[str, TopicDescription] = KeyedResult(dict.fromkeys(names))
        sendable = refuse(result, result.values, unrepresentable_topic)
        if sendable:
            self._follow(
                result,
                sendable,
                self._nodes.any,
                lambda attempt: topic_calls.describe(attempt, sendable),
                timeout_ms,
            )
        return result

    def create_topics(
        self,
        new_topics: Iterable[NewTopic],
        *,
        timeout_ms: int | None = None,
        validate_only: bool = False,
    ) -> KeyedResult[str, None]:
        """Create topics. Raises ValueError if two have the same name."""
        requested = list(new_topics)
        topics = {topic.name: topic for topic in requested}
        if len(topics) != len(requested):
            raise ValueError("two new topics have the same name")
        result: KeyedResult[str, None] = KeyedResult(topics)
        sendable = refuse(result, topics, unrepresentable_topic)
        if sendable:
            self._follow(
                result,
                sendable,
                self._nodes.controller,
                lambda attempt: topic_calls.create(
                    attempt, [topics[name] for name in sendable], validate_only=validate_only
                ),
                timeout_ms,
                topic_calls.silent,
            )
        return result

    def delete_topics(
        self, names: Iterable[str], *, timeout_ms: int | None = None
    ) -> KeyedResult[str, None]:
        """Delete topics. The result has an entry for each name."""
        result: KeyedResult[str, None] = KeyedResult(dict.fromkeys(names))
        sendable = refuse(result, result.values, unrepresentable_topic)
        if sendable:
            self._follow(
                result,
                sendable,
                self._nodes.controller,
                lambda attempt: topic_calls.delete(attempt, sendable),
                timeout_ms,
                topic_calls.silent,
            )
        return result

    # ---- configs -----------------------------------------------------------------------------

    def describe_configs(
        self, resources: Iterable[ConfigResource], *, timeout_ms: int | None = None
    ) -> KeyedResult[ConfigResource, dict[str, ConfigEntry]]:
        """Return all configs by name. A broker's own configs are requested from that broker."""
        result: KeyedResult[ConfigResource, dict[str, ConfigEntry]] = KeyedResult(
            dict.fromkeys(resources)
        )
        for broker_id, group in config_calls.by_broker(result.values).items():
            self._follow(
                result,
                group,
                self._broker(broker_id),
                partial(config_calls.describe, resources=group),
                timeout_ms,
                config_calls.silent,
            )
        return result

    def incremental_alter_configs(
        self,
        changes: Mapping[ConfigResource, Sequence[AlterConfigOp]],
        *,
        timeout_ms: int | None = None,
        validate_only: bool = False,
    ) -> KeyedResult[ConfigResource, None]:
        """Change single configs (KIP-339). Changes of a broker's own configs are sent to that
        broker."""
        result: KeyedResult[ConfigResource, None] = KeyedResult(changes)
        for broker_id, group in config_calls.by_broker(changes).items():
            self._follow(
                result,
                group,
                self._broker(broker_id),
                partial(
                    config_calls.alter_incrementally,
                    changes={each: changes[each] for each in group},
                    validate_only=validate_only,
                ),
                timeout_ms,
                config_calls.silent,
            )
        return result

    # ---- inside ------------------------------------------------------------------------------

    async def _check_failure(self, error: Exception) -> None:
        """Called before another attempt of a call."""

    def _broker(self, broker_id: int | None) -> Where:
        return self._nodes.any if broker_id is None else partial(self._nodes.broker, broker_id)

    def _call(
        self, where: Where, attempt: Callable[[Attempt], Awaitable[T]], timeout_ms: int | None
    ) -> asyncio.Future[T]:
        return self._calls.start(self._calls.run(where, attempt, milliseconds(timeout_ms)))

    def _follow(
        self,
        result: KeyedResult[Any, Any],
        keys: Sequence[Any],
        where: Where,
        attempt: Callable[[Attempt], Awaitable[Mapping[Any, Any]]],
        timeout_ms: int | None,
        missing: Callable[[Any], Exception] = lambda _key: UnknownServerError(),
    ) -> None:
        result.follow(self._call(where, attempt, timeout_ms), keys, missing)

    async def _open(self, address: Address, seconds: float) -> Connection:
        connection = await Connection.open(
            *address,
            client_id=self._client_id,
            dialect=self.dialect,
            timeout=min(seconds, self._connect_timeout),
            ssl=self._ssl,
        )
        await self._authenticate(connection)
        return connection

    async def _authenticate(self, connection: Connection) -> None:
        if self._sasl is None:
            return
        try:
            await connection.authenticate(
                self._sasl.mechanism,
                self._sasl.exchange(),
                handshake_version=self._handshake_version,
            )
        except BaseException:
            await connection.close()
            raise


async def _failing(problem: Exception) -> Any:
    raise problem
