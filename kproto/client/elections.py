"""ElectLeaders (43, KIP-183 and KIP-460): build the body, interpret responses, and hold the result.

Version 0 is ElectPreferredLeaders of releases 2.2 and 2.3, which has neither an election type nor a
top-level error.
"""

from __future__ import annotations

import asyncio
from collections.abc import Collection, Mapping
from typing import Any, Final

from kproto.client.calls import Attempt
from kproto.client.errors import (
    BrokerError,
    ClusterAuthorizationError,
    NotControllerError,
    UnknownTopicOrPartitionError,
    broker_error,
    raise_for_code,
)
from kproto.client.reassignments import group_by_topic
from kproto.client.results import derive
from kproto.client.values import ElectionType, TopicPartition
from kproto.errors import UnsupportedVersionError

__all__ = ["ElectLeadersResult", "elect"]

ELECT_LEADERS: Final = 43

Elections = Mapping[TopicPartition, BrokerError | None]


async def elect(
    attempt: Attempt, election_type: ElectionType, partitions: Collection[TopicPartition] | None
) -> Elections:
    """Send one request. Returns the outcome of each partition in the response."""
    api = attempt.dialect.api(ELECT_LEADERS)
    version = attempt.version(ELECT_LEADERS)
    if version == 0 and election_type != ElectionType.PREFERRED:
        raise UnsupportedVersionError("API Version 0 only supports PREFERRED election type")
    request: Any = api.request
    fields: dict[str, Any] = {
        "timeout_ms": attempt.timeout_ms,
        "topic_partitions": None if partitions is None else _topics(api.request, partitions),
    }
    if version:
        fields["election_type"] = int(election_type)
    response = await attempt.request(request(**fields), version)
    # At a version without a top-level error, the field is 0.
    raise_for_code(getattr(response, "error_code", 0))
    found = {
        TopicPartition(topic.topic, row.partition_id): (
            broker_error(row.error_code, row.error_message) if row.error_code else None
        )
        for topic in response.replica_election_results
        for row in topic.partition_result
    }
    outcomes = list(found.values())
    if outcomes and all(isinstance(each, NotControllerError) for each in outcomes):
        # Nothing was done, so another broker may be tried.
        raise NotControllerError(outcomes[0].text if outcomes[0] else None)
    if version == 0 and partitions is None and not found:
        # A broker of version 0 lists every partition, or none.
        raise ClusterAuthorizationError()
    return found


def _topics(request: Any, partitions: Collection[TopicPartition]) -> list[Any]:
    struct: Any = request.STRUCTS["TopicPartitions"]
    ids = "partitions" if "partitions" in struct.__struct_fields__ else "partition_id"
    return [
        struct(topic=topic, **{ids: [each.partition for each in group]})
        for topic, group in group_by_topic(partitions).items()
    ]


class ElectLeadersResult:
    """The outcome of ``Admin.elect_leaders`` and ``elect_preferred_leaders``."""

    def __init__(self, call: asyncio.Future[Elections], election_type: ElectionType) -> None:
        self._call = call
        self._type = election_type

    def partitions(self) -> asyncio.Future[dict[TopicPartition, BrokerError | None]]:
        """Return the partitions for which an election was attempted, each with its error, None for
        none.

        For a request of all partitions, those that already have their preferred leader are left out
        (Kafka 2.4 and newer).
        """
        return derive(self._call, dict)

    def partition_result(self, partition: tuple[str, int]) -> asyncio.Future[None]:
        """Return None if elected. Raises the partition's error, or UnknownTopicOrPartitionError if
        no election was attempted for it."""
        key = TopicPartition(*partition)

        def pick(found: Elections) -> None:
            if key not in found:
                kind = self._type.name.capitalize()
                raise UnknownTopicOrPartitionError(
                    f'{kind} leader election for partition "{key}" was not attempted'
                )
            _raise(found[key])

        return derive(self._call, pick)

    async def all(self) -> None:
        """Raise the error of the first partition that has one."""
        # Shielded, so that cancelling the caller does not stop the election.
        for error in (await asyncio.shield(self._call)).values():
            _raise(error)


def _raise(error: BrokerError | None) -> None:
    if error is not None:
        raise error
