"""What each action puts on the wire, as a client sees it that knows no client library."""

import asyncio
import contextlib
import gc
import struct
from collections.abc import AsyncIterator
from typing import Any

import pytest

from kproto.messages import CreateTopicsRequest, MetadataResponse, MetadataResponseTopic
from mockbroker import MockCluster
from mockbroker.serving.server import BrokerProtocol
from tests.mockbroker.wire import PATIENCE, Wire, connect
from tests.support.requests import request_of

METADATA = request_of("Metadata", topics=[])
LIST = request_of("ListPartitionReassignments", topics=None)


@contextlib.asynccontextmanager
async def broken(**members: Any) -> AsyncIterator[tuple[MockCluster, Wire]]:
    """A cluster with one rule, and a connection to its first broker."""
    async with MockCluster(topics=["foo:2:3"], profile="kafka-4.1", strict_faults=True) as mock:
        mock.fault(name="broken", **members)
        async with connect(mock) as wire:
            yield mock, wire


def said(mock: MockCluster) -> list[bytes]:
    """The responses that a rule changed, as the journal has them."""
    return [e.raw for e in mock.journal.select(event="fault: broken", direction="response")]


async def whole(wire: Wire) -> bytes:
    """All that comes until the broker closes."""
    return await wire.closed()


async def alive(wire: Wire) -> None:
    """The connection still serves."""
    assert (await wire.ask("ApiVersions", 0)).error_code == 0


async def test_never_answered_and_the_next_is():
    async with broken(api=3, never_answer=True, times=1) as (mock, wire):
        wire.send(wire.frame(METADATA, 12))
        await alive(wire)
        (event,) = mock.journal.select(event="fault: broken")
        assert (event.direction, event.api_key, event.note) == ("event", 3, "never answered")


async def test_never_answered_may_be_applied():
    body = CreateTopicsRequest.from_json(
        {
            "topics": [
                {"name": "made", "numPartitions": 1, "replicationFactor": 1,
                 "assignments": [], "configs": []},
            ],
            "timeoutMs": 1000,
            "validateOnly": False,
        },
        5,
    )  # fmt: skip
    async with broken(api=19, never_answer=True, apply=True) as (mock, wire):
        wire.send(wire.frame(body, 5))
        await alive(wire)
        assert "made" in mock.cluster.topics


@pytest.mark.requirement("C-08")
@pytest.mark.parametrize(("when", "applied"), [("before", False), ("after", True)])
async def test_disconnected_before_or_after_it_is_carried_out(when, applied):
    async with broken(api=46, disconnect=when, steps_after=["failover 2"]) as (mock, wire):
        wire.send(wire.frame(LIST, 0))
        assert await wire.closed() == b""
        assert (mock.cluster.state.controller_id == 2) is applied


async def test_disconnected_behind_the_answer():
    async with broken(api=3, disconnect="answered") as (_, wire):
        wire.send(wire.frame(METADATA, 12))
        answer = await whole(wire)
        assert int.from_bytes(answer[:4], "big") == len(answer) - 4


async def test_a_half_closed_connection_reads_on():
    async with broken(api=3, disconnect="answered", close_with="half-close") as (mock, wire):
        wire.send(wire.frame(METADATA, 12))
        assert len(await whole(wire)) > 8
        wire.send(wire.frame(METADATA, 12))
        await wire.writer.drain()
        await asyncio.sleep(0.05)  # nothing happens
        assert mock.connections(1) == 1
        assert len(mock.journal.select(api=3, direction="request")) == 1


async def test_a_reset_connection_says_so():
    async with broken(api=3, disconnect="before", close_with="reset") as (mock, wire):
        wire.send(wire.frame(METADATA, 12))
        async with asyncio.timeout(PATIENCE):
            with pytest.raises(ConnectionResetError):
                await wire.reader.readexactly(1)
        assert mock.journal.select(event="disconnected")


async def test_delayed_and_those_behind_wait():
    async with broken(api=3, delay="30ms", times=1) as (_, wire):
        wire.send(wire.frame(METADATA, 12), wire.frame(LIST, 0))
        first = await wire.receive()
        second = await wire.receive()
        assert [int.from_bytes(each[4:8], "big") for each in (first, second)] == [1, 2]


