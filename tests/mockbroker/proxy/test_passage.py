"""One connection through the proxy, without sockets."""

from collections.abc import Callable
from typing import Any

import pytest

from kproto.dialects import dialect
from kproto.errors import DecodeError, RemoteProtocolError
from kproto.framing import encode_frame
from kproto.journal import Journal
from kproto.messages.api_versions_response import ApiVersion, ApiVersionsResponse
from kproto.messages.fetch_response import FetchableTopicResponse, FetchResponse
from kproto.messages.fetch_response import NodeEndpoint as FetchEndpoint
from kproto.messages.fetch_response import PartitionData as FetchPartition
from kproto.messages.heartbeat_response import HeartbeatResponse
from kproto.messages.metadata_response import MetadataResponse, MetadataResponseBroker
from kproto.messages.produce_response import NodeEndpoint as ProduceEndpoint
from kproto.messages.produce_response import ProduceResponse
from kproto.messages.sasl_handshake_response import SaslHandshakeResponse
from mockbroker.apis import Session
from mockbroker.profiles import profile
from mockbroker.proxy.passage import Passage, Passing
from mockbroker.proxy.recorder import Detail, Recorder
from mockbroker.proxy.versions import Clamp
from tests.support import engines
from tests.support.requests import request_of

KAFKA = dialect("kafka")


class Line:
    """A passage with both ends in hand."""

    def __init__(
        self,
        detail: Detail = "frames",
        *,
        clamp: Clamp | None = None,
        concerned: Callable[[int], bool] = lambda _key: False,
        max_size: int = 1 << 20,
    ) -> None:
        self.journal = Journal()
        self.placed: list[tuple[object, ...]] = []
        passing = Passing(
            KAFKA, clamp or Clamp(KAFKA), Recorder(self.journal, KAFKA, detail), self.endpoint,
            concerned,
        )  # fmt: skip
        self.session = Session(1, 1, "127.0.0.1:1")
        self.passage = Passage(passing, self.session, max_size)
        self._correlation_id = 0

    def endpoint(self, *given: object) -> tuple[str, int]:
        self.placed.append(given)
        return "proxy", 4242

    def request(self, body: Any, version: int) -> bytes:
        self._correlation_id += 1
        return KAFKA.encode_request(
            body, api_version=version, correlation_id=self._correlation_id, client_id="me"
        )

    def response(self, body: Any, version: int, correlation_id: int) -> bytes:
        return KAFKA.encode_response(body, api_version=version, correlation_id=correlation_id)

    def client(self, *frames: bytes) -> bytes:
        """What goes upstream when the client sends this."""
        self.passage.receive_from_client(b"".join(frames))
        return self._drain(self.passage.to_upstream)

    def upstream(self, *frames: bytes) -> bytes:
        """What the client gets when the upstream sends this."""
        self.passage.receive_from_upstream(b"".join(frames))
        return self._drain(self.passage.to_client)

    @staticmethod
    def _drain(parts: list[bytes]) -> bytes:
        data = b"".join(parts)
        parts.clear()
        return data

    def idle(self) -> bool:
        return self.passage.idle

    def entries(self) -> list[tuple[str, int | None, int | None]]:
        return [(each.direction, each.api_key, each.correlation_id) for each in self.journal]


def produce(acks: int, transactional_id: str | None = None) -> Any:
    data = [{"index": 0, "records": b"r" * 100}]
    return request_of(
        "Produce", acks=acks, transactional_id=transactional_id, name="foo", partition_data=data
    )


@pytest.mark.requirement("DP-PROXY-26", "DP-PROXY-27")
@pytest.mark.parametrize("detail", ["frames", "headers", "events"])
def test_what_nobody_needs_passes_unchanged(detail: Detail) -> None:
    line = Line(detail)
    requests = [line.request(request_of("Heartbeat", group_id="g"), 4) for _ in range(5)]
    responses = [line.response(HeartbeatResponse(), 4, n + 1) for n in range(5)]
    assert line.client(*requests) == b"".join(requests)
    assert line.passage.unanswered == 5
    # In any chunks.
    data = b"".join(responses)
    assert b"".join(line.upstream(data[n : n + 1]) for n in range(len(data))) == data
    assert line.idle()
    expected = [("request", 12, n + 1) for n in range(5)]
    expected += [("response", 12, n + 1) for n in range(5)]
    assert line.entries() == ([] if detail == "events" else expected)
    raw = [each.raw for each in line.journal]
    assert raw == {"frames": requests + responses, "headers": [b""] * 10, "events": []}[detail]


