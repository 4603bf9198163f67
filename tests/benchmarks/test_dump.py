"""Captures whose frames are known, marks that are met by their numbers alone, arguments refused."""

import statistics
import sys
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from benchmarks import bench_dump
from benchmarks.bench_dump import PARTS, arguments_of
from benchmarks.dump import giant, synthetic
from benchmarks.dump.captures import Capture, Maker
from benchmarks.dump.cases import FRAME_FIELDS, _count, table
from benchmarks.dump.programs import FailedError, pinned, run
from benchmarks.dump.scan import record_bounds, scan
from benchmarks.dump.spark_part import split_capture
from benchmarks.dump_marks import Runs, at_least, at_most, flat, scaled
from wiredump.model import Anomaly, Exchange
from wiredump.sources import open_sources

SECONDS = st.floats(0.01, 1000)


def exchanges_of(*captures: Path) -> list[Exchange]:
    """All there are; AssertionError where anything is wrong with the capture."""
    sources = open_sources([str(capture) for capture in captures])
    items = list(sources)
    assert [item for item in items if isinstance(item, Anomaly)] == []
    assert sources.account["payload"] == sources.account["frames"]
    return [item for item in items if isinstance(item, Exchange)]


@pytest.mark.parametrize("write", [synthetic.write_small, synthetic.write_big])
def test_a_written_capture_has_the_frames_it_says(write, tmp_path):
    path = tmp_path / "a.pcap"
    told = write(path, 200_000)
    exchanges = exchanges_of(path)
    assert told["frames"] == 2 * len(exchanges) > 20
    assert all(each.request and each.response for each in exchanges)
    assert 200_000 <= path.stat().st_size < 230_000


@pytest.mark.parametrize("connections", [1, 3])
def test_a_giant_goes_on_where_its_block_ends(connections, tmp_path):
    path = tmp_path / "a.pcap"
    told = giant.write(path, 1, connections)
    exchanges = exchanges_of(path)
    assert told["frames"] == 2 * len(exchanges)
    assert scan(path)["packets"] == len(record_bounds(path.read_bytes()))
    ids: dict[int, list[int]] = {}
    times = [each.request.first_ns for each in exchanges if each.request]
    for each in exchanges:
        assert each.response is not None  # so it was found by that id
        ids.setdefault(each.connection.number, []).append(each.correlation_id)
    expected = len(exchanges) // connections
    assert expected > giant.EXCHANGES_A_BLOCK
    assert list(ids.values()) == [list(range(1, expected + 1))] * connections
    assert times == sorted(times)
    assert len(set(times)) == len(times)


@pytest.mark.slow
def test_a_table_of_a_giant_has_its_records(tmp_path):
    path = tmp_path / "a.pcap"
    told = giant.write(path, 1)
    capture = Capture("giant", path, (9092,), "here")
    seen = table(capture, "frames,records", scratch=tmp_path)(pinned(1))
    assert (seen.rows["frames"], seen.rows["records"]) == (told["frames"], told["records"])
    assert seen.taken.cpu > 0
    assert list(tmp_path.iterdir()) == [path]


def test_a_capture_is_made_once_and_found_again(tmp_path):
    first = Maker(tmp_path, real=False).traffic("big", 0.1)
    assert first is not None
    made = first.path.stat()
    again = Maker(tmp_path, real=False).traffic("big", 0.1)
    assert again == first
    assert again.path.stat().st_mtime_ns == made.st_mtime_ns
    assert "not asked for" in first.origin
    assert Maker(tmp_path, real=False).traffic("big", 0.1, newest=True) is None
    assert Maker(tmp_path, real=False).giant(0.1).path != first.path


@pytest.mark.slow
@given(files=st.integers(1, 9))
def test_rotated_files_are_the_capture_cut_between_packets(files, tmp_path_factory):
    folder = tmp_path_factory.mktemp("rotated")
    whole = folder / "a.pcap"
    synthetic.write_small(whole, 30_000)
    split_capture(whole, folder / "files", files)
    parts = [path.read_bytes() for path in sorted((folder / "files").iterdir())]
    assert len(parts) == files + 1
    assert len(parts[-1]) == 24
    assert parts[0][:24] + b"".join(part[24:] for part in parts) == whole.read_bytes()
    assert all(record_bounds(part)[-1][1] == len(part) for part in parts[:-1])


# ---- marks ------------------------------------------------------------------------------------


def runs(*seconds: float, frames: int | None = 5) -> Runs:
    found = Runs()
    for each in seconds:
        found.add(each * 2, each, {} if frames is None else {"frames": frames})
    return found


@given(theirs=st.lists(SECONDS, min_size=1), ours=st.lists(SECONDS, min_size=1), aim=SECONDS)
def test_a_mark_is_of_medians(theirs, ours, aim):
    measured = {"a": {"theirs": runs(*theirs), "ours": runs(*ours)}}
    times = statistics.median(theirs) / statistics.median(ours)
    assert at_least("x", measured, "theirs", "ours", aim).met == (times >= aim)
    assert at_most("x", measured, "theirs", "ours", aim).met == (1 / times <= aim)


def test_the_worst_capture_decides():
    fast = {"theirs": runs(100), "ours": runs(1)}
    slow = {"theirs": runs(100), "ours": runs(50)}
    mark = at_least("x", {"a": fast, "b": slow}, "theirs", "ours", 15)
    assert (mark.seen, mark.met) == ("100.00x (a), 2.00x (b)", False)


