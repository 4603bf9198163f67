"""Read records of magic 2 (KIP-98, headers KIP-82) from a batch's decompressed bytes.

::

    record   length varint, then in that many bytes: attributes int8 (none is defined),
             timestamp_delta varlong, offset_delta varint, key, value, header count varint, headers
    key      length varint (-1: null), bytes; value the same
    header   key length varint, UTF-8; value length varint (-1: null), bytes

There are three readers. The C extension's, if it is in use, accepts valid batches as a whole.
``_fast`` is one loop that only detects that something is wrong. ``_exact`` then reads the record
again and either raises the error or accepts the record: ``_fast`` does not read varints of rare
lengths or numbers close to the limits of int64.
"""

from __future__ import annotations

from typing import Final, NamedTuple

from kproto.records.model import NO_TIMESTAMP, Header, Record
from kproto.records.native import record_codec
from kproto.records.varints import ONE_BYTE, VARINT_BITS, VARLONG_BITS, wrapped
from kproto.records.window import Window

__all__ = [
    "LEAST_RECORD",
    "RecordSurvey",
    "Section",
    "read_in_python",
    "read_records",
    "survey_records",
]

LEAST_RECORD: Final = 7
"""The size of a record without key, value and headers."""
LEAST_HEADER: Final = 2

FAR: Final = 1 << 62
"""Bases up to this value cannot exceed int64 by the deltas that the fast reader accepts."""
INT64: Final = 1 << 63


class Section(NamedTuple):
    """The records of one batch, not yet read."""

    window: Window
    number: int
    base_offset: int
    base_timestamp: int
    appended: int | None
    """Every record's timestamp, in a batch of log append time."""


class RecordSurvey(NamedTuple):
    """What the records of a batch have, whatever its header says of them. The timestamps are -1
    where there is no record. ``is_consecutive``: the offsets rise by 1 from the base offset."""

    least_timestamp: int
    max_timestamp: int
    is_consecutive: bool


class _FastPathMiss(Exception):
    """The exact reader must read this record."""


def read_records(
    window: Window, count: int, base_offset: int, base_timestamp: int, appended: int | None
) -> list[Record]:
    """Read the ``count`` records that fill ``window``.

    ``appended`` is every record's timestamp in a batch of log append time. Raises DecodeError.
    """
    data, at, end, _, _ = window
    codec = record_codec()
    if codec is not None:
        found = codec.read(data, at, end, count, base_offset, base_timestamp, appended)
        if found is not None:
            return found
    return read_in_python(window, count, base_offset, base_timestamp, appended)


def survey_records(section: Section) -> RecordSurvey:
    """Read all records, as ``read_records`` does, without making objects of them where the C
    extension is in use. Raises DecodeError."""
    window, count, base_offset, base_timestamp, appended = section
    codec = record_codec()
    if codec is not None:
        data, at, end, _, _ = window
        found = codec.survey(data, at, end, count, base_offset, base_timestamp, appended)
        if found is not None:
            return RecordSurvey(*found)
    records = read_records(window, count, base_offset, base_timestamp, appended)
    if not records:
        return RecordSurvey(NO_TIMESTAMP, NO_TIMESTAMP, is_consecutive=True)
    timestamps = [each.timestamp for each in records]
    return RecordSurvey(
        min(timestamps),
        max(timestamps),
        all(each.offset == base_offset + place for place, each in enumerate(records)),
    )


def read_in_python(
    window: Window, count: int, base_offset: int, base_timestamp: int, appended: int | None
) -> list[Record]:
    """Read records without the C extension."""
    records: list[Record] = []
    at = window.at
    fast = _fast if -FAR < base_offset < FAR and -FAR < base_timestamp < FAR else _none
    while len(records) < count:
        at = fast(window, at, count, base_offset, base_timestamp, appended, records)
        if len(records) < count:
            part = window.part(at, window.end, f"records[{len(records)}]")
            record, at = _exact(part, base_offset, base_timestamp, appended)
            records.append(record)
    if at != window.end:
        raise window.error(f"{window.end - at} bytes after the last record", at, "records")
    return records


