"""Defects about the headers of records (KIP-82)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeAlias

from kproto.records import Record
from kspec.defects.declaration import defect
from kspec.reference_client.consumer import Consumer
from kspec.reference_client.producer import OutgoingBatch, Producer

__all__: list[str] = []

Written: TypeAlias = tuple[tuple[str, bytes | None], ...]
Read: TypeAlias = list[list[Any]]


@defect("writes-no-headers")
class WritesNoHeaders(Producer):
    """Writes records without their headers."""

    def headers(self, record: Mapping[str, Any]) -> Written:
        return ()


@defect("writes-one-header-of-a-name")
class WritesOneHeaderOfAName(Producer):
    """Keeps headers in a map, and so writes the last one of a name."""

    def headers(self, record: Mapping[str, Any]) -> Written:
        return tuple(dict(super().headers(record)).items())


@defect("sorts-headers")
class SortsHeaders(Producer):
    """Writes headers in the order of their names."""

    def headers(self, record: Mapping[str, Any]) -> Written:
        return tuple(sorted(super().headers(record), key=lambda each: each[0]))


@defect("drops-headers-without-a-value")
class DropsHeadersWithoutAValue(Producer):
    """Writes no header whose value is null or empty."""

    def headers(self, record: Mapping[str, Any]) -> Written:
        return tuple(each for each in super().headers(record) if each[1])


@defect("writes-headers-in-ascii")
class WritesHeadersInAscii(Producer):
    """Replaces what is not ASCII in headers."""

    def headers(self, record: Mapping[str, Any]) -> Written:
        return tuple(
            (name.encode("ascii", "replace").decode(), value)
            for name, value in super().headers(record)
        )


@defect("writes-the-headers-of-the-first")
class WritesTheHeadersOfTheFirst(Producer):
    """Writes every record of a batch with the headers of the first."""

    def encoded(self, batch: OutgoingBatch) -> bytes:
        headers = batch.records[0].get("headers", ())
        for each in batch.records:
            each["headers"] = headers
        return super().encoded(batch)


@defect("sends-headers-once")
class SendsHeadersOnce(Producer):
    """Sends a batch again without its headers."""

    def encoded(self, batch: OutgoingBatch) -> bytes:
        if batch.attempts:
            for each in batch.records:
                each.pop("headers", None)
        return super().encoded(batch)


@defect("reads-no-headers")
class ReadsNoHeaders(Consumer):
    """Delivers records without their headers."""

    def headers(self, record: Record) -> Read:
        return []


@defect("reads-one-header-of-a-name")
class ReadsOneHeaderOfAName(Consumer):
    """Keeps headers in a map, and so delivers the last one of a name."""

    def headers(self, record: Record) -> Read:
        return [[name, value] for name, value in dict(super().headers(record)).items()]


@defect("reads-headers-sorted")
class ReadsHeadersSorted(Consumer):
    """Delivers headers in the order of their names."""

    def headers(self, record: Record) -> Read:
        return sorted(super().headers(record), key=lambda each: each[0])


@defect("skips-headers-without-a-value")
class SkipsHeadersWithoutAValue(Consumer):
    """Delivers no header whose value is null."""

    def headers(self, record: Record) -> Read:
        return [each for each in super().headers(record) if each[1] is not None]


@defect("reads-the-headers-of-the-first")
class ReadsTheHeadersOfTheFirst(Consumer):
    """Delivers every record with the headers of the first that it read."""

    first: Read | None = None

    def headers(self, record: Record) -> Read:
        self.first = super().headers(record) if self.first is None else self.first
        return self.first


@defect("decodes-header-values")
class DecodesHeaderValues(Consumer):
    """Delivers header values as text, whatever they are."""

    def headers(self, record: Record) -> Read:
        return [
            [name, None if value is None else value.decode(errors="replace")]
            for name, value in record.headers
        ]


@defect("writes-sixty-three-headers")
class WritesSixtyThreeHeaders(Producer):
    """Writes as many headers as a varint of one byte can count."""

    def headers(self, record: Mapping[str, Any]) -> Written:
        return super().headers(record)[:63]


@defect("cuts-long-headers")
class CutsLongHeaders(Consumer):
    """Delivers at most 255 bytes of a header."""

    def headers(self, record: Record) -> Read:
        return [
            [name, value[:255] if isinstance(value, str) else value]
            for name, value in super().headers(record)
        ]
