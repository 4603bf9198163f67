"""Records as JSON values or text, as testers write and read them.

A key, a value or the value of a header is text, null, ``{"hex": "00ff"}`` for bytes that are no
UTF-8, or ``{"zeros": 1000}`` for as many zero bytes. What is read here can be written again: the
output of ``ctl consume --json`` is input of ``ctl produce``. Nothing here imports a codec, since
the command line uses it.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, Final

import msgspec

from mockbroker.errors import ClusterError

__all__ = [
    "CODECS",
    "BatchDocument",
    "LoggedRecord",
    "RecordDocument",
    "UnreadableBatch",
    "parse_batch",
    "parse_record",
    "record_json",
]

CODECS: Final = ("none", "gzip", "snappy", "lz4", "zstd")
"""By the number in a batch's attributes."""

_PLACE: Final = frozenset({"topic", "partition", "offset", "timestamp_type"})
"""Members that a record has when it is read, and that do not matter when it is written."""
_RECORD: Final = frozenset({"key", "value", "headers", "timestamp"})
_MOST_ZEROS: Final = 1 << 28
_BATCH: Final[Mapping[str, type]] = {
    "codec": str,
    "producer_id": int,
    "producer_epoch": int,
    "base_sequence": int,
    "transactional": bool,
}


class RecordDocument(msgspec.Struct, frozen=True):
    """A record to be written. ``timestamp`` None is the cluster's time."""

    key: bytes | None = None
    value: bytes | None = None
    headers: tuple[tuple[str, bytes | None], ...] = ()
    timestamp: int | None = None


class BatchDocument(msgspec.Struct, frozen=True):
    """A batch to be written: its records with the settings of its header, or its bytes."""

    records: tuple[RecordDocument, ...] = ()
    codec: str = "none"
    producer_id: int = -1
    producer_epoch: int = -1
    base_sequence: int = -1
    transactional: bool = False
    data: bytes | None = None


class LoggedRecord(msgspec.Struct, frozen=True):
    """A record of a log. ``timestamp`` is in milliseconds since the epoch."""

    topic: str
    partition: int
    offset: int
    timestamp: int
    key: bytes | None
    value: bytes | None
    headers: tuple[tuple[str, bytes | None], ...] = ()


class UnreadableBatch(msgspec.Struct, frozen=True):
    """A batch of a log that cannot be decoded: ``problem`` says why."""

    topic: str
    partition: int
    base_offset: int
    last_offset: int
    size: int
    problem: str


# ---- reading -------------------------------------------------------------------------------------


def parse_batch(text: str) -> BatchDocument:
    """Read the batch that a tester appends. Raises ClusterError.

    JSON is a record, a list of records, ``{"records": [...], "codec": "gzip", ...}``, or
    ``{"batch": "HEX"}`` for a whole batch as it is. Any other text is the value of one record.
    """
    if not text.startswith(("{", "[")):
        return BatchDocument((RecordDocument(value=_utf8("value", text)),))
    try:
        given = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise ClusterError(f"records that begin with {text[0]!r} must be JSON: {error}") from None
    if isinstance(given, list):
        return BatchDocument(_records(given))
    if "batch" in given:
        _check_members(given, {"batch"}, "a batch")
        return BatchDocument(data=_hex("batch", given["batch"]))
    if "records" in given:
        return _batch_of(given)
    return BatchDocument((parse_record(given),))


def _batch_of(given: dict[str, Any]) -> BatchDocument:
    _check_members(given, {"records", *_BATCH}, "a batch")
    if not isinstance(given["records"], list):
        raise ClusterError('"records" must be a list')
    settings = {name: value for name, value in given.items() if name != "records"}
    for name, value in settings.items():
        if type(value) is not _BATCH[name]:
            raise ClusterError(f'"{name}" must be of type {_BATCH[name].__name__}, not {value!r}')
    if settings.get("codec", "none") not in CODECS:
        raise ClusterError(f'"codec" must be one of {", ".join(CODECS)}')
    return BatchDocument(_records(given["records"]), **settings)


def _records(given: list[Any]) -> tuple[RecordDocument, ...]:
    if not given:
        raise ClusterError("a batch needs at least one record")
    return tuple(map(parse_record, given))


