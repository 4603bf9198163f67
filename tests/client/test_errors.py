"""Error codes and their classes."""

import pickle

import pytest

from kproto import error_codes
from kproto.client import errors
from kproto.client.errors import BY_CODE, BrokerError, broker_error, raise_for_code
from kproto.error_codes import DESCRIPTION, RETRIABLE, ErrorCode
from kproto.errors import KprotoError


def test_codes_run_without_a_gap_and_each_has_a_text() -> None:
    assert sorted(ErrorCode) == list(range(-1, len(ErrorCode) - 1))
    assert set(DESCRIPTION) == set(ErrorCode)
    assert set(DESCRIPTION) > RETRIABLE


@pytest.mark.parametrize("code", [-2, 999, 32767, -32768])
def test_a_code_of_the_future_is_no_error(code: int) -> None:
    assert error_codes.name(code) == f"UNKNOWN_CODE({code})"
    assert error_codes.message(code) == DESCRIPTION[-1]
    assert not error_codes.is_retriable(code)
    error = broker_error(code)
    assert (type(error), error.code, error.name) == (BrokerError, code, f"UNKNOWN_CODE({code})")


@pytest.mark.parametrize(
    ("code", "kind"),
    [
        (3, "UnknownTopicOrPartitionError"),
        (7, "RequestTimedOutError"),
        (31, "ClusterAuthorizationError"),
        (35, "BrokerUnsupportedVersionError"),
        (38, "InvalidReplicationFactorError"),
        (39, "InvalidReplicaAssignmentError"),
        (41, "NotControllerError"),
        (42, "InvalidRequestError"),
        (80, "PreferredLeaderNotAvailableError"),
        (83, "EligibleLeadersNotAvailableError"),
        (84, "ElectionNotNeededError"),
        (85, "NoReassignmentInProgressError"),
    ],
)
def test_classes_of_the_codes_this_project_is_about(code: int, kind: str) -> None:
    error = broker_error(code)
    assert type(error).__name__ == kind
    assert str(error) == DESCRIPTION[code]
    assert (error.code, error.text, error.retriable) == (code, None, code in RETRIABLE)
    assert str(broker_error(code, "the broker's own")) == "the broker's own"
    assert kind in errors.__all__


def test_errors_of_the_peer_are_not_ours() -> None:
    assert not issubclass(BrokerError, KprotoError)
    assert len(set(BY_CODE.values())) == len(BY_CODE) == len(BrokerError.__subclasses__())
    assert {kind.__name__ for kind in BY_CODE.values()} < set(errors.__all__)


def test_raise_for_code() -> None:
    raise_for_code(0, "ignored")
    with pytest.raises(errors.NotControllerError, match=r"^This is not the correct controller"):
        raise_for_code(41)


def test_errors_travel_between_processes() -> None:
    error = pickle.loads(pickle.dumps(broker_error(999, "text")))
    assert (type(error), error.code, error.text, str(error)) == (BrokerError, 999, "text", "text")
    assert repr(error) == "BrokerError('text', code=999)"
