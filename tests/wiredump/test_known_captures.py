"""What wiredump reads of captures whose truth is known: every exchange that is there, and no
other."""

from __future__ import annotations

import json
import random
from collections import Counter
from collections.abc import Iterable
from pathlib import Path
from struct import pack, unpack_from
from typing import Any

import pytest
from click.testing import CliRunner

from kproto.capture.container import pcapng_interface, pcapng_packet, pcapng_section
from kproto.capture.packets import ACK, RST, SYN
from tests.captures.test_captures import uncompressed
from tests.captures.worse import records_of
from tests.support.full import drawn, either
from tests.support.seeds import generator
from tests.support.toolchain import require_module
from tests.wiredump.known_captures import (
    BEGINNINGS,
    HOP_NS,
    KINDS,
    Fact,
    Known,
    hinted,
    known,
    reused,
    translated,
)
from tests.wiredump.other_traffic import OTHERS, spoken
from tests.wiredump.questions.incident import incident
from tests.wiredump.quickly import read_in_python, read_quickly, require_quick
from tests.wiredump.spark.fake_session import FakeSession, session
from tests.wiredump.spark.pipeline import load
from tests.wiredump.unread_captures import (
    Line,
    Packet,
    beaten,
    file_of,
    framed,
    heartbeat,
    heartbeats,
    merged,
    produce,
    snapped,
)
from wiredump import native
from wiredump.cli import cli
from wiredump.model import Anomaly, Exchange, Item
from wiredump.readers.share import Share
from wiredump.rows.schema import ON_REQUEST, TABLES
from wiredump.skipped import bytes_of, requests_of, unread_of
from wiredump.sources import captures, open_sources
from wiredump.sources.captures import CaptureItems
from wiredump.tls.keylog import KeyLog

__all__ = ["session"]

SEEDS = either(40, 3)
PCAPNG = b"\n\r\r\n"
TABLED = tuple(name for name in TABLES if name not in ON_REQUEST)


def _seeds(name: str) -> list[int]:
    rng = generator(f"known captures, {name}")
    return [rng.randrange(1 << 30) for _ in range(SEEDS)]


def facts(items: Iterable[Item]) -> Counter[Fact]:
    return Counter(
        Fact(
            int(item.connection.client.rpartition(":")[2]), item.api_key, item.api_version,
            item.correlation_id, item.response is not None,
        )
        for item in items
        if isinstance(item, Exchange) and item.request is not None and not item.request.sasl
    )  # fmt: skip


def read(known: Known, folder: Path, shares: int = 1) -> tuple[Counter[Fact], list[str]]:
    """Return the exchanges, and the clients that proxies' headers name, as so many processes find
    them."""
    path = folder / "a.pcap"
    path.write_bytes(known.capture)
    found: Counter[Fact] = Counter()
    clients: list[str] = []
    for number in range(shares):
        sources = open_sources([str(path)], share=Share(number, shares))
        found += facts(sources)
        clients += [each.proxied_client for each in sources.connections.values()]
    return found, [each for each in clients if each]


def check(known: Known, found: Counter[Fact]) -> None:
    """No exchange is made up, and none is lost that the capture has. A response of which it has a
    part may be found."""
    possible = known.truth + Counter(
        fact._replace(answered=False) for fact in (known.truth - known.sure).elements()
    )
    assert not found - possible, known.what
    lost = known.sure - found
    for fact in lost.elements():
        assert not fact.answered, (known.what, fact)
        assert found[fact._replace(answered=True)], (known.what, fact)


@pytest.mark.parametrize("beginning", BEGINNINGS)
def test_whatever_precedes_kafka(beginning: str, tmp_path: Path) -> None:
    for seed in _seeds(beginning):
        made = known(seed, "whole", beginning, 31092)
        found, clients = read(made, tmp_path, shares=1 + seed % 3)
        assert found == made.truth, made.what
        assert clients == [*made.clients], made.what


@pytest.mark.parametrize("kind", sorted(KINDS.keys() - {"translated"}))
def test_whatever_happened_to_the_packets(kind: str, tmp_path: Path) -> None:
    """And whatever precedes Kafka; if the header of a proxy is cut, so is the first response."""
    beginnings = ("none", "gssapi") if kind == "cut" else tuple(BEGINNINGS)
    for seed in _seeds(kind):
        beginning = beginnings[seed % len(beginnings)]
        made = known(seed, kind, beginning, None if beginning == "none" else 31092)
        found, _ = read(made, tmp_path, shares=1 + seed % 3)
        check(made, found)


