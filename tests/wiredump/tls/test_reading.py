"""TLS with its key log: the frames are those of the plaintext, every byte is accounted for, and
what does not open is told of."""

from __future__ import annotations

import ssl
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import kproto
from kproto.capture.container import (
    RAW_IP,
    pcapng_interface,
    pcapng_packet,
    pcapng_secrets,
    pcapng_section,
)
from kproto.errors import MissingExtraError
from kproto.messages import ApiVersionsRequest, MetadataRequest
from mockbroker import MockCluster
from tests.support.full import either, quick
from tests.wiredump.talk import Said, say, talks
from tests.wiredump.tls.recorded import (
    SUITES,
    Passage,
    Suite,
    TlsClient,
    capture_of,
    client_context,
    in_memory,
    packets_of,
    plain,
    server_context,
)
from wiredump.conversation import DEFAULT_PORTS
from wiredump.model import Anomaly, Exchange, Frame, Item
from wiredump.sources import Sources, open_sources
from wiredump.tls.keylog import KeyLog, KeyLogError
from wiredump.tls.records import MOST_TRIALS

suites = pytest.mark.parametrize("suite", SUITES, ids=lambda suite: suite.name[:28] or "TLS 1.3")


def read(
    folder: Path, packets: Iterable[bytes], keylog: Path | None = None,
    ports: frozenset[int] = DEFAULT_PORTS,
) -> tuple[list[Item], Sources]:  # fmt: skip
    path = folder / "capture.pcap"
    path.write_bytes(capture_of(packets))
    log = None if keylog is None else str(keylog)
    source = open_sources([str(path)], keylog=log, ports=ports)
    return list(source), source


def frames(items: Iterable[Item]) -> list[Frame]:
    return [
        frame
        for item in items
        if isinstance(item, Exchange)
        for frame in (item.request, item.response)
        if frame is not None
    ]


def told(items: Iterable[Item]) -> list[tuple[Any, ...]]:
    """Exchanges without the packets that brought them."""
    return [
        (item.api_key, item.api_version, item.correlation_id, item.client_id, item.software,
         *((frame.direction, frame.offset, frame.raw)
           for frame in (item.request, item.response) if frame is not None))
        for item in items
        if isinstance(item, Exchange)
    ]  # fmt: skip


def test_other_connections_show_what_is_in_tls(tmp_path: Path, rng: Any) -> None:
    """Of a connection within TLS, whose client has no name, the capture lacks some packets behind
    the handshake. If another connection shows the port of the broker, what is read is what
    ``--port`` reads."""
    log = tmp_path / "keys.log"

    def talk(port: int, name: str | None) -> list[bytes]:
        said = [say(rng, number, client_id=name) for number in range(4)]
        passages, _ = in_memory(said, client_context(log), server_context())
        return packets_of(passages, port=port)

    def seen(packets: list[bytes], ports: frozenset[int] = DEFAULT_PORTS) -> list[str]:
        items, source = read(tmp_path, packets, log, ports)
        assert source.account["payload"]
        return sorted(repr(each[1:]) for each in told(items))

    helped = 0
    for _ in range(either(40, 12)):
        whole, packets = talk(50_001, "c"), talk(50_000, None)
        lost = rng.sample(range(8, len(packets)), rng.randint(1, len(packets) - 9))
        part = [each for number, each in enumerate(packets) if number not in lost]
        for both in (whole + part, part + whole):
            assert seen(both) == seen(both, frozenset({9093}))
        helped += seen(part) != seen(part, frozenset({9093}))
    assert helped


def anomalies(items: Iterable[Item]) -> list[Anomaly]:
    return [item for item in items if isinstance(item, Anomaly)]


def recorded(
    folder: Path, said: list[Said], suite: Suite = SUITES[0]
) -> tuple[list[Passage], Path]:
    """A connection in TLS, and its key log."""
    log = folder / "keys.log"
    passages, _ = in_memory(said, client_context(log, suite), server_context(suite))
    return passages, log


