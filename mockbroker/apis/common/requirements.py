"""What handlers require of a request. A handler declares it, in the order of Kafka's checks::

    @register(91, "0", requires=(share_groups, group_access(AclOperation.READ), group_coordinator))

The first requirement that a request does not meet decides the response, which ``refusals`` builds.
What Kafka checks of single topics, partitions or groups is checked by the handlers.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final, TypeAlias

import msgspec
from msgspec.structs import replace

from kproto.codec.message import Message
from kproto.error_codes import ErrorCode, message
from mockbroker.apis.calls import Answer, Call
from mockbroker.apis.common.refusals import Extent, refusal
from mockbroker.simulation.releases import facts
from mockbroker.simulation.security.authorizer import AclOperation, ResourceType

__all__ = [
    "Requirement",
    "cluster_access",
    "cluster_operation",
    "consumer_groups",
    "controller",
    "current_controller",
    "everywhere",
    "group_access",
    "group_coordinator",
    "group_id_given",
    "merged",
    "requiring",
    "share_groups",
    "silent",
    "streams_groups",
    "subscription_access",
    "transaction_access",
    "when",
]

Check: TypeAlias = Callable[[Call], int]
"""Returns the error code of a request that does not meet a requirement, 0 for others."""

Text: TypeAlias = Callable[[Call, int], str | None]


def kafka_text(_call: Call, code: int) -> str | None:
    """Return the message that Kafka has for the error code."""
    return message(code)


def no_text(_call: Call, _code: int) -> str | None:
    """Return None: there is only an error code."""
    return None


class Requirement(msgspec.Struct, frozen=True):
    """``text`` is the error message of the response, if its schema has one. ``extent`` and
    ``merges`` say where in the response the error is, as for ``refusals.refusal``."""

    check: Check
    text: Text = kafka_text
    extent: Extent = "outermost"
    merges: bool = False

    def refusal(self, call: Call, code: int) -> Message:
        """Return the response to a request for which ``check`` has returned ``code``."""
        text = self.text(call, code)
        return refusal(call, code, text, extent=self.extent, merges=self.merges)


def requiring(
    requirements: tuple[Requirement, ...], answer: Callable[[Call], Answer]
) -> Callable[[Call], Answer]:
    """Return a handler that checks the requirements in their order before it calls ``answer``."""

    def checked(call: Call) -> Answer:
        for requirement in requirements:
            code = requirement.check(call)
            if code:
                return requirement.refusal(call, code)
        return answer(call)

    return checked


# ---- where the error is, and its text ------------------------------------------------------------


def everywhere(requirement: Requirement) -> Requirement:
    """The error is also in each topic and partition that the request names."""
    return replace(requirement, extent="everywhere")


def merged(requirement: Requirement) -> Requirement:
    """What the request names twice is refused once."""
    return replace(requirement, merges=True)


def silent(*requirements: Requirement) -> tuple[Requirement, ...]:
    """The responses have an error code without a text."""
    return tuple(replace(each, text=no_text) for each in requirements)


def when(condition: Callable[[Call], bool], requirement: Requirement) -> Requirement:
    """Only requests for which the condition holds have to meet the requirement."""

    def check(call: Call) -> int:
        return requirement.check(call) if condition(call) else 0

    return replace(requirement, check=check)


# ---- authorisation -------------------------------------------------------------------------------


def cluster_access(*operations: AclOperation) -> Requirement:
    """The caller is allowed one of the operations on the cluster."""

    def check(call: Call) -> int:
        if call.authorizer is None or any(map(call.authorizes, operations)):
            return 0
        return ErrorCode.CLUSTER_AUTHORIZATION_FAILED

    return Requirement(check)


def cluster_operation(operation: AclOperation) -> Requirement:
    """As ``cluster_access``, for requests that Kafka refuses with a text of their own."""

    def text(call: Call, _code: int) -> str:
        # Kafka prints its whole request object here, including threads and buffers.
        name = call.api.request.MESSAGE_NAME.removesuffix("Request")
        return f"Request {name} v{call.version} needs {operation.name} permission."

    return replace(cluster_access(operation), text=text)


def group_access(operation: AclOperation) -> Requirement:
    """The caller is allowed the operation on the group of the request."""

    def check(call: Call) -> int:
        if call.authorizer is None or call.authorizes(
            operation, ResourceType.GROUP, call.body.group_id
        ):
            return 0
        return ErrorCode.GROUP_AUTHORIZATION_FAILED

    return Requirement(check)


def subscription_access() -> Requirement:
    """The caller may describe the topics to which the member subscribes by name."""

    def check(call: Call) -> int:
        if call.authorizer is None:
            return 0
        for name in call.body.subscribed_topic_names or ():
            if not call.authorizes(AclOperation.DESCRIBE, ResourceType.TOPIC, name):
                return ErrorCode.TOPIC_AUTHORIZATION_FAILED
        return 0

    return Requirement(check)


def transaction_access(field: str = "transactional_id") -> Requirement:
    """The caller is allowed to write with the transactional id in this field of the request."""

    def check(call: Call) -> int:
        if call.authorizer is None or call.authorizes(
            AclOperation.WRITE, ResourceType.TRANSACTIONAL_ID, getattr(call.body, field)
        ):
            return 0
        return ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED

    return Requirement(check)


# ---- brokers -------------------------------------------------------------------------------------


def _controller_error(call: Call) -> int:
    """KRaft brokers forward requests for the controller (KIP-590)."""
    if call.profile.forwarding or call.cluster.state.controller_id == call.broker_id:
        return 0
    return ErrorCode.NOT_CONTROLLER


def _coordinator_error(call: Call) -> int:
    return call.cluster.coordinators.group_error(call.body.group_id, call.broker_id)


controller: Final = Requirement(_controller_error)
"""The broker is the controller, or forwards requests to it."""

group_coordinator: Final = Requirement(_coordinator_error)
"""The broker coordinates the group of the request."""


def _current_controller_error(call: Call) -> int:
    """Requests of a controller that was replaced, or for an earlier registration of the broker, are
    refused."""
    request, memory = call.body, call.cluster.memories[call.broker_id]
    own_epoch = call.cluster.memories.epoch(call.broker_id)
    return memory.refusal(request.controller_epoch, request.broker_epoch, own_epoch) or 0


current_controller: Final = Requirement(_current_controller_error)
"""The request comes from the controller that the broker knows, and is for this broker."""


# ---- groups --------------------------------------------------------------------------------------


def _consumer_groups_error(call: Call) -> int:
    served = call.cluster.groups.consumer.enabled and (
        not call.release.has(facts.GROUP_VERSION_NEEDED)
        or call.cluster.features.level("group.version") > 0
    )
    return ErrorCode.NONE if served else ErrorCode.UNSUPPORTED_VERSION


def _share_groups_error(call: Call) -> int:
    """4.1 serves share groups (KIP-932) if ``share.version`` is set, later releases by default."""
    served = call.cluster.features.level("share.version") > 0
    return ErrorCode.NONE if served else ErrorCode.UNSUPPORTED_VERSION


def _streams_groups_error(call: Call) -> int:
    enabled = call.cluster.groups.streams.enabled
    served = enabled and call.cluster.features.level("streams.version") > 0
    return ErrorCode.NONE if served else ErrorCode.UNSUPPORTED_VERSION


def _group_id_error(call: Call) -> int:
    return ErrorCode.NONE if call.body.group_id else ErrorCode.INVALID_GROUP_ID


consumer_groups: Final = Requirement(_consumer_groups_error)
share_groups: Final = Requirement(_share_groups_error)
streams_groups: Final = Requirement(_streams_groups_error)
"""The broker serves groups of this kind (KIP-848, KIP-932, KIP-1071)."""

group_id_given: Final = Requirement(_group_id_error)
"""The request names a group."""
