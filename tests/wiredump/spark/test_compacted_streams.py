"""A stream whose tables are compacted between its batches, and streams that read its rows."""

from __future__ import annotations

import random
from contextlib import suppress
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.support.full import either
from tests.support.toolchain import require_module
from tests.wiredump.spark import made_up
from tests.wiredump.spark.fake_session import faked
from tests.wiredump.spark.fake_streams import run_query
from tests.wiredump.spark.rotating import (
    EVERY,
    Killed,
    Scissors,
    difference,
    follow,
    one_process,
    records,
    rotate,
    some_cuts,
    to_the_end,
)
from wiredump.spark.connections import Options
from wiredump.spark.sinks import Layout
from wiredump.spark.stream_folder import StreamFolder
from wiredump.spark.streaming import Stream
from wiredump.tables.compaction import compact

TARGETS = st.sampled_from([1, 5_000, 50_000, 1 << 30])


def compacted(out: Path, target: int) -> int:
    return sum(each.merged for each in compact(str(out), target).values())


@pytest.mark.slow
@settings(max_examples=either(60, 4))
@given(
    seed=st.integers(0, 1000),
    after=st.lists(st.integers(1, 120), min_size=1, max_size=3),
    target=TARGETS,
    by=st.sampled_from([(), ("date", "hour", "api")]),
)
def test_killed_and_compacted(
    tmp_path_factory: pytest.TempPathFactory,
    seed: int,
    after: list[int],
    target: int,
    by: tuple[str, ...],
) -> None:
    """In between a stream is killed at any change of a file, and what it left is compacted before
    it goes on: each row once."""
    folder = tmp_path_factory.mktemp("compacted")
    rng = random.Random(seed)
    capture = made_up.capture(seed, connections=4, exchanges=6, kind="pcap")
    files = rotate(capture, some_cuts(rng, len(records(capture)[1])), folder / "in")
    options = Options(out=str(folder / "out"), paths={}, tables=EVERY, run="s")

    def stream(**how: int) -> Stream:
        layout = Layout(partition_by=by)
        return follow(folder / "in", folder, options=options, layout=layout, **how)

    with pytest.MonkeyPatch.context() as patch:
        session = faked(patch)
        for each in after:
            with pytest.MonkeyPatch.context() as cut:
                Scissors(cut, each)
                with suppress(Killed):
                    to_the_end(session, stream(max_files=1))
            if any((folder / "out").glob("*/run=*")):
                compacted(folder / "out", target)
        to_the_end(session, stream())
        compacted(folder / "out", target)
    assert difference(one_process(files, folder / "one"), folder / "out") == {}


@pytest.mark.slow
@pytest.mark.parametrize("by", [(), ("date", "api")])
def test_rows_of_batches(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, rng: random.Random, by: tuple[str, ...]
) -> None:
    """A query that reads batches gets the same rows of each, whichever files were merged."""
    require_module("pyspark")
    from wiredump.spark.stream_reader import StreamReader

    capture = made_up.capture(5, connections=4, exchanges=8, kind="pcap")
    rotate(capture, range(5, len(records(capture)[1]), 9), tmp_path / "in")
    options = Options(out=str(tmp_path / "out"), paths={}, tables=("requests",), run="s")
    layout = Layout(partition_by=by)
    stream = follow(tmp_path / "in", tmp_path, options=options, layout=layout, max_files=1)
    run_query(faked(monkeypatch), stream, available_now=True)
    count = StreamFolder(stream.folder).batches
    assert count > 10
    reader = StreamReader("requests", {"path": str(tmp_path / "checkpoint")})

    def rows(first: int, end: int) -> list[str]:
        found = []
        for each in reader.partitions({"batches": first}, {"batches": end}):
            for batch in reader.read(each):
                found += [repr(row) for row in batch.to_pylist()]
        return sorted(found)

    by_batch = [rows(batch, batch + 1) for batch in range(count)]
    assert len(set(map(len, by_batch))) > 1
    merged = 0
    for target in (20_000, 60_000, 1 << 30):
        merged += compacted(tmp_path / "out", target)
        for _ in range(6):
            first = rng.randrange(count)
            end = rng.randrange(first, count + 1)
            expected = sorted(row for batch in by_batch[first:end] for row in batch)
            assert rows(first, end) == expected, (first, end)
    assert merged
