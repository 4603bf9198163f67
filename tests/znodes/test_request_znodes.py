"""Texts of KIP-236's older draft: what is written is read, and to the byte what the page shows."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kproto.znodes import MalformedZnodeError
from kproto.znodes.request_znodes import (
    ReassignmentRequest,
    RequestedReassignment,
    decode_reassignment,
    decode_request,
    encode_reassignment,
    encode_request,
    reassignment_path,
)

_IDS = st.integers(0, 2**31 - 1)
_REPLICAS = st.lists(_IDS, max_size=5).map(tuple)
_TPS = st.tuples(st.text(st.characters(exclude_categories=["Cs"]), max_size=5), _IDS)


@pytest.mark.requirement("K236-58", "A-20")
def test_a_request_is_json_with_the_pages_fields() -> None:
    assignments = {("my-topic", 0): (1, 2, 3), ("your-topic", 3): (4, 5, 6)}
    request = ReassignmentRequest(assignments, legacy=True)
    assert encode_request(request) == (
        b'{"version":1,"assignments":{"my-topic":{"0":[1,2,3]},"your-topic":{"3":[4,5,6]}},'
        b'"legacy":true}'
    )
    as_printed = (
        b'{"version":1\n "assignments":{ "my-topic": {"0": [1,2,3]} "your-topic": {"3":[4,5,6]} }'
        b'\n "legacy":true }'
    )
    with pytest.raises(MalformedZnodeError, match=r"^/r: JSON is malformed"):
        decode_request("/r", as_printed)


@pytest.mark.requirement("A-52")
def test_a_reassignments_znode_is_as_it_was_settled() -> None:
    text = b'{"version":1,"replicas":[2,3],"legacy":false,"top":2}'
    assert encode_reassignment(RequestedReassignment((2, 3), 2)) == text
    assert decode_reassignment("/c", text) == RequestedReassignment((2, 3), 2)
    assert reassignment_path("foo", 3) == "/admin/reassignments/foo/3"


@given(st.dictionaries(_TPS, _REPLICAS, max_size=5), st.booleans())
def test_requests_come_back(assignments, flag):
    found = decode_request("/r", encode_request(ReassignmentRequest(assignments, flag)))
    assert (dict(found.assignments), found.legacy) == (assignments, flag)


@given(st.lists(_IDS, min_size=1).map(tuple), st.integers(1, 2**31 - 1), st.booleans())
def test_reassignments_come_back(replicas: tuple[int, ...], top: int, flag: bool) -> None:
    written = RequestedReassignment(replicas, top, flag)
    assert decode_reassignment("/c", encode_reassignment(written)) == written