@suites
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=quick(10, 3))
@given(said=talks(), segment_size=st.sampled_from([5, 100, 1460, 32 << 10]))
def test_it_is_the_plaintext(
    tmp_path: Path, suite: Suite, said: list[Said], segment_size: int
) -> None:
    passages, log = recorded(tmp_path, said, suite)
    expected, without = read(tmp_path, packets_of(plain(said)))
    items, source = read(tmp_path, packets_of(passages, segment_size), log)
    assert told(items) == told(expected)
    assert not anomalies(items)
    account = dict(source.account)
    assert account["frames"] == without.account["frames"]
    assert account["payload"] == account["frames"] + account["tls"]
    assert account["payload"] == sum(len(each.data) for each in passages)


@suites
def test_times_are_those_of_the_packets(tmp_path: Path, suite: Suite, rng: Any) -> None:
    """A frame's first and last byte came when their packets did, although a record opens as a
    whole."""
    said = [say(rng, number) for number in range(5)]
    passages, log = recorded(tmp_path, said, suite)
    items, _ = read(tmp_path, packets_of(passages, 50), log)
    for item in frames(items):
        assert (item.last_ns - item.first_ns) // 10**6 >= (item.size - 1) // 50


@pytest.mark.parametrize("version", [ssl.TLSVersion.TLSv1_2, ssl.TLSVersion.TLSv1_3])
async def test_a_session_with_the_mock(tmp_path: Path, version: ssl.TLSVersion) -> None:
    """What the key log opens is what the broker says it heard and answered."""
    suite, log = Suite(version, ""), tmp_path / "keys.log"
    client = TlsClient(client_context(log, suite))
    async with MockCluster(1, topics=["foo=1"], tls=server_context(suite)) as mock:
        await client.connect(mock.addresses[1].replace("127.0.0.1", "localhost"))
        requests = [ApiVersionsRequest(client_software_name="acc", client_software_version="1")]
        requests += [MetadataRequest(topics=None)] * 3
        for number, request in enumerate(requests):
            frame = kproto.encode_request(
                request, api_version=4, correlation_id=number, client_id="c"
            )
            await client.ask(frame)
        await client.close()
        journal = [entry.raw for entry in mock.journal.select() if entry.direction != "event"]
    items, source = read(tmp_path, packets_of(client.passages), log)
    assert [frame.raw for frame in frames(items)] == journal
    assert len(journal) == 8
    assert not anomalies(items)
    assert items[-1].connection is not None
    assert str(items[-1].connection.software) == "acc 1"
    source.account  # noqa: B018 (raises where the sums do not agree)


def test_a_session_that_was_resumed(tmp_path: Path, rng: Any) -> None:
    for suite in SUITES:
        log, server = tmp_path / "keys.log", server_context(suite)
        client = client_context(log, suite)
        said = [say(rng, number) for number in range(3)]
        _, session = in_memory(said, client, server)
        passages, again = in_memory(said, client, server, session)
        assert again.id == session.id or suite.version == ssl.TLSVersion.TLSv1_3
        items, _ = read(tmp_path, packets_of(passages), log)
        assert told(items) == told(read(tmp_path, packets_of(plain(said)))[0])


# ---- what the capture lacks ----------------------------------------------------------------------


@suites
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=quick(15, 4))
@given(data=st.data(), segment_size=st.sampled_from([60, 1460, 32 << 10]))
def test_lost_packets(tmp_path: Path, suite: Suite, data: Any, segment_size: int) -> None:
    """Every whole frame is one that was said, in its own place; the account agrees."""
    rng = data.draw(st.randoms(use_true_random=True))
    said = [say(rng, number + 1000) for number in range(12)]
    passages, log = recorded(tmp_path, said, suite)
    lost = data.draw(st.floats(0, 0.3))
    # Within the handshake, too: but then nobody knows how much plaintext a gap has swallowed.
    is_after = data.draw(st.booleans())
    hands = len(in_memory([], client_context(None, suite), server_context(suite))[0])
    first = len(packets_of(passages[:hands], segment_size)) - 3 if is_after else 3
    packets = [
        packet
        for number, packet in enumerate(packets_of(passages, segment_size))
        if number < first or len(packet) <= 40 or rng.random() >= lost
    ]
    items, source = read(tmp_path, packets, log)
    truth = {(frame.direction, frame.offset): frame.raw for frame in _truth(tmp_path, said)}
    for frame in frames(items):
        if frame.whole and is_after:
            assert truth.get((frame.direction, frame.offset)) == frame.raw
        assert not frame.whole or frame.raw in truth.values()
    account = source.account
    missing = sum(each.missing for each in anomalies(items))
    assert account["missing"] == missing
    assert account["payload"] + missing == sum(len(each.data) for each in passages)


