"""Round-trip times of data in ``connections`` are those that follow from tshark's fields, and
tshark's own (``tcp.analysis.ack_rtt``) are among them.

tshark has at most one for an acknowledgement: that of the segment which ends where the number
says. Here each segment has its own, those too that are acknowledged together with later ones.
"""

import random
import subprocess
from collections import defaultdict
from pathlib import Path
from statistics import median_low
from typing import NamedTuple

import pytest

from kproto.capture import Conversation
from kproto.capture.packets import ethernet_frame
from tests.captures.reading import NAMES
from tests.captures.test_captures import uncompressed
from tests.captures.worse import made_worse
from tests.support.full import drawn
from tests.support.toolchain import require
from tests.wiredump.quickly import tables_of
from tests.wiredump.spark.made_up import START_NS, pcap
from tests.wiredump.talk import say
from wiredump import native
from wiredump.readers.round_trips import TIMED

pytestmark = pytest.mark.slow

DRAWN = drawn("captures of round trips", NAMES, few=3)
MODULUS = 1 << 32
FIELDS = (
    "frame.number", "frame.time_epoch", "tcp.stream", "tcp.srcport", "tcp.flags", "tcp.seq_raw",
    "tcp.ack_raw", "tcp.len", "tcp.analysis.ack_rtt", "tcp.analysis.acks_frame",
)  # fmt: skip


class Timed(NamedTuple):
    frame: int
    start: int
    end: int
    sent_ns: int


class Direction:
    """Of one stream: what is sent that way, by sequence numbers from the first one seen."""

    def __init__(self) -> None:
        self.first: int | None = None
        self.newest = self.acknowledged = 0
        self.timed: list[Timed] = []
        self.times: list[int] = []
        self.frames: dict[int, int] = {}
        """By the number of the frame that was timed."""

    def at(self, number: int, near: int) -> int:
        """A position, from the sequence number: the nearest one."""
        if self.first is None:
            self.first = number
        ahead = (number - self.first - near) % MODULUS
        return near + ahead - (MODULUS if ahead >= MODULUS // 2 else 0)

    def send(self, frame: int, number: int, size: int, now: int) -> None:
        start = self.at(number, self.newest)
        end = start + size
        if start < self.newest:
            self.timed = [each for each in self.timed if each.end <= start or end <= each.start]
        elif self.acknowledged < end and len(self.timed) < TIMED:
            self.timed.append(Timed(frame, start, end, now))
        self.newest = max(self.newest, end)

    def acknowledge(self, number: int, now: int) -> None:
        if self.first is None:
            return
        self.acknowledged = max(self.acknowledged, self.at(number, self.newest))
        covered = [each for each in self.timed if each.end <= self.acknowledged]
        self.timed = self.timed[len(covered) :]
        for each in covered:
            if now >= each.sent_ns:
                self.times.append(now - each.sent_ns)
                self.frames[each.frame] = now - each.sent_ns


def nanoseconds(text: str) -> int:
    seconds, _, rest = text.partition(".")
    return int(seconds) * 10**9 + int(rest.ljust(9, "0")[:9])


def theirs(capture: Path) -> tuple[dict[int, dict[int, Direction]], int]:
    """By stream and port that sends; and how many of tshark's own were found among them."""
    command = ["tshark", "-r", str(capture), "-Y", "tcp", "-T", "fields", "-E", "occurrence=f"]
    for name in FIELDS:
        command += ["-e", name]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=True)
    found: dict[int, dict[int, Direction]] = defaultdict(lambda: defaultdict(Direction))
    ports: dict[int, set[int]] = defaultdict(set)
    rows = [dict(zip(FIELDS, line.split("\t"), strict=True)) for line in done.stdout.splitlines()]
    for row in rows:
        ports[int(row["tcp.stream"])].add(int(row["tcp.srcport"]))
    same = 0
    for row in rows:
        stream, port = int(row["tcp.stream"]), int(row["tcp.srcport"])
        flags, size, now = int(row["tcp.flags"], 16), int(row["tcp.len"]), row["frame.time_epoch"]
        if flags & 0x04:
            continue
        for other in ports[stream] - {port}:
            back = found[stream][other]
            if flags & 0x10:
                back.acknowledge(int(row["tcp.ack_raw"]), nanoseconds(now))
            acked = row["tcp.analysis.acks_frame"]
            if row["tcp.analysis.ack_rtt"] and int(acked) in back.frames:
                assert nanoseconds(row["tcp.analysis.ack_rtt"]) == back.frames[int(acked)]
                same += 1
        if size:
            number = (int(row["tcp.seq_raw"]) + bool(flags & 0x02)) % MODULUS
            found[stream][port].send(int(row["frame.number"]), number, size, nanoseconds(now))
    return found, same


