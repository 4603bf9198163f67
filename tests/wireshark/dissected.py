"""Exchanges as a capture, and the dissector's view of a capture held against our own decoding."""

import struct
import uuid
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from kproto.annotate import FrameField
from kproto.capture import Conversation
from kproto.capture.container import RAW_IP, pcap_header, pcap_record
from kproto.errors import DecodeError
from kproto.records import Batch, RecordBatches
from kproto.wireshark.generate import Filters
from tests.tshark.pdml import LUA_TEXT, Field, Pdu, kafka_pdus

__all__ = ["PORT", "Exchanged", "differences", "dissected", "write_capture"]

PORT = 9092
CONCLUDED = {
    f"kproto.{name}"
    for name in (
        "request_in", "response_in", "response_time", "malformed", "cut", "unknown", "no_request",
        "error",
    )
}  # fmt: skip


class Exchanged(NamedTuple):
    """A request and its response, both whole frames."""

    request: bytes
    response: bytes


def write_capture(path: Path, exchanges: Iterable[Exchanged], *, segment: int = 16_384) -> None:
    """One connection a thousand exchanges. Packets are a millisecond apart."""
    packets: list[bytes] = []
    talk = None
    for number, (request, response) in enumerate(exchanges):
        if talk is None or number % 1000 == 0:
            ends = ("10.0.0.1", 30_000 + number // 1000), ("10.0.0.2", PORT)
            talk = Conversation(*ends, segment_size=segment)
            packets += talk.open()
        packets += talk.send(request)
        packets += talk.send(response, from_server=True)
    data = [pcap_header(RAW_IP)]
    data += (pcap_record(number * 1_000_000, packet) for number, packet in enumerate(packets))
    path.write_bytes(b"".join(data))


def dissected(
    capture: Path, script: Path, ports: Iterable[int] = (PORT,), *arguments: str
) -> list[Pdu]:
    """Every frame as our dissector shows it, in the order of the packets."""
    load = ("-X", f"lua_script:{script}")
    return list(kafka_pdus(capture, ports, *load, *arguments, protocol="kproto"))


def differences(rows: Sequence[FrameField], pdu: Pdu, filters: Filters) -> list[str]:
    """What differs between our rows of a frame and the fields of the dissector, in their order."""
    ours = [row for row in rows if _has_a_line(row)]
    theirs = [each for each in pdu.fields if _stands_for_a_row(each)]
    found = []
    for row, each in zip(ours, theirs, strict=False):
        problem = _problem(row, each, filters)
        if problem:
            found.append(f"{row.path} at {row.offset}+{row.length}: {problem}")
    if len(ours) != len(theirs):
        found.append(f"{len(theirs)} fields, and ours are {len(ours)}")
    records = [row.value for row in ours if row.type == "records" and row.value is not None]
    return found + _record_differences(records, pdu)


def _has_a_line(row: FrameField) -> bool:
    null_array = row.type.startswith("[]") and row.value is None
    return (row.leaf or null_array) and not row.path.endswith(")")


def _stands_for_a_row(each: Field) -> bool:
    """Whether this is a field, a null, or the heading of records: not a subtree, a record's field,
    or what the dissector concluded."""
    if each.name == LUA_TEXT:
        return not (_of_records(each) or _is_embedded(each)) and each.show.endswith(
            (": null", " bytes")
        )
    return (
        each.name.startswith("kproto.")
        and each.name not in CONCLUDED
        and not _of_records(each)
        and not _is_embedded(each)
    )


def _is_embedded(each: Field) -> bool:
    """Whether this is in a message that a field of bytes has."""
    return any(text.startswith("ConsumerProtocol") for text in each.inside)


def _of_records(each: Field) -> bool:
    return each.name.startswith(("kproto.batch.", "kproto.record.", "kproto.undecoded")) or any(
        text.startswith(("Record batch", "Message ")) for text in each.inside
    )


def _problem(row: FrameField, each: Field, filters: Filters) -> str:
    if row.type in ("bytes", "[]bytes", "unknown tag"):  # a Lua field of bytes is without length
        length = row.length if row.value is None else len(row.value)
        if (row.offset + row.length - length, length) != (each.offset, each.length):
            return f"stands at {each.offset}+{each.length} as {each.name}"
    elif (row.offset, row.length) != (each.offset, each.length):
        return f"stands at {each.offset}+{each.length} as {each.name}"
    if row.value is None:
        return "" if each.name == LUA_TEXT else f"{each.name} and not null"
    if row.type == "records":
        return "" if each.name == LUA_TEXT else f"{each.name} and not records"
    expected = _filter_of(row, filters)
    if each.name != expected:
        return f"{each.name}, not {expected}"
    return "" if _same(row.value, each) else f"{each.show[:60]!r}, not {str(row.value)[:60]!r}"


def _filter_of(row: FrameField, filters: Filters) -> str:
    if row.path == "size":
        return "kproto.frame_size"
    if row.type == "unknown tag":
        return "kproto.unknown_tag"
    name = row.path.rpartition(".")[2].partition("[")[0]
    kind = row.type.removeprefix("[]")
    return f"kproto.{filters[name.removesuffix('_'), kind]}"


def _same(value: Any, each: Field) -> bool:
    match value:
        case bool():
            return each.show in (("1", "True") if value else ("0", "False"))
        case int():
            return int(each.show, 0) == value
        case float():
            return each.raw == struct.pack(">d", value)
        case str():
            return each.raw.endswith(value.encode()) and _printable(value) in (each.show, None)
        case uuid.UUID():
            return each.raw == value.bytes and len(each.show) == 22
        case bytes() | bytearray() | memoryview():
            return bytes.fromhex(each.show.replace(":", "")) == bytes(value)
    return False


def _printable(text: str) -> str | None:
    """The text as PDML shows it; None where PDML escapes some of it."""
    return text if text.isascii() and text.isprintable() and "\\" not in text else None


# ---- records -------------------------------------------------------------------------------------


def _record_differences(records: Iterable[bytes], pdu: Pdu) -> list[str]:
    """The fields of batches of magic 2, in their order. A codec that this Wireshark cannot
    decompress ends at the batch's header."""
    theirs = [
        each for each in pdu.fields if each.name.startswith(("kproto.batch.", "kproto.record."))
    ]
    names = {each.name for each in pdu.fields}
    try:
        batches = [each for data in records for each in RecordBatches(data, allow_partial=True)]
        ours: list[tuple[str, Any]] = []
        for batch in batches:
            ours += _header(batch)
            is_open = (
                len(ours) < len(theirs) and theirs[len(ours)].name == "kproto.record.timestamp"
            )
            if is_open or not int(batch.compression):
                ours += _records(batch)
    except DecodeError:
        readable = "kproto.malformed" not in names and "kproto.undecoded" not in names
        return ["records that we cannot decode"] if readable else []
    found = []
    for (name, value), each in zip(ours, theirs, strict=False):
        if each.name != f"kproto.{name}":
            return [f"{each.name} stands where {name} is"]
        if not _same(value, each):
            found.append(f"{name}: {each.show[:60]!r}, not {str(value)[:60]!r}")
    if len(ours) != len(theirs):
        found.append(f"{len(theirs)} fields of records, and ours are {len(ours)}")
    return found


def _header(batch: Batch) -> Iterator[tuple[str, Any]]:
    header = batch.data
    yield "batch.base_offset", batch.base_offset
    yield "batch.length", batch.size - 12
    yield "batch.partition_leader_epoch", batch.partition_leader_epoch
    yield "batch.magic", batch.magic
    yield "batch.crc", batch.crc
    yield "batch.attributes", int.from_bytes(header[21:23], "big")
    yield "batch.compression", int(batch.compression)
    yield "batch.log_append_time", bool(int(batch.timestamp_type))
    yield "batch.transactional", batch.is_transactional
    yield "batch.control", batch.is_control
    yield "batch.last_offset_delta", batch.last_offset - batch.base_offset
    yield "batch.base_timestamp", int.from_bytes(header[27:35], "big", signed=True)
    yield "batch.max_timestamp", batch.max_timestamp
    yield "batch.producer_id", batch.producer_id
    yield "batch.producer_epoch", batch.producer_epoch
    yield "batch.base_sequence", batch.base_sequence
    yield "batch.record_count", len(batch.records())


def _records(batch: Batch) -> Iterator[tuple[str, Any]]:
    for record in batch.records():
        yield "record.timestamp", record.timestamp
        yield "record.offset", record.offset
        if record.key is not None:
            yield "record.key", record.key
        if record.value is not None:
            yield "record.value", record.value
        for key, value in record.headers:
            yield "record.header_key", key
            if value is not None:
                yield "record.header_value", value
