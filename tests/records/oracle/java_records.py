"""Kafka's own record batches, asked over a pipe: see ``JavaRecords.java`` for the format.

Knows how to start the program and how to ask, and puts our batches into the program's words.
"""

from __future__ import annotations

import struct
import subprocess
from pathlib import Path

from kproto.oracle.build import class_path
from kproto.records import Batch, BatchSettings, Record

__all__ = ["RELEASES", "JavaRecords", "Refused", "told"]

RELEASES = ("3.9.2", "4.4.0")
"""The last release that writes messages of magic 0 and 1, and the newest."""

HERE = Path(__file__).resolve().parent
BUILD, READ, CONTROL = 0, 1, 2
STOP_SECONDS = 10.0
_ANSWER = struct.Struct(">bi")
_SETTINGS = struct.Struct(">bbbqqqhibbiqi")


class Refused(Exception):
    """Java threw: the exception's simple name and message."""


class JavaRecords:
    """One JVM with the record classes of one Kafka release; a context manager."""

    def __init__(self, release: str) -> None:
        self._process = subprocess.Popen(
            ["java", "-Xshare:auto", "-XX:TieredStopAtLevel=1", "-Xmx256m",
             "-cp", class_path(release, HERE, leave_out=""), "JavaRecords"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
        )  # fmt: skip

    def __enter__(self) -> JavaRecords:
        return self

    def __exit__(self, *_: object) -> None:
        process = self._process
        assert process.stdin is not None
        assert process.stdout is not None
        try:
            process.stdin.close()
            process.wait(STOP_SECONDS)
        except (OSError, subprocess.TimeoutExpired):
            process.kill()
            process.wait()
        process.stdout.close()

    def build(self, records: list[Record], settings: BatchSettings) -> bytes:
        """What MemoryRecordsBuilder makes of them. Every record needs its offset."""
        horizon = -1 if settings.delete_horizon is None else settings.delete_horizon
        base = records[0].offset if settings.base_offset is None else settings.base_offset
        head = _SETTINGS.pack(
            settings.magic, settings.compression, settings.timestamp_type, base,
            settings.log_append_time, settings.producer_id, settings.producer_epoch,
            settings.base_sequence, settings.is_transactional, settings.is_control,
            settings.partition_leader_epoch, horizon, len(records),
        )  # fmt: skip
        return self._ask(BUILD, head + b"".join(map(_record, records)))

    def read(self, data: bytes) -> str:
        """Every batch and record of ``data``, in lines as ``told`` writes them."""
        return self._ask(READ, data).decode()

    def control(self, question: bytes) -> bytes:
        return self._ask(CONTROL, question)

    def _ask(self, operation: int, question: bytes) -> bytes:
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(_ANSWER.pack(operation, len(question)) + question)
        self._process.stdin.flush()
        status, size = _ANSWER.unpack(self._process.stdout.read(_ANSWER.size))
        answer = self._process.stdout.read(size)
        if status:
            raise Refused(answer.decode())
        return answer


def _record(record: Record) -> bytes:
    parts = [struct.pack(">qq", record.offset, record.timestamp)]
    parts += (_bytes(record.key), _bytes(record.value), len(record.headers).to_bytes(4, "big"))
    for key, value in record.headers:
        parts += (_bytes(key.encode()), _bytes(value))
    return b"".join(parts)


def _bytes(value: bytes | None) -> bytes:
    return b"\xff\xff\xff\xff" if value is None else len(value).to_bytes(4, "big") + value


def told(batches: list[Batch]) -> str:
    """Our reading of batches, in the lines of ``JavaRecords.read``."""
    return "".join(
        _line(
            "batch", batch.magic, batch.base_offset, batch.last_offset, int(batch.compression),
            int(batch.timestamp_type), batch.max_timestamp, batch.partition_leader_epoch,
            batch.producer_id, batch.producer_epoch, batch.base_sequence, batch.last_sequence,
            str(batch.is_transactional).lower(), str(batch.is_control).lower(),
            -1 if batch.delete_horizon is None else batch.delete_horizon, batch.crc, batch.size,
        )
        + "".join(_told(record) for record in batch)
        for batch in batches
    )  # fmt: skip


def _told(record: Record) -> str:
    headers = "".join(f"{_hex(key.encode())}={_hex(value)}," for key, value in record.headers)
    return _line(
        "record", record.offset, record.timestamp, _hex(record.key), _hex(record.value), headers
    )


def _line(*fields: object) -> str:
    return " ".join(map(str, fields)) + "\n"


def _hex(value: bytes | None) -> str:
    return "-" if value is None else f"x{value.hex()}"
