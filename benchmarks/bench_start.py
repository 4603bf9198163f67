"""What the first second costs: imports, the first use of each codec, and memory of a decoded body.

Reproduce::

    .venv/bin/python -m benchmarks.bench_start
    .venv/bin/python -m benchmarks.bench_start --runs 5 --dry-run

Imports are timed in fresh interpreters whose bytecode is already compiled. A codec's first use
(make the codec, encode, decode) is timed in a forked child for every (message, version), so that
no pair profits from another of its message. A fork adds page faults of its own, so the slowest are
timed again in fresh interpreters, which is the figure shown for them. Another message has been used
before in every case; that very first use is reported apart. Memory is what ``tracemalloc`` counts
as alive after decoding, and how many of the message's objects the garbage collector keeps track of,
of those it would without our doing: every struct and every list.
"""

from __future__ import annotations

import argparse
import gc
import os
import statistics
import struct
import subprocess
import sys
import time
import tracemalloc
from dataclasses import asdict, astuple, dataclass
from pathlib import Path
from typing import Any

from benchmarks.report import Mark, Section, conclude, machine

__all__ = ["main"]

ROOT = Path(__file__).resolve().parent.parent

Pair = tuple[str, int]

IMPORT_KPROTO = "import kproto"
IMPORT_MODULE = "import kproto.messages.metadata_response"
IMPORT_ANOTHER = "import kproto.messages.fetch_response"
FIRST_EVER = """
from kproto.messages import HeartbeatRequest
clock = time.perf_counter
began = clock()
HeartbeatRequest.decode(HeartbeatRequest().encode(4), 4)
"""
WARM_UP = "HeartbeatRequest"
WORST_SHOWN = 5
_USE = struct.Struct("ddd")


def _fresh(before: str, statement: str, runs: int) -> list[float]:
    """Return the milliseconds that ``statement`` takes in fresh interpreters, after ``before``."""
    code = (
        f"import time\n{before}\nclock = time.perf_counter\nbegan = clock()\n{statement}\n"
        "print((clock() - began) * 1e3)"
    )
    seen = []
    for _ in range(runs + 1):
        done = subprocess.run([sys.executable, "-c", code], check=True, stdout=subprocess.PIPE)
        seen.append(float(done.stdout))
    return seen[1:]  # the first compiles bytecode and warms the disk cache


@dataclass(frozen=True, order=True)
class Use:
    """Milliseconds of processor time of the first encode and decode, including making the
    codecs."""

    total: float
    encode: float
    decode: float


def _use(kind: Any, version: int) -> Use:
    message = kind()
    clock = time.process_time
    began = clock()
    data = message.encode(version)
    between = clock()
    kind.decode(data, version)
    ended = clock()
    return Use((ended - began) * 1e3, (between - began) * 1e3, (ended - between) * 1e3)


def _use_in_child(kind: Any, version: int) -> Use:
    """Measure in a forked child, so that this process does not get the codec."""
    reader, writer = os.pipe()
    child = os.fork()
    if child == 0:
        status = 1
        try:
            os.write(writer, _USE.pack(*astuple(_use(kind, version))))
            status = 0
        finally:
            os._exit(status)
    os.close(writer)
    with os.fdopen(reader, "rb") as pipe:
        answer = pipe.read()
    os.waitpid(child, 0)
    if len(answer) != _USE.size:
        raise RuntimeError(f"{kind.MESSAGE_NAME} v{version} failed in the child; see above")
    return Use(*_USE.unpack(answer))


def _use_in_fresh(name: str, version: int) -> Use:
    """Measure in a fresh interpreter that has used another message before."""
    code = (
        "import sys\nfrom kproto import messages\nfrom benchmarks import bench_start\n"
        f"bench_start._use(messages.{WARM_UP}, 4)\n"
        f"use = bench_start._use(messages.{name}, {version})\n"
        "sys.stdout.buffer.write(bench_start._USE.pack(use.total, use.encode, use.decode))"
    )
    command = [sys.executable, "-c", code]
    done = subprocess.run(command, check=True, stdout=subprocess.PIPE, cwd=ROOT)
    return Use(*_USE.unpack(done.stdout))


def _message_classes() -> dict[str, Any]:
    """Import every message class, so that a first use measures only the codec."""
    from kproto import messages
    from kproto.codec.message import Message

    found = {}
    for name in dir(messages):
        kind = getattr(messages, name)
        if isinstance(kind, type) and issubclass(kind, Message):
            found[kind.MESSAGE_NAME] = kind  # once, whatever it was called before
    return found


def first_uses() -> dict[Pair, Use]:
    """Measure the first use of every pair; the slowest in fresh interpreters, as the best of
    three."""
    classes = _message_classes()
    _use(classes[WARM_UP], 4)
    gc.collect()
    gc.freeze()
    taken = {
        (name, version): _use_in_child(kind, version)
        for name, kind in classes.items()
        if name != WARM_UP
        for version in kind.VALID_VERSIONS
    }
    # Until the slowest stay the slowest: a stall of the machine puts a pair there by chance.
    certain: set[Pair] = set()
    while doubtful := [pair for pair in slowest(taken, WORST_SHOWN) if pair not in certain]:
        for pair in doubtful:
            taken[pair] = min(_use_in_fresh(*pair) for _ in range(3))
        certain.update(doubtful)
    return taken