async def ids(wire: Wire, count: int) -> list[int]:
    return [int.from_bytes((await wire.receive())[4:8], "big") for _ in range(count)]


async def test_held_until_so_many_others_went_out():
    async with broken(api=3, hold_responses=2, times=1) as (mock, wire):
        wire.send(wire.frame(METADATA, 12), *(wire.frame(LIST, 0) for _ in range(3)))
        assert await ids(wire, 4) == [2, 3, 1, 4]
        responses = mock.journal.select(direction="response")
        assert [each.correlation_id for each in responses] == [2, 3, 1, 4]


async def test_held_until_a_time_has_passed():
    async with broken(api=3, hold_for="20ms", hold_responses=50, times=1) as (_, wire):
        wire.send(wire.frame(METADATA, 12), wire.frame(LIST, 0))
        assert await ids(wire, 2) == [2, 1]


async def test_held_until_the_client_says_no_more():
    async with broken(api=3, hold_responses=50) as (_, wire):
        wire.send(wire.frame(METADATA, 12), wire.frame(LIST, 0))
        await wire.receive()
        wire.writer.write_eof()
        assert len(await whole(wire)) > 8


async def test_held_answers_are_overtaken_by_answers_known_by_their_bytes():
    """A rule that is used up leaves the fast path open; what it holds must not be forgotten."""
    async with broken(api=46, hold_responses=2, times=1) as (_, wire):
        await wire.ask(METADATA, 12)
        wire.send(wire.frame(LIST, 0))
        await wire.ask(METADATA, 12)
        wire.send(wire.frame(METADATA, 12))
        assert await ids(wire, 2) == [4, 2]


@pytest.mark.parametrize(("swap", "expected"), [("order", [2, 1]), ("ids", [2, 1])])
async def test_swapped_with_the_next(swap, expected):
    async with broken(api=3, swap=swap, times=1) as (_, wire):
        wire.send(wire.frame(METADATA, 12), wire.frame(LIST, 0))
        first, second = await wire.receive(), await wire.receive()
        assert [int.from_bytes(each[4:8], "big") for each in (first, second)] == expected
        metadata = first if swap == "ids" else second
        wire.codec.decode_response(metadata, api_key=3, api_version=12)


async def test_split_into_single_bytes():
    async with broken(api=3, split=1) as (_, wire):
        await wire.ask(METADATA, 12)


@pytest.mark.slow
async def test_a_connection_lost_as_a_pause_begins_leaves_nothing_behind(monkeypatch, recwarn):
    """As where a write finds that nobody is there: asyncio tells so in its next turn, before the
    pause had its first."""
    do, done = BrokerProtocol._do, []

    def do_and_lose(self, step):
        do(self, step)
        done.append(step)
        self.abort()

    async with broken(api=3, split=1, split_delay="20ms") as (mock, wire):
        monkeypatch.setattr(BrokerProtocol, "_do", do_and_lose)
        wire.send(wire.frame(METADATA, 12))
        await whole(wire)
        assert len(done) == 1
        gc.collect()
        assert [str(each.message) for each in recwarn] == []
        async with connect(mock) as other:
            await alive(other)


async def test_split_with_pauses_is_seen_in_pieces():
    async with broken(api=18, split=100, split_delay="20ms", times=1) as (_, wire):
        wire.send(wire.frame(request_of("ApiVersions"), 0))
        assert len(await wire.reader.read(10_000)) == 100
        rest = await wire.reader.read(10_000)
        assert 0 < len(rest) <= 200


@pytest.mark.parametrize(
    ("members", "size"),
    [({"length": -1}, -1), ({"length": 2**31 - 1}, 2**31 - 1), ({"length_off_by": -3}, None)],
)
async def test_a_wrong_length(members, size):
    async with broken(api=46, disconnect="answered", **members) as (mock, wire):
        wire.send(wire.frame(LIST, 0))
        answer = await whole(wire)
        (told,) = struct.unpack_from(">i", answer)
        assert told == (len(answer) - 7 if size is None else size)
        assert said(mock) == [answer]


