"""Tables by several processes: the rows of one, whoever did which share, and nothing left behind
where a process fails."""

from __future__ import annotations

import multiprocessing
import random
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest
from click.testing import CliRunner
from hypothesis import given, settings
from hypothesis import strategies as st

from kproto.errors import KprotoError
from tests.captures.reading import NAMES, file_of
from tests.support.full import quick
from tests.wiredump.sources.test_opening import journal as journal_of
from tests.wiredump.sources.test_opening import talk
from tests.wiredump.spark.knowing import naming
from tests.wiredump.spark.made_up import capture
from wiredump import native
from wiredump.cli import cli
from wiredump.readers.share import Share
from wiredump.rows.schema import ON_REQUEST, TABLES, UNDECODED
from wiredump.sources import open_sources
from wiredump.tables import jobs, processes
from wiredump.tables.making import make_tables
from wiredump.tables.table_rows import TableRows

USUAL = tuple(name for name in TABLES if name not in ON_REQUEST)
FRAMES_ONLY = ("lineage", "account", "connections", "frames", "anomalies")


def rows_in(folder: Path) -> dict[str, list[str]]:
    """Of every table, as texts, in no order."""
    return {
        place.name: sorted(
            repr(row)
            for file in place.rglob("*.parquet")
            for row in pq.read_table(file).to_pylist()
        )
        for place in folder.iterdir()
        if place.is_dir()
    }


def one_process(
    paths: list[str], out: Path, tables: tuple[str, ...], bodies: bool
) -> dict[str, Any]:
    rows = TableRows(tables=tables, bodies=bodies)
    made = make_tables(open_sources(paths), rows, str(out), tables)
    return {"rows": dict(made.rows), "account": dict(made.account), "all": rows_in(out)}


def shared(
    paths: list[str], out: Path, tables: tuple[str, ...], bodies: bool, count: int = 3
) -> dict[str, Any]:
    work = jobs.Work(out=str(out), paths=dict(enumerate(paths)), tables=tables, bodies=bodies)
    made = jobs.make_tables_in_processes(work, count)
    return {"rows": dict(made.rows), "account": dict(made.account), "all": rows_in(out)}


@pytest.fixture
def in_this_process(monkeypatch: pytest.MonkeyPatch) -> None:
    """Shares one after the other: starting processes takes seconds."""

    def share_out(task: Callable[[Share], Any], count: int, _progress: Any) -> list[Any]:
        return [task(Share(each, count)) for each in range(count)]

    monkeypatch.setattr(jobs, "share_out", share_out)


@pytest.fixture(params=["quick", "python"])
def _ways(request: pytest.FixtureRequest) -> Iterator[None]:
    with native.using(native.built() if request.param == "quick" else None):
        yield


@pytest.mark.usefixtures("in_this_process", "_ways")
@pytest.mark.parametrize(
    ("tables", "bodies"),
    [(tuple(TABLES), True), (USUAL, True), (UNDECODED, False), (FRAMES_ONLY, False)],
)
def test_shares_are_all_there_is(tables: tuple[str, ...], bodies: bool, tmp_path: Path):
    for seed in range(quick(3, 1)):
        place = tmp_path / f"{seed}.pcap"
        place.write_bytes(capture(seed, connections=7, exchanges=6, share=0.1))
        paths = [str(place)]
        one = one_process(paths, tmp_path / f"one-{seed}", tables, bodies)
        assert shared(paths, tmp_path / f"shared-{seed}", tables, bodies) == one


@pytest.mark.slow
@pytest.mark.usefixtures("in_this_process")
def test_several_captures_and_a_journal(tmp_path: Path):
    """Captures are merged by time, texts follow; and real reassignments and fetches are in them."""
    paths = [str(file_of(name)) for name in ("mock-4.4", "kafka-4.4.0-admin")]
    journal = tmp_path / "log.jsonl"
    journal.write_text(journal_of(talk(3)))
    paths.append(str(journal))
    one = one_process(paths, tmp_path / "one", tuple(TABLES), True)
    assert shared(paths, tmp_path / "shared", tuple(TABLES), True) == one


@pytest.mark.usefixtures("in_this_process", "_ways")
def test_names_of_topics(tmp_path: Path):
    for seed in range(quick(12, 1)):
        place = tmp_path / f"{seed}.pcap"
        place.write_bytes(naming(seed, share=0.2))
        one = one_process([str(place)], tmp_path / f"one-{seed}", USUAL, True)
        assert shared([str(place)], tmp_path / f"shared-{seed}", USUAL, True) == one


def owners(connection: int, offsets: Iterable[int], count: int) -> set[int]:
    """The shares that have exchanges of a connection."""
    shares = [Share(number, count, divided=True) for number in range(count)]
    return {each.number for each in shares for at in offsets if each.has_exchange(connection, at)}


