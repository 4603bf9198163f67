"""Every stage without Spark: the tables are those of one process, however the captures are cut and
shared out; and where a guess is wrong, somebody notices."""

from __future__ import annotations

import gzip
import random
from ipaddress import ip_address
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from kproto.capture import Conversation
from kproto.capture.container import pcapng_interface, pcapng_packet, pcapng_secrets, pcapng_section
from kproto.capture.packets import ethernet_frame, ip_packet
from tests.support.full import quick, quickly_drawn
from tests.support.toolchain import require_module
from tests.wiredump.readers.conversations import LINKS
from tests.wiredump.spark import made_up
from tests.wiredump.spark.engines import ENGINES, running_on
from tests.wiredump.spark.knowing import knowing, naming
from tests.wiredump.spark.pipeline import packets, pipeline, single
from tests.wiredump.talk import say
from tests.wiredump.tls.recorded import (
    RAW_IP,
    client_context,
    in_memory,
    packets_of,
    server_context,
)
from wiredump.rows.schema import ON_REQUEST
from wiredump.spark.columns import SEGMENT, SPLIT
from wiredump.spark.planning import plan, true_splits

quiet = settings(
    deadline=None,
    max_examples=quick(12, 4),
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)
seeds = st.integers(0, 2**32)
parts = st.sampled_from((200, 701, 3_000, 20_000, 10**6))


def same(
    tmp_path: Path, files: list[bytes], split_bytes: int, tasks: int, told: bool = False
) -> set[int]:
    """Compare, the table of packets too if it is ``told``; which captures had to be read again."""
    paths = []
    for number, data in enumerate(files):
        path = tmp_path / f"{number}.cap"
        path.write_bytes(data)
        paths.append(str(path))
    folder = tmp_path / "single"
    for file in sorted(folder.rglob("*"), reverse=True):
        file.rmdir() if file.is_dir() else file.unlink()
    expected = single(paths, folder, told=told)
    found, redone, _ = pipeline(
        paths, tmp_path / "parts", split_bytes=split_bytes, tasks=tasks, told=told
    )
    for name, rows in expected.items():
        assert found[name] == rows, name
    return redone


@pytest.mark.slow
@quiet
@given(seeds, parts, st.integers(1, 4), st.sampled_from((0.0, 0.2)), st.booleans())
def test_the_tables_of_one_capture(
    tmp_path: Path, seed: int, split_bytes: int, tasks: int, odd: float, told: bool
) -> None:
    same(tmp_path, [made_up.capture(seed, odd=odd)], split_bytes, tasks, told)


@pytest.mark.slow
@quiet
@given(seeds, st.integers(2, 3), parts, st.sampled_from((0.0, 0.1, 0.6)), st.booleans())
def test_the_tables_of_several_captures(
    tmp_path: Path, seed: int, count: int, split_bytes: int, back: float, told: bool
) -> None:
    files = [made_up.capture(seed + number, back=back) for number in range(count)]
    same(tmp_path, files, split_bytes, 3, told)


@pytest.mark.slow
@quiet
@given(seeds, st.data())
def test_any_damage(tmp_path: Path, seed: int, data: st.DataObject) -> None:
    made = bytearray(made_up.capture(seed, odd=0.1))
    at = data.draw(st.integers(0, len(made) - 1))
    how = data.draw(st.sampled_from(("cut", "flip", "zeros")))
    if how == "cut":
        del made[at:]
    elif how == "flip":
        made[at] ^= 1 << data.draw(st.integers(0, 7))
    else:
        made[at : at + 40] = bytes(len(made[at : at + 40]))
    same(tmp_path, [bytes(made)], data.draw(parts), 2, told=True)


@pytest.mark.parametrize("seed", [2, 14, 18])
def test_what_is_unusual_is_read_by_its_own_section(tmp_path: Path, seed: int) -> None:
    """Though the rest of the part was gone through before it: sections differ in their clocks and
    byte orders."""
    same(tmp_path, [made_up.capture(seed, odd=0.2, kind="pcapng", share=0.3)], 10**6, 2)


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("split_bytes", [701, 10**6])
def test_every_section_has_its_own_byte_order(
    tmp_path: Path, split_bytes: int, engine: str
) -> None:
    """And every packet stands right in front of another one's."""
    rng = random.Random(5)
    data = b""
    for number, packet in enumerate(made_up.connection(rng, 1, 8)):
        order = "<>"[number % 2]
        data += pcapng_section(order=order) + pcapng_interface(1, order=order)
        data += pcapng_packet(number + 1, ethernet_frame(packet), order=order)
    with running_on(engine):
        same(tmp_path, [data], split_bytes, 2)


