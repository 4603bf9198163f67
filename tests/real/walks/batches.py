"""The record batches of a program, from what its steps say of them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from kproto.records import Compression, TimestampType
from tests.real.data.batches import THEN, batch, changed, record

__all__ = ["batch_of", "timestamp_of"]

_CODEC_BITS: Final = 0x7
_CONTROL: Final = 0x20


def timestamp_of(delta_ms: int | None) -> int:
    """Counted from an hour ago; None is no timestamp."""
    return -1 if delta_ms is None else THEN + delta_ms


def batch_of(spec: Mapping[str, Any]) -> bytes | None:
    """The same bytes for both sides."""
    data = _whole(spec)
    match spec.get("damage"):
        case "crc":
            return changed(data, crc_right=False, crc=1)
        case "base_offset":
            return changed(data, base_offset=3)
        case "count":
            return changed(data, last_offset_delta=spec["records"])
        case "control":
            return changed(data, attributes=data[22] | _CONTROL)
        case "sequence":
            return changed(data, producer_id=9, producer_epoch=0, base_sequence=-1)
        case "short":
            return data[: 40 + spec["tag"] % 20]
        case "two":
            return data + data
        case "magic":
            return changed(data, magic=3)
        case "codec":
            return changed(data, attributes=data[22] & ~_CODEC_BITS | 5)
        case "empty":
            return b""
    return data


def _whole(spec: Mapping[str, Any]) -> bytes:
    rows = []
    for place in range(spec["records"]):
        text = f"{spec['tag']}.{place} ".encode()
        delta = spec["delta"]
        rows.append(
            record(
                (text * (spec["size"] // len(text) + 1))[: spec["size"]],
                None if spec.get("keyless") else b"k%d" % (place % 3),
                timestamp_of(None if delta is None else delta + place * spec["gap"]),
                headers=(("h", b"1"), ("none", None)) if spec.get("headers") else (),
            )
        )
    settings: dict[str, Any] = {"compression": Compression[spec["codec"]]}
    if "producer" in spec:
        producer, epoch, sequence = spec["producer"]
        settings.update(producer_id=producer, producer_epoch=epoch, base_sequence=sequence)
    if spec.get("damage") == "append_time":
        settings.update(timestamp_type=TimestampType.LOG_APPEND_TIME, log_append_time=THEN)
    return batch(*rows, **settings)