@pytest.mark.parametrize(
    ("members", "correlation_id"), [({"correlation_id": 77}, 77), ({"correlation_off_by": 5}, 6)]
)
async def test_a_wrong_correlation_id(members, correlation_id):
    async with broken(api=46, **members) as (mock, wire):
        wire.send(wire.frame(LIST, 0))
        answer = await wire.receive()
        assert int.from_bytes(answer[4:8], "big") == correlation_id
        assert said(mock) == [answer]


@pytest.mark.parametrize("place", ["before", "after"])
async def test_an_unsolicited_response(place):
    async with broken(api=46, unsolicited=place, unsolicited_correlation_id=99) as (mock, wire):
        wire.send(wire.frame(LIST, 0))
        assert await ids(wire, 2) == ([99, 1] if place == "before" else [1, 99])
        assert len(said(mock)) == 2


async def test_an_unsolicited_response_has_an_id_of_its_own():
    async with broken(api=46, unsolicited="after") as (mock, wire):
        wire.send(wire.frame(LIST, 0))
        assert await ids(wire, 2) == [1, 0x4000_0001]
        told = mock.journal.select(event="fault: broken", direction="response")
        assert [each.correlation_id for each in told] == [1, 0x4000_0001]


@pytest.mark.requirement("C-08")
@pytest.mark.parametrize("kept", [3, 6, 10, -1])
async def test_a_truncated_frame(kept):
    async with broken(api=46, truncate=kept, disconnect="answered") as (mock, wire):
        wire.send(wire.frame(LIST, 0))
        answer = await whole(wire)
        whole_frame = 18
        assert len(answer) == (kept if kept > 0 else whole_frame + kept)
        assert said(mock) == [answer]


async def test_a_truncated_frame_and_the_connection_stays():
    async with broken(api=46, truncate=4, times=1) as (mock, wire):
        wire.send(wire.frame(LIST, 0))
        assert await wire.reader.readexactly(4)
        assert mock.connections(1) == 1
        await alive(wire)


async def test_bytes_in_place_of_a_frame():
    async with broken(api=46, raw="00 01 fe", disconnect="answered") as (_, wire):
        wire.send(wire.frame(LIST, 0))
        assert await whole(wire) == b"\0\1\xfe"


async def test_garbage_is_the_same_for_the_same_seed():
    found = []
    for seed in (1, 1, 2):
        async with broken(api=46, garbage=64, seed=seed, disconnect="answered") as (_, wire):
            wire.send(wire.frame(LIST, 0))
            found.append(await whole(wire))
    assert len(found[0]) == 64
    assert found[0] == found[1] != found[2]


async def test_a_tls_alert_on_a_plaintext_port():
    async with broken(api=18, tls_alert=80, disconnect="answered") as (_, wire):
        wire.send(wire.frame(request_of("ApiVersions"), 3))
        assert await whole(wire) == bytes.fromhex("15030300020250")


async def test_trailing_bytes_and_what_follows_the_frame():
    async with broken(api=46, trailing="aabb", follow_with="ffffffff", disconnect="answered") as (
        _,
        wire,
    ):
        wire.send(wire.frame(LIST, 0))
        answer = await whole(wire)
        assert int.from_bytes(answer[:4], "big") == len(answer) - 8
        assert answer.endswith(bytes.fromhex("aabb ffffffff"))


async def test_a_reply_of_the_rules_own():
    reply = {"errorCode": 35, "apiKeys": [{"apiKey": 18, "minVersion": 0, "maxVersion": 2}]}
    async with broken(api=18, version="3+", reply=reply, as_version=0) as (_, wire):
        wire.send(wire.frame(request_of("ApiVersions", client_software_name="me"), 4))
        _, answered = wire.codec.decode_response(await wire.receive(), api_key=18, api_version=0)
        assert [each.max_version for each in answered.api_keys] == [2]
        await alive(wire)