def test_a_compressed_capture_is_one_part(tmp_path: Path) -> None:
    data = gzip.compress(made_up.capture(5))
    same(tmp_path, [data], 100, 2)
    assert len(plan([(0, str(tmp_path / "0.cap"))], 100)) == 1


@pytest.mark.parametrize(("port", "malformed"), [(4789, 1), (53, 0)])
@pytest.mark.parametrize("split_bytes", [100, 10**6])
def test_a_later_fragment_that_was_not_captured_whole(
    tmp_path: Path, split_bytes: int, port: int, malformed: int
) -> None:
    """Whether its datagram is a tunnel's is known from the first fragment, in another split."""
    source, destination = ip_address("10.0.0.1"), ip_address("10.0.1.1")
    datagram = bytes((0, 1)) + port.to_bytes(2) + (96).to_bytes(2) + bytes(90)
    first, last = (
        ip_packet(source, destination, body, protocol=17, identification=7, fragment=fragment)
        for body, fragment in ((datagram[:48], 0x2000), (datagram[48:], 48 // 8))
    )
    talk = Conversation(("10.0.0.1", 40_000), ("10.0.1.1", 9092), segment_size=1000)
    captured = [first, last[:-10], *talk.open()]
    lengths = [len(first), len(last), *map(len, captured[2:])]
    data = made_up.pcap(
        [
            (made_up.START_NS + number * 1000, ethernet_frame(each), length + 14)
            for number, (each, length) in enumerate(zip(captured, lengths, strict=True))
        ]
    )
    same(tmp_path, [data], split_bytes, 2, told=True)
    anomalies = single([str(tmp_path / "0.cap")], tmp_path / "again")["anomalies"]
    assert sum("not captured whole" in str(each) for each in anomalies) == malformed


def giant(inner: bytes, kind: str) -> bytes:
    """A connection whose payload holds a capture, which looks like records all the way."""
    rng = random.Random(1)
    talk = Conversation(("10.0.0.1", 40_000), ("10.0.1.1", 9092), segment_size=1000)
    packets = talk.open()
    for number in range(3):
        packets += talk.send(say(rng, number).request)
        packets += talk.send(inner)
    packets += talk.close()
    records = [
        (made_up.START_NS + number * 1000, ethernet_frame(each), len(each) + 14)
        for number, each in enumerate(packets)
    ]
    return made_up.pcap(records) if kind == "pcap" else made_up.pcapng(records, rng, 0.0)


@pytest.mark.parametrize("split_bytes", [700, 20_000, 10**6])
def test_secrets_that_a_capture_brings_along(
    tmp_path: Path, rng: random.Random, split_bytes: int
) -> None:
    """Every task has them."""
    require_module("cryptography")
    log = tmp_path / "keys.log"
    said = [say(rng, number) for number in range(12)]
    passages, _ = in_memory(said, client_context(log), server_context())
    captured = [
        pcapng_packet(10**9 + number, packet)
        for number, packet in enumerate(packets_of(passages, 1460))
    ]
    del captured[len(captured) // 2]
    start = pcapng_section() + pcapng_interface(RAW_IP) + pcapng_secrets(log.read_bytes())
    path = tmp_path / "tls.pcapng"
    path.write_bytes(start + b"".join(captured))
    expected = single([str(path)], tmp_path / "one")
    assert expected["bodies"]
    found, _, manifests = pipeline(
        [str(path)], tmp_path / "parts", split_bytes=split_bytes, tasks=2
    )
    assert sum(each.account.get("tls", 0) for each in manifests)
    for name in (name for name in expected if name not in ON_REQUEST):
        assert found[name] == expected[name], name


@pytest.mark.slow
@quiet
@given(seeds, st.sampled_from((0.0, 0.1, 0.4)), parts, st.integers(1, 2))
def test_names_of_topics_wait_for_nobody(
    tmp_path: Path, seed: int, share: float, split_bytes: int, count: int
) -> None:
    """A topic has its name from when a message had it, whether that was read before or not: what
    waits for lost bytes or an answer is read late, and times may be the same."""
    same(tmp_path, [naming(seed + each, share=share) for each in range(count)], split_bytes, 3)


def test_what_other_connections_said(tmp_path: Path) -> None:
    """Names of topic ids, fetch sessions, reassignments: said on one connection, of use on another,
    which other tasks read."""
    same(tmp_path, [knowing()], 500, 5)
    tables = {
        name: pq.read_table(tmp_path / "parts" / name).to_pylist()
        for name in ("topics", "batches", "fetches", "reassignments", "anomalies")
    }
    assert [row["topic"] for row in tables["topics"]] == ["foo"]
    assert sorted(str(row["topic"]) for row in tables["batches"]) == ["None", "foo", "foo"]
    assert {row["remembered"] for row in tables["fetches"]} == {True, False}
    assert [row["outcome"] for row in tables["reassignments"]] == ["completed"]
    assert any(row["reason"].startswith("foo-2") for row in tables["anomalies"])


@pytest.mark.parametrize("kind", ["pcap", "pcapng"])
@pytest.mark.parametrize("split_bytes", [pytest.param(300, marks=pytest.mark.slow), 20_000])
def test_a_capture_within_a_capture_fools_nobody(
    tmp_path: Path, kind: str, split_bytes: int
) -> None:
    count = min(3000, 2 * split_bytes)
    tiny = [(made_up.START_NS, bytes(each % 7), 40) for each in range(count)]
    # Blocks of pcapng stand at multiples of four, and 82 bytes stand in front of a payload.
    inner = (
        made_up.pcap(tiny)
        if kind == "pcap"
        else b"\0\0" + made_up.pcapng(tiny, random.Random(2), 0.0)
    )
    redone = same(tmp_path, [giant(inner, kind)], split_bytes, 3)
    assert redone == {0}, "the guess was not fooled, so this shows nothing"


@pytest.mark.parametrize("split_bytes", [1009, 10**9])
def test_one_connection_across_all_parts(tmp_path: Path, split_bytes: int) -> None:
    redone = same(tmp_path, [giant(bytes(15_000), "pcap")], split_bytes, 4)
    assert not redone


@pytest.mark.parametrize("link", quickly_drawn("links", sorted(LINKS), 4))
def test_every_link(tmp_path: Path, link: str) -> None:
    """Those that are read by the column, and those that are not."""
    link_type, around = LINKS[link]
    rng = random.Random(link_type)
    talks = [made_up.connection(rng, number, 3) for number in range(3)]
    framed = [around(packet) for packet in made_up.mixed(rng, talks)]
    records = [
        (made_up.START_NS + number * 1000, each, len(each)) for number, each in enumerate(framed)
    ]
    same(tmp_path, [made_up.pcap(records, link_type=link_type)], 5_000, 2)


@pytest.mark.slow
def test_a_clock_that_steps_back_far(tmp_path: Path) -> None:
    """Of several captures: one process tells of it, and takes the packet where it stands."""
    files = []
    for number in range(2):
        talk = Conversation(("10.0.0.1", 40_000 + number), ("10.0.1.1", 9092), segment_size=16)
        packets = talk.open()
        for each in range(60):
            packets += talk.send(say(random.Random(each), each).request)
        records = [
            (made_up.START_NS + each * 1000 + number * 400, ethernet_frame(packet), 999)
            for each, packet in enumerate(packets)
        ]
        if number == 0:
            late = records[350]
            records[350] = (late[0] - 340_000, *late[1:])
        files.append(made_up.pcap(records))
    assert same(tmp_path, files, 3_000, 2) == {0}
    rows = pq.read_table(tmp_path / "parts" / "anomalies").to_pylist()
    assert [row["capture"] for row in rows if row["kind"] == "clock"] == [0]


@pytest.mark.slow
@quiet
@given(seeds, st.integers(100, 5000), st.sampled_from(("pcap", "pcap>", "pcap-ns", "pcapng")))
def test_true_splits_begin_with_records(
    tmp_path: Path, seed: int, split_bytes: int, kind: str
) -> None:
    """Whoever reads by them has no need to guess, and reads every packet once."""
    path = tmp_path / "capture"
    path.write_bytes(made_up.capture(seed, kind=kind))
    (whole,) = plan([(0, str(path))], 1 << 30, packets=True)
    splits = true_splits(whole, split_bytes)
    expected, _ = packets([whole])
    found, notes = packets(splits)
    assert all(note.first is not None for note in notes)
    assert _told(found) == _told(expected)


def _told(table: pa.Table) -> list[str]:
    """Rows in the order of packets, without notes. The keys of what is no segment do not matter."""
    rows = [row for row in table.to_pylist() if row["kind"] != SPLIT]
    for row in rows:
        row["key"] = row["key"] if row["kind"] == SEGMENT else b""
    return sorted(map(repr, rows))
