"""How much work the generated code is, counted in bytecodes: the same on every machine and run.

Seconds are the benchmarks' matter; a shared machine would make a test of them flake.
"""

import sys
from collections.abc import Callable, Iterator
from types import FrameType
from typing import Any

import pytest

from kproto import reference
from kproto.messages import (
    AlterPartitionReassignmentsRequest,
    ApiVersionsResponse,
    MetadataResponse,
    ReassignablePartition,
    ReassignableTopic,
)
from kproto.messages.api_versions_response import ApiVersion
from kproto.messages.metadata_response import MetadataResponsePartition, MetadataResponseTopic
from tests.support import engines
from tests.support.instances import to_tree
from tests.support.schemas import released


@pytest.fixture(autouse=True)
def engine() -> Iterator[str]:
    """Only generated code has bytecodes to count."""
    with engines.running("pure"):
        yield "pure"


SCHEMAS = released()

ALTER = AlterPartitionReassignmentsRequest(
    topics=[
        ReassignableTopic(
            name="foo", partitions=[ReassignablePartition(partition_index=0, replicas=[4, 5, 6])]
        )
    ]
)
VERSIONS = ApiVersionsResponse(
    api_keys=[ApiVersion(api_key=key, min_version=0, max_version=3) for key in range(60)]
)


def bytecodes(call: Callable[[], Any]) -> int:
    """How many bytecodes of Python ``call`` executes, in whatever functions."""
    count = 0

    def step(frame: FrameType, event: str, _: Any) -> Any:
        nonlocal count
        frame.f_trace_opcodes = True
        count += event == "opcode"
        return step

    before = sys.gettrace()
    sys.settrace(step)
    try:
        call()
    finally:
        sys.settrace(before)
    return count


@pytest.mark.parametrize(
    ("body", "version"), [(ALTER, 0), (ALTER, 1), (VERSIONS, 0), (VERSIONS, 3)]
)
@pytest.mark.requirement("C-05")
def test_a_tenth_of_what_construct_takes(body: Any, version: int) -> None:
    cls, schema = type(body), SCHEMAS[type(body).__name__]
    tree, data = to_tree(body), body.encode(version)
    assert reference.encode(schema, version, tree) == data
    assert cls.decode(data, version) == body  # codecs are made here, not while counting
    for ours, constructs in (
        (lambda: cls.decode(data, version), lambda: reference.decode(schema, version, data)),
        (lambda: body.encode(version), lambda: reference.encode(schema, version, tree)),
    ):
        assert bytecodes(ours) * 10 <= bytecodes(constructs)


@pytest.mark.parametrize("version", [8, 9, 12])
@pytest.mark.requirement("C-05")
def test_work_grows_with_the_body_and_not_faster(version: int) -> None:
    def decoding(topics: int) -> int:
        body = MetadataResponse(
            topics=[
                MetadataResponseTopic(
                    name=f"topic-{each:05}",
                    partitions=[MetadataResponsePartition(replica_nodes=[1, 2, 3])] * 3,
                )
                for each in range(topics)
            ]
        )
        data = body.encode(version)
        return bytecodes(lambda: MetadataResponse.decode(data, version))

    assert decoding(1) > 0
    # From ten to forty topics is four times the work; what is not a topic makes it less.
    assert decoding(40) <= 4 * decoding(10) + 100
