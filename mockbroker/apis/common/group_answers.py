"""Answers to members of groups: at once, or when the group's coordinator has them."""

from __future__ import annotations

import ipaddress
from collections.abc import Callable
from typing import Any, Generic, TypeVar

from kproto.codec.message import Message
from kproto.error_codes import ErrorCode
from mockbroker.apis.calls import Answer, Call
from mockbroker.simulation.groups.modern.heartbeats import HeartbeatResult
from mockbroker.simulation.groups.modern.partitions import by_topic
from mockbroker.simulation.state.timers import Later, wait_for_call

__all__ = ["GroupAnswer", "client_host", "coordinator_error", "heartbeat_response", "when_answered"]

ResultT = TypeVar("ResultT")


class GroupAnswer(Generic[ResultT]):
    """The place of one result. The coordinator calls ``give``, at once or later."""

    def __init__(self) -> None:
        self.result: ResultT | None = None
        self._notify: Callable[[], None] = lambda: None

    def give(self, result: ResultT) -> None:
        self.result = result
        self._notify()

    def notify(self, call: Callable[[], None]) -> None:
        """Call this once there is a result."""
        self._notify = call
        if self.result is not None:
            call()


def when_answered(answer: GroupAnswer[ResultT], respond: Callable[[ResultT], Message]) -> Answer:
    """Return the response, or an awaitable of it. If the client disconnects meanwhile, the member
    stays in its group until its session ends."""

    async def later() -> Message:
        await wait_for_call(answer.notify)
        assert answer.result is not None, "that is what it waited for"
        return respond(answer.result)

    if answer.result is not None:
        return respond(answer.result)
    return Later(later)


def coordinator_error(call: Call, group_id: str) -> ErrorCode:
    """Return 0 if the broker that received the request coordinates the group."""
    return call.cluster.coordinators.group_error(group_id, call.broker_id)


def heartbeat_response(
    response: Callable[..., ResultT],
    assignment: Callable[..., Any],
    topic: Callable[..., Any],
    result: HeartbeatResult,
) -> ResultT:
    """Return the response to a heartbeat of a consumer or share group. ``assignment`` and ``topic``
    are the classes of its assignment, and of a topic with its partitions in it."""
    assigned = None
    if result.assignment is not None:
        topics = by_topic(result.assignment)
        assigned = assignment(
            topic_partitions=[topic(topic_id=each, partitions=indexes) for each, indexes in topics]
        )
    return response(
        error_code=result.error_code,
        error_message=result.error_message,
        member_id=result.member_id,
        member_epoch=result.member_epoch,
        heartbeat_interval_ms=result.interval_ms,
        assignment=assigned,
    )


def client_host(call: Call) -> str:
    """Return the client's address as Java prints it: ``/127.0.0.1``, ``/0:0:0:0:0:0:0:1``."""
    host = call.session.host.strip("[]")
    try:
        address = ipaddress.ip_address(host)
    except ValueError:
        return f"/{host}"
    if address.version == 4:
        return f"/{address}"
    return "/" + ":".join(f"{int(part, 16):x}" for part in address.exploded.split(":"))