@pytest.mark.requirement("DP-PROXY-26", "DP-PROXY-27")
@pytest.mark.parametrize("chunk", [1, 50, 10_000])
def test_pipelined_requests_of_several_apis_are_answered_in_their_order(chunk: int) -> None:
    line = Line("headers")
    bodies: list[tuple[Any, Any, int]] = [(request_of("Heartbeat"), HeartbeatResponse(), 4)] * 3
    bodies += [(request_of("Heartbeat"), HeartbeatResponse(), 3)] * 2
    bodies += [(produce(0), None, 9)] * 2
    bodies += [(request_of("Metadata", topics=[]), MetadataResponse(), 9)] * 2
    bodies += [(request_of("Heartbeat"), HeartbeatResponse(), 3)] * 2
    sent = b"".join(line.request(body, version) for body, _, version in bodies)
    passed = b"".join(line.client(sent[n : n + chunk]) for n in range(0, len(sent), chunk))
    assert passed == sent
    assert line.passage.unanswered == 9
    assert [each.correlation_id for each in line.journal] == list(range(1, 12))
    answered = [
        (line.response(body, version, n), body.API_KEY, n)
        for n, (_, body, version) in enumerate(bodies, 1)
        if body is not None
    ]
    for whole, key, n in answered:
        got = b"".join(line.upstream(whole[at : at + chunk]) for at in range(0, len(whole), chunk))
        assert got == whole
        assert line.entries()[-1] == ("response", key, n)
    assert line.idle()
    assert line.passage.unanswered == 0


@pytest.mark.requirement("DP-PROXY-26")
def test_a_large_answer_passes_before_it_is_complete() -> None:
    line = Line("headers")
    line.client(line.request(request_of("Fetch"), 12))
    answer = line.response(FetchResponse(), 12, 1)
    assert line.upstream(answer[:10]) == answer[:10]
    assert not line.idle()
    assert line.passage.buffered == 0
    assert line.upstream(answer[10:]) == answer[10:]
    assert line.idle()


@pytest.mark.requirement("DP-PROXY-01")
def test_addresses_are_rewritten_wherever_the_chunks_end() -> None:
    body = MetadataResponse(
        brokers=[MetadataResponseBroker(node_id=3, host="upstream", port=9092)], topics=[]
    )
    whole = Line().response(body, 12, 1)
    for step in (1, 7, len(whole)):
        line = Line()
        line.client(line.request(request_of("Metadata", topics=[]), 12))
        got = b"".join(line.upstream(whole[n : n + step]) for n in range(0, len(whole), step))
        _, answer = KAFKA.decode_response(got, api_key=3, api_version=12)
        assert [(b.node_id, b.host, b.port) for b in answer.brokers] == [(3, "proxy", 4242)]
        assert line.placed == [("broker", 3, "upstream", 9092)]


@pytest.mark.requirement("DP-PROXY-05", "DP-PROXY-06")
@pytest.mark.parametrize("engine", engines.BUILT)
@pytest.mark.parametrize("detail", ["frames", "headers"])
def test_answers_without_endpoints_pass_unread(engine: str, detail: Detail) -> None:
    """As they came, whatever structs within them are tagged with; the others are rewritten."""
    within = FetchPartition(records=b"r" * 300, unknown_tags={7: b"later"})
    fetched = [FetchableTopicResponse(partitions=[within] * 2)]
    place = FetchEndpoint(node_id=2, host="upstream", port=9092)
    bodies: list[tuple[Any, Any, int]] = []
    for _ in range(2):
        bodies += [(produce(1), ProduceResponse(), 11)] * 3
        bodies += [(request_of("Fetch"), FetchResponse(responses=fetched), 17)] * 2
    other = ProduceEndpoint(node_id=2, host="upstream", port=9092)
    moved = [
        (produce(1), ProduceResponse(node_endpoints=[other]), 11),
        (request_of("Fetch"), FetchResponse(responses=fetched, node_endpoints=[place]), 17),
    ]
    bodies[5:5] = moved
    for chunk in (1, 50, 10_000):
        with engines.running(engine):
            line = Line(detail)
            line.client(*(line.request(asked, version) for asked, _, version in bodies))
            frames = [
                line.response(body, version, n) for n, (_, body, version) in enumerate(bodies, 1)
            ]
            data = b"".join(frames)
            got = b"".join(line.upstream(data[n : n + chunk]) for n in range(0, len(data), chunk))
        answers = []
        while got:
            size = 4 + int.from_bytes(got[:4], "big")
            answers.append(got[:size])
            got = got[size:]
        assert answers[:5] + answers[7:] == frames[:5] + frames[7:]
        for answer, (asked, _, version) in zip(answers[5:7], moved, strict=True):
            _, body = KAFKA.decode_response(answer, api_key=asked.API_KEY, api_version=version)
            assert [(e.node_id, e.host, e.port) for e in body.node_endpoints] == [
                (2, "proxy", 4242)
            ]
        assert line.placed == [("broker", 2, "upstream", 9092)] * 2
        recorded = [each.correlation_id for each in line.journal if each.direction == "response"]
        assert recorded == list(range(1, len(bodies) + 1))
        assert line.idle()


