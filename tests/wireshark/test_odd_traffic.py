"""Traffic beside plain exchanges of known messages: fallback, SASL, TLS, damage, other ports."""

import random
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from kproto import dialect, messages
from kproto.messages import consumer_protocol_assignment
from tests.support import seeds
from tests.support.full import either
from tests.tshark.pdml import Pdu, tshark
from tests.wiredump.other_traffic import OTHERS, spoken
from tests.wiredump.talk import say
from tests.wiredump.tls.recorded import (
    capture_of,
    client_context,
    in_memory,
    packets_of,
    server_context,
)
from tests.wiredump.unread_captures import Line, file_of, merged
from tests.wireshark.dissected import PORT, Exchanged, dissected, write_capture

pytestmark = pytest.mark.slow

KAFKA = dialect("kafka")
DAMAGED = either(20_000, 1_500)
UNSUPPORTED_VERSION = 35
CUT = either(2_000, 100)
"""How often three requests and their responses are cut."""
HEADERS = 54
TLS_PORT = 9093


def shown(capture: Path, script: Path, *arguments: str) -> str:
    """tshark's lines, one a packet."""
    with tshark(capture, "-X", f"lua_script:{script}", *arguments) as process:
        assert process.stdout is not None
        text = process.stdout.read().decode()
    assert process.returncode == 0
    return text


def two(capture: Path, script: Path, exchange: Exchanged) -> tuple[Pdu, Pdu]:
    write_capture(capture, [exchange])
    request, response = dissected(capture, script)
    return request, response


def size_and(body: bytes) -> bytes:
    return len(body).to_bytes(4, "big") + body


def test_a_version_that_the_broker_lacks_is_answered_in_version_0(script, tmp_path):
    request = KAFKA.encode_request(
        messages.ApiVersionsRequest(client_software_name="x", client_software_version="1"),
        api_version=4,
        correlation_id=7,
    )
    refusal = messages.ApiVersionsResponse(error_code=UNSUPPORTED_VERSION)
    response = KAFKA.encode_response(refusal, api_version=0, correlation_id=7)
    _, answer = two(tmp_path / "fallback.pcap", script, Exchanged(request, response))
    assert answer.title == "Apache Kafka (kproto), ApiVersions v0 Response"
    assert answer.first("kproto.error_code") == "35"
    assert answer.first("kproto.malformed") is None


def test_a_version_of_the_future_is_named(script: Path, tmp_path: Path) -> None:
    header = b"\x00\x03\x00\x63" + b"\x00\x00\x00\x01" + b"\x00\x01x"
    frames = Exchanged(size_and(header + b"\x00body"), size_and(b"\x00\x00\x00\x01body"))
    request, response = two(tmp_path / "future.pcap", script, frames)
    for pdu in (request, response):
        assert pdu.first("kproto.unknown") is not None
        assert pdu.first("kproto.undecoded") is not None
    assert "Metadata v99" in request.title


def test_tokens_follow_the_first_version_of_the_handshake(script: Path, tmp_path: Path) -> None:
    handshake = Exchanged(
        KAFKA.encode_request(
            messages.SaslHandshakeRequest(mechanism="PLAIN"), api_version=0, correlation_id=1
        ),
        KAFKA.encode_response(messages.SaslHandshakeResponse(), api_version=0, correlation_id=1),
    )
    tokens = Exchanged(size_and(b"\0user\0password"), size_and(b""))
    after = say(random.Random(1), 2)
    assert after.response is not None
    capture = tmp_path / "sasl.pcap"
    write_capture(capture, [handshake, tokens, Exchanged(after.request, after.response)])
    pdus = dissected(capture, script)
    names = [pdu.title.partition(", ")[2] for pdu in pdus]
    assert names[:4] == [
        "SaslHandshake v0 Request", "SaslHandshake v0 Response", "SASL token", "SASL token",
    ]  # fmt: skip
    assert names[4].endswith("Request")
    assert names[5].endswith("Response")
    assert pdus[2].first("kproto.sasl_token") == b"\0user\0password".hex(":")


def test_a_port_of_which_nothing_is_known(script: Path, tmp_path: Path) -> None:
    said = [say(random.Random(number), number) for number in range(1, 30)]
    exchanges = [Exchanged(each.request, each.response) for each in said if each.response]
    capture = tmp_path / "heuristic.pcap"
    write_capture(capture, exchanges)
    lines = shown(capture, script, "-d", f"tcp.port=={PORT},kafka", "-Y", "kproto").splitlines()
    assert not lines  # Kafka's own dissector was asked for
    packets = bytearray(capture.read_bytes())
    capture.write_bytes(packets.replace(PORT.to_bytes(2, "big"), (40_001).to_bytes(2, "big")))
    lines = shown(capture, script, "-o", "tcp.check_checksum:FALSE", "-Y", "kproto").splitlines()
    assert len(lines) == 2 * len(exchanges)


