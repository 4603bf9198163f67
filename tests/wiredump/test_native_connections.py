"""Connections that open and close in the extension: whatever comes at whichever stage, the items
are those of Python."""

from __future__ import annotations

import io
import random
from collections import deque
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec import structs

from kproto.dialects import dialect
from tests.support.full import quick, quickly_drawn
from tests.wiredump.quickly import Outcome, read_in_python, read_quickly, tables_of
from tests.wiredump.short_connections import ODD, ShortConnection, capture_of, short_connections
from wiredump import native
from wiredump.connection_state import ConnectionState, FrameState
from wiredump.model import Item
from wiredump.readers import Account, Capture, Limits, Streams, TcpReassembler
from wiredump.sources.captures import CaptureItems
from wiredump.sources.quick import QuickSegments, walks
from wiredump.spark import state
from wiredump.tls.keylog import KeyLog

pytestmark = pytest.mark.usefixtures("extension")

SIZES = st.sampled_from([100, 300, 1000, 4096, 1 << 20])
AUTO = dialect("auto")
TABLES = ("lineage", "account", "connections", "frames", "anomalies")


def assert_same(data: bytes, size: int = 1 << 20) -> Outcome:
    slow, fast = read_in_python(data), read_quickly(data, size)
    assert fast._replace(slowly=0) == slow._replace(slowly=0)
    return fast


@pytest.mark.parametrize("way", quickly_drawn("odd", range(len(ODD)), 15))
def test_anything_odd_at_any_stage(way: int):
    """With another connection on the same ports behind it."""
    for seed in range(quick(2, sampled=1)):
        whole = len(ShortConnection(random.Random(seed)).packets)
        for at in range(whole):
            rng = random.Random(seed)
            connection = ShortConnection(rng)
            ODD[way](connection, at)
            data = capture_of(connection.packets + ShortConnection(rng).packets, rng)
            assert_same(data, 1 << 20 if at % 2 else 200)


@given(st.integers(0, 2**32), st.sampled_from([0, 0.3, 0.6]), st.sampled_from([0, 0.01]), SIZES)
def test_many_short_lives(seed: int, odd: float, pause: float, size: int):
    rng = random.Random(seed)
    assert_same(capture_of(short_connections(rng, 12, odd), rng, pause), size)


def usual(rng: random.Random, count: int) -> list[bytes]:
    """Lives of clients whose names are read at a look, and whose first request is in one piece."""
    found: list[bytes] = []
    while count:
        connection = ShortConnection(rng, 40_000 + count, hellos=(0, 3, 4))
        if (
            connection.client is not None
            and connection.client.isascii()
            and connection.client
            and connection.talk._segment_size > 100
        ):
            found += connection.packets
            count -= 1
    return found


def test_usual_lives_are_not_left_to_python(rng: random.Random):
    data = capture_of(usual(rng, 50), rng)
    found = assert_same(data)
    assert len(found.connections) == 50
    assert found.slowly == 0


@pytest.mark.slow
def test_a_flood_of_syns_costs_python_no_packet(rng: random.Random):
    packets = [
        ShortConnection(rng, 20_000 + number, exchanges=0).packets[0] for number in range(3000)
    ]
    found = assert_same(capture_of(packets, rng), 20_000)
    assert len(found.connections) == 3000
    assert found.slowly == 0


def test_what_a_capture_ends_before_is_python_s_only_where_something_waits(rng: random.Random):
    packets: list[bytes] = []
    for number in range(200):
        connection = ShortConnection(rng, 20_000 + number, exchanges=1)
        packets += connection.packets[: rng.randrange(1, len(connection.packets))]
    assert_same(capture_of(packets, rng), 20_000)


def test_with_a_key_log_connections_are_python_s(rng: random.Random):
    data = capture_of(usual(rng, 5), rng)
    keys = KeyLog()
    keys.add(f"CLIENT_RANDOM {'00' * 32} {'11' * 48}\n")
    slow = read_in_python(data, items=CaptureItems(keys=keys))
    fast = read_quickly(data, items=CaptureItems(keys=keys))
    assert fast == slow