def _none(
    window: Window,
    at: int,
    count: int,
    base_offset: int,
    base_timestamp: int,
    appended: int | None,
    records: list[Record],
) -> int:
    """Stand in for ``_fast``; reads no record."""
    return at


def _fast(
    window: Window,
    at: int,
    count: int,
    base_offset: int,
    base_timestamp: int,
    appended: int | None,
    records: list[Record],
) -> int:
    """Append records until ``count`` or the first that is not plain. Returns where the next begins.

    Most numbers take one byte or two, and a call costs more than reading them, so both cases are
    inlined. An odd length is a negative one.
    """
    data, _, end, _, _ = window
    append = records.append
    small = ONE_BYTE
    begin = at
    try:
        for _ in range(count - len(records)):
            begin = at
            # The length, and whether that many bytes are left.
            size = data[at]
            if size < 0x80:
                stop = at + 1 + (size >> 1)
                at += 2  # this byte and the attributes
            elif (more := data[at + 1]) < 0x80:
                stop = at + 2 + (size >> 1 & 0x3F | more << 6)
                at += 3
            else:
                size, at = _varint(data, at)
                stop = at + size
                at += 1
                size = 0
            if stop > end or size & 1:
                break
            # Deltas.
            delta = data[at]
            if delta < 0x80:
                at += 1
                delta = small[delta]
            elif (more := data[at + 1]) < 0x80:
                at += 2
                delta = (delta >> 1 & 0x3F | more << 6) ^ -(delta & 1)
            else:
                delta, at = _varlong(data, at)
            timestamp = base_timestamp + delta if appended is None else appended
            delta = data[at]
            if delta < 0x80:
                at += 1
                delta = small[delta]
            elif (more := data[at + 1]) < 0x80:
                at += 2
                delta = (delta >> 1 & 0x3F | more << 6) ^ -(delta & 1)
            else:
                delta, at = _varint(data, at)
            # Key and value. A slice that the buffer truncates shows in `at` at the end.
            size = data[at]
            at += 1
            if size == 1:
                key = None
            else:
                if size >= 0x80:
                    if (more := data[at]) < 0x80 and not size & 1:
                        at += 1
                        size = size & 0x7E | more << 7
                    else:
                        size, at = _length(data, at - 1)
                elif size & 1:
                    break
                key = data[at : (at := at + (size >> 1))]
            size = data[at]
            at += 1
            if size == 1:
                value = None
            else:
                if size >= 0x80:
                    if (more := data[at]) < 0x80 and not size & 1:
                        at += 1
                        size = size & 0x7E | more << 7
                    else:
                        size, at = _length(data, at - 1)
                elif size & 1:
                    break
                value = data[at : (at := at + (size >> 1))]
            if data[at] == 0:
                if at + 1 != stop:
                    break
                append(Record(base_offset + delta, timestamp, key, value))
            else:
                headers, at = _headers(data, at, stop)
                if at != stop:
                    break
                append(Record(base_offset + delta, timestamp, key, value, headers))
            at = stop
        else:
            return at
    except (IndexError, _FastPathMiss, UnicodeDecodeError):
        pass
    return begin


def _varint(data: bytes, at: int) -> tuple[int, int]:
    """Read a varint of two to four bytes."""
    value = data[at] & 0x7F
    byte = data[at + 1]
    if byte < 0x80:
        value |= byte << 7
        return value >> 1 ^ -(value & 1), at + 2
    value |= (byte & 0x7F) << 7
    byte = data[at + 2]
    if byte < 0x80:
        value |= byte << 14
        return value >> 1 ^ -(value & 1), at + 3
    value |= (byte & 0x7F) << 14
    byte = data[at + 3]
    if byte > 0x7F:
        raise _FastPathMiss
    value |= byte << 21
    return value >> 1 ^ -(value & 1), at + 4


