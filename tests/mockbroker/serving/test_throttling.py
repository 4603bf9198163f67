"""Clients that a tester has throttled, on the wire (KIP-219)."""

import asyncio
from typing import Any

import pytest

from mockbroker import MockCluster
from mockbroker.errors import ClusterError
from tests.mockbroker.simulation.operations.test_requests_that_wait import fetch, first, produce
from tests.mockbroker.wire import Wire, connect
from tests.support.requests import request_of

LONG_MS = 60_000
METADATA = request_of("Metadata", topics=None)


async def ask_as(wire: Wire, client_id: str, body: Any, version: int) -> Any:
    wire.send(wire.frame(body, version, client_id))
    frame = await wire.receive()
    return wire.codec.decode_response(frame, api_key=body.API_KEY, api_version=version)[1]


async def answers_in_time(wire: Wire) -> bool:
    """Whether a request that follows on the connection is answered before long."""
    waiting = asyncio.create_task(wire.ask(METADATA, 4))
    done, _ = await asyncio.wait([waiting], timeout=0.1)
    if not done:
        waiting.cancel()
    return bool(done)


@pytest.mark.requirement("DP-CTL-37", "DP-PRODUCE-43")
@pytest.mark.parametrize(
    ("body", "version"),
    [(produce(), 9), (produce(), 3), (METADATA, 9), (request_of("ApiVersions"), 0),
     (request_of("ApiVersions", client_software_name="x", client_software_version="1"), 3)],
)  # fmt: skip
async def test_an_answer_has_the_throttle_time_and_mutes_its_connection(body, version):
    async with MockCluster(topics=["foo:1:1"], profile="kafka-3.9") as mock:
        async with connect(mock) as wire:
            assert await wire.ask(body, version)  # perhaps the response cache has it now
            mock.throttle_client("wire", LONG_MS)
            answer = await wire.ask(body, version)
            has_time = (body.API_KEY, version) != (18, 0)
            assert getattr(answer, "throttle_time_ms", 0) == (LONG_MS if has_time else 0)
            assert not await answers_in_time(wire)
        async with connect(mock) as wire:
            assert (await ask_as(wire, "other", METADATA, 9)).throttle_time_ms == 0
            mock.throttle_client("wire", 0)
            assert (await wire.ask(METADATA, 9)).throttle_time_ms == 0


@pytest.mark.requirement("DP-CTL-37", "DP-PRODUCE-43")
async def test_before_2_0_the_answer_comes_late() -> None:
    async with MockCluster(topics=["foo:1:1"], profile="kafka-1.1") as mock, connect(mock) as wire:
        mock.throttle_client("wire", LONG_MS)
        waiting = asyncio.create_task(wire.ask(METADATA, 4))
        done, _ = await asyncio.wait([waiting], timeout=0.1)
        assert not done
        waiting.cancel()
    async with MockCluster(topics=["foo:1:1"], profile="kafka-1.1") as mock, connect(mock) as wire:
        mock.throttle_client("wire", 10)
        assert (await wire.ask(METADATA, 4)).throttle_time_ms == 10
        assert await answers_in_time(wire)
        mock.produce("foo", value="x")
        assert first(await wire.ask(fetch(), 6)).records, "fetches are not emptied"


@pytest.mark.requirement("DP-FETCH-21")
async def test_a_throttled_fetch_is_empty_and_its_session_goes_on() -> None:
    async with MockCluster(topics=["foo:1:1"]) as mock, connect(mock) as wire:
        mock.produce("foo", value="x")
        opened = await wire.ask(fetch(max_wait_ms=0, session_id=0, session_epoch=0), 11)
        assert opened.session_id
        mock.throttle_client("wire", 10)
        throttled = fetch(session_id=opened.session_id, session_epoch=1)
        answer = await wire.ask(throttled, 11)
        assert (answer.throttle_time_ms, answer.responses) == (10, [])
        assert (answer.error_code, answer.session_id) == (0, opened.session_id)
        again = await wire.ask(fetch(session_id=opened.session_id, session_epoch=2), 11)
        assert (again.error_code, again.session_id) == (0, opened.session_id)
        assert (first(again).records is not None, again.throttle_time_ms) == (True, 0)
        answer = await wire.ask(fetch(session_id=0, session_epoch=0), 11)
        assert (answer.responses, answer.session_id) == ([], 0), "it opens no session"


@pytest.mark.requirement("DP-FETCH-21")
async def test_a_throttled_consumer_gets_every_record_after_its_waits() -> None:
    async with MockCluster(topics=["foo:1:1"]) as mock:
        mock.throttle_client("wire", 10)
        async with connect(mock) as one, connect(mock) as other:
            for wire in (one, other):
                values = []
                for _ in range(3):
                    mock.produce("foo", value="x")
                    answers = [await wire.ask(fetch(max_wait_ms=0), 11) for _ in (1, 2)]
                    assert [each.throttle_time_ms for each in answers] == [10, 0]
                    values.append(len(first(answers[1]).records))
                assert values == sorted(set(values)), "each fetch has what came meanwhile"


async def test_acks_0_is_throttled_without_an_answer() -> None:
    async with MockCluster(topics=["foo:1:1"]) as mock, connect(mock) as wire:
        mock.throttle_client("wire", 10)
        wire.send(wire.frame(produce(acks=0), 9))
        assert (await wire.ask(METADATA, 9)).throttle_time_ms == 10
        assert len(mock.records("foo")) == 1
        refused = produce(acks=0)
        refused.topic_data[0].partition_data[0].index = 1
        wire.send(wire.frame(refused, 9))
        assert await wire.closed() == b"", "a failed request without an answer ends the connection"


async def test_a_rule_of_faults_answers_alone_and_times_have_limits() -> None:
    async with MockCluster(topics=["foo:1:1"]) as mock, connect(mock) as wire:
        mock.throttle_client("wire", LONG_MS)
        mock.fault(api="Metadata", throttle=5, times=1)
        assert (await wire.ask(METADATA, 9)).throttle_time_ms == 5
        for wrong in (-1, 2**31):
            with pytest.raises(ClusterError, match="a throttle time is 0 to"):
                mock.throttle_client("wire", wrong)
