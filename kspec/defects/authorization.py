"""Defects about what a client may not do, and may do later."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

from kspec.defects.declaration import defect
from kspec.reference_client.client import Client
from kspec.reference_client.consumer import Consumer
from kspec.reference_client.link import BrokerError, Link
from kspec.reference_client.membership import Membership
from kspec.reference_client.producer import OutgoingBatch, Producer
from kspec.reference_client.topics import TopicPartition, Topics

__all__: list[str] = []

_TOPIC_AUTHORIZATION_FAILED: Final = 29
_CLUSTER_AUTHORIZATION_FAILED: Final = 31
_INCLUDING: Final = ("include_topic_authorized_operations", "include_cluster_authorized_operations")
_VERSIONS_WITH: Final = {
    (3, "include_topic_authorized_operations"): range(8, 100),
    (3, "include_cluster_authorized_operations"): range(8, 11),
    (60, "include_cluster_authorized_operations"): range(100),
}
"""API key and member -> the versions of the request that have it."""


@defect("shows-denied-topics-without-partitions")
class ShowsDeniedTopicsWithoutPartitions(Client):
    """Describes a topic that it may not see as one without partitions."""

    async def call(self, op: str, arguments: Mapping[str, Any]) -> dict[str, Any]:
        reply = await super().call(op, arguments)
        result = reply.get("result")
        if not isinstance(result, dict):
            return reply
        blank: Any = {} if op == "describe_topics" else None
        shown = {key: blank if _is_denied(each) else each for key, each in result.items()}
        return {**reply, "result": shown}


def _is_denied(each: Any) -> bool:
    return isinstance(each, dict) and each.get("code") == _TOPIC_AUTHORIZATION_FAILED


@defect("answers-from-the-first-description")
class AnswersFromTheFirstDescription(Client):
    """Keeps the first description of a topic, also if that is an error."""

    def connect(self, arguments: Mapping[str, Any]) -> None:
        super().connect(arguments)
        self.described: dict[str, Any] = {}

    async def call(self, op: str, arguments: Mapping[str, Any]) -> dict[str, Any]:
        if op != "describe_topics":
            return await super().call(op, arguments)
        key = str(arguments)
        if key not in self.described:
            self.described[key] = await super().call(op, arguments)
        found: dict[str, Any] = self.described[key]
        return found


@defect("remembers-a-denied-topic")
class RemembersADeniedTopic(Topics):
    """Takes a topic that it could not see once for one that it may never see."""

    def take(self, answer: Any) -> None:
        denied = [name for name, code in self.errors.items() if code == _TOPIC_AUTHORIZATION_FAILED]
        super().take(answer)
        self.errors |= dict.fromkeys(denied, _TOPIC_AUTHORIZATION_FAILED)


@defect("stops-at-a-denied-partition")
class StopsAtADeniedPartition(Consumer):
    """Reads nothing more once a broker has refused one partition."""

    denied: Exception | None = None

    def fail(self, problem: Exception) -> None:
        if _is_denial(problem):
            self.denied = problem
        super().fail(problem)

    async def fetch_all(self) -> None:
        if self.denied is not None:
            raise self.denied
        await super().fetch_all()


@defect("starts-anew-after-a-denial")
class StartsAnewAfterADenial(Consumer):
    """Drops its position when a broker refuses a fetch, and starts where its policy says."""

    def take(self, tp: TopicPartition, row: Any, answer: Any) -> None:
        super().take(tp, row, answer)
        if row.error_code == _TOPIC_AUTHORIZATION_FAILED:
            self.assigned[tp].position = None


def _is_denial(problem: Exception) -> bool:
    return isinstance(problem, BrokerError) and problem.code == _TOPIC_AUTHORIZATION_FAILED


@defect("hides-a-denied-subscription")
class HidesADeniedSubscription(Membership):
    """Reports no error if it is not authorized to describe one of its topics."""

    def check_topics(self) -> None:
        """Ignored."""


@defect("goes-on-without-idempotence")
class GoesOnWithoutIdempotence(Producer):
    """Writes without a producer id if the cluster does not allow one."""

    async def attempt(self, pending: Sequence[OutgoingBatch]) -> Exception | None:
        problem = await super().attempt(pending)
        if isinstance(problem, BrokerError) and problem.code == _CLUSTER_AUTHORIZATION_FAILED:
            self.idempotent = False
            return await super().attempt(pending)
        return problem


@defect("asks-for-allowed-operations")
class AsksForAllowedOperations(Link):
    """Requests the list of permitted operations, which the caller did not ask for."""

    def send(self, body: Any, version: int) -> Any:
        for name in _INCLUDING:
            if hasattr(body, name):
                setattr(body, name, version in _VERSIONS_WITH[body.API_KEY, name])
        return super().send(body, version)
