"""Runs of packets, which the extension makes: the packets between the same ends, back in their
order whatever they were cut into, and the same tables with and without them."""

from __future__ import annotations

import random
from collections import defaultdict
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from kproto.capture import Conversation
from kproto.capture.packets import ethernet_frame
from tests.support.full import quick
from tests.wiredump.spark import made_up
from tests.wiredump.spark.engines import ENGINES, running_on
from tests.wiredump.spark.fake_session import FakeSession, session
from tests.wiredump.spark.knowing import naming
from tests.wiredump.spark.pipeline import LOCAL, load, packets, pipeline, single
from tests.wiredump.spark.rotating import follow, records, rotate, so_far, some_cuts, to_the_end
from wiredump.readers import Account, Capture, Packet
from wiredump.readers.flows import reverse
from wiredump.readers.segments import SegmentReader
from wiredump.rows.schema import ON_REQUEST
from wiredump.spark import runs
from wiredump.spark.columns import RUN, SPLIT
from wiredump.spark.connections import Options, write_connections
from wiredump.spark.planning import plan
from wiredump.spark.runs import ENTRY, LONGEST, Merging
from wiredump.storage import ChangedError

__all__ = ["session"]

quiet = settings(
    deadline=None,
    max_examples=quick(12, 4),
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)
seeds = st.integers(0, 2**32)
engines = st.sampled_from(ENGINES)
parts = st.sampled_from((701, 3_000, 20_000, 10**6))
held = st.sampled_from((1, 13, 1 << 16))

FRAMES = ("connections", "frames", "anomalies")
WANTED = st.sampled_from(
    [
        (LOCAL, True),
        (FRAMES, False),  # as columns
        (("records", "topics"), True),  # and records of frames
    ]
)


def some_capture(seed: int, tables: tuple[str, ...], **options: Any) -> bytes:
    """One that has something for them."""
    if tables == LOCAL or "records" not in tables:
        return made_up.capture(seed, **options)
    return naming(seed, share=options["share"])


def written(tmp_path: Path, files: list[bytes]) -> list[str]:
    paths = []
    for number, data in enumerate(files):
        path = tmp_path / f"{number}.cap"
        path.write_bytes(data)
        paths.append(str(path))
    return paths


@pytest.mark.slow
@quiet
@given(seeds, parts, held, engines, engines, st.sampled_from((1, 3)), WANTED)
def test_tables_whoever_reads_packets_and_connections(
    tmp_path: Path, seed: int, split_bytes: int, many: int, first: str, second: str, count: int,
    wanted: tuple[tuple[str, ...], bool],
) -> None:  # fmt: skip
    """Of one capture or several that are merged by time, cut anywhere, with ends sorted by few
    packets at a time. Only runs need the extension on both machines."""
    second = first if first == "quick" else second
    tables, bodies = wanted
    files = [
        some_capture(seed + number, tables, share=0.05, exchanges=8, back=0.1, odd=0.1)
        for number in range(count)
    ]
    paths = written(tmp_path, files)
    folder = fresh(tmp_path / "single")
    expected = single(paths, folder, tables=tables, bodies=bodies)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(runs, "_HELD", many)
        found, _, manifests = pipeline(
            paths, tmp_path / "parts", split_bytes=split_bytes, tasks=2, engines=(first, second),
            tables=tables, bodies=bodies,
        )  # fmt: skip
    for name, rows in expected.items():
        assert found[name] == rows, name
    assert {capture for each in manifests for capture in each.times} <= set(range(count))


def fresh(folder: Path) -> Path:
    for file in sorted(folder.rglob("*"), reverse=True):
        file.rmdir() if file.is_dir() else file.unlink()
    return folder