def test_copies_are_no_retransmissions(tmp_path: Path) -> None:
    """Both interfaces record each segment, at one host or at both ends. A retransmission that
    follows at once carries another IP identification, so it does not count as a copy."""
    for seed in _seeds("copies"):
        made = known(seed, "copied")
        (tmp_path / "a.pcapng").write_bytes(made.capture)
        sources = open_sources([str(tmp_path / "a.pcapng")])
        list(sources)
        again = copies = 0
        for connection in sources.connections.values():
            tally = connection.tally
            assert tally is not None
            assert (tally.syns, tally.syn_acks) == (1, 1), made.what
            retransmitted, again_bytes, *others = tally.counts
            again, copies = again + retransmitted, copies + tally.copies
            assert not sum(others), (made.what, tally)
            assert again_bytes >= retransmitted
        assert (again, copies) == (made.again, made.copies), made.what
        assert sources.account["copies"] >= made.copies


@pytest.mark.parametrize("name", ["kafka-4.4.0-admin", "mock-4.4"])
@pytest.mark.parametrize("delay_ns", [2_000, 700_000])
def test_two_interfaces_show_what_one_shows(name: str, delay_ns: int, tmp_path: Path) -> None:
    """Every packet of a real conversation, 20 times as slow, is captured on two interfaces: of one
    host, or of both ends."""
    capture = uncompressed(name)
    (link_type,) = unpack_from("<I", capture, 20)
    for count in (1, 2):
        packets = []
        for record in records_of(capture):
            seconds, part, _, length = unpack_from("<IIII", record)
            time_ns = (seconds % 10**6 * 10**6 + part) * 20_000
            packets += [
                (time_ns + number * delay_ns, number, record[16:], length)
                for number in range(count)
            ]
        packets.sort(key=lambda each: each[0])
        (tmp_path / f"{count}.pcapng").write_bytes(
            pcapng_section() + count * pcapng_interface(link_type) + b"".join(
                pcapng_packet(time_ns, data, interface=number, original_length=length)
                for time_ns, number, data, length in packets
            )
        )  # fmt: skip
    for module in (native.built(), None):
        with native.using(module):
            one, two = (open_sources([str(tmp_path / f"{count}.pcapng")]) for count in (1, 2))
            assert facts(one) == facts(two)
        for alone, both in zip(one.connections.values(), two.connections.values(), strict=True):
            assert alone.tally is not None
            assert both.tally is not None
            assert both.tally.counts == alone.tally.counts
            assert (both.tally.syns, both.tally.syn_acks) == (
                alone.tally.syns,
                alone.tally.syn_acks,
            )
            assert both.tally.client.round_trips == alone.tally.client.round_trips
            assert both.tally.handshake_ns == alone.tally.handshake_ns
            assert both.tally.copy_delay_ns in (delay_ns, None)
        account = two.account
        assert account["copies"] == one.account["payload"] == account["payload"] // 2
        assert account["retransmitted"] == one.account["retransmitted"]


@pytest.mark.slow
def test_connections_behind_a_translation_are_counted_once(tmp_path: Path) -> None:
    """The exchanges are those of the conversations, nothing was sent again, and the time between
    the two points of capture is known in both directions."""
    require_module("duckdb")
    path = str(tmp_path / "a.pcap")

    def rows(*arguments: str) -> list[dict[str, object]]:
        result = CliRunner().invoke(cli, [*arguments, "--format", "json"])
        assert result.exit_code == 0, result.output
        return [json.loads(line) for line in result.stdout.splitlines()]

    for seed in _seeds("translated"):
        made = translated(seed)
        Path(path).write_bytes(made.capture)
        count = "SELECT count(*) AS requests, sum((api_key = 3)::INT) AS metadata FROM requests"
        (found,) = rows("sql", path, count)
        assert found["requests"] == made.truth.total()
        wire = "SELECT count(*) c, count(DISTINCT client) d, sum(retransmitted) r FROM connections"
        (on_wire,) = rows("sql", path, wire)
        assert (on_wire["c"], on_wire["r"]) == (2 * int(str(on_wire["d"])), 0)
        hops = rows("ask", "hops", path)
        assert len(hops) == on_wire["d"]
        for hop in hops:
            assert (hop["broker"], hop["other_broker"]) == ("10.0.0.2:9092", "10.9.0.2:19092")
            assert hop["request_ms"] == HOP_NS / 1e6
            assert hop["response_ms"] in (HOP_NS / 1e6, None)