def slowest(taken: dict[Pair, Use], count: int) -> list[Pair]:
    return sorted(taken, key=lambda pair: taken[pair], reverse=True)[:count]


def _large() -> tuple[Any, bytes, int]:
    """Return class, body and version of workload b, decoded once so that the codec exists."""
    from benchmarks.workloads import WORKLOADS

    workload = next(workload for workload in WORKLOADS if workload.key == "b")
    kind, body = type(workload.message()), workload.body()
    kind.decode(body, workload.version)
    return kind, body, workload.version


def decoded_kib() -> float:
    """Return the KiB that decoding workload b leaves allocated, without the codec."""
    kind, body, version = _large()
    gc.collect()
    tracemalloc.start()
    message = kind.decode(body, version)
    gc.collect()
    alive, _peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert message is not None
    return alive / 1024


def tracked_objects() -> tuple[int, int]:
    """Return, of the structs and lists of a decoded workload b, how many the garbage collector
    tracks, and how many there are."""
    kind, body, version = _large()
    found: list[object] = []
    waiting: list[Any] = [kind.decode(body, version)]
    while waiting:
        item = waiting.pop()
        if isinstance(item, list):
            found.append(item)
            waiting += item
        elif hasattr(item, "__struct_fields__"):
            found.append(item)
            waiting += [getattr(item, name) for name in item.__struct_fields__]
    return sum(map(gc.is_tracked, found)), len(found)


def _mark(aim: str, seen: float, limit: float, unit: str) -> Mark:
    return Mark(f"{aim}: at most {limit:g} {unit}", f"{seen:.2f} {unit}", seen <= limit)


def measure(runs: int) -> Section:
    kproto_ms = _fresh("", IMPORT_KPROTO, runs)
    module_ms = _fresh(IMPORT_KPROTO, IMPORT_MODULE, runs)
    another_ms = _fresh(IMPORT_MODULE, IMPORT_ANOTHER, runs)
    first_ms = _fresh("", FIRST_EVER, runs)
    taken = first_uses()
    worst = slowest(taken, WORST_SHOWN)
    memory = decoded_kib()
    tracked, containers = tracked_objects()
    rows = [["ms", "fastest", "median"]]
    for title, seen in (
        ("import kproto", kproto_ms),
        ("then one message module (MetadataResponse)", module_ms),
        ("then another (FetchResponse)", another_ms),
        ("the very first use of a codec in a process (HeartbeatRequest v4)", first_ms),
    ):
        rows.append([title, f"{min(seen):.2f}", f"{statistics.median(seen):.2f}"])
    uses = [["slowest first uses, ms", "encode", "decode", "both"]]
    uses += [[f"{name} v{version}", *_columns(taken[name, version])] for name, version in worst]
    middle = statistics.median_low(taken.values())
    uses.append([f"median of {len(taken)} (message, version) pairs", *_columns(middle)])
    return Section(
        title="Start and memory",
        reproduce=".venv/bin/python -m benchmarks.bench_start",
        text=[
            f"{machine(['msgspec'])}; {runs} fresh interpreters per import. First uses are of "
            "empty messages, so that they measure the creation of the codec, which is mostly "
            "Python's compile()."
        ],
        tables=[rows, uses],
        marks=[
            _mark("import kproto (fastest)", min(kproto_ms), 60, "ms"),
            _mark("one message module more (fastest)", min(module_ms), 10, "ms"),
            _mark("first use of any pair, encode and decode", taken[worst[0]].total, 10, "ms"),
            _mark("a decoded 46 KB MetadataResponse", memory, 380, "KiB"),
            Mark(
                "the collector's part of its structs and lists: at most a tenth",
                f"{tracked:,} of {containers:,}",
                tracked * 10 <= containers,
            ),
        ],
        figures={
            "import_kproto_ms": kproto_ms,
            "import_module_ms": module_ms,
            "import_another_ms": another_ms,
            "first_ever_ms": first_ms,
            "pairs": len(taken),
            "slowest_ms": {
                f"{name} v{version}": asdict(taken[name, version]) for name, version in worst
            },
            "decoded_metadata_kib": memory,
            "decoded_metadata_tracked": tracked,
            "decoded_metadata_containers": containers,
        },
    )


def _columns(use: Use) -> list[str]:
    return [f"{use.encode:.2f}", f"{use.decode:.2f}", f"{use.total:.2f}"]


def main() -> None:
    parser = argparse.ArgumentParser(description="Import time, first use of each codec, memory.")
    parser.add_argument("--runs", type=int, default=15)
    parser.add_argument(
        "--dry-run", action="store_true", help="print the results without writing them"
    )
    arguments = parser.parse_args()
    conclude("start", measure(arguments.runs), dry_run=arguments.dry_run)


if __name__ == "__main__":
    main()
