"""Whether a client's result says what the bytes do: what it would not have, and says so, is not
wrong."""

from __future__ import annotations

from typing import Any

import pytest

from kspec.clientfuzz.clients.expected_results import same

REFUSED = {"error": "UnknownServerException", "code": -1, "message": "too less results"}
OWN = {"error": "ApiException", "message": "no result for it"}
BROKERS = {"error": "UnknownTopicOrPartitionException", "code": 3, "message": ""}


@pytest.mark.parametrize(
    ("got", "expected", "is_same"),
    [
        ({"foo-0": None}, {"foo-0": 0}, True),
        ({"foo-0": None}, {"foo-0": 3}, False),
        ({"foo-0": BROKERS}, {"foo-0": 3}, True),
        ({"foo-0": BROKERS}, {"foo-0": 0}, False),
        ({"foo-0": REFUSED}, {"foo-0": 0}, True),
        # Of an answer that leaves out what was asked for, or tells of something else.
        ({"foo-0": REFUSED}, {}, True),
        ({"foo-0": OWN}, {"bar-7": 0}, True),
        ({"foo-0": None, "bar-0": REFUSED}, {"foo-0": 0}, True),
        ({"foo-0": None}, {}, False),
        ({"foo-0": BROKERS}, {}, False),
        ({}, {"foo-0": 0}, False),
        ({"foo-0": None, "bar-0": OWN}, {"foo-0": 0, "qux-0": 0}, False),
        ([], {}, False),
    ],
)
def test_what_a_client_says_of_each_partition(got: Any, expected: Any, is_same: bool):
    assert same("alter_reassignments", got, expected) is is_same
