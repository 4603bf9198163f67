"""What loss costs: frames read wrong, and frames that are whole in the capture and were not found.

``python -m tests.captures.loss [--runs 5] [--seed 1]`` prints a table: real captures, and made-up
conversations of random bodies, of which 5, 10 and 30 % of the packets are lost. What was said is
known, so both counts are exact. A frame is *whole* where every byte of it was captured.
"""

from __future__ import annotations

import argparse
import io
import random
from collections import defaultdict
from collections.abc import Iterable
from typing import Final, NamedTuple

from tests.captures.reading import NAMES, read
from tests.captures.test_captures import uncompressed
from tests.captures.worse import made_worse
from tests.wiredump.talk import Piece, chopped, delivered, listen, say
from wiredump.model import Direction, Exchange, Item
from wiredump.readers import Capture, Closed, Gap, Opened, Streams
from wiredump.sources.captures import CaptureItems

SHARES: Final = (0.05, 0.1, 0.3)

Key = tuple[int, Direction]
Frames = dict[Key, dict[int, tuple[int, bytes]]]
"""By direction of a connection and place in it: size, and as much of it as was captured in front of
the first gap."""
Holes = dict[Key, list[tuple[int, int]]]
"""By direction of a connection, where bytes are missing: from, to."""


class Tally(NamedTuple):
    """Frames: whole in the capture; of those, found; found, whole or cut, that never were."""

    whole: int = 0
    found: int = 0
    wrong: int = 0

    def plus(self, other: Tally) -> Tally:
        return Tally(*(mine + theirs for mine, theirs in zip(self, other, strict=True)))


def frames_of(items: Iterable[Item]) -> Frames:
    """Frames by their places in the stream."""
    found: Frames = defaultdict(dict)
    for item in items:
        if isinstance(item, Exchange):
            for frame in (item.request, item.response):
                if frame is not None:
                    key = item.connection.number, frame.direction
                    found[key][frame.offset] = frame.size, frame.raw
    return found


def compared(right: Frames, found: Frames, holes: Holes) -> Tally:
    """What was found of a stream of the frames ``right``, some of whose bytes are in ``holes``."""
    whole = hits = wrong = 0
    for key, frames in right.items():
        mine, missing = found.get(key, {}), holes.get(key, [])
        for at, (size, raw) in frames.items():
            if len(raw) == size and not any(a < at + size and at < b for a, b in missing):
                whole += 1
                hits += mine.get(at) == (size, raw)
    for key, frames in found.items():
        for at, (size, raw) in frames.items():
            said, said_raw = right.get(key, {}).get(at, (0, b""))
            wrong += size != said or not said_raw.startswith(raw)
    return Tally(whole, hits, wrong)


def of_capture(data: bytes, right: Frames) -> Tally:
    """A capture of which some was lost, against what it says when nothing is."""
    streams, items = Streams(), CaptureItems()
    said: list[Item] = []
    lost: dict[int, dict[int, list[tuple[int, int]]]] = defaultdict(lambda: defaultdict(list))
    clients: dict[int, str] = {}
    for event in streams.read(Capture(io.BytesIO(data))):
        if isinstance(event, Opened):
            clients[event.connection] = str(event.client)
        if isinstance(event, Gap):
            span = (event.stream_offset, event.stream_offset + event.length)
            lost[event.connection][event.direction].append(span)
        if isinstance(event, Closed):  # behind what was captured last nothing tells of more
            for direction, end in enumerate((event.client_bytes, event.server_bytes)):
                lost[event.connection][direction].append((end, 1 << 62))
        said += items.feed(event)
    said += items.settle()
    items.account.check()
    holes: Holes = {}
    for number, connection in items.connections.items():
        turned = clients[number] != connection.client
        holes[number, "request"] = lost[number][1 if turned else 0]
        holes[number, "response"] = lost[number][0 if turned else 1]
    return compared(right, frames_of(said), holes)


def of_conversation(rng: random.Random, share: float, exchanges: int, packet: int) -> Tally:
    """Random exchanges in packets of up to ``packet`` bytes, a share of which was lost."""
    said = [say(rng, number) for number in range(exchanges)]
    pieces: list[Piece] = []
    holes: Holes = {(0, "request"): [], (0, "response"): []}
    at = {True: 0, False: 0}
    for piece in chopped(delivered(said), rng, packet):
        start = at[piece.forward]
        at[piece.forward] += len(piece.raw)
        # What a direction begins with was not lost: offsets count from there.
        if start and rng.random() < share:
            span = (start, at[piece.forward])
            holes[0, "request" if piece.forward else "response"].append(span)
            piece = Piece(piece.forward, b"", len(piece.raw))
        pieces.append(piece)
    right: Frames = {(0, "request"): {}, (0, "response"): {}}
    there = back = 0
    for each in said:
        right[0, "request"][there] = len(each.request), each.request
        there += len(each.request)
        if each.response is not None:
            right[0, "response"][back] = len(each.response), each.response
            back += len(each.response)
    return compared(right, frames_of(listen(pieces)), holes)


def main() -> None:
    """Measure, and print."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("--runs", type=int, default=5, help="of each capture and share")
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    print(f"{'lost':>5} {'of':<10} {'whole':>8} {'found':>8} {'not found':>10} {'wrong':>6}")
    for share in SHARES:
        rng = random.Random(f"{options.seed} {share}")
        real = made = Tally()
        for name in NAMES:
            right, data = frames_of(read(name).items), uncompressed(name)
            for _ in range(options.runs):
                worse = made_worse(data, rng, lost=share, repeated=0.0)
                real = real.plus(of_capture(worse, right))
        for _ in range(40 * options.runs):
            made = made.plus(of_conversation(rng, share, 30, rng.choice((60, 300, 1448))))
        for name, tally in (("real", real), ("made up", made)):
            missed = tally.whole - tally.found
            print(
                f"{share:>5.0%} {name:<10} {tally.whole:>8} {tally.found:>8} "
                f"{missed:>10} {tally.wrong:>6}"
            )


if __name__ == "__main__":
    main()
