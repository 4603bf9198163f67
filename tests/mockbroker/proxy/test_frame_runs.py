"""Runs of frames: what ends them, in Python and in C alike."""

import itertools
import struct
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kproto.codec.registry import compiled_plan
from kproto.dialects import dialect
from kproto.errors import KprotoError
from kproto.messages.fetch_response import (
    AbortedTransaction,
    FetchableTopicResponse,
    FetchResponse,
    PartitionData,
)
from kproto.messages.fetch_response import NodeEndpoint as FetchEndpoint
from kproto.messages.produce_response import (
    NodeEndpoint,
    PartitionProduceResponse,
    ProduceResponse,
    TopicProduceResponse,
)
from mockbroker.proxy.frame_runs import FrameRuns, frame_runs
from tests.support import engines


def runs_of(engine: str) -> FrameRuns:
    with engines.running(engine):
        return frame_runs()


BUILT = [runs_of(engine) for engine in engines.BUILT]
MOST = 64


def request(correlation_id: int, rest: bytes, api: bytes = b"\0\x0c\0\4") -> bytes:
    body = api + struct.pack(">i", correlation_id) + rest
    return struct.pack(">i", len(body)) + body


def answer(correlation_id: int, rest: bytes = b"") -> bytes:
    return struct.pack(">ii", 4 + len(rest), correlation_id) + rest


requests = st.lists(
    st.builds(
        request,
        st.integers(-(2**31), 2**31 - 1),
        st.sampled_from([b"head", b"head and body", b"heat", b"hea", b"", b"head" + b"x" * 60]),
        st.sampled_from([b"\0\x0c\0\4"] * 3 + [b"\0\x0c\0\5"]),
    ),
    max_size=8,
)


@given(requests, st.integers(0, 30), st.integers(0, 20))
def test_a_run_of_requests(frames: list[bytes], before: int, cut: int) -> None:
    first = request(7, b"head with a body")
    whole = b"." * before + first + b"".join(frames)
    data = whole[: max(len(whole) - cut, before + 16)]
    expected, end = [7], before + len(first)
    for frame in frames:
        begins_alike = frame[4:8] == first[4:8] and frame[12:16] == b"head"
        if not begins_alike or len(frame) - 4 > MOST or end + 16 > len(data):
            break
        expected.append(int.from_bytes(frame[8:12], "big", signed=True))
        end += len(frame)
    for runs in BUILT:
        assert runs.requests_alike(data, before, 4, MOST) == (expected, end)


@given(
    st.lists(st.tuples(st.integers(-2, 5), st.sampled_from([b"", b"x", b"y" * 61])), max_size=8),
    st.integers(0, 3),
    st.integers(0, 12),
)
def test_a_run_of_answers(given_answers: list[tuple[int, bytes]], place: int, cut: int) -> None:
    ids = [9, 8, 7, -1, 0, 1, 2, 3]
    whole = b"".join(answer(*each) for each in given_answers)
    data = whole[: max(len(whole) - cut, 0)]
    count = end = 0
    for (correlation_id, rest), due in zip(given_answers, ids[place:], strict=False):
        if correlation_id != due or 4 + len(rest) > MOST or end + 8 > len(data):
            break
        count += 1
        end += 8 + len(rest)
    for runs in BUILT:
        assert runs.answers_in_order(data, 0, ids, place, MOST, None) == (count, end)


@pytest.mark.parametrize("runs", BUILT, ids=engines.BUILT)
def test_sizes_that_end_a_run(runs: FrameRuns) -> None:
    first = request(1, b"head")
    for size in (-1, 0, 11, MOST + 1, 2**31 - 1):
        bad = struct.pack(">i", size) + first[4:]
        assert runs.requests_alike(first + bad, 0, 4, MOST) == ([1], len(first))
    for size in (-1, 0, 3, MOST + 1, 2**31 - 1):
        bad = struct.pack(">ii", size, 2)
        assert runs.answers_in_order(answer(1) + bad, 0, [1, 2], 0, MOST, None) == (1, 8)
    # Up to the limit they do not.
    largest = request(2, b"head".ljust(MOST - 8))
    assert runs.requests_alike(first + largest, 0, 4, MOST) == ([1, 2], len(first + largest))
    assert runs.answers_in_order(struct.pack(">ii", MOST, 1), 0, [1], 0, MOST, None) == (
        1,
        4 + MOST,
    )