def test_tls_with_its_key_log(script: Path, tmp_path: Path) -> None:
    said = [say(random.Random(number), number) for number in range(1, 12)]
    log = tmp_path / "keys.log"
    passages, _ = in_memory(said, client_context(log), server_context())
    capture = tmp_path / "tls.pcap"
    capture.write_bytes(capture_of(packets_of(passages)))
    text = shown(capture, script, "-o", f"tls.keylog_file:{log}", "-Y", "kproto")
    answered = [each for each in said if each.response is not None]
    assert text.count(" Request") == len(said)
    assert text.count(" Response") == len(answered)


def test_tls_on_any_port(script: Path, tmp_path: Path) -> None:
    said = [say(random.Random(number), number) for number in range(1, 30)]
    log = tmp_path / "keys.log"
    passages, _ = in_memory(said, client_context(log), server_context())
    data = bytearray(capture_of(packets_of(passages)))
    for at in starts_of_packets(data):
        for port in (at + 20, at + 22):
            if data[port : port + 2] == TLS_PORT.to_bytes(2, "big"):
                data[port : port + 2] = (40_443).to_bytes(2, "big")
    capture = tmp_path / "tls.pcap"
    capture.write_bytes(data)
    text = shown(capture, script, "-o", f"tls.keylog_file:{log}", "-Y", "kproto")
    assert text.count(" Request") == len(said)
    assert text.count(" Response") == sum(each.response is not None for each in said)


def test_other_protocols_are_left_to_wireshark(script: Path, tmp_path: Path) -> None:
    """Also one whose first bytes could be the header of a request, if its body is none."""
    rng = random.Random(5)
    lines = []
    for number, name in enumerate(OTHERS):
        lines.append(Line(31_000 + number, client_port=50_000 + number))
        for end, data in spoken(name, rng.random()):
            lines[-1].send(end, data)
    lines.append(Line(2775, client_port=51_000))
    for number in range(20):  # Metadata v1, client id "abc", and a list that does not fit
        body = b"\0\3\0\1" + number.to_bytes(4, "big") + b"\0\3abc\x7f" + rng.randbytes(9)
        lines[-1].send(0, size_and(body))
    capture = tmp_path / "others.pcap"
    capture.write_bytes(merged(*lines))
    assert not shown(capture, script, "-Y", "kproto").splitlines()


def starts_of_packets(capture: bytes) -> Iterator[int]:
    at = 24
    while at < len(capture):
        yield at + 16
        at += 16 + int.from_bytes(capture[at + 8 : at + 12], "little")


def joining(protocol_type: str, metadata: bytes) -> Exchanged:
    protocols = [messages.JoinGroupRequestProtocol(name="range", metadata=metadata)]
    request = messages.JoinGroupRequest(
        group_id="g", protocol_type=protocol_type, protocols=protocols
    )
    return Exchanged(
        KAFKA.encode_request(request, api_version=5, correlation_id=1),
        KAFKA.encode_response(messages.JoinGroupResponse(), api_version=5, correlation_id=1),
    )


@pytest.mark.parametrize(("version", "rest"), [(0, b""), (3, b""), (5, b"to come")])
def test_what_members_of_classic_groups_send_is_decoded(version, rest, script, tmp_path):
    known = min(version, 3)
    subscription = messages.ConsumerProtocolSubscription(topics=["orders"], rack_id="rack-7")
    assignment = messages.ConsumerProtocolAssignment(
        assigned_partitions=[
            consumer_protocol_assignment.TopicPartition(topic="orders", partitions=[4, 5])
        ]
    )
    prefix = version.to_bytes(2, "big")
    joined = joining("consumer", prefix + subscription.encode(known) + rest)
    sync = messages.SyncGroupResponse(assignment=prefix + assignment.encode(known) + rest)
    synced = Exchanged(
        KAFKA.encode_request(messages.SyncGroupRequest(), api_version=3, correlation_id=2),
        KAFKA.encode_response(sync, api_version=3, correlation_id=2),
    )
    capture = tmp_path / "groups.pcap"
    write_capture(capture, [joined, synced])
    request, _, _, answer = dissected(capture, script)
    assert request.first("kproto.topics") == "orders"
    assert request.first("kproto.rack_id") == ("rack-7" if version >= 3 else None)
    assert answer.first("kproto.topic") == "orders"
    partitions = [each.show for each in answer.fields if each.name == "kproto.partitions"]
    assert partitions == ["4", "5"]
    for pdu in (request, answer):
        assert pdu.first("kproto.malformed") is None


