"""Errors of talking to a broker: those that it reports by code, and those of the connection.

::

    BrokerError                     an error code in a response: ``code``, ``name``, ``retriable``
    ├── UnknownTopicOrPartitionError, NotControllerError, ...      one per code, see BY_CODE
    KprotoError
    ├── ConnectionClosedError       (also ConnectionError) no further response will arrive
    ├── NodeUnavailableError        (also ConnectionError) currently no broker to send to
    ├── RequestTimeoutError         (also TimeoutError) no response arrived in time
    ├── SaslExchangeError           a SASL mechanism ended without an error code of the broker
    └── NotRequestedError           (also KeyError) the call did not request this result

A code without a class of its own, such as a code from a newer release, is a plain ``BrokerError``.
The peer's code 35 is ``BrokerUnsupportedVersionError``, as distinct from
``kproto.errors.UnsupportedVersionError``, with which we refuse to send.
"""

from __future__ import annotations

from typing import ClassVar, Final

from kproto import error_codes
from kproto.error_codes import ErrorCode
from kproto.errors import KprotoError

__all__ = [
    "BY_CODE",
    "BrokerError",
    "BrokerUnsupportedVersionError",
    "ClusterAuthorizationError",
    "ConnectionClosedError",
    "CoordinatorNotAvailableError",
    "ElectionNotNeededError",
    "EligibleLeadersNotAvailableError",
    "InvalidPartitionsError",
    "InvalidReplicaAssignmentError",
    "InvalidReplicationFactorError",
    "InvalidRequestError",
    "InvalidTopicError",
    "NoReassignmentInProgressError",
    "NodeUnavailableError",
    "NotControllerError",
    "NotLeaderOrFollowerError",
    "NotRequestedError",
    "PolicyViolationError",
    "PreferredLeaderNotAvailableError",
    "ReassignmentInProgressError",
    "RequestTimedOutError",
    "RequestTimeoutError",
    "SaslAuthenticationError",
    "SaslExchangeError",
    "TopicAlreadyExistsError",
    "TopicAuthorizationError",
    "UnknownServerError",
    "UnknownTopicOrPartitionError",
    "UnsupportedSaslMechanismError",
    "broker_error",
    "raise_for_code",
]


class BrokerError(Exception):
    """An error code in a broker's response.

    ``text`` is the broker's message, or None without one. ``str()`` of the error is that message,
    or else the generic text of the code.
    """

    code: int
    CODE: ClassVar[ErrorCode | None] = None

    def __init__(self, text: str | None = None, *, code: int | None = None) -> None:
        if code is None:
            code = ErrorCode.UNKNOWN_SERVER_ERROR if self.CODE is None else self.CODE
        self.code = int(code)
        self.text = text
        super().__init__(text or error_codes.message(self.code))

    @property
    def name(self) -> str:
        """``NOT_CONTROLLER``, or ``UNKNOWN_CODE(999)``."""
        return error_codes.name(self.code)

    @property
    def retriable(self) -> bool:
        """Whether the same request may succeed later."""
        return error_codes.is_retriable(self.code)

    def __repr__(self) -> str:
        return f"{type(self).__name__}({str(self)!r}, code={self.code})"

    def __reduce__(self) -> tuple[object, ...]:
        return (_restore, (type(self), self.text, self.code))


def _restore(kind: type[BrokerError], text: str | None, code: int) -> BrokerError:
    return kind(text, code=code)


class UnknownServerError(BrokerError):
    CODE = ErrorCode.UNKNOWN_SERVER_ERROR


class UnknownTopicOrPartitionError(BrokerError):
    CODE = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION


class NotLeaderOrFollowerError(BrokerError):
    CODE = ErrorCode.NOT_LEADER_OR_FOLLOWER


class RequestTimedOutError(BrokerError):
    """The broker gave up within the time that the request allowed. If the broker does not respond
    at all, the error is ``RequestTimeoutError``."""

    CODE = ErrorCode.REQUEST_TIMED_OUT