def test_the_ends_of_connections_and_keep_alives_are_no_bytes(
    rng: random.Random, tmp_path: Path
) -> None:
    """Also if only one end was captured: what the other end sent is missing then, as whole frames,
    if its acknowledgements tell."""
    for _ in range(either(200, 40)):
        line = Line(9092, syn=rng.random() < 0.5)
        for number in range(6):
            line.send(0, heartbeat(number))
            line.send(1, beaten(number))
            if rng.random() < 0.5:
                line.again(rng.randrange(2), rng.choice((b"", b"\0", b"x")), 1)
                line.acknowledge(0)
                line.acknowledge(1)
        line.finish()
        port = rng.choice((None, 50_000, 9092))
        packets = [
            each for each in line.packets
            if port is None or each.frame[34:36] == port.to_bytes(2, "big")
        ]  # fmt: skip
        path = tmp_path / "a.pcap"
        path.write_bytes(file_of(packets))
        for module in (native.built(), None):
            with native.using(module):
                sources = open_sources([str(path)])
                list(sources)
            (connection,) = sources.connections.values()
            tally = connection.tally
            assert tally is not None
            for end, size in ((tally.client, len(heartbeat(1))), (tally.broker, len(beaten(1)))):
                again, again_bytes, late, holes, missing, *_ = end.counts
                assert (again, again_bytes, late, holes, missing % size) == (0, 0, 0, 0, 0)
                assert port is not None or not missing


def test_times_begin_at_the_first_packet(tmp_path: Path) -> None:
    """Also if the exchange that is shown first belongs to a later connection."""
    slow, quick = Line(client_port=50_000), Line(client_port=50_001)
    slow.send(0, heartbeat(1))
    slow.wait(1)
    slow.send(1, beaten(1))
    heartbeats(quick)
    (tmp_path / "a.pcap").write_bytes(merged(slow, quick))
    result = CliRunner().invoke(cli, ["show", str(tmp_path / "a.pcap"), "--from", "0"])
    times = [float(line.split()[0]) for line in result.stdout.splitlines()[:6]]
    assert min(times) >= 0
    assert len(times) == 6


def _attempt(port: int, *packets: tuple[int, int]) -> Line:
    line = Line(9092, client_port=port, syn=False)
    for end, flags in packets:
        line.put(end, flags, sequence=(1000, 2000)[end])
    return line


def test_attempts_that_failed_are_an_answer(tmp_path: Path) -> None:
    lines = [
        _attempt(50_000, *[(0, SYN)] * 4),
        _attempt(50_001, (0, SYN), (1, RST | ACK)),
        _attempt(50_002, (0, SYN), (1, SYN | ACK), (1, SYN | ACK)),
        Line(9092, client_port=50_003),
    ]
    lines[-1].reset()
    heartbeats(good := Line(9092, client_port=50_004))
    path = tmp_path / "a.pcap"
    path.write_bytes(merged(*lines, good))
    require_module("duckdb")
    result = CliRunner().invoke(cli, ["ask", "attempts", str(path), "--format", "json"])
    rows = [json.loads(line) for line in result.stdout.splitlines()]
    assert {(row["outcome"], row["attempts"], row["syns"]) for row in rows} == {
        ("unanswered", 1, 4), ("refused", 1, 1), ("half open", 1, 1), ("reset unused", 1, 1)
    }  # fmt: skip


def test_ports_that_were_used_again(tmp_path: Path) -> None:
    """The number and the content of segments show that another session began."""
    for seed in range(either(400, 12)):
        made = reused(seed)
        found, _ = read(made, tmp_path)
        assert found == made.truth, made.what


def _frames(capture: bytes, folder: Path, **options: Any) -> list[tuple[object, ...]]:
    """Return what is read of each connection, and why the rest is not."""
    (folder / "a.pcap").write_bytes(capture)
    sources = open_sources([str(folder / "a.pcap")], **options)
    found: list[tuple[object, ...]] = []
    for item in sources:
        assert item.connection is not None
        if isinstance(item, Exchange):
            frames = (item.request, item.response)
            share: Share | None = options.get("share")
            first = frames[0] or frames[1]
            assert first is not None
            if share is not None and not share.has_exchange(item.connection.id, first.offset):
                continue  # another share reads it whole
            places = (each and (each.offset, each.raw) for each in frames)
            found.append((item.connection.id, item.api_key, item.api_version, *places))
        else:
            reason = item.reason, item.unread, item.size, item.missing
            found.append((item.connection.id, item.kind, item.direction, *reason))
    connections = sources.connections.values()
    found += [(each.id, each.client, each.broker, each.protocol) for each in connections]
    return sorted(found, key=repr)


