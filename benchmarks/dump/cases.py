"""The command lines to measure, and the number of rows that each one reports.

A case reads one capture from beginning to end. Ours write Parquet into a folder that is removed
afterwards; tshark prints, and its output is counted after it ended.
"""

from __future__ import annotations

import json
import shutil
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

from benchmarks.dump.captures import Capture
from benchmarks.dump.programs import FailedError, Taken, run

__all__ = [
    "FRAME_FIELDS",
    "RECORD_FIELDS",
    "Case",
    "Seen",
    "scan",
    "show",
    "table",
    "tshark_fields",
    "tshark_json",
]

ROOT = Path(__file__).resolve().parent.parent.parent

FRAME_FIELDS = (
    "frame.number", "frame.time_epoch", "tcp.stream", "tcp.srcport", "tcp.dstport", "kafka.len",
    "kafka.request_key", "kafka.response_key", "kafka.request.version", "kafka.response.version",
    "kafka.correlation_id", "kafka.client_id",
)  # fmt: skip
RECORD_FIELDS = (
    *FRAME_FIELDS, "kafka.topic_name", "kafka.partition_id", "kafka.offset",
    "kafka.message_timestamp", "kafka.message_key", "kafka.message_value",
    "kafka.batch_crc", "kafka.record_attributes",
)  # fmt: skip
"""The last is there once a record, and holds no commas: it is what is counted."""

_NO_CHECKSUM = b"0x00000000"
"""What librdkafka's mock leaves in the control batches that end transactions, of one record each.
Ours refuses those batches, as Kafka's clients do, and tells of them in ``anomalies``."""


class Seen(NamedTuple):
    """One run: its measurements, and its rows by kind."""

    taken: Taken
    rows: dict[str, int]


Case = Callable[[frozenset[int]], Seen]
"""Runs once, on these processors."""


def table(
    capture: Capture,
    tables: str | None = None,
    *,
    options: tuple[str, ...] = (),
    command: str = "table",
    watched: bool = False,
    scratch: Path | None = None,
) -> Case:
    """``wiredump table``, or another command that writes the same tables."""

    def once(processors: frozenset[int]) -> Seen:
        folder = Path(tempfile.mkdtemp(prefix="bench-dump-", dir=scratch))
        try:
            taken = run(
                [
                    sys.executable, "-m", "wiredump", command, str(capture.path), "--json",
                    "--out", str(folder / "tables"), *(["--tables", tables] if tables else []),
                    *options,
                ],
                processors, watched=watched, environment={"PYTHONPATH": str(ROOT)},
            )  # fmt: skip
        finally:
            shutil.rmtree(folder, ignore_errors=True)
        return Seen(taken, json.loads(taken.output)["rows"])

    return once


def show(capture: Capture) -> Case:
    """``wiredump show``, a line a request."""

    def once(processors: frozenset[int]) -> Seen:
        taken = run(
            [sys.executable, "-m", "wiredump", "show", "--no-summary", str(capture.path)],
            processors, environment={"PYTHONPATH": str(ROOT)},
        )  # fmt: skip
        return Seen(taken, {"lines": taken.output.count(b"\n")})

    return once


def scan(capture: Capture) -> Case:
    """The floor: the file is read, and the records' headers are gone through."""

    def once(processors: frozenset[int]) -> Seen:
        command = [sys.executable, "-m", "benchmarks.dump.scan", str(capture.path)]
        taken = run(command, processors, environment={"PYTHONPATH": str(ROOT)})
        return Seen(taken, json.loads(taken.output))

    return once


def _tshark(capture: Capture) -> list[str]:
    # Streams as they were sent, not as captured: without it, frames behind a segment that came
    # late are lost to it.
    hints = [part for port in capture.ports for part in ("-d", f"tcp.port=={port},kafka")]
    return [
        "tshark", "-n", "-r", str(capture.path), "-o", "tcp.reassemble_out_of_order:TRUE", *hints,
        "-Y", "kafka",
    ]  # fmt: skip


def tshark_fields(capture: Capture, fields: tuple[str, ...]) -> Case:
    """``tshark -T fields``: a line a packet, with the values of each of its frames."""
    chosen = [part for field in fields for part in ("-e", field)]
    sizes, attributes = fields.index("kafka.len"), "kafka.record_attributes"

    def once(processors: frozenset[int]) -> Seen:
        taken = run([*_tshark(capture), "-T", "fields", *chosen], processors)
        rows = {"frames": _count(taken.output, sizes)}
        if attributes in fields:
            rows["records"] = _count(taken.output, fields.index(attributes))
            rows["records"] -= taken.output.count(_NO_CHECKSUM)
        return Seen(taken._replace(output=b""), rows)

    return once


def _count(lines: bytes, column: int) -> int:
    """Values in a column, of which a packet may have several, between commas."""
    found = 0
    for line in lines.splitlines():
        columns = line.split(b"\t")
        if len(columns) <= column:
            raise FailedError(f"tshark's line has {len(columns)} columns: {line[:80]!r}")
        found += columns[column].count(b",") + 1 if columns[column] else 0
    return found


def tshark_json(capture: Capture) -> Case:
    """``tshark -T json`` of Kafka's layer."""

    def once(processors: frozenset[int]) -> Seen:
        taken = run([*_tshark(capture), "-J", "kafka", "-T", "json"], processors)
        return Seen(taken._replace(output=b""), {"packets": taken.output.count(b'"_index"')})

    return once