@pytest.mark.requirement("DP-PROXY-28")
@pytest.mark.parametrize("version", KAFKA.api(0).valid_versions)
@pytest.mark.parametrize("transactional_id", [None, "", "t" * 200])
def test_no_answer_is_waited_for_with_acks_0(version: int, transactional_id: str | None) -> None:
    if version < 3:
        transactional_id = None
    for chunk in (1, 10_000):
        line = Line("headers")
        silent = line.request(produce(0, transactional_id), version)
        asks = [line.request(produce(acks, transactional_id), version) for acks in (1, -1)]
        data = silent + b"".join(asks)
        sent = b"".join(line.client(data[n : n + chunk]) for n in range(0, len(data), chunk))
        assert sent == data
        assert line.passage.unanswered == 2
        assert [each.correlation_id for each in line.journal] == [1, 2, 3]


@pytest.mark.requirement("DP-PROXY-22", "DP-PROXY-53")
def test_api_versions_are_cut() -> None:
    line = Line(clamp=Clamp(KAFKA, profile=profile("kafka-2.4")))
    line.client(
        line.request(
            request_of("ApiVersions", client_software_name="a", client_software_version="1"), 3
        )
    )
    rows = [ApiVersion(api_key=3, min_version=0, max_version=13),
            ApiVersion(api_key=68, min_version=0, max_version=1)]  # fmt: skip
    got = line.upstream(line.response(ApiVersionsResponse(api_keys=rows), 3, 1))
    _, body = KAFKA.decode_response(got, api_key=18, api_version=3)
    assert [(row.api_key, row.max_version) for row in body.api_keys] == [(3, 9)]
    assert str(line.session.software) == "a 1"


@pytest.mark.requirement("DP-PROXY-25")
def test_the_upstreams_refusal_of_api_versions_passes() -> None:
    line = Line()
    line.client(line.request(request_of("ApiVersions"), 4))
    rows = [ApiVersion(api_key=18, min_version=0, max_version=3)]
    refusal = line.response(ApiVersionsResponse(error_code=35, api_keys=rows), 0, 1)
    assert line.upstream(refusal) == refusal
    assert [each.api_version for each in line.journal] == [4, 0]


@pytest.mark.requirement("DP-PROXY-25", "DP-PROXY-55")
def test_a_request_above_the_limit_waits_for_its_turn_and_goes_no_further() -> None:
    line = Line(clamp=Clamp(KAFKA, profile=profile("kafka-2.4")))
    first, above = line.request(request_of("Metadata"), 9), line.request(request_of("Metadata"), 12)
    behind = line.request(request_of("Heartbeat"), 0)
    assert line.client(first, above, behind) == first
    held = line.passage.held
    assert held is not None
    assert (held.reason, held.frame, held.head.version) == ("refused", above, 12)
    assert not line.idle()
    line.upstream(line.response(MetadataResponse(), 9, 1))
    assert line.idle()
    line.passage.go_on()
    assert line.client() == behind


@pytest.mark.requirement("DP-PROXY-27")
def test_a_request_that_a_rule_may_take_holds_what_is_behind_it() -> None:
    line = Line(concerned=lambda key: key == 12)
    before, taken, behind = (
        line.request(request_of("Metadata"), 9),
        line.request(request_of("Heartbeat"), 4),
        line.request(request_of("Metadata"), 9),
    )
    assert line.client(before, taken, behind) == before
    held = line.passage.held
    assert held is not None
    assert line.passage.full
    line.upstream(line.response(MetadataResponse(), 9, 1))
    answers: list[tuple[bytes, int]] = []
    line.passage.forward(held.head, held.frame, lambda *given: answers.append(given))
    assert line.client() == taken
    answer = line.response(HeartbeatResponse(), 4, 2)
    assert line.upstream(answer) == b""
    assert answers == [(answer, 4)]
    line.passage.go_on()
    assert line.client() == behind


