"""What ended a query, by the text of Spark's exception."""

from __future__ import annotations

import pytest

from kproto.errors import KprotoError
from tests.support.toolchain import require_module
from wiredump.spark.rotation import RotationError

HEAD = "[STREAM_FAILED] Query [id = 1] terminated with exception: "
TAIL = "\n=== Streaming Query ===\nCurrent State: INITIALIZING\nThread State: RUNNABLE"


@pytest.mark.parametrize(
    ("text", "kind", "message"),
    [
        (
            f"{HEAD}[PYTHON_STREAMING] failed: Traceback:\n  File 'a.py'\n"
            f"wiredump.spark.rotation.RotationError: a.pcap begins before b.pcap\n{TAIL}",
            RotationError,
            "a.pcap begins before b.pcap",
        ),
        (
            f"{HEAD}Python worker failed to connect back. SQLSTATE: XXKST{TAIL}",
            KprotoError,
            "the query failed: Python worker failed to connect back. SQLSTATE: XXKST",
        ),
    ],
)
def test_causes(text: str, kind: type[Exception], message: str) -> None:
    require_module("pyspark")
    from wiredump.spark.streaming import cause_of

    found = cause_of(RuntimeError(text))
    assert type(found) is kind
    assert str(found) == message
    assert cause_of(RuntimeError("no")) is None