@pytest.mark.slow
@settings(max_examples=10)
@given(st.integers(0, 2**32), st.sampled_from([0, 0.4]))
def test_tables_are_the_same(tmp_path_factory: pytest.TempPathFactory, seed: int, odd: float):
    rng = random.Random(seed)
    folder: Path = tmp_path_factory.mktemp("connections")
    place = folder / "connections.pcap"
    place.write_bytes(capture_of(short_connections(rng, 30, odd), rng))
    with native.using(None):
        slow = tables_of(place, folder / "slow", TABLES, bodies=False)
    with native.using(native.built()):
        fast = tables_of(place, folder / "fast", TABLES, bodies=False)
    assert fast == slow


def alone(item: Item) -> tuple[int, str]:
    """What does not change any more once it was told."""
    number = -1 if item.connection is None else item.connection.number
    return number, repr(structs.replace(item, connection=None))  # type: ignore[type-var]


@pytest.mark.slow
@settings(max_examples=30)
@given(st.integers(0, 2**32), st.sampled_from([0, 0.3]), st.integers(2, 6))
def test_what_is_carried_over_is_what_python_would_have(seed: int, odd: float, parts: int):
    """Read in parts, pickled between them, as a stream of files is."""
    rng = random.Random(seed)
    data = capture_of(short_connections(rng, 12, odd), rng)
    every, streams = CaptureItems(), Streams(Limits(alone=True))
    expected = [alone(item) for item in every.read(streams.read(Capture(io.BytesIO(data))))]
    items, tcp = CaptureItems(), TcpReassembler(Account(), Limits(alone=True))
    found = []
    with native.using(native.built()):
        read = Capture(io.BytesIO(data), read_size=len(data) // parts + 1, walks=walks())
        for packets in read:
            segments = QuickSegments(items, tcp, None, None)
            done = segments.bulk(packets) if segments.takes(packets) else segments.one(packets)
            found += [alone(item) for item in done]
            segments.all_back()
            tcp.pause()
            tcp, items = state.load(state.dump((tcp, items), AUTO), AUTO)
        for event in tcp.close():
            found += [alone(item) for item in items.feed(event)]
        found += map(alone, items.settle())
    assert found == expected
    assert items.connections == every.connections
    assert (tcp.account, items.account) == (streams.account, every.account)


def states(data: bytes, stop: int) -> tuple[Any, list[ConnectionState]]:
    """A ``Reading`` of the first packets of a capture, and the states that it dumps."""
    items, tcp = CaptureItems(), TcpReassembler(Account(), Limits(alone=True))
    with native.using(native.built()):
        segments = QuickSegments(items, tcp, None, None)
        for packets in Capture(io.BytesIO(data), read_size=stop, walks=walks()):
            deque(segments.bulk(packets) if segments.takes(packets) else segments.one(packets))
            break
    reading = segments._reading
    return reading, [reading.dump(flow) for flow in reading.flows(False)]


def test_a_state_is_restored_as_it_was_dumped(rng: random.Random):
    reading, (state,) = states(capture_of(usual(rng, 1)[:-4], rng), 1 << 20)
    assert reading.dump(state.tcp.flow) is None
    assert state.conversation is not None
    with pytest.raises(ValueError, match="only Python continues"):
        reading.restore(state)
    tcp = state.tcp._replace(opening=None)
    client, server = (end._replace(recent=[]) for end in (tcp.client, tcp.server))
    request, response = (FrameState(end.next, b"", b"") for end in (client, server))
    conversation = state.conversation._replace(request=request, response=response)
    resting = state._replace(
        tcp=tcp._replace(client=client, server=server), conversation=conversation
    )
    assert tcp.client.recent != []
    assert request.base > 0
    for unusual in (
        resting._replace(tcp=tcp),
        resting._replace(conversation=conversation._replace(request=FrameState(0, b"", b""))),
        resting._replace(conversation=conversation._replace(request=FrameState(0, b"x", b""))),
    ):
        with pytest.raises(ValueError, match="between two frames"):
            reading.restore(unusual)
    for wrong in (list(resting), None, resting[:3], resting._replace(conversation=None)):
        with pytest.raises(TypeError):
            reading.restore(wrong)
    reading.restore(resting)
    with pytest.raises(ValueError, match="already known"):
        reading.restore(resting)
    found = reading.dump(tcp.flow)
    assert found.tcp == resting.tcp
    assert found.connection is state.connection
    assert found.conversation.pairing.requests is conversation.pairing.requests
    assert found.conversation.request.base == request.base
    assert found.counts == (0, 0, 0)