@pytest.mark.slow
@quiet
@given(seeds, engines, engines, WANTED)
def test_a_stream_goes_on_with_either(
    tmp_path: Path, session: FakeSession, seed: int, first: str, second: str,
    wanted: tuple[tuple[str, ...], bool],
) -> None:  # fmt: skip
    """What one batch leaves to the next is the same, down to requests that wait for an answer."""
    rng = random.Random(seed)
    tables = tuple(each for each in wanted[0] if each not in ON_REQUEST)
    capture = some_capture(
        seed, wanted[0], connections=3, exchanges=12, kind="pcap", share=0.03, back=0
    )
    root = fresh(tmp_path / "run")
    files = rotate(capture, some_cuts(rng, len(records(capture)[1])), root / "in")
    options = Options(out=str(root / "out"), paths={}, tables=tables, bodies=wanted[1])
    expected = single(
        [str(path) for path in files], root / "one", rotated=True, tables=tables,
        bodies=options.bodies,
    )  # fmt: skip
    for number, engine in enumerate((first, second)):
        with running_on(engine):
            stream = follow(root / "in", root, options=options, max_bytes=1)
            (to_the_end if number else so_far)(session, stream)
    found = load(root / "out", tuple(expected))
    for name, rows in expected.items():
        assert found[name] == rows, name


# ---- what is in a run ---------------------------------------------------------------------------


def expected_by_ends(path: str, merged: bool) -> dict[bytes, list[tuple[int, list[Any]]]]:
    """The same, one packet at a time."""
    data = Path(path).read_bytes()
    segments = SegmentReader(Account())
    found: dict[bytes, list[Any]] = defaultdict(list)
    for each in Capture(path, number=3):
        assert isinstance(each, Packet)
        segment = segments.feed(each, [])
        assert segment is not None
        ahead = data.index(each.data, each.offset) - each.offset
        entry = (
            each.offset, each.timestamp_ns, len(each.data), each.original_length, 3,
            each.link_type, ahead,
        )  # fmt: skip
        key = min(segment.flow, reverse(segment.flow))
        order = (each.timestamp_ns if merged else 0, each.offset)
        found[key].append((order, len(segment.payload), entry))
    for taken in found.values():
        taken.sort()
    return {
        key: [
            (sum(size for _, size, _ in run), [entry for _, _, entry in run])
            for run in (taken[at : at + LONGEST] for at in range(0, len(taken), LONGEST))
        ]
        for key, taken in found.items()
    }


def by_ends(path: str, merged: bool) -> dict[bytes, list[tuple[int, list[Any]]]]:
    """The packets of all runs, and what each run has of payload."""
    (split,) = plan([(3, path)], 1 << 30, merged=merged)
    with running_on("quick"):
        table, _ = packets([split])
    found: dict[bytes, list[tuple[int, list[Any]]]] = defaultdict(list)
    order = ("order_ns", "capture", "ordinal")
    for row in sorted(table.to_pylist(), key=lambda row: [row[name] for name in order]):
        assert row["kind"] in (RUN, SPLIT), "not every packet is usual"
        if row["kind"] == RUN:
            entries = np.frombuffer(row["payload"], ENTRY)
            assert len(entries) <= LONGEST
            first = entries[0]
            assert row["packet"] == row["ordinal"] == first["place"]
            assert row["order_ns"] == (first["time"] if merged else 0)
            assert row["flags"] == merged
            found[row["key"]].append((row["payload_size"], entries.tolist()))
    return dict(found)


@pytest.mark.parametrize("merged", [False, True])
@pytest.mark.parametrize("kind", ["pcap", "pcap>", "pcap-ns", "pcapng"])
def test_what_a_run_has(tmp_path: Path, kind: str, merged: bool, rng: random.Random) -> None:
    """Also of times that go back, and of a connection with more packets than a run may have."""
    talks = []
    for number in range(4):
        talk = Conversation((f"10.0.0.{number}", 40_000), ("10.0.0.9", 9092), segment_size=20)
        sent = talk.send(rng.randbytes(30_000 if number == 3 else 400))
        talks.append([*talk.open(), *sent, *talk.close()])
    framed = [ethernet_frame(packet) for packet in made_up.mixed(rng, talks)]
    times = made_up.times(rng, len(framed), 0.2)
    taken = [(time, frame, len(frame)) for time, frame in zip(times, framed, strict=True)]
    data = (
        made_up.pcapng(taken, rng, 0.0)
        if kind == "pcapng"
        else made_up.pcap(taken, ">" if kind == "pcap>" else "<", kind == "pcap-ns")
    )
    (path,) = written(tmp_path, [data])
    fast = by_ends(path, merged)
    assert fast == expected_by_ends(path, merged)
    assert sum(len(run) for each in fast.values() for _, run in each) == len(framed)
    assert max(len(each) for each in fast.values()) > 1


