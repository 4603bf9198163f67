"""Time kio in the environment that runs this file, controlled by its parent.

Needs only the standard library and kio. ``peers`` starts it for the kio release that still has
LeaderAndIsr; the protocol is that of ``benchmarks/worker.py``::

    python kio_worker.py kio.schema.leader_and_isr.v3.request LeaderAndIsrRequest FILE
"""

from __future__ import annotations

import importlib
import io
import sys
from collections.abc import Callable
from importlib import metadata
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from benchmarks.timing import run_slice

__all__ = ["operations"]


def operations(module: str, entity: str, body: bytes) -> dict[str, Callable[[], object]]:
    """kio's decode and encode of ``body``; raises AssertionError where it does not round-trip."""
    from kio.serial import entity_reader, entity_writer

    kind = getattr(importlib.import_module(module), entity)
    read, write = entity_reader(kind), entity_writer(kind)

    def decode() -> object:
        return read(body, 0)[0]

    message = decode()

    def encode() -> bytes:
        with io.BytesIO() as out:
            write(out, message)
            return out.getvalue()

    assert encode() == body, f"kio does not round-trip {entity}"
    return {"decode": decode, "encode": encode}


def main() -> None:
    module, entity, file = sys.argv[1:]
    calls = operations(module, entity, Path(file).read_bytes())
    print(f"kio {metadata.version('kio')}", flush=True)
    for line in sys.stdin:
        operation, loops = line.split()
        print(run_slice(calls[operation], int(loops)), flush=True)


if __name__ == "__main__":
    main()
