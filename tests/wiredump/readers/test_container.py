"""pcap and pcapng in every form, in pieces of any size, cut or damaged anywhere."""

from __future__ import annotations

import importlib
import io
import random
from collections.abc import Iterable
from struct import pack
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from kproto.capture import container
from tests.wiredump.readers.containers import FORMS, RECORDS, Form, members
from wiredump.readers import TLS_KEY_LOG, Anomaly, Capture, Packet
from wiredump.readers.compressed import PIECE
from wiredump.readers.pcap import LARGEST_RECORD


def read(data: bytes, size: int = 1 << 20) -> list[Any]:
    return list(Capture(io.BytesIO(data), read_size=size))


def zstd_library() -> Any:
    return importlib.import_module("zstandard")


def shapes(packets: Iterable[Any]) -> list[Any]:
    """Packets as plain values."""
    return [
        (each.offset, each.timestamp_ns, each.link_type, bytes(each.data), each.original_length)
        if isinstance(each, Packet)
        else each
        for each in packets
    ]


def without_lost(found: Iterable[Any]) -> list[Any]:
    """How much of a damaged compressed file is lost depends on how far the library had read."""
    return [replace(each, lost=0) if isinstance(each, Anomaly) else each for each in shapes(found)]


@given(FORMS, RECORDS, st.integers(1, 200))
def test_what_was_written_is_read(form, records, size):
    """Whatever the format, byte order, resolution, and however it is cut into reads."""
    data, truth = form.header(), []
    for seconds, nanoseconds, captured, more in records:
        time = 0 if form.name == "pcapng-simple" else form.time(seconds, nanoseconds)
        more = 0 if form.name == "pcapng-simple" else more
        truth.append((len(data), time, 1, captured, len(captured) + more))
        data += form.record(seconds, nanoseconds, captured, more)
    assert shapes(read(data, size)) == truth
    assert shapes(read(members(data, 50), size)) == truth


@given(FORMS, RECORDS, st.data())
def test_a_cut_capture_gives_everything_before_the_cut(form, records, data):
    """And then says where and why, unless the cut is between two records."""
    whole, ends = form.header(), []
    ends.append(len(whole))
    for record in records:
        whole += form.record(*record)
        ends.append(len(whole))
    at = data.draw(st.integers(0, len(whole) - 1))
    found = read(whole[:at], data.draw(st.integers(1, 100)))
    complete = [end for end in ends if end <= at]
    packets = [each for each in found if isinstance(each, Packet)]
    assert shapes(packets) == shapes(read(whole))[: len(packets)]
    assert len(packets) == max(0, len(complete) - 1)
    if at in ends:
        assert found == packets
    elif at > ends[0] and at not in ends:
        (problem,) = found[len(packets) :]
        assert (problem.kind, problem.offset) == ("truncated", complete[-1])


@given(FORMS, RECORDS, st.lists(st.tuples(st.integers(0, 600), st.integers(0, 255)), max_size=4))
def test_damage_is_told_and_nothing_raises(form, records, changes):
    """Any bytes changed: packets and anomalies, the same whatever the size of a read."""
    data = bytearray(form.header() + b"".join(form.record(*record) for record in records))
    for at, value in changes:
        if at < len(data):
            data[at] = value
    assert shapes(read(bytes(data))) == shapes(read(bytes(data), 7))


@given(st.one_of(st.binary(max_size=200), st.binary(max_size=200).map(lambda x: b"\n\r\r\n" + x)))
def test_any_bytes(data):
    """Not a capture, and said to be none: the last thing that is told is why."""
    assert isinstance(read(data)[-1], Anomaly)


def test_following_a_file_that_grows(tmp_path):
    """Poll after every byte: each packet comes once, as soon as its record is whole."""
    form = Form("pcapng", ">")
    data, ends = form.header(), []
    found: list[Any] = []
    for number in range(4):
        data += form.record(number, 0, bytes(number), 0)
        ends.append(len(data))
    path = tmp_path / "growing.pcapng"
    with path.open("wb", buffering=0) as file, Capture(path) as capture:
        for at in range(len(data)):
            file.write(data[at : at + 1])
            found += capture.poll()
            assert len(found) == sum(end <= at + 1 for end in ends)
        assert list(capture.finish()) == []
    assert [each.timestamp_ns for each in found] == [n * 10**9 for n in range(4)]