def test_what_members_of_other_groups_send_stays_bytes(script: Path, tmp_path: Path) -> None:
    rng = random.Random(1)
    capture = tmp_path / "groups.pcap"
    kinds = [b"", b"\0", b"\0\1", b"\0\1\0\0\0\1\0\3htt", *(rng.randbytes(40) for _ in range(40))]
    write_capture(capture, [joining("connect", each) for each in kinds])
    text = shown(capture, script, "-V", "-Y", "kproto")
    assert "ConsumerProtocol" not in text
    assert "Malformed frame" not in text


def test_labels_follow_one_rule(script: Path, tmp_path: Path) -> None:
    """Words with one capital, whether a field has a value, is null, a list or a structure."""
    said = [say(random.Random(number), number) for number in range(400)]
    capture = tmp_path / "labels.pcap"
    write_capture(capture, [Exchanged(each.request, each.response or each.request)
                            for each in said])  # fmt: skip
    text = shown(capture, script, "-O", "kproto", "-Y", "kproto")
    labels = set(re.findall(r"^ +([A-Za-z]\w*(?: \w+)*): ", text, re.M))
    assert len(labels) > 200
    assert not [each for each in labels if not re.fullmatch(r"[A-Z][a-z0-9]*(?: [a-z0-9]+)*", each)]


def test_damaged_frames_end_in_a_note_and_never_in_an_error_of_the_script(script, tmp_path):
    rng = seeds.generator("damaged frames for Wireshark")
    exchanges = []
    for number in range(DAMAGED):
        said = say(rng, number)
        if said.response is not None:
            exchanges.append(Exchanged(damaged(said.request, rng), damaged(said.response, rng)))
    capture = tmp_path / "damaged.pcap"
    write_capture(capture, exchanges)
    columns = ("-T", "fields", "-E", "occurrence=a", "-e", "kproto.frame_size", "-e")
    lines = shown(capture, script, "-Y", "kproto", *columns, "_ws.expert.message").splitlines()
    sizes, notes = zip(*(line.split("\t") for line in lines), strict=True)
    assert sum(len(each.split(",")) for each in sizes) == 2 * len(exchanges)
    assert not [note for note in notes if ".lua" in note or "Lua" in note]
    assert sum("at byte" in note for note in notes) > len(exchanges) // 4


def damaged(frame: bytes, rng: random.Random) -> bytes:
    """Some bytes of the body changed, or its end cut off; its size is right."""
    body = bytearray(frame[12:])
    if rng.random() < 0.3:
        del body[rng.randrange(len(body) + 1) :]
    for _ in range(rng.choice((0, 1, 2, 8))):
        if body:
            body[rng.randrange(len(body))] = rng.randrange(256)
    return size_and(frame[4:12] + body)


def test_the_filters_of_the_page_are_filters(script: Path, tmp_path: Path) -> None:
    page = Path(__file__).parents[2] / "docs" / "how-to" / "wireshark.md"
    filters = re.findall(r"^\| `(kproto\.[^`]+)` \|", page.read_text(encoding="utf-8"), re.M)
    assert len(filters) > 5
    said = say(random.Random(4), 4)
    capture = tmp_path / "filters.pcap"
    write_capture(capture, [Exchanged(said.request, said.response or b"")])
    shown(capture, script, "-Y", " || ".join(f"({each})" for each in filters))


def test_no_cut_or_damaged_packet_is_an_error_of_the_script(script, tmp_path, rng):
    """Several frames share a segment, which a snap length cuts anywhere. Cut frames are not
    malformed, unless bytes were changed."""
    line = Line()
    number = 0
    for _ in range(CUT):
        said = [say(rng, number + each) for each in range(3)]
        number += 3
        line.send(0, b"".join(each.request for each in said), segment=1400)
        line.send(1, b"".join(each.response or b"" for each in said), segment=1400)
    cut = [each._replace(captured=rng.randint(50, 300)) for each in line.packets]
    path = tmp_path / "cut.pcap"
    for damaged in (False, True):
        packets = cut
        if damaged:
            packets = [each._replace(frame=_changed(rng, each.frame)) for each in cut]
        path.write_bytes(file_of(packets))
        text = shown(path, script, "-V")
        assert "Lua Error" not in text
        assert "out of bounds" not in text
        if not damaged:
            assert "Malformed frame" not in text
            assert "Packet size limited during capture" in text


def _changed(rng: random.Random, frame: bytes) -> bytes:
    """Change some bytes of the payload."""
    made = bytearray(frame)
    for _ in range(3):
        if len(made) > HEADERS:
            made[rng.randrange(HEADERS, len(made))] = rng.randrange(256)
    return bytes(made)
