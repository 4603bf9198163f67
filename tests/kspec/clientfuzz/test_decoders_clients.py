"""A real client as a decoder: what it is asked, the true answer it is given, where it is sent."""

from __future__ import annotations

import asyncio
import json
import sys

import pytest

import kproto
from kproto.messages import MetadataRequest
from kspec.clientfuzz.decoders.calls import CALLS, HOST, PORT, base_of
from kspec.clientfuzz.decoders.causes import Dissent
from kspec.clientfuzz.decoders.client_decoder import ClientDecoder
from kspec.clientfuzz.decoders.expected import explain
from kspec.clientfuzz.decoders.memory import is_out_of_memory
from kspec.clientfuzz.decoders.proxy import AnswerProxy
from kspec.clientfuzz.decoders.verdicts import Verdict
from kspec.clientfuzz.frame_cases import Sample
from kspec.runner.install import Launch
from mockbroker import MockCluster

KAFKA = kproto.dialect("kafka")
GIVEN = {
    3: {"foo": {str(index): {"isr": [1], "leader": 1, "replicas": [1]} for index in (0, 1)}},
    19: {"foo": None},
    43: {"foo-0": None, "foo-1": None},
    45: {"foo-0": None, "foo-1": None},
    46: {
        "foo-0": {"adding": [3], "removing": [1], "replicas": [1, 2, 3]},
        "foo-1": {"adding": [], "removing": [], "replicas": [2, 3]},
    },
    60: {"brokers": [1], "controller": 1},
}


@pytest.mark.slow  # each is a process
@pytest.mark.parametrize("api_key", sorted(CALLS))
def test_our_client_takes_the_true_answer_and_no_half_of_it(api_key: int) -> None:
    base = base_of(KAFKA, api_key)
    launch = Launch((sys.executable, "-m", "kspec.adapters.python.kproto_adapter"), None)
    decoder = ClientDecoder("kproto", launch, api_key, base.version)
    size = (len(base.frame) - 4 - 3).to_bytes(4, "big")
    frames = [base.frame, size + base.frame[4:-3]]
    try:
        whole, half = decoder.judge(
            [Sample(api_key, base.version, "response", each) for each in frames]
        )
    finally:
        decoder.close()
    assert (whole.outcome, json.loads(whole.value)) == ("accepted", GIVEN[api_key])
    assert half.outcome in ("rejected", "gave up")


def test_what_tells_of_memory_is_no_refusal() -> None:
    """Node's words for a failed attempt; sarama refuses by nearly the same."""
    assert is_out_of_memory("RangeError: Invalid array length")
    assert not is_out_of_memory("kafka: error decoding packet: invalid array length")


def test_a_row_may_ask_what_the_client_gave() -> None:
    """Kafka's Java Admin gives no controller where no broker of the answer has its id."""
    ours = Verdict("accepted", '{"brokers": [], "controller": 1}')
    for controller, row in ((-1, ["a-controller-that-is-no-broker"]), (7, []), (-12, [])):
        given = Verdict("accepted", f'{{"brokers": [], "controller": {controller}}}')
        found = [Dissent("client:kafka-clients", given, ours)]
        rows, left = explain(found, "element-gone")
        assert [each.id for each in rows] == row
        assert left == ([] if row else found)


async def test_an_address_that_is_whole_is_where_the_client_came_from() -> None:
    between = AnswerProxy(3, 5)
    port = await between.start()
    frame = base_of(KAFKA, 3).frame
    async with MockCluster(brokers=1) as mock:
        host, _, its_port = mock.addresses[1].rpartition(":")
        between.to(host, int(its_port))
        found = []
        try:
            for given in (frame, frame.replace(b"127.0.0.1", b"127.0.0.9")):
                between.frame = given
                found.append(await _broker_told(port))
        finally:
            await between.stop()
    assert found == [(HOST, port), ("127.0.0.9", PORT)]


async def _broker_told(port: int) -> tuple[str, int]:
    async with asyncio.timeout(30):
        reader, writer = await asyncio.open_connection(HOST, port)
        request = MetadataRequest(topics=[])
        writer.write(
            kproto.encode_request(request, api_version=5, correlation_id=9, client_id="me")
        )
        head = await reader.readexactly(4)
        body = await reader.readexactly(int.from_bytes(head, "big"))
        writer.close()
    header, answer = kproto.decode_response(head + body, api_key=3, api_version=5)
    assert header.correlation_id == 9
    (broker,) = answer.brokers
    return broker.host, broker.port