@pytest.mark.requirement("DP-PROXY-32")
@pytest.mark.parametrize(
    ("mechanism", "tokens"), [("PLAIN", 1), ("SCRAM-SHA-256", 2), ("OAUTHBEARER", 1), ("GSSAPI", 3)]
)
def test_raw_tokens_pass(mechanism: str, tokens: int) -> None:
    line = Line()
    handshake = line.request(request_of("SaslHandshake", mechanism=mechanism), 0)
    assert line.client(handshake) == handshake
    accepted = line.response(SaslHandshakeResponse(mechanisms=[mechanism]), 0, 1)
    assert line.upstream(accepted) == accepted
    for number in range(tokens):
        token = encode_frame(b"\0user\0secret" if mechanism == "PLAIN" else b"n,,n=%d" % number)
        assert line.client(token) == token
        # PLAIN's answer is empty.
        answer = encode_frame(b"" if mechanism == "PLAIN" else b"r=%d" % number)
        assert line.upstream(answer) == answer
    after = line.request(request_of("Metadata"), 9)
    assert line.client(after) == after
    line.upstream(line.response(MetadataResponse(), 9, 2))
    assert line.idle()
    kept = b"".join(each.raw for each in line.journal if each.event == "sasl-token")
    assert b"secret" not in kept
    assert sum(each.event == "sasl-token" for each in line.journal) == 2 * tokens


@pytest.mark.requirement("DP-PROXY-32")
def test_tokens_in_requests_pass_and_passwords_are_not_recorded() -> None:
    line = Line()
    line.client(line.request(request_of("SaslHandshake", mechanism="PLAIN"), 1))
    line.upstream(line.response(SaslHandshakeResponse(mechanisms=["PLAIN"]), 1, 1))
    token = line.request(request_of("SaslAuthenticate", auth_bytes=b"\0user\0secret"), 2)
    assert line.client(token) == token
    assert not any(b"secret" in each.raw for each in line.journal)
    assert any(b"user" in each.raw for each in line.journal)


@pytest.mark.requirement("DP-PROXY-32")
def test_a_refused_handshake_is_followed_by_requests() -> None:
    line = Line()
    line.client(line.request(request_of("SaslHandshake", mechanism="X"), 0))
    line.upstream(line.response(SaslHandshakeResponse(error_code=33), 0, 1))
    again = line.request(request_of("SaslHandshake", mechanism="PLAIN"), 0)
    assert line.client(again) == again
    assert line.entries()[-1] == ("request", 17, 2)


def test_an_upstream_that_answers_the_wrong_request() -> None:
    line = Line()
    line.client(line.request(request_of("Heartbeat"), 4))
    with pytest.raises(RemoteProtocolError, match="correlation id 9 where 1 was due"):
        line.upstream(line.response(HeartbeatResponse(), 4, 9))
    silent = Line()
    with pytest.raises(RemoteProtocolError, match="that no request is waiting for"):
        silent.upstream(silent.response(HeartbeatResponse(), 4, 1))


def test_an_answer_with_addresses_that_cannot_be_read_does_not_pass() -> None:
    line = Line()
    line.client(line.request(request_of("Metadata"), 9))
    with pytest.raises(RemoteProtocolError, match="METADATA v9 cannot be read"):
        line.upstream(encode_frame((1).to_bytes(4, "big") + b"\xff" * 20))
    assert line.passage.to_client == []


@pytest.mark.requirement("DP-PROXY-35")
def test_a_request_that_is_too_large_or_too_short() -> None:
    line = Line(max_size=1000)
    with pytest.raises(RemoteProtocolError, match="is more than the 1000 allowed"):
        line.client((1001).to_bytes(4, "big"))
    for frame in (encode_frame(b""), encode_frame(b"\0\3\0"), encode_frame(b"\0\3\0\0" + b"abc")):
        with pytest.raises(DecodeError, match="no complete header"):
            Line().client(frame)


@pytest.mark.requirement("DP-PROXY-54")
def test_an_api_without_a_schema_passes() -> None:
    line = Line()
    frame = encode_frame(bytes.fromhex("2710 0001 00000001") + b"anything")
    assert line.client(frame) == frame
    answer = encode_frame((1).to_bytes(4, "big") + b"whatever")
    assert line.upstream(answer) == answer
