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

from collections.abc import Iterable
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
    """Error code -1, ``UNKNOWN_SERVER_ERROR``."""

    CODE = ErrorCode.UNKNOWN_SERVER_ERROR


class UnknownTopicOrPartitionError(BrokerError):
    """Error code 3, ``UNKNOWN_TOPIC_OR_PARTITION``."""

    CODE = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION


class NotLeaderOrFollowerError(BrokerError):
    """Error code 6, ``NOT_LEADER_OR_FOLLOWER``."""

    CODE = ErrorCode.NOT_LEADER_OR_FOLLOWER


class RequestTimedOutError(BrokerError):
    """The broker gave up within the time that the request allowed. If the broker does not respond
    at all, the error is ``RequestTimeoutError``."""

    CODE = ErrorCode.REQUEST_TIMED_OUT


class CoordinatorNotAvailableError(BrokerError):
    """Error code 15, ``COORDINATOR_NOT_AVAILABLE``."""

    CODE = ErrorCode.COORDINATOR_NOT_AVAILABLE


class InvalidTopicError(BrokerError):
    """Error code 17, ``INVALID_TOPIC_EXCEPTION``."""

    CODE = ErrorCode.INVALID_TOPIC_EXCEPTION


class TopicAuthorizationError(BrokerError):
    """Error code 29, ``TOPIC_AUTHORIZATION_FAILED``."""

    CODE = ErrorCode.TOPIC_AUTHORIZATION_FAILED


class ClusterAuthorizationError(BrokerError):
    """Error code 31, ``CLUSTER_AUTHORIZATION_FAILED``."""

    CODE = ErrorCode.CLUSTER_AUTHORIZATION_FAILED


class UnsupportedSaslMechanismError(BrokerError):
    """Error code 33, ``UNSUPPORTED_SASL_MECHANISM``."""

    CODE = ErrorCode.UNSUPPORTED_SASL_MECHANISM


class BrokerUnsupportedVersionError(BrokerError):
    """Error code 35, ``UNSUPPORTED_VERSION``."""

    CODE = ErrorCode.UNSUPPORTED_VERSION


class TopicAlreadyExistsError(BrokerError):
    """Error code 36, ``TOPIC_ALREADY_EXISTS``."""

    CODE = ErrorCode.TOPIC_ALREADY_EXISTS


class InvalidPartitionsError(BrokerError):
    """Error code 37, ``INVALID_PARTITIONS``."""

    CODE = ErrorCode.INVALID_PARTITIONS


class InvalidReplicationFactorError(BrokerError):
    """Error code 38, ``INVALID_REPLICATION_FACTOR``."""

    CODE = ErrorCode.INVALID_REPLICATION_FACTOR


class InvalidReplicaAssignmentError(BrokerError):
    """Error code 39, ``INVALID_REPLICA_ASSIGNMENT``."""

    CODE = ErrorCode.INVALID_REPLICA_ASSIGNMENT


class NotControllerError(BrokerError):
    """Error code 41, ``NOT_CONTROLLER``."""

    CODE = ErrorCode.NOT_CONTROLLER


class InvalidRequestError(BrokerError):
    """Error code 42, ``INVALID_REQUEST``."""

    CODE = ErrorCode.INVALID_REQUEST


class PolicyViolationError(BrokerError):
    """Error code 44, ``POLICY_VIOLATION``."""

    CODE = ErrorCode.POLICY_VIOLATION


class SaslAuthenticationError(BrokerError):
    """Error code 58, ``SASL_AUTHENTICATION_FAILED``."""

    CODE = ErrorCode.SASL_AUTHENTICATION_FAILED


class ReassignmentInProgressError(BrokerError):
    """Error code 60, ``REASSIGNMENT_IN_PROGRESS``."""

    CODE = ErrorCode.REASSIGNMENT_IN_PROGRESS


class PreferredLeaderNotAvailableError(BrokerError):
    """Error code 80, ``PREFERRED_LEADER_NOT_AVAILABLE``."""

    CODE = ErrorCode.PREFERRED_LEADER_NOT_AVAILABLE


class EligibleLeadersNotAvailableError(BrokerError):
    """Error code 83, ``ELIGIBLE_LEADERS_NOT_AVAILABLE``."""

    CODE = ErrorCode.ELIGIBLE_LEADERS_NOT_AVAILABLE


class ElectionNotNeededError(BrokerError):
    """Error code 84, ``ELECTION_NOT_NEEDED``."""

    CODE = ErrorCode.ELECTION_NOT_NEEDED


class NoReassignmentInProgressError(BrokerError):
    """Error code 85, ``NO_REASSIGNMENT_IN_PROGRESS``."""

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
    """No broker can be reached, or none of them is the controller at the moment. ``failures`` has
    the error of each address that was tried."""

    def __init__(self, message: str, failures: Iterable[OSError] = ()) -> None:
        super().__init__(message)
        self.failures = tuple(failures)


class RequestTimeoutError(KprotoError, TimeoutError):
    """No answer within the time the caller allowed."""


class SaslExchangeError(KprotoError):
    """A SASL exchange that cannot continue: the broker closed the connection during it, as it does
    on wrong credentials after SaslHandshake v0, or the broker's own proof is wrong."""


class NotRequestedError(KprotoError, KeyError):
    """The result of a call does not contain this, because the call did not request it."""

    def __str__(self) -> str:
        return str(self.args[0]) if self.args else ""