async def test_another_version_has_no_room_for_the_unknown_tags_of_an_answer():
    topics = [MetadataResponseTopic(name="foo", unknown_tags={9999: b"\x01"})]
    async with broken(api=3, as_version=1) as (mock, wire):
        mock.script(3, MetadataResponse(topics=topics, unknown_tags={9999: b"\x02"}))
        wire.send(wire.frame(METADATA, 12))
        _, answered = wire.codec.decode_response(await wire.receive(), api_key=3, api_version=1)
        assert [each.name for each in answered.topics] == ["foo"]
        await alive(wire)


async def test_versions_that_the_broker_does_not_serve_meet_rules_too():
    async with MockCluster(profile="kafka-4.1", apis={}) as mock:
        mock.fault(api=18, version="5+", error="UNSUPPORTED_VERSION", name="empty")
        mock.fault(api=3, version=99, raw="00", name="raw")
        async with connect(mock) as wire:
            frame = bytearray(wire.frame(request_of("ApiVersions"), 4))
            frame[7] = 9
            wire.send(bytes(frame))
            _, body = wire.codec.decode_response((await wire.receive()), api_key=18, api_version=0)
            assert (body.error_code, body.api_keys) == (35, [])
            frame = bytearray(wire.frame(METADATA, 12))
            frame[7] = 99
            wire.send(bytes(frame))
            assert await wire.reader.readexactly(1) == b"\0"


async def test_an_error_with_a_delay_and_a_throttle_time():
    async with broken(api=46, error="NOT_CONTROLLER", delay=1, throttle="2s") as (_, wire):
        answered = await wire.ask(LIST, 0)
        assert (answered.error_code, answered.throttle_time_ms) == (41, 2000)


async def test_an_api_that_the_mock_does_not_implement():
    async with broken(api="Heartbeat", error="REBALANCE_IN_PROGRESS") as (_, wire):
        assert (await wire.ask("Heartbeat", 4)).error_code == 27


async def test_a_produce_request_that_wants_no_answer_gets_none():
    async with broken(api=0, error=6) as (mock, wire):
        wire.send(wire.frame(request_of("Produce", acks=0), 9))
        await alive(wire)
        assert mock.journal.select(event="fault: broken")[0].note == "the request has no response"


async def test_an_array_gets_more_elements():
    """Copies of the last, whose numbers count on, around the end of an int16."""
    async with broken(api=18, more={"api_keys": 40_000}) as (_, wire):
        answered = await wire.ask("ApiVersions", 0)
        keys = [each.api_key for each in answered.api_keys]
        own = len(keys) - 40_000
        last = keys[own - 1]
        assert keys[:own] == sorted(set(keys[:own]))
        assert keys[own : own + 3] == [last + 1, last + 2, last + 3]
        assert keys[own:] == [(last + 1 + n) % 2**15 for n in range(40_000)]
        ranges = {(each.min_version, each.max_version) for each in answered.api_keys[own - 1 :]}
        assert len(ranges) == 1


async def test_more_of_what_is_not_there_is_told():
    with pytest.raises(AssertionError, match="fault rule broken failed: the response has no"):
        await _ask_for_missing_arrays()


async def _ask_for_missing_arrays() -> None:
    async with broken(api=3, more={"topics": 2, "nowhere": 2}) as (mock, wire):
        assert (await wire.ask(METADATA, 12)).topics == []
        (event,) = mock.journal.select(event="fault: broken", direction="event")
        assert "the response has no array 'topics' with an element to copy" in event.note
        assert "the response has no array 'nowhere'" in event.note


async def test_the_tagged_fields_as_a_whole_are_these_bytes():
    tags = "01 01 04 00000004"  # an epoch of four bytes, where it has eight
    async with broken(api=18, set_bytes={"body (tagged fields)": tags}) as (mock, wire):
        wire.send(wire.frame(request_of("ApiVersions"), 3))
        frame = await wire.receive()
        assert frame.endswith(bytes(4) + bytes.fromhex(tags)), "behind the throttle time"
        assert int.from_bytes(frame[:4], "big") == len(frame) - 4
        assert said(mock) == [frame]