def parse_record(given: Any) -> RecordDocument:
    """Read a record: a JSON object, or a string for its value. Raises ClusterError."""
    if isinstance(given, str):
        return RecordDocument(value=_utf8("value", given))
    if not isinstance(given, dict):
        raise ClusterError(f"a record must be an object or a string, not {given!r:.80}")
    _check_members(given, _RECORD | _PLACE, "a record")
    timestamp = given.get("timestamp")
    if timestamp is not None and (type(timestamp) is not int or not -1 <= timestamp < 2**63):
        raise ClusterError(f'"timestamp" must be milliseconds, not {timestamp!r:.80}')
    return RecordDocument(
        _bytes("key", given.get("key")),
        _bytes("value", given.get("value")),
        _headers(given.get("headers")),
        timestamp,
    )


def _check_members(given: dict[str, Any], known: set[str] | frozenset[str], what: str) -> None:
    unknown = [name for name in given if name not in known]
    if unknown:
        accepted = ", ".join(f'"{name}"' for name in sorted(known - _PLACE))
        raise ClusterError(f"{what} has no member {unknown[0]!r:.80}; it accepts {accepted}")


def _headers(given: Any) -> tuple[tuple[str, bytes | None], ...]:
    if given is None:
        return ()
    pairs = list(given.items()) if isinstance(given, dict) else given
    if not isinstance(pairs, list):
        raise ClusterError('"headers" must be an object or a list of [name, value] pairs')
    found = []
    for pair in pairs:
        if not (isinstance(pair, list | tuple) and len(pair) == 2 and isinstance(pair[0], str)):
            raise ClusterError(f"a header must be a [name, value] pair, not {pair!r:.80}")
        _utf8("a header's name", pair[0])
        found.append((pair[0], _bytes("headers", pair[1])))
    return tuple(found)


def _bytes(name: str, given: Any) -> bytes | None:
    if given is None:
        return None
    if isinstance(given, str):
        return _utf8(name, given)
    if isinstance(given, dict) and list(given) == ["hex"]:
        return _hex(name, given["hex"])
    if isinstance(given, dict) and list(given) == ["zeros"]:
        return bytes(_count(name, given["zeros"]))
    raise ClusterError(
        f'"{name}" must be text, null, {{"hex": "00ff"}} or {{"zeros": 1000}}, not {given!r:.80}'
    )


def _utf8(name: str, text: str) -> bytes:
    try:
        return text.encode()
    except UnicodeEncodeError:
        raise ClusterError(
            f'{name} has a lone surrogate, which UTF-8 cannot write; use {{"hex": ...}}'
        ) from None


def _count(name: str, given: Any) -> int:
    if type(given) is not int or not 0 <= given <= _MOST_ZEROS:
        raise ClusterError(
            f'the "zeros" of "{name}" must be a number up to {_MOST_ZEROS}, not {given!r:.80}'
        )
    return given


def _hex(name: str, given: Any) -> bytes:
    try:
        return bytes.fromhex(given)
    except (TypeError, ValueError):
        raise ClusterError(f'"{name}" must be hex, two digits per byte') from None


# ---- writing -------------------------------------------------------------------------------------


def record_json(record: LoggedRecord | UnreadableBatch, *, as_hex: bool = False) -> dict[str, Any]:
    """Return a record as JSON values. ``as_hex`` writes every value as ``{"hex": ...}``."""
    place = {"topic": record.topic, "partition": record.partition}
    if isinstance(record, UnreadableBatch):
        return {
            **place,
            "base_offset": record.base_offset,
            "last_offset": record.last_offset,
            "size": record.size,
            "problem": record.problem,
        }
    return {
        **place,
        "offset": record.offset,
        "timestamp": record.timestamp,
        "key": _value(record.key, as_hex),
        "value": _value(record.value, as_hex),
        "headers": [[name, _value(value, as_hex)] for name, value in record.headers],
    }


def _value(given: bytes | None, as_hex: bool) -> Any:
    if given is None:
        return None
    if not as_hex:
        try:
            return given.decode()
        except UnicodeDecodeError:
            pass
    return {"hex": given.hex()}