@pytest.mark.parametrize("frames", [4, None])
def test_other_rows_than_tsharks_have_no_speed(frames):
    measured = {"a": {"theirs": runs(100), "ours": runs(1, frames=frames)}}
    mark = at_least("x", measured, "theirs", "ours", 15)
    assert (mark.seen, mark.met) == (f"a: {frames} frames, not 5", False)


def test_rounds_that_differ_in_rows_are_an_error():
    found = runs(1)
    with pytest.raises(ValueError, match="another"):
        found.add(1, 1, {"frames": 6})


def test_what_was_not_measured_is_not_judged():
    only = {"a": {"theirs": runs(1)}}
    marks = [
        at_least("x", only, "theirs", "ours", 15), at_most("x", only, "theirs", "ours", 2),
        scaled("x", [], [], 1.65), scaled("x", [1.0], [], 1.65),
        flat("x", {"a": 1}, "a"), flat("x", {"a": 1}, "b"),
    ]  # fmt: skip
    assert {(mark.seen, mark.met) for mark in marks} == {("absent", None)}


def test_scaling_is_the_median_of_pairs():
    mark = scaled("x", [2.0, 3.0, 10.0], [1.0, 2.0, 10.0], 1.5)
    assert (mark.seen, mark.met) == ("1.50x (3 pairs, 1.00 to 2.00)", True)


@given(base=st.integers(1, 10**10), peak=st.integers(1, 10**10))
def test_memory_may_shrink_and_grow_by_a_tenth(base, peak):
    assert flat("x", {"a": base, "b": peak}, "a").met == (peak / base - 1 <= 0.1)


# ---- programs and arguments -------------------------------------------------------------------


@pytest.mark.slow
def test_processor_time_has_that_of_children():
    burn = "import time\nwhile time.process_time() < 0.3: pass"
    code = f"import subprocess, sys; subprocess.run([sys.executable, '-c', {burn!r}])"
    taken = run([sys.executable, "-c", f"{code}; print('done')"], pinned(1), watched=True)
    assert taken.output == b"done\n"
    assert taken.cpu >= 0.3
    assert taken.peak >= taken.peak_main > 1_000_000


@pytest.mark.slow
def test_processor_time_has_that_of_orphans():
    burn = "import time\nwhile time.process_time() < 0.3: pass"
    code = f"import subprocess, sys; subprocess.Popen([sys.executable, '-c', {burn!r}])"
    assert run([sys.executable, "-c", code], pinned(1)).cpu >= 0.3


@pytest.mark.slow
def test_a_peak_is_the_programs_own():
    """Not what this process has, which a fork would have it begin with."""
    here = bytearray(200_000_000)
    here[::4096] = b"x" * len(here[::4096])
    small = run([sys.executable, "-c", "pass"], pinned(1))
    large = run(
        [sys.executable, "-c", "x = bytearray(90_000_000); x[:] = b'x' * len(x)"], pinned(1)
    )
    assert small.peak < 60_000_000 < 90_000_000 < large.peak


def test_a_program_that_fails_is_told_of_in_its_words():
    with pytest.raises(FailedError, match=r"status 3 of .*: oh no"):
        run([sys.executable, "-c", "import sys; print('oh no', file=sys.stderr); sys.exit(3)"],
            pinned(1))  # fmt: skip
    with pytest.raises(
        FailedError, match="status 127 of nothing-like-it: nothing-like-it: No such"
    ):
        run(["nothing-like-it"], pinned(1))
    with pytest.raises(FailedError, match="4096 processors"):
        pinned(4096)


def test_frames_of_tshark_are_counted_where_a_packet_has_several():
    column = FRAME_FIELDS.index("kafka.len")
    lines = [b"\t".join([b"x"] * column + [sizes, b""]) for sizes in (b"5", b"6,7,8", b"")]
    assert _count(b"\n".join(lines), column) == 4
    with pytest.raises(FailedError, match="columns"):
        _count(b"what is that", column)


def test_parts_are_run_in_their_order():
    assert arguments_of([]).only == PARTS
    assert arguments_of(["--only", "memory, frames"]).only == ("frames", "memory")


@pytest.mark.parametrize(
    "line",
    [
        ["--only", "frames,sparks"], ["--only", ","], ["--rounds", "0"], ["--rounds", "-1"],
        ["--big", "0"], ["--small", "lots"], ["--giant", "nan"], ["--scale", "inf"],
    ],
)  # fmt: skip
def test_arguments_that_mean_nothing_are_refused(line, capsys):
    with pytest.raises(SystemExit) as ended:
        arguments_of(line)
    assert ended.value.code == 2
    assert line[1].split(",")[-1] in capsys.readouterr().err


def test_marks_are_short_where_a_capture_has_none_of_the_programs():
    assert [mark.met for mark in bench_dump.judge({}, ("frames", "records"))] == [None] * 3
    assert [mark.met for mark in bench_dump.judge({}, ("tables",))] == [None] * 6


def test_two_processes_are_held_to_more_on_one_giant_connection():
    def runs(wall: float) -> Runs:
        found = Runs()
        found.add(wall, wall, {"frames": 7})
        return found

    measured = {
        name: {bench_dump.ALL: runs(3.0), bench_dump.ALL_TWO: runs(2.0)}
        for name in ("small", "giant-1")
    }
    marks = {mark.aim: mark.met for mark in bench_dump.judge(measured, ("tables",))}
    assert [met for aim, met in marks.items() if "two processes" in aim] == [True, False]
