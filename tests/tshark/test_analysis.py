"""What ``connections`` has of retransmissions, order, holes, zero windows, resets and handshakes is
what tshark's analysis finds, where both mean the same; what differs is counted here, with reasons.

Four things differ by definition:

- tshark tells a retransmission from a segment out of order by time and acknowledgements; here it is
  by whether its bytes were captured before. So the two are compared by their sum.
- tshark takes a bare acknowledgement's own sequence number for a sign that the bytes in front of it
  were sent; here only bytes are. So captures are compared without bare acknowledgements.
- tshark takes a segment for sent again, too, that was captured after its acknowledgement, with
  nothing captured behind it; here it is one like any other.
- tshark has a round trip of a handshake that was refused (SYN, RST); here there is none.
"""

import random
import subprocess
from collections import Counter
from pathlib import Path

import pytest

from tests.captures.reading import NAMES
from tests.captures.test_captures import uncompressed
from tests.captures.worse import HEADER, RECORD, made_worse
from tests.support.full import drawn, either
from tests.support.toolchain import require
from tests.wiredump.composed_captures import composed
from tests.wiredump.quickly import tables_of
from wiredump import native

pytestmark = pytest.mark.slow

SMALL = [name for name in NAMES if "everyday" not in name]
DRAWN = drawn("captures of packet analysis", SMALL, few=2)
AGAIN_OR_LATE = (
    "tcp.analysis.retransmission",
    "tcp.analysis.fast_retransmission",
    "tcp.analysis.spurious_retransmission",
    "tcp.analysis.out_of_order",
)
FIELDS = (
    "tcp.stream",
    "tcp.flags",
    "tcp.srcport",
    "tcp.seq",
    "tcp.nxtseq",
    "tcp.len",
    "tcp.flags.reset",
    "tcp.analysis.initial_rtt",
    "tcp.analysis.keep_alive",
    "tcp.analysis.lost_segment",
    "tcp.analysis.zero_window",
    *AGAIN_OR_LATE,
)


def theirs(capture: Path) -> list[Counter[str]]:
    """By connection, in the order of first packets."""
    command = ["tshark", "-r", str(capture), "-Y", "tcp", "-T", "fields", "-E", "occurrence=f"]
    for name in FIELDS:
        command += ["-e", name]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=True)
    found: dict[int, Counter[str]] = {}
    accepted = set()
    newest: Counter[tuple[str, str]] = Counter()
    for line in done.stdout.splitlines():
        row = dict(zip(FIELDS, line.split("\t"), strict=True))
        counts = found.setdefault(int(row["tcp.stream"]), Counter())
        if int(row["tcp.flags"], 16) & 0x12 == 0x12:
            accepted.add(int(row["tcp.stream"]))
        counts["resets"] += row["tcp.flags.reset"] in ("1", "True")
        counts["zero_windows"] += bool(row["tcp.analysis.zero_window"])
        if row["tcp.analysis.initial_rtt"] and int(row["tcp.stream"]) in accepted:
            counts["handshake_ns"] = round(float(row["tcp.analysis.initial_rtt"]) * 1e9)
        if int(row["tcp.len"]) and not row["tcp.analysis.keep_alive"]:
            counts["holes"] += bool(row["tcp.analysis.lost_segment"])
            sender = row["tcp.stream"], row["tcp.srcport"]
            is_behind = int(row["tcp.seq"]) < newest[sender]
            counts["again_or_late"] += is_behind and any(row[name] for name in AGAIN_OR_LATE)
            newest[sender] = max(newest[sender], int(row["tcp.nxtseq"]))
    return [+counts for _, counts in sorted(found.items())]


def ours(capture: Path, folder: Path) -> list[Counter[str]]:
    ((_, _, rows),) = tables_of(capture, folder, ("connections",), bodies=False)
    names = ("resets", "zero_windows", "holes", "handshake_ns")
    return [
        +Counter(
            {name: row[name] or 0 for name in names}
            | {"again_or_late": row["retransmitted"] + row["out_of_order"]}
        )
        for row in rows
    ]


def without_acknowledgements(data: bytes) -> bytes:
    """Without those that are bare, but for one of each handshake."""
    out, at = [data[:HEADER]], HEADER
    shaken = set()
    while at < len(data):
        size = int.from_bytes(data[at + 8 : at + 12], "little")
        ip = at + RECORD + 14
        tcp = ip + (data[ip] & 15) * 4
        payload = int.from_bytes(data[ip + 2 : ip + 4]) - (tcp - ip) - (data[tcp + 12] >> 4) * 4
        flow = data[ip + 12 : ip + 20] + data[tcp : tcp + 4]
        if payload or data[tcp + 13] & 7 or flow not in shaken:
            out.append(data[at : at + RECORD + size])
        if not data[tcp + 13] & 2:
            shaken.add(flow)
        at += RECORD + size
    return b"".join(out)


def without_room(data: bytes, rng: random.Random, share: float) -> bytes:
    """That share of the packets says that there is no room."""
    out, at = bytearray(data), HEADER
    while at < len(out):
        size = int.from_bytes(out[at + 8 : at + 12], "little")
        window = at + RECORD + 14 + (out[at + RECORD + 14] & 15) * 4 + 14
        if rng.random() < share:
            out[window : window + 2] = bytes(2)
        at += RECORD + size
    return bytes(out)


@pytest.mark.parametrize("name", DRAWN)
def test_the_analysis_of_captures_made_worse(name, tmp_path, rng, figures):
    require("tshark")
    capture = tmp_path / "worse.pcap"
    data = made_worse(uncompressed(name), rng, lost=0.02, repeated=0.03, late=0.03)
    capture.write_bytes(without_room(without_acknowledgements(data), rng, 0.01))
    expected, found = theirs(capture), ours(capture, tmp_path / "tables")
    with native.using(None):
        assert ours(capture, tmp_path / "in Python") == found
    total = sum(expected, Counter())
    figures.append(f"{name}: {dict(total - Counter(handshake_ns=total['handshake_ns']))} agree")
    assert found == expected


def test_the_analysis_of_composed_captures(tmp_path, rng, figures):
    """Of any kind at one point of capture, but for those with gaps."""
    require("tshark")
    seeds = [rng.randrange(1 << 30) for _ in range(either(300, 40))]
    total: Counter[str] = Counter()
    for seed in seeds:
        made = composed(seed)
        if not made.ends or "lossy" in made.what or "late start" in made.what:
            continue
        capture = tmp_path / f"{seed}.pcap"
        capture.write_bytes(made.plain)
        expected, found = theirs(capture), ours(capture, tmp_path / str(seed))
        assert found == expected, made.what
        total += sum(expected, Counter())
    figures.append(
        f"composed captures: {dict(total - Counter(handshake_ns=total['handshake_ns']))}"
    )
    assert total["again_or_late"]