def test_other_connections_show_what_one_is(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """Every reader treats the rest of a cut conversation as ``--port`` would if another connection
    to its broker's port is Kafka, wherever in the capture it stands: one process, shares of
    connections or of exchanges, both engines. Without waiting for others, less is read."""
    helped = 0
    for seed in _seeds("other connections"):
        capture = hinted(seed)
        named = _frames(capture, tmp_path, ports=frozenset({9092, 31092}))
        for divided in (True, False):
            with native.using(native.built() if divided else None):
                assert _frames(capture, tmp_path) == named, seed
                shares = [
                    _frames(capture, tmp_path, share=Share(number, 2, divided))
                    for number in range(2)
                ]
            found = shares[0] + shares[1]
            if divided:  # what is no exchange, both find
                assert set(found) == set(named), seed
            else:
                assert sorted(found, key=repr) == named, seed
        with monkeypatch.context() as patch:
            patch.setattr(captures, "MOST_HELD", 0)
            helped += _frames(capture, tmp_path) != named
    assert helped


def test_a_capture_that_is_followed_uses_the_ports_seen_so_far(tmp_path: Path) -> None:
    """At once, for connections that are open and for later ones: what is read is what ``--port``
    reads, if the conversation that is whole comes first. Within TLS, too."""
    keys = KeyLog()
    keys.add(f"CLIENT_RANDOM {'0' * 64} {'0' * 96}\n")
    helped = 0
    for seed in _seeds("followed"):
        capture = hinted(seed, places=(0,))
        named = read_in_python(capture, items=CaptureItems(ports=frozenset({31092}), holds=False))
        for log in (None, keys):
            found = read_in_python(capture, items=CaptureItems(keys=log, holds=False))
            assert found.items == named.items, seed
        helped += named.items != read_in_python(capture, items=_Deaf(holds=False)).items
    assert helped


class _Deaf(CaptureItems):
    """Considers no other connections."""

    def _learn(self, number: int | None) -> list[Item]:
        return []


def test_other_connections_count_within_tls(tmp_path: Path) -> None:
    """The same as without keys, if the connections are none of TLS."""
    keys = KeyLog()
    keys.add(f"CLIENT_RANDOM {'0' * 64} {'0' * 96}\n")
    for seed in _seeds("keys"):
        capture = hinted(seed)
        found = read_in_python(capture, items=CaptureItems(keys=keys))
        assert found.items == read_in_python(capture).items, seed


@pytest.mark.slow
@pytest.mark.parametrize("kind", drawn("kinds on Spark", [*KINDS, "incident", "hinted"], 3))
def test_spark_and_a_stream_write_the_same_tables(
    kind: str, session: FakeSession, tmp_path: Path
) -> None:
    """As one process. The stream meets the file in three parts."""
    require_module("pyspark")
    from tests.wiredump.spark.rotating import follow, one_process, rotate, to_the_end
    from wiredump.spark.connections import Options
    from wiredump.spark.job import Job

    (seed, *_) = _seeds("Spark")
    if kind == "incident":
        capture = incident(seed).capture
    else:
        capture = hinted(seed) if kind == "hinted" else known(seed, kind).capture
    paths = [tmp_path / "a.pcap"]
    paths[0].write_bytes(capture)
    expected = one_process(paths, tmp_path / "one", TABLED)
    options = Options(out=str(tmp_path / "job"), paths={0: str(paths[0])}, tables=TABLED)
    Job(options=options, split_bytes=5_000, partitions=2).run(session)  # type: ignore[arg-type]
    assert load(tmp_path / "job", TABLED) == expected
    if capture[:4] == PCAPNG:
        return
    paths = rotate(capture, [20, 40], tmp_path / "in")
    expected = one_process(paths, tmp_path / "parts", TABLED)
    to_the_end(session, follow(tmp_path / "in", tmp_path, TABLED, max_bytes=1))
    assert load(tmp_path / "out", TABLED) == expected


@pytest.mark.parametrize("kind", ["whole", "copied", "late start", "cut", "translated"])
def test_the_extension_reads_the_same(kind: str) -> None:
    require_quick()
    for beginning in ("none", "proxy 1", "socks 5", "gssapi"):
        made = known(_seeds(kind)[0], kind, beginning, 31092)
        slowly, quickly = read_in_python(made.capture), read_quickly(made.capture)
        assert quickly.items == slowly.items, made.what
        assert quickly.connections == slowly.connections, made.what


@pytest.mark.parametrize("port", [9092, 31092])
@pytest.mark.parametrize("kind", ["requests", "both", "responses"])
def test_large_frames_may_precede_the_first_that_shows_kafka(
    port: int, kind: str, tmp_path: Path
) -> None:
    """A capture that begins within a frame of megabytes, before others of that size, lacks that one
    alone, or, of responses alone, three."""
    line = Line(port, syn=False)
    for number in range(8):
        if kind != "responses":
            line.send(0, produce(number, 1_500_000))
        if kind != "requests":
            line.send(1, framed(pack(">i", number) + bytes(1_500_000)))
    (tmp_path / "a.pcap").write_bytes(file_of(line.packets[3:]))
    sources = open_sources([str(tmp_path / "a.pcap")])
    found = [each for each in sources if isinstance(each, Exchange)]
    assert len(found) >= (5 if kind == "responses" else 7)
    read = bytes_of(sources.account)
    assert read["frames"] + read["anomalies"] == read["payload"]
    assert unread_of(sources.account)["before-start"] == read["anomalies"]


@pytest.mark.slow
@pytest.mark.parametrize("name", drawn("long conversations", [*OTHERS], 4))
def test_other_protocols_stay_unknown_for_megabytes(name: str, tmp_path: Path) -> None:
    """From the middle, also of one direction: nothing is found in more bytes than are kept."""
    rng = generator(f"long conversation, {name}")
    for port in (31092, 9092):
        line, number = Line(port, syn=False), 0
        while sum(each.captured for each in line.packets) < 1_500_000:
            said = spoken(name, f"{rng.random()} {number}")
            said, number = said[rng.randrange(len(said)) :], number + 1
            for end, data in said * rng.choice((1, 20, 200)):
                line.send(end, data)
        source = rng.choice((50_000, port, None))
        packets = [
            each for each in line.packets[rng.randrange(5) :]
            if source is None or each.frame[34:36] == source.to_bytes(2, "big")
        ]  # fmt: skip
        (tmp_path / "a.pcap").write_bytes(file_of(packets))
        sources = open_sources([str(tmp_path / "a.pcap")])
        assert not [each for each in sources if isinstance(each, Exchange)]
        named = {connection.protocol for connection in sources.connections.values()}
        assert named <= {OTHERS[name][0], "unknown", "tls"}


@pytest.mark.parametrize("name", OTHERS)
def test_other_protocols_are_named(name: str, tmp_path: Path) -> None:
    """On any port, and also if the capture lacks the beginning, one direction or the end of each
    packet: then the name may be unknown. No exchange is made up, and no reason speaks of the size
    of a frame."""
    protocol, _ = OTHERS[name]
    path = tmp_path / "a.pcap"
    for seed in range(either(80, 3)):
        for port in (31092, 9092):
            what, packets = _foreign(name, f"{generator(name).random()} {seed}", port)
            path.write_bytes(file_of(packets))
            sources = open_sources([str(path)])
            items = list(sources)
            assert requests_of(sources.account) == 0, what
            assert not facts(items), what
            assert all("frame size" not in str(item) for item in items), what
            read = bytes_of(sources.account)
            named = {connection.protocol for connection in sources.connections.values()}
            if what.endswith("whole"):
                assert named == {protocol}, what
                assert sum(unread_of(sources.account).values()) == read["payload"], what
            else:
                assert named <= {protocol, "unknown", "tls"}, what


def _foreign(name: str, seed: object, port: int) -> tuple[str, list[Packet]]:
    rng = random.Random(f"{seed} {name} {port}")
    kind = rng.choice(("whole", "whole", "late start", "client alone", "server alone", "cut"))
    line = Line(port, syn=rng.random() < 0.5)
    for end, data in spoken(name, seed):
        line.send(end, data, segment=rng.choice((1400, 60)))
    packets = line.packets
    if kind == "late start":
        packets = packets[rng.randrange(len(packets)) :]
    elif kind.endswith("alone"):
        source = {"client alone": 50_000, "server alone": port}[kind].to_bytes(2, "big")
        packets = [each for each in packets if each.frame[34:36] == source]
    elif kind == "cut":
        packets = snapped(packets, 54 + rng.choice((20, 40)))
    return f"{name} {seed} {port} {kind}", packets


def test_tls_is_named_with_its_version_and_server(tmp_path: Path) -> None:
    line = Line(9093)
    for end, data in spoken("tls", 1)[:1]:
        line.send(end, data)
    (tmp_path / "a.pcap").write_bytes(merged(line))
    (item,) = open_sources([str(tmp_path / "a.pcap")])
    assert isinstance(item, Anomaly)
    assert item.reason.startswith("TLS 1.3 for broker.example: ")