# ---- back in order ------------------------------------------------------------------------------


@given(seeds, st.booleans(), st.integers(1, 4), st.integers(1, 9))
def test_any_runs_come_back_in_order(seed: int, merged: bool, captures: int, most: int) -> None:
    """However captures overlap, and with single packets in between."""
    rng = random.Random(seed)
    every, pieces = [], []
    for capture in range(captures):
        count = rng.randrange(60)
        places = sorted(rng.sample(range(1000), count))
        times = [rng.randrange(40) for _ in places]
        at = 0
        while at < count:
            end = at + rng.randint(1, 12)
            entries = np.zeros(len(places[at:end]), ENTRY)
            entries["place"], entries["time"] = places[at:end], times[at:end]
            entries["capture"] = capture
            if merged:
                entries = entries[np.lexsort((entries["place"], entries["time"]))]
            every += [order_of(entry, merged) for entry in entries]
            pieces.append((order_of(entries[0], merged), entries))
            at = end
    pieces.sort(key=lambda piece: piece[0])
    given_back: list[tuple[int, int, int]] = []

    def give(run: np.ndarray, data: bytes | None) -> None:
        given_back.extend(order_of(entry, merged) for entry in run)
        if data is not None:
            told = [bytes([int(entry["place"]) % 251]) * int(entry["captured"]) for entry in run]
            assert data == b"".join(told)
        else:
            assert not run["captured"].any()

    merging = Merging(give, most)
    for order, entries in pieces:
        if len(entries) == 1 and rng.random() < 0.5:
            merging.until(order)
            given_back.append(order)
        else:
            data = None
            if rng.random() < 0.5:  # the bytes of its packets travel with the run
                entries["captured"] = [rng.randint(1, 5) for _ in entries]
                data = b"".join(
                    bytes([int(each["place"]) % 251]) * int(each["captured"]) for each in entries
                )
            merging.add(order, entries.tobytes(), merged, data)
    merging.until(None)
    assert given_back == sorted(every)


def order_of(entry: np.void, merged: bool) -> tuple[int, int, int]:
    return int(entry["time"]) if merged else 0, int(entry["capture"]), int(entry["place"])


# ---- files that change --------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("engine", "change"), [("python", "shorter"), ("quick", "shorter"), ("quick", "other")]
)
def test_a_capture_that_changes_is_an_error(tmp_path: Path, engine: str, change: str) -> None:
    """Between the two times it is read: cut short, or with other packets where these were."""
    data = made_up.capture(9, share=0.0, exchanges=9, kind="pcap")
    (path,) = written(tmp_path, [data])
    (split,) = plan([(0, path)], 1 << 30)
    options = Options(out=str(tmp_path / "out"), paths={0: path}, tables=FRAMES, bodies=False)
    with running_on(engine):
        table, _ = packets([split])
        rows = table.sort_by([(name, "ascending") for name in ("key", "ordinal")]).to_batches()
        if change == "shorter":
            Path(path).write_bytes(data[: len(data) // 2])
        else:
            Path(path).write_bytes(data.replace(bytes([10, 0, 1, 1]), bytes([10, 0, 1, 7])))
        with pytest.raises(ChangedError, match=r"was truncated while it|changed at offset"):
            write_connections(rows, options, 0)