def test_an_iteration_left_early_goes_on_where_it_stopped():
    form = Form("pcap", "<")
    data = form.header() + b"".join(form.record(n, 0, b"x", 0) for n in range(5))
    capture = Capture(io.BytesIO(data))
    first = next(iter(capture.poll()))
    rest = list(capture)
    assert [each.timestamp_ns // 10**9 for each in (first, *rest)] == [0, 1, 2, 3, 4]


def test_standard_input_is_a_stream(monkeypatch):
    """A pipe neither seeks nor fills a whole read."""

    class Pipe(io.RawIOBase):
        def __init__(self, data: bytes) -> None:
            self.data = data

        def readable(self):
            return True

        def readinto(self, buffer):
            piece, self.data = self.data[:3], self.data[3:]
            buffer[: len(piece)] = piece
            return len(piece)

    form = Form("pcapng", "<")
    data = form.header() + form.record(1, 2, b"abc", 0)
    stdin = io.TextIOWrapper(io.BufferedReader(Pipe(data)))
    monkeypatch.setattr("sys.stdin", stdin)
    with Capture("-") as capture:
        assert capture.name == "standard input"
        assert shapes(capture)[0][3] == b"abc"
    assert not stdin.closed


@pytest.mark.parametrize("size", [1, 5, 1 << 20])
def test_zstd(size):
    zstd = zstd_library()
    form = Form("pcap-ns", "<")
    data = form.header() + b"".join(form.record(n, 0, bytes(50), 0) for n in range(50))
    skippable = b"\x50\x2a\x4d\x18\x03\0\0\0abc"
    packed = zstd.compress(data[:100]) + skippable + zstd.compress(data[100:])
    capture = Capture(io.BytesIO(packed), read_size=size)
    assert shapes(capture) == shapes(read(data))
    assert (capture.compression, capture.format) == ("zstd", "pcap")
    cut = list(Capture(io.BytesIO(packed[:-1]), read_size=size))
    assert [each.kind for each in cut if isinstance(each, Anomaly)] in (
        ["truncated"],
        ["truncated", "truncated"],
    )


def test_a_bomb_is_unpacked_a_piece_at_a_time():
    """A thousandfold compression never makes more than a piece at once."""
    form = Form("pcap", "<")
    record = form.record(1, 0, bytes(200_000), 0)
    packed = members(form.header() + 200 * record, 1 << 30)
    assert len(packed) < 100_000
    capture = Capture(io.BytesIO(packed))
    longest = 0
    for packet in capture:
        assert isinstance(packet, Packet)
        longest = max(longest, len(packet.data.obj))
    assert longest <= PIECE + 5 * len(record)


def test_damaged_compression_gives_what_was_before():
    """With gzip to the byte: a wrong check sum at the end costs nothing that stands before it."""
    form = Form("pcap", "<")
    data = form.header() + b"".join(form.record(n, n, bytes([n] * 60), 0) for n in range(100))
    packed = bytearray(members(data, 1000))
    packed[-5] ^= 0xFF
    *packets, problem = read(bytes(packed))
    assert shapes(packets) == shapes(read(data))
    assert (problem.kind, problem.offset) == ("damaged", len(data))
    assert problem.reason.startswith("gzip: ")
    after = read(members(data, 1000) + b"trailing text")
    assert after[-1].reason == "gzip: what follows the end is not gzip"
    assert shapes(after[:-1]) == shapes(read(data))
    padded = read(members(data, 1000) + bytes(100))
    assert shapes(padded) == shapes(read(data))


def zstd_blocks(pieces: Iterable[bytes], has_checksum: bool = False) -> list[bytes]:
    """The pieces of one zstd frame, each ending with a block of its own."""
    zstd = zstd_library()
    packer = zstd.ZstdCompressor(write_checksum=has_checksum).compressobj()
    return [
        *(packer.compress(each) + packer.flush(zstd.COMPRESSOBJ_FLUSH_BLOCK) for each in pieces),
        packer.flush(),
    ]


@given(
    st.integers(0, 1000), st.integers(1, 255), st.sampled_from(("gzip", "zstd", "blocks")),
    st.booleans(), st.integers(1, 100),
)  # fmt: skip
def test_damage_anywhere_in_a_compressed_file(at, change, name, checksum, size):
    """Changed: no exception, and the same whatever the reads. Cut: the packets before the cut."""
    form = Form("pcap-ns", ">")
    records = [form.record(n, n, random.Random(n).randbytes(20), 0) for n in range(20)]
    data = form.header() + b"".join(records)
    if name == "gzip":
        packed = bytearray(members(data, 300))
    elif name == "zstd":
        packed = bytearray(zstd_library().compress(data))
    else:
        packed = bytearray().join(zstd_blocks([data[:24], *records], checksum))
        packed += b"\x53\x2a\x4d\x18\0\0\0\0" + zstd_library().compress(form.record(99, 0, b"", 0))
    whole = shapes(read(data))
    assert shapes(read(bytes(packed)))[:20] == whole
    packed[at % len(packed)] ^= change
    assert without_lost(read(bytes(packed), size)) == without_lost(read(bytes(packed)))
    cut = [each for each in read(bytes(packed[: at % len(packed)])) if isinstance(each, Packet)]
    assert shapes(cut) == whole[: len(cut)]


@pytest.mark.parametrize("damaged", range(1, 21))
def test_every_zstd_block_before_a_damaged_one_is_read(damaged):
    form = Form("pcap-ns", "<")
    records = [form.record(n, n, random.Random(n).randbytes(20), 0) for n in range(20)]
    blocks = [bytearray(each) for each in zstd_blocks([form.header(), *records])]
    blocks[damaged][0] |= 6  # a reserved type
    *found, anomaly = read(b"".join(blocks))
    assert shapes(found) == shapes(read(form.header() + b"".join(records[: damaged - 1])))
    assert isinstance(anomaly, Anomaly)
    assert anomaly.kind == "damaged"


def test_sections_have_interfaces_of_their_own():
    """A second section, in the other byte order, numbers its interfaces anew; ours go on."""
    data = b""
    for order, resolution, link_type in (("<", 6, 1), (">", 9, 101)):
        data += container.pcapng_section(order=order)
        for name in (b"lo", b"eth"):
            data += container.pcapng_interface(
                link_type, order=order, resolution=resolution,
                options=[(container.INTERFACE_NAME, name)],
            )  # fmt: skip
        data += container.block(5, bytes(12), order=order)  # statistics
        data += container.block(0x40000BAD, bytes(5), order=order)
        data += container.pcapng_packet(7_000, b"p", order=order, interface=1)
        data += container.pcapng_secrets(b"CLIENT_RANDOM 1 2\n", order=order)
    capture = Capture(io.BytesIO(data))
    packets: list[Any] = list(capture)
    found = [(each.interface, each.timestamp_ns, each.link_type) for each in packets]
    assert found == [(1, 7_000_000, 1), (3, 7_000, 101)]
    assert [(each.name, each.section) for each in capture.interfaces] == [
        ("lo", 0), ("eth", 0), ("lo", 1), ("eth", 1),
    ]  # fmt: skip
    assert [(each.secrets_type, each.data) for each in capture.secrets] == [
        (TLS_KEY_LOG, b"CLIENT_RANDOM 1 2\n")
    ] * 2


@pytest.mark.parametrize(
    ("block", "reason"),
    [
        (container.pcapng_packet(0, b"x", interface=1), "interface 1 is not described"),
        (container.block(6, bytes(4)), "an enhanced packet block without its fields"),
        (container.block(6, pack("<5I", 0, 0, 0, 9, 9) + bytes(8)), "9 bytes captured in a block"),
        (container.block(3, b""), "a simple packet block without its length"),
        (container.block(2, bytes(8)), "a packet block without its fields"),
        (container.block(0xA, pack("<II", 1, 5) + bytes(4)), "a secrets block longer than itself"),
        (container.block(0xA, b""), "a secrets block longer than itself"),
        (container.block(1, b""), "an interface description without its fields"),
    ],
)
def test_a_block_that_is_wrong_inside_costs_itself_only(block, reason):
    form = Form("pcapng", "<")
    good = form.record(1, 0, b"good", 0)
    before, problem, after = read(form.header() + good + block + good)
    assert bytes(before.data) == bytes(after.data) == b"good"
    assert problem.kind == "packet"
    assert problem.offset == len(form.header() + good)
    assert problem.reason.startswith(reason)


@pytest.mark.parametrize(
    ("tail", "reason"),
    [
        (pack("<II", 6, 13) + bytes(20), "a block of type 6 and 13 bytes is invalid"),
        (pack("<II", 6, LARGEST_RECORD + 4) + bytes(20), "a block of type 6"),
        (pack("<II", 6, 16) + bytes(8), "a block of 16 bytes says 0 at its end"),
        (pack("<III", 0x0A0D0D0A, 28, 5) + bytes(16), "a section header without a byte order"),
        (container.block(0x0A0D0D0A, pack("<IHHq", 0x1A2B3C4D, 2, 0, -1)), "pcapng version 2.0"),
        (container.block(0x0A0D0D0A, pack("<I", 0x1A2B3C4D)), "a section header without its fiel"),
    ],
)
def test_a_damaged_block_costs_itself_only(tail, reason):
    form = Form("pcapng", "<")
    good = form.record(1, 0, b"good", 0)
    before, problem, after = read(form.header() + good + tail + good)
    assert bytes(before.data) == bytes(after.data) == b"good"
    assert (problem.kind, problem.offset) == ("damaged", len(form.header() + good))
    assert problem.reason == f"{problem.reason.split(';')[0]}; {len(tail)} bytes are lost"
    assert problem.reason.startswith(reason)
    assert problem.lost == len(tail)


def test_a_length_no_snaplen_allows_is_damage():
    form = Form("pcap", "<")
    good = form.record(1, 0, b"good", 0)
    head = form.header() + good + pack("<IIII", 1, 0, 262_145, 5)
    packet, problem = read(head + bytes(99))
    assert bytes(packet.data) == b"good"
    reason = "a record of 262145 bytes: more than 262144, so not a record; 115 bytes are lost"
    assert problem.reason == reason
    assert str(problem) == f"capture 0, byte 44: damaged: {problem.reason}"
    assert [type(each) for each in read(head + bytes(99) + good)] == [Packet, Anomaly, Packet]


@pytest.mark.parametrize("order", "<>")
@pytest.mark.parametrize("name", ["pcap", "pcap-ns"])
def test_times_far_from_the_first_one_are_read(name, order):
    """A clock that was wrong, once or in every other record, is no damage; zeros are."""
    form = Form(name, order)
    clock = [1_700_000_000, 0, 1_700_000_001, 2**31, 5, 1_700_000_002]
    records = [form.record(each, 1000, bytes([each & 255]) * 9, 0) for each in clock]
    data = form.header() + b"".join(records)
    found = read(data)
    assert [each.timestamp_ns // 10**9 for each in found] == clock
    *packets, problem = read(data + bytes(1000))
    assert len(packets) == len(clock)
    assert (problem.kind, problem.lost) == ("damaged", 1000)


@pytest.mark.parametrize(
    ("data", "kind", "reason"),
    [
        (b"", "truncated", "the capture is empty"),
        (b"\xa1\xb2", "truncated", "the capture ends after 2 bytes"),
        (b"PK\3\4rest", "damaged", "neither pcap nor pcapng: a zip file"),
        (b"PK\5\4rest", "damaged", "neither pcap nor pcapng: begins with 504b0504"),
        (container.pcap_header(1)[:20], "truncated", "ends inside the file header: 20 of"),
        (b"\xd4\xc3\xb2\xa1" + bytes(20), "damaged", "pcap version 0.0 is not known"),
    ],
)
def test_what_is_no_capture_says_so(data, kind, reason):
    (problem,) = read(data)
    assert problem.kind == kind
    assert problem.reason.startswith(reason)


def test_a_link_types_upper_bits_are_about_check_sequences():
    header = container.pcap_header(4 << 28 | 1 << 26 | 1)
    (packet,) = read(header + container.pcap_record(0, b"x"))
    assert packet.link_type == 1


def test_a_file_that_is_not_there_is_an_error_of_its_own(tmp_path):
    with pytest.raises(FileNotFoundError):
        Capture(tmp_path / "none.pcap")


def test_a_time_past_64_bits_is_told_of_and_the_last_one_stands():
    form = Form("pcapng", "<", resolution=0)
    good = form.record(7, 0, b"good", 0)
    bad = container.pcapng_packet(2**63, b"odd")
    first, problem, second = read(form.header() + good + bad)
    assert first.timestamp_ns == second.timestamp_ns == 7 * 10**9
    assert (problem.kind, bytes(second.data)) == ("clock", b"odd")
