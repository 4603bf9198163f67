"""What clients say is told apart: codes first, then the words that released clients use."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kproto.error_codes import ErrorCode
from kspec.answers import Answer
from kspec.error_kinds import Failure, is_kind
from kspec.errors import AdapterFault


@given(st.sampled_from([code for code in ErrorCode if code]), st.text(max_size=9))
def test_a_code_decides_whatever_the_words(code, words):
    failure = Failure(words, int(code), "timed out, disconnected, corrupt")
    assert code.name in failure.kinds
    named = {
        ErrorCode.REQUEST_TIMED_OUT: "timeout",
        ErrorCode.UNSUPPORTED_VERSION: "unsupported-version",
    }
    for each, kind in named.items():
        assert (kind in failure.kinds) == (code == each)
    assert all(is_kind(kind) for kind in failure.kinds)


def test_a_code_without_a_name_is_a_kind_of_its_own():
    assert Failure("E", 999).kinds == {"any", "error-999"}
    assert is_kind("error-999")
    assert not is_kind("error")


@pytest.mark.parametrize(
    ("error", "message", "kind"),
    [
        ("IncompatibleBrokerVersion", "", "unsupported-version"),
        ("KafkaJSServerDoesNotSupportApiKey", "", "unsupported-version"),
        (
            "_UNSUPPORTED_FEATURE",
            "Local: Required feature not supported by broker",
            "unsupported-version",
        ),
        ("Connection", "Cannot find matching version for: Metadata", "unsupported-version"),
        (
            "NotImplementedError",
            "Support for MetadataRequest v13 has not yet been added",
            "unsupported-version",
        ),
        ("KafkaTimeoutError", "", "timeout"),
        ("context.deadlineExceededError", "context deadline exceeded", "timeout"),
        ("*net.OpError", "read tcp 127.0.0.1:1->127.0.0.1:2: i/o timeout", "timeout"),
        ("PLT_KFK_NETWORK", "Connection closed", "disconnected"),
        ("KafkaConnectionError", "", "disconnected"),
        ("*errors.errorString", "EOF", "disconnected"),
        (
            "sarama.PacketDecodingError",
            "correlation ID didn't match, wanted 1, got 8",
            "decode-error",
        ),
        ("SaslAuthenticationException", "Authentication failed", "authentication"),
        ("RuntimeError", "Failed to find active controller id!", "no-controller"),
        ("TypeError", "topics is not iterable", "other"),
        ("KError", "NO_REASSIGNMENT_IN_PROGRESS", "NO_REASSIGNMENT_IN_PROGRESS"),
    ],
)
def test_words_are_looked_up(error, message, kind):
    assert kind in Failure(error, None, message).kinds


def test_an_adapter_that_knows_better_is_believed():
    assert Failure("disconnected", 35, "timed out", "decode-error").kinds == {"any", "decode-error"}


def test_an_error_has_the_kinds_of_those_it_wraps():
    wrapped = {"error": "B", "code": 41, "message": "", "cause": {"error": "C", "message": "EOF"}}
    answer = Answer.of(
        {"ok": False, "error": "Retries", "message": "given up", "errors": [wrapped]}
    )
    assert answer.failure is not None
    assert answer.failure.kinds == {"any", "NOT_CONTROLLER", "no-controller", "disconnected"}
    assert [each.error for each in answer.failure.chain()] == ["Retries", "B", "C"]
    assert Failure("E", causes=(Failure("F"),)).kinds == {"any", "other"}


def test_the_outcome_of_a_partition():
    named = {"foo-1": {"error": "E", "code": 85, "message": ""}}
    partial = Answer.of({"ok": False, "error": "Some", "partitions": named})
    assert partial.outcome("foo-0") is None  # the error names those that failed
    assert partial.outcome("foo-1") == Failure("E", 85)
    assert Answer.of({"ok": False, "error": "All"}).outcome("foo-0") == Failure("All")
    assert Answer.of({"ok": True, "result": None}).outcome("foo-0") is None
    for result in ({}, {"foo-1": None}, False):
        with pytest.raises(KeyError):
            Answer.of({"ok": True, "result": result}).outcome("foo-0")


def test_an_error_of_the_adapter_is_no_answer():
    own = {"error": "KeyError", "message": "'foo'", "at": "my_adapter.py alter"}
    with pytest.raises(AdapterFault, match=r"KeyError: 'foo' at my_adapter\.py alter"):
        Answer.of({"adapter_error": own})
    with pytest.raises(AdapterFault, match="the adapter failed: out of luck"):
        Answer.of({"adapter_error": "out of luck"})


def test_answers_are_read_from_lines():
    said = {"foo-0": None, "foo-1": {"error": "E", "code": 85, "message": "a\n b"}}
    answer = Answer.of({"ok": True, "result": said})
    assert answer.partitions == {"foo-0": None, "foo-1": Failure("E", 85, "a b")}
    assert not answer.ok
    assert Answer.of({"ok": True, "result": {"brokers": [1]}}).ok
    assert Answer.of({"unsupported": "why"}).unsupported == "why"
    failed = Answer.of({"ok": False, "error": None, "code": "x"})
    assert failed.failure == Failure("error")
    for line in ({}, {"ok": 1}, {"ok": None}):
        with pytest.raises(ValueError, match="neither"):
            Answer.of(line)