@pytest.mark.slow
@pytest.mark.usefixtures("in_this_process", "_ways")
@pytest.mark.parametrize("loss", [0.0, 0.02, 0.1])
def test_one_connection_is_divided(loss: float, tmp_path: Path):
    """Fetch sessions and topic names cross the ranges, and lost packets lie in some."""
    for seed in range(quick(4, 1)):
        place = tmp_path / f"{seed}.pcap"
        place.write_bytes(naming(seed, share=loss, connections=1, exchanges=900))
        paths = [str(place)]
        one = one_process(paths, tmp_path / f"one-{seed}", USUAL, True)
        for count in (2, 3):
            out = tmp_path / f"shared-{seed}-{count}"
            assert shared(paths, out, USUAL, True, count) == one
        if loss == 0.0 and one["rows"]["requests"] > 300:
            found = pq.read_table(next((tmp_path / f"one-{seed}" / "requests").rglob("*.parquet")))
            offsets = found.column("request_offset").to_pylist()
            assert owners(found.column("connection")[0].as_py(), offsets, 3) == {0, 1, 2}


@pytest.mark.slow
@pytest.mark.usefixtures("in_this_process", "_ways")
@pytest.mark.parametrize("name", NAMES)
def test_real_captures(name: str, tmp_path: Path):
    paths = [str(file_of(name))]
    one = one_process(paths, tmp_path / "one", tuple(USUAL), True)
    for count in (2, 3):
        assert shared(paths, tmp_path / f"shared-{count}", tuple(USUAL), True, count) == one


@settings(max_examples=quick(50, 12))
@given(st.integers(0, 2**62), st.integers(0, 2**62), st.integers(1, 9))
def test_an_exchange_is_of_one_share(connection: int, offset: int, count: int):
    assert len(owners(connection, [offset], count)) == 1


@given(st.integers(0, 2**62), st.integers(50, 1 << 17), st.integers(2, 4))
def test_a_connection_is_divided_evenly(connection: int, size: int, count: int):
    """Whatever the size of its requests is."""
    offsets = range(0, 400 * max(size, 4096), size)[:40_000]
    for number in range(count):
        share = Share(number, count, divided=True)
        mine = sum(share.has_exchange(connection, offset) for offset in offsets)
        assert 0.7 < mine * count / len(offsets) < 1.3


@pytest.mark.slow
@pytest.mark.usefixtures("every_process")
@pytest.mark.parametrize("more", [["--packets"], []])
@pytest.mark.parametrize("forked", [True, False])
def test_processes_of_their_own(
    more: list[str], forked: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    if not forked:
        monkeypatch.setattr(processes, "_has_one_thread", lambda: False)
    place = tmp_path / "a.pcap"
    place.write_bytes(capture(5, connections=6, exchanges=5))
    out = tmp_path / "out"
    arguments = ["table", str(place), "--out", str(out), "--jobs", "2", *more]
    result = CliRunner().invoke(cli, arguments, standalone_mode=False)
    assert result.exception is None, result.output
    tables = tuple(TABLES) if more else USUAL
    one = one_process([str(place)], tmp_path / "one", tables, True)
    assert rows_in(out) == one["all"]
    assert multiprocessing.active_children() == []


@pytest.mark.slow
def test_a_process_that_dies_is_told_of(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    place = tmp_path / "a.pcap"
    place.write_bytes(capture(5))
    monkeypatch.setattr(processes, "_run", _die)
    work = jobs.Work(
        out=str(tmp_path / "out"), paths={0: str(place)}, tables=FRAMES_ONLY, bodies=False
    )
    with pytest.raises(jobs.WorkerError, match=r"process \d of 2 ended before its work"):
        jobs.make_tables_in_processes(work, 2)
    assert not (tmp_path / "out").exists()
    assert multiprocessing.active_children() == []


def _die(*_: Any) -> None:
    raise SystemExit(3)


def test_what_a_process_cannot_do_is_said(tmp_path: Path):
    out = tmp_path / "out"
    nowhere = jobs.Work(out=str(out), paths={0: str(tmp_path / "nowhere")}, tables=("frames",))
    with pytest.raises(OSError, match="nowhere"):
        jobs.make_tables_in_processes(nowhere, 2)
    with pytest.raises(KprotoError, match="standard input"):
        jobs.make_tables_in_processes(
            jobs.Work(out=str(out), paths={0: "-"}, tables=("frames",)), 2
        )
    assert not out.exists()


@settings(max_examples=quick(50, 12))
@given(st.binary(min_size=12, max_size=12) | st.binary(min_size=36, max_size=36), st.integers(1, 9))
def test_both_ways_of_a_connection_are_one_share(flow: bytes, count: int):
    half = (len(flow) - 4) // 2
    back = flow[half : 2 * half] + flow[:half] + flow[-2:] + flow[-4:-2]
    mine = [number for number in range(count) if Share(number, count).has(flow)]
    assert len(mine) == 1
    assert Share(mine[0], count).has(back)


def test_shares_are_about_as_large(rng: random.Random):
    flows = [rng.randbytes(12) for _ in range(4000)]
    for number in range(4):
        assert 800 < sum(Share(number, 4).has(flow) for flow in flows) < 1200