def _length(data: bytes, at: int) -> tuple[int, int]:
    """Return twice a length of two to four bytes, in the form that the loops here use."""
    if data[at] < 0x80:  # one byte: a negative length
        raise _FastPathMiss
    size, at = _varint(data, at)
    if size < 0:
        raise _FastPathMiss
    return size << 1, at


def _varlong(data: bytes, at: int) -> tuple[int, int]:
    """Read a varint of two to nine bytes: 63 bits, whose sum with a base below ``FAR`` fits an
    int64."""
    value = data[at] & 0x7F
    for shift in (7, 14, 21, 28, 35, 42, 49, 56):
        at += 1
        byte = data[at]
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            return value >> 1 ^ -(value & 1), at + 1
    raise _FastPathMiss


def _headers(data: bytes, at: int, stop: int) -> tuple[tuple[Header, ...], int]:
    """Read the headers at ``at``. Returns them and their end; an end beyond ``stop`` means an
    error."""
    count = data[at]
    at += 1
    if count & 0x81:  # another byte, or negative
        count, at = _length(data, at - 1)
    count >>= 1
    if count * LEAST_HEADER > stop - at:
        raise _FastPathMiss
    headers: list[Header] = []
    for _ in range(count):
        size = data[at]
        at += 1
        if size & 0x81:
            size, at = _length(data, at - 1)
        key = data[at : (at := at + (size >> 1))].decode()
        size = data[at]
        at += 1
        if size == 1:
            headers.append((key, None))
        else:
            if size & 0x81:
                size, at = _length(data, at - 1)
            headers.append((key, data[at : (at := at + (size >> 1))]))
    return tuple(headers), at


def _exact(
    window: Window, base_offset: int, base_timestamp: int, appended: int | None
) -> tuple[Record, int]:
    """Read the record at the start of ``window``, with all checks. Returns it and its end."""
    length, at = window.varint(window.at, VARINT_BITS, "length")
    if not 0 <= length <= window.end - at:
        left = window.end - at
        raise window.error(f"length {length} of {left} bytes left", window.at, "length")
    window = window._replace(end=at + length)
    if length == 0:
        raise window.error("bytes needed: 1, left: 0", at, "attributes")
    delta, at = window.varint(at + 1, VARLONG_BITS, "timestamp_delta")
    timestamp = wrapped(base_timestamp + delta)
    begin = at
    delta, at = window.varint(begin, VARINT_BITS, "offset_delta")
    offset = base_offset + delta
    if not -INT64 <= offset < INT64:
        raise window.error(f"{offset} is not an int64", begin, "offset_delta")
    key, at = _nullable(window, at, "key")
    value, at = _nullable(window, at, "value")
    begin = at
    count, at = window.varint(begin, VARINT_BITS, "headers")
    if count < 0 or count * LEAST_HEADER > window.end - at:
        raise window.error(f"{count} headers in {window.end - at} bytes", begin, "headers")
    headers = []
    for index in range(count):
        header, at = _header(window, at, f"headers[{index}]")
        headers.append(header)
    if at != window.end:
        raise window.error(f"{window.end - at} bytes after the record's headers", at)
    if appended is not None:
        timestamp = appended
    return Record(offset, timestamp, key, value, tuple(headers)), at


def _nullable(window: Window, begin: int, field: str) -> tuple[bytes | None, int]:
    length, at = window.varint(begin, VARINT_BITS, field)
    if length == -1:
        return None, at
    if length < 0:
        raise window.error(f"length {length} is negative, and only -1 means null", begin, field)
    if length > window.end - at:
        raise window.error(f"bytes needed: {length}, left: {window.end - at}", begin, field)
    return window.data[at : at + length], at + length


def _header(window: Window, begin: int, field: str) -> tuple[Header, int]:
    raw, at = _nullable(window, begin, f"{field}.key")
    if raw is None:
        raise window.error("a header's key may not be null", begin, f"{field}.key")
    try:
        key = raw.decode()
    except UnicodeDecodeError as error:
        raise window.error(f"not UTF-8: {error.reason}", begin, f"{field}.key") from None
    value, at = _nullable(window, at, f"{field}.value")
    return (key, value), at