class CoordinatorNotAvailableError(BrokerError):
    CODE = ErrorCode.COORDINATOR_NOT_AVAILABLE


class InvalidTopicError(BrokerError):
    CODE = ErrorCode.INVALID_TOPIC_EXCEPTION


class TopicAuthorizationError(BrokerError):
    CODE = ErrorCode.TOPIC_AUTHORIZATION_FAILED


class ClusterAuthorizationError(BrokerError):
    CODE = ErrorCode.CLUSTER_AUTHORIZATION_FAILED


class UnsupportedSaslMechanismError(BrokerError):
    CODE = ErrorCode.UNSUPPORTED_SASL_MECHANISM


class BrokerUnsupportedVersionError(BrokerError):
    CODE = ErrorCode.UNSUPPORTED_VERSION


class TopicAlreadyExistsError(BrokerError):
    CODE = ErrorCode.TOPIC_ALREADY_EXISTS


class InvalidPartitionsError(BrokerError):
    CODE = ErrorCode.INVALID_PARTITIONS


class InvalidReplicationFactorError(BrokerError):
    CODE = ErrorCode.INVALID_REPLICATION_FACTOR


class InvalidReplicaAssignmentError(BrokerError):
    CODE = ErrorCode.INVALID_REPLICA_ASSIGNMENT


class NotControllerError(BrokerError):
    CODE = ErrorCode.NOT_CONTROLLER


class InvalidRequestError(BrokerError):
    CODE = ErrorCode.INVALID_REQUEST


class PolicyViolationError(BrokerError):
    CODE = ErrorCode.POLICY_VIOLATION


class SaslAuthenticationError(BrokerError):
    CODE = ErrorCode.SASL_AUTHENTICATION_FAILED


class ReassignmentInProgressError(BrokerError):
    CODE = ErrorCode.REASSIGNMENT_IN_PROGRESS


class PreferredLeaderNotAvailableError(BrokerError):
    CODE = ErrorCode.PREFERRED_LEADER_NOT_AVAILABLE


class EligibleLeadersNotAvailableError(BrokerError):
    CODE = ErrorCode.ELIGIBLE_LEADERS_NOT_AVAILABLE


class ElectionNotNeededError(BrokerError):
    CODE = ErrorCode.ELECTION_NOT_NEEDED


class NoReassignmentInProgressError(BrokerError):
    CODE = ErrorCode.NO_REASSIGNMENT_IN_PROGRESS


BY_CODE: Final[dict[int, type[BrokerError]]] = {
    int(kind.CODE): kind for kind in BrokerError.__subclasses__() if kind.CODE is not None
}
"""The class of each code that has one."""


def broker_error(code: int, text: str | None = None) -> BrokerError:
    """Return the error of ``code`` with the broker's ``text``, if it sent any."""
    return BY_CODE.get(code, BrokerError)(text, code=code)


def raise_for_code(code: int, text: str | None = None) -> None:
    """Raise ``broker_error(code, text)`` unless ``code`` is 0."""
    if code != ErrorCode.NONE:
        raise broker_error(code, text)


class ConnectionClosedError(KprotoError, ConnectionError):
    """The connection ended: we or the peer closed it, or the peer broke the protocol. ``__cause__``
    is the cause, if there is one."""


class NodeUnavailableError(KprotoError, ConnectionError):
    """No broker can be reached, or none of them is the controller at the moment."""


class RequestTimeoutError(KprotoError, TimeoutError):
    """No answer within the time the caller allowed."""


class SaslExchangeError(KprotoError):
    """A SASL exchange that cannot continue: the broker closed the connection during it, as it does
    on wrong credentials after SaslHandshake v0, or the broker's own proof is wrong."""


class NotRequestedError(KprotoError, KeyError):
    """The result of a call does not contain this, because the call did not request it."""

    def __str__(self) -> str:
        return str(self.args[0]) if self.args else ""