def test_arguments_that_the_engine_refuses() -> None:
    engines.require_native()
    runs = runs_of("native")
    head = b"\0" * 12
    incomplete = [
        (b"", 0, 0),
        (head, 1, 0),
        (head, 0, 1),
        (head, 0, -1),
        (head, -1, 0),
        (head, 13, 0),
    ]
    for data, at, rest in [*incomplete, (b"\xff" * 12, 0, 0)]:
        with pytest.raises(ValueError, match="requests_alike"):
            runs.requests_alike(data, at, rest, MOST)
    with pytest.raises(ValueError, match="offset"):
        runs.answers_in_order(b"", 1, [], 0, MOST, None)
    refused: list[tuple[object, ...]] = [
        (bytearray(12), 0, [1], 0, MOST, None),
        (b"", 0, (1,), 0, MOST, None),
        (b"", 0, [1], -1, MOST, None),
        (b"\0" * 8, 0, ["a"], 0, MOST, None),
        (b"", "a", [1], 0, MOST, None),
        (b"", 0, [1], 0, MOST, "a plan"),
        (b"", 0, [1], 0, MOST),
    ]
    for wrong in refused:
        with pytest.raises(TypeError):
            runs.answers_in_order(*wrong)  # type: ignore[arg-type]


def test_answers_with_a_plan_are_complete_valid_and_without_tagged_fields() -> None:
    engines.require_native()
    runs = runs_of("native")
    with engines.running("native"):
        plan = compiled_plan(ProduceResponse, 12)
    partition = PartitionProduceResponse(index=0, base_offset=7, unknown_tags={9: b"inside"})
    topics = [TopicProduceResponse(name="t", partition_responses=[partition])]

    def encoded(correlation_id: int, **fields: Any) -> bytes:
        unknown = fields.pop("header_tags", None)
        return dialect("kafka").encode_response(
            ProduceResponse(responses=topics, **fields), api_version=12,
            correlation_id=correlation_id, unknown_tags=unknown,
        )  # fmt: skip

    def passed(*frames: bytes, cut: int = 0) -> int:
        assert plan is not None
        for frame in frames:
            for size in (1, 2, 5, 1000):
                parts = [frame[n : n + size] for n in range(0, len(frame), size)]
                for some in (parts, [b"", *parts, b""]):
                    in_order = runs.answers_in_order(frame, 0, [frame[7]], 0, 1 << 20, plan)[0]
                    assert runs.is_untagged(some, plan) is bool(in_order)
        data = b"..".join([b"", b"".join(frames)])
        data = data[: len(data) - cut]
        count, end = runs.answers_in_order(data, 2, [1, 2, 3], 0, 1 << 20, plan)
        assert end == 2 + sum(map(len, frames[:count]))
        return count

    plain, second = encoded(1), encoded(2)
    assert passed(plain, second, encoded(3)) == 3
    assert passed(plain, second, cut=1) == 1
    assert passed(plain, encoded(2, node_endpoints=[NodeEndpoint(host="h", port=1)])) == 1
    assert passed(plain, encoded(2, unknown_tags={5: b""})) == 1
    assert passed(plain, encoded(2, header_tags={5: b""})) == 1
    assert passed(plain, encoded(3)) == 1
    for damaged in (second[:-1], second + b"\0", second[:8], second[:12] + b"\xff" * 20):
        frame = struct.pack(">i", len(damaged) - 4) + damaged[4:]
        assert passed(plain, frame) == 1


@pytest.mark.slow
@given(
    st.sampled_from([1, 2]),
    st.booleans(),
    st.lists(st.tuples(st.integers(8, 200), st.integers(0, 255)), max_size=3),
    st.lists(st.integers(0, 200), max_size=4),
    st.integers(-3, 3),
)
def test_no_damage_hides_a_tagged_field(copies, named, damage, cuts, longer):
    """A damaged response that passes for one without tagged fields decodes to one, if at all."""
    engines.require_native()
    runs = runs_of("native")
    with engines.running("native"):
        plan = compiled_plan(FetchResponse, 17)
    assert plan is not None
    aborted = [AbortedTransaction(producer_id=1, first_offset=2)]
    partition = PartitionData(partition_index=1, aborted_transactions=aborted, records=b"r" * 9)
    topic = FetchableTopicResponse(partitions=[partition] * copies)
    body = FetchResponse(responses=[topic] * copies)
    if named:
        body.node_endpoints = [FetchEndpoint(node_id=1, host="h", port=2)]
    kafka = dialect("kafka")
    frame = bytearray(kafka.encode_response(body, api_version=17, correlation_id=1))
    for place, value in damage:
        if place < len(frame):
            frame[place] = value
    frame = frame[:longer] if longer < 0 else frame + bytes(longer)
    data = struct.pack(">i", len(frame) - 4) + frame[4:]
    places = sorted({0, len(data), *(cut for cut in cuts if cut < len(data))})
    parts = [data[start:end] for start, end in itertools.pairwise(places)]
    passes = runs.is_untagged(parts, plan)
    assert passes is bool(runs.answers_in_order(data, 0, [1], 0, 1 << 20, plan)[0])
    try:
        header, decoded = kafka.decode_response(data, api_key=1, api_version=17)
    except KprotoError:
        return
    tagged = header.unknown_tags or decoded.unknown_tags or decoded.node_endpoints
    assert not (passes and tagged)
    assert passes or damage or named or longer