def _truth(folder: Path, said: list[Said]) -> list[Frame]:
    return frames(read(folder, packets_of(plain(said)))[0])


@suites
def test_behind_a_gap_it_goes_on(tmp_path: Path, suite: Suite, rng: Any) -> None:
    """One packet of each direction is lost: only its own exchanges are."""
    said = [say(rng, number) for number in range(120)]
    said = [each for each in said if each.response and len(each.request + each.response) < 16_000]
    passages, log = recorded(tmp_path, said, suite)
    asks = [number for number, each in enumerate(passages) if not each.from_server]
    gone = {asks[len(asks) // 2], asks[len(asks) // 2 + 4] + 1}
    packets = packets_of(passages)
    for number in sorted(gone, reverse=True):
        del packets[3 + number]  # behind the handshake of TCP
    items, source = read(tmp_path, packets, log)
    whole = [
        item for item in items if isinstance(item, Exchange) and item.request and item.response
    ]
    assert len(whole) == len(said) - 2
    assert sum(each.kind == "gap" for each in anomalies(items)) == 2
    assert source.account["missing"] == sum(len(passages[number].data) for number in gone)


def test_records_that_were_damaged(tmp_path: Path, rng: Any) -> None:
    """A byte of a record turned over: it is passed over, whole, and the next one is read."""
    said = [say(rng, number) for number in range(20)]
    # What is longer is more than one record.
    said = [each for each in said if each.response and len(each.request + each.response) < 16_000]
    passages, log = recorded(tmp_path, said)
    place = len(passages) - 4
    broken = bytearray(passages[place].data)
    broken[-1] ^= 1
    passages[place] = passages[place]._replace(data=bytes(broken))
    items, _ = read(tmp_path, packets_of(passages), log)
    (anomaly,) = [each for each in anomalies(items) if each.kind == "tls"]
    assert anomaly.size == len(broken)
    assert "do not open" in anomaly.reason
    truth = _truth(tmp_path, said)
    assert len([frame for frame in frames(items) if frame.whole]) >= len(truth) - 1


@suites
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=quick(15, 4))
@given(rng=st.randoms(use_true_random=True), places=st.integers(1, 4), keeps=st.booleans())
def test_anything_may_come(
    tmp_path: Path, suite: Suite, rng: Any, places: int, keeps: bool
) -> None:
    """Bytes turned over, put in, left out, anywhere, hellos included: nothing is raised and the
    account agrees. What is whole was said, where no byte was put in or left out, as TCP never
    does."""
    said = [say(rng, number + 1000) for number in range(6)]
    passages, log = recorded(tmp_path, said, suite)
    for _ in range(places):
        number = rng.randrange(len(passages))
        raw = passages[number].data
        at = rng.randint(0, len(raw))
        size = rng.randint(0, min(20, len(raw) - at))
        behind = raw[at + (size if keeps else rng.randint(0, 20)) :]
        changed = raw[:at] + rng.randbytes(size) + behind
        passages[number] = passages[number]._replace(data=changed)
    items, source = read(tmp_path, packets_of(passages), log)
    account = source.account  # raises where the sums do not agree
    assert account["payload"] == sum(len(each.data) for each in passages)
    truth = {each.request for each in said} | {each.response for each in said}
    if keeps:
        assert {frame.raw for frame in frames(items) if frame.whole} <= truth


def test_what_only_looks_like_records_is_bounded(tmp_path: Path, rng: Any) -> None:
    """A stream of headers, none of which begins a record: given up after so many trials."""
    passages, log = recorded(tmp_path, [say(rng, number) for number in range(3)])
    header = bytes.fromhex("1703030100")
    passages.append(Passage(False, header * MOST_TRIALS))
    passages.append(Passage(False, b"\x17\x03\x03\x00\x20" + bytes(32)))
    items, source = read(tmp_path, packets_of(passages), log)
    last = [each for each in anomalies(items) if each.kind == "tls"]
    assert sum(each.size for each in last) == 5 * MOST_TRIALS + 37
    assert len(last) <= 2
    source.account  # noqa: B018


# ---- what the key log lacks ----------------------------------------------------------------------


def reasons(items: list[Item]) -> set[str]:
    assert not frames(items)
    assert {each.kind for each in anomalies(items)} == {"tls"}
    return {each.reason for each in anomalies(items)}


def test_without_its_secrets_it_is_said(tmp_path: Path, rng: Any) -> None:
    passages, log = recorded(tmp_path, [say(rng, 1)])
    other = tmp_path / "other"
    other.mkdir()
    _, others = recorded(other, [say(rng, 1)])
    packets = packets_of(passages)
    assert reasons(read(tmp_path, packets)[0]) == {
        "TLS 1.3 for localhost: nothing inside can be read without its keys"
    }
    items, source = read(tmp_path, packets, others)
    assert reasons(items) == {"TLS: the key log has no secrets of this connection"}
    assert source.connections[0].protocol == "tls"
    assert source.account["anomalies"] + source.account["tls"] == source.account["payload"]
    # The hellos are missing, and nothing tells whose secrets would open it.
    middle = [packet for packet in packets if len(packet) <= 40] + packets[6:-3]
    assert reasons([each for each in read(tmp_path, middle, log)[0]
                    if each.kind == "tls"]) == {  # type: ignore[union-attr]
        "TLS: its handshake was not captured, or its secrets came too late"
    }  # fmt: skip


def test_suites_that_are_not_read_are_said(tmp_path: Path, rng: Any) -> None:
    suite = Suite(ssl.TLSVersion.TLSv1_2, "ECDHE-ECDSA-AES128-SHA256:ECDHE-RSA-AES128-SHA256")
    passages, log = recorded(tmp_path, [say(rng, 1)], suite)
    (reason,) = reasons(read(tmp_path, packets_of(passages), log)[0])
    assert reason.startswith("TLS: cipher suite 0xc02")
    assert reason.endswith("which is not read: AEAD suites are")


def test_secrets_that_the_capture_brings_along(tmp_path: Path, rng: Any) -> None:
    said = [say(rng, number) for number in range(4)]
    passages, log = recorded(tmp_path, said)
    path = tmp_path / "capture.pcapng"
    start = pcapng_section() + pcapng_interface(RAW_IP)
    packets = [
        pcapng_packet(10**9 + number, packet) for number, packet in enumerate(packets_of(passages))
    ]
    path.write_bytes(start + pcapng_secrets(log.read_bytes()) + b"".join(packets))
    assert told(open_sources([str(path)])) == told(read(tmp_path, packets_of(plain(said)))[0])


def test_traffic_that_is_not_tls_is_as_ever(tmp_path: Path, rng: Any) -> None:
    said = [say(rng, number) for number in range(4)]
    _, log = recorded(tmp_path, said)
    packets = packets_of(plain(said), 3)
    assert read(tmp_path, packets, log)[0] == read(tmp_path, packets)[0]
    assert "tls" not in read(tmp_path, packets, log)[1].account


# ---- the key log ---------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("CLIENT_RANDOM 00 11\n", "line 1: not a line of a key log"),
        ("# a comment\n\nCLIENT_RANDOM " + "0" * 64 + " xyz\n", "line 3: not a line of a key log"),
        ("some text\n", "line 1: not a line of a key log"),
        ("", "has no TLS secrets"),
        ("EXPORTER_SECRET 00 11\n", "has no TLS secrets"),
    ],
)
def test_what_is_no_key_log(tmp_path: Path, text: str, problem: str) -> None:
    log = tmp_path / "keys.log"
    log.write_text(text)
    with pytest.raises(KeyLogError, match=problem) as raised:
        read(tmp_path, [], log)
    assert "xyz" not in str(raised.value)


def test_a_key_log_that_grows() -> None:
    random, secret = bytes(range(32)), bytes(48)
    line = f"CLIENT_RANDOM {random.hex()} {secret.hex()}\r\n"
    pieces = iter([line[:50], "", line[50:]])
    log = KeyLog(lambda: next(pieces))
    assert [log.secret("CLIENT_RANDOM", random) for _ in range(3)] == [None, None, secret]


def test_without_the_library_it_says_what_to_install(tmp_path: Path, monkeypatch: Any) -> None:
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    with pytest.raises(MissingExtraError, match=r"pip install 'kproto\[wiredump\]'"):
        read(tmp_path, [], tmp_path / "keys.log")