def check(capture: Path, folder: Path) -> tuple[int, int]:
    """How many were measured, and how many of them tshark has, too."""
    expected, same = theirs(capture)
    ((_, _, rows),) = tables_of(capture, folder / "quick", ("connections",), bodies=False)
    with native.using(None):
        assert tables_of(capture, folder / "slow", ("connections",), bodies=False)[0][2] == rows
    total = 0
    for number, row in enumerate(rows):
        for end in ("client", "broker"):
            times = sorted(expected[number][int(row[end].rpartition(":")[2])].times)
            assert row[f"{end}_rtt_samples"] == len(times), (number, end)
            if not times:
                assert row[f"{end}_rtt_median_ns"] is None
                continue
            assert (row[f"{end}_rtt_min_ns"], row[f"{end}_rtt_max_ns"]) == (times[0], times[-1])
            middle = median_low(times)
            assert abs(row[f"{end}_rtt_median_ns"] - middle) <= max(128, middle / 16)
            total += len(times)
    return total, same


@pytest.mark.parametrize("name", DRAWN)
def test_captures(name: str, tmp_path: Path, figures: list[str]) -> None:
    require("tshark")
    capture = tmp_path / "a.pcap"
    capture.write_bytes(uncompressed(name))
    total, same = check(capture, tmp_path)
    figures.append(f"{name}: {total} round trips agree, {same} of them are tshark's own")
    assert same > 0


@pytest.mark.parametrize("seed", range(4))
def test_made_up_captures(seed: int, tmp_path: Path, figures: list[str]) -> None:
    """With delays of up to a second, and more segments at once than are timed."""
    require("tshark")
    rng, capture = random.Random(seed), tmp_path / "a.pcap"
    talks = [delayed(rng, number) for number in range(3)]
    packets = sorted(packet for talk in talks for packet in talk)
    capture.write_bytes(
        pcap([(time, data, len(data)) for time, data in packets], "<", nanoseconds=True)
    )
    total, same = check(capture, tmp_path)
    figures.append(f"made up, {seed}: {total} round trips agree, {same} are tshark's own")
    assert total > 100


def delayed(rng: random.Random, number: int) -> list[tuple[int, bytes]]:
    """A connection's packets, with times that grow by nanoseconds or by seconds."""
    talk = Conversation(
        ("10.0.0.2", 40_000 + number), ("10.0.0.1", 9092), segment_size=rng.choice((100, 1448)),
        client_isn=rng.choice((1, MODULUS - 2000)),
    )  # fmt: skip
    packets = talk.open()
    for each in range(20):
        said = say(rng, each)
        packets += talk.send(said.request)
        if rng.random() < 0.5:
            packets.append(talk.acknowledge(from_server=True))
        if said.response is not None:
            packets += talk.send(said.response, from_server=True)
    packets.append(talk.acknowledge())
    now, timed = START_NS, []
    for packet in packets:
        now += int(10 ** rng.uniform(2, 9))
        timed.append((now, ethernet_frame(packet)))
    return timed


@pytest.mark.parametrize("name", DRAWN[:2])
def test_captures_made_worse(name, tmp_path, rng, figures):
    """With segments that are repeated, out of order and lost."""
    require("tshark")
    capture = tmp_path / "worse.pcap"
    capture.write_bytes(made_worse(uncompressed(name), rng, lost=0.02, repeated=0.03, late=0.03))
    total, same = check(capture, tmp_path)
    figures.append(f"{name}, made worse: {total} round trips agree, {same} are tshark's own")
