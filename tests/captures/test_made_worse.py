"""Real traffic of which a capture has lost packets, or has them twice or late: what is read of it
is right, and every byte is accounted for."""

import random
from collections import defaultdict

import pytest

from tests.captures.loss import Tally, frames_of, of_capture, of_conversation
from tests.captures.reading import NAMES, read
from tests.captures.test_captures import uncompressed
from tests.captures.worse import made_worse
from wiredump.model import Connection, Direction, Exchange, Item
from wiredump.sources import open_sources

SMALL = [name for name in NAMES if "everyday" not in name]

Key = tuple[int, Direction]


def frames(items: list[Item]) -> dict[Key, dict[int, bytes]]:
    """Whole frames by their places in the stream. A cut or a token's is none of them."""
    found: dict[Key, dict[int, bytes]] = defaultdict(dict)
    for item in items:
        if isinstance(item, Exchange):
            for frame in (item.request, item.response):
                if frame is not None and frame.whole and frame.missing == 0:
                    key = item.connection.number, frame.direction
                    found[key][frame.offset] = frame.raw
    return found


def pairs(items: list[Item]) -> set[tuple[int, int, int]]:
    """Which request goes with which response."""
    return {
        (item.connection.number, item.request.offset, item.response.offset)
        for item in items
        if isinstance(item, Exchange) and item.request and item.response
    }


@pytest.mark.parametrize("name", SMALL)
@pytest.mark.parametrize(
    ("lost", "repeated", "late"), [(0.0, 0.3, 0.3), (0.03, 0.1, 0.1), (0.3, 0.0, 0.0)]
)
def test_what_is_read_is_what_was_said(name, lost, repeated, late, rng, tmp_path):
    capture = tmp_path / "worse.pcap"
    worse = made_worse(uncompressed(name), rng, lost=lost, repeated=repeated, late=late)
    capture.write_bytes(worse)
    source = open_sources([str(capture)])
    items = list(source)
    account = source.account  # raises where the sums do not agree
    connections: dict[int, Connection] = source.connections
    assert len(connections) == len(read(name).connections)
    right = frames(read(name).items)
    found = frames(items)
    if not lost:
        assert found == right
        assert pairs(items) == pairs(read(name).items)
        assert account["missing"] == 0
    wrong = [
        (key, offset)
        for key, at in found.items()
        for offset, raw in at.items()
        if right[key].get(offset) != raw
    ]
    assert not wrong
    assert pairs(items) <= pairs(read(name).items)
    if lost < 0.1:
        said = sum(map(len, right.values()))
        assert sum(map(len, found.values())) > 0.8 * said


@pytest.mark.slow
@pytest.mark.parametrize("lost", [0.1, 0.3])
@pytest.mark.parametrize("name", ["kafka-2.4.1-everyday-2", "kafka-3.9.2-admin"])
def test_loss_costs_the_frames_it_touches(name: str, lost: float, rng: random.Random) -> None:
    """No frame is made up, and what is whole in the capture is found: all but one in a thousand."""
    worse = made_worse(uncompressed(name), rng, lost=lost, repeated=0.0)
    tally = of_capture(worse, frames_of(read(name).items))
    assert tally.wrong == 0
    assert tally.whole - tally.found <= 1 + tally.whole // 1000


def test_loss_among_random_bodies(rng: random.Random) -> None:
    """Bodies of random numbers may look like the beginning of a frame that a gap cuts: seen once in
    ten thousand."""
    tally = Tally()
    for _ in range(20):
        tally = tally.plus(of_conversation(rng, 0.1, 20, rng.choice((60, 300, 1448))))
    assert tally.whole > 100
    assert tally.wrong <= 1
    assert tally.whole - tally.found <= 3
