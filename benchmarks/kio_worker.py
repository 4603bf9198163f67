"""Times kio in whatever environment runs this file, at its parent's pace.

Standard library and kio only. Lines of JSON come in and go out: the first names the entity and
carries the body; each later one asks for one slice, so that the parent interleaves this process's
rounds with its own. ``bench_codec`` starts it for the kio release that still has LeaderAndIsr.

    {"module": "kio.schema.leader_and_isr.v3.request", "entity": "LeaderAndIsrRequest", "body": hex}
    {"operation": "decode", "loops": 0}      0 calibrates; the answer gives the loops to ask for
"""

from __future__ import annotations

import importlib
import io
import json
import sys
from collections.abc import Callable
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from benchmarks.timing import calibrate, run_slice

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
    first = json.loads(sys.stdin.readline())
    calls = operations(first["module"], first["entity"], bytes.fromhex(first["body"]))
    for line in sys.stdin:
        asked = json.loads(line)
        call, loops = calls[asked["operation"]], asked["loops"]
        answer = {"nanoseconds": run_slice(call, loops)} if loops else {"loops": calibrate(call)}
        print(json.dumps(answer), flush=True)


if __name__ == "__main__":
    main()
