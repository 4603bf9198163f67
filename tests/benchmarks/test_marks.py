"""Marks are judged by the worst workload, and what was not measured is never met."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

import kproto
from benchmarks import bench_codec, report
from benchmarks.codec_marks import CONSTRUCT, FLOOR, GO, JAVA, KAFKA_PYTHON, KIO, OURS, PURE, judge
from benchmarks.report import Mark
from benchmarks.timing import Timing
from benchmarks.workloads import WORKLOADS

NATIVE = (OURS, PURE)
PEERS = (KIO, KAFKA_PYTHON, CONSTRUCT, JAVA, GO)
KEYS = [workload.key for workload in WORKLOADS]


def exactly_met() -> dict[str, dict[str, float]]:
    """Nanoseconds by workload and case: every mark of the native engine, with nothing to spare."""
    figures = {}
    for workload in WORKLOADS:
        ours = 1000.0
        figures[workload.key] = {
            f"{OURS} decode": ours, f"{OURS} encode": ours, f"{OURS} validate": ours / 6,
            f"{KIO} decode": ours * 2, f"{KIO} encode": ours * (90 if workload.large else 75),
            f"{KAFKA_PYTHON} encode": ours * 30, f"{KAFKA_PYTHON} decode": ours * 8,
            f"{JAVA} encode": ours, f"{GO} encode": ours, f"{FLOOR} clone": ours / 1.25,
            f"{PURE} decode": ours * 2 / (0.6 if workload.large else 0.9),
            f"{PURE} encode": ours * (7.5 if workload.large else 6.25),
        }  # fmt: skip
    return figures


def judged(figures: dict[str, dict[str, float]], engine: str = "native") -> list[Mark]:
    # A hair of leeway: the thresholds above are met exactly, but for rounding.
    timings = {
        key: {
            case: Timing(value * (1 - 1e-9 if case.startswith(NATIVE) else 1), value, 1)
            for case, value in row.items()
        }
        for key, row in figures.items()
    }
    return judge(timings, engine)


def test_every_mark_is_met_where_each_is_just_reached():
    figures = exactly_met()
    for row in figures.values():
        row[f"{OURS} validate"] *= 1 - 1e-8  # ours against ours: no leeway of the other kind
    assert [mark for mark in judged(figures) if not mark.met] == []


@given(key=st.sampled_from(KEYS), peer=st.sampled_from((KIO, KAFKA_PYTHON, JAVA, GO)))
def test_one_workload_that_is_short_is_named(key: str, peer: str):
    figures = exactly_met()
    figures[key][f"{peer} encode"] *= 0.5
    large = next(workload for workload in WORKLOADS if workload.key == key).large
    short = [mark for mark in judged(figures) if mark.met is False and f"(on {key})" in mark.seen]
    against = {KIO: "kio", KAFKA_PYTHON: "kafka-python", JAVA: "Java", GO: "franz-go"}[peer]
    expected = large or peer in (KIO, KAFKA_PYTHON)
    assert any(f"encode against {against}" in mark.aim.replace("Kafka's ", "") for mark in short) \
        is expected  # fmt: skip


@pytest.mark.parametrize("key", ["b", "c", "d"])
def test_the_floor_is_a_most_not_a_least(key: str):
    figures = exactly_met()
    figures[key][f"{FLOOR} clone"] /= 2
    (mark,) = (mark for mark in judged(figures) if "cloning" in mark.aim)
    assert (mark.seen, mark.met) == (f"2.50x (on {key})", False)
    for each in KEYS:
        figures[each][f"{FLOOR} clone"] = 1000.0
    assert next(mark for mark in judged(figures) if "cloning" in mark.aim).met


def test_the_geometric_mean_is_of_all_five():
    figures = exactly_met()
    for number, key in enumerate(KEYS):
        figures[key][f"{PURE} encode"] = 1.0
        figures[key][f"{KIO} encode"] = 2.0**number
    (mark,) = (mark for mark in judged(figures) if "geometric" in mark.aim)
    assert (mark.seen, mark.met) == ("4.00x", False)


@pytest.mark.parametrize("codec", [KIO, KAFKA_PYTHON, JAVA, GO, FLOOR])
def test_what_was_not_measured_is_not_judged(codec: str):
    figures = exactly_met()
    del figures["b"][next(case for case in figures["b"] if case.startswith(codec))]
    figures = {
        key: {case: value for case, value in row.items() if not case.startswith(f"{codec} ")}
        for key, row in figures.items()
    }
    marks = judged(figures)
    open_marks = [mark for mark in marks if mark.met is None]
    assert open_marks
    assert {mark.seen for mark in open_marks} == {"absent"}
    assert len(marks) == len(judged(exactly_met()))


def test_pure_alone_is_held_to_the_marks_of_pure():
    names = {mark.aim.removeprefix("pure: ") for mark in judged(exactly_met())}
    pure = {mark.aim for mark in judged(exactly_met(), "pure")}
    assert pure < names


def test_a_run_without_the_outer_marks_is_reported(monkeypatch, capsys, tmp_path):
    """Absent codecs have cells, reasons and open marks; nothing else is missing."""
    monkeypatch.setattr(kproto, "engine", "native")
    monkeypatch.setattr(bench_codec, "machine", lambda packages: "here, now")
    monkeypatch.setattr(report, "DOCS", tmp_path)
    figures = {
        key: {case: Timing(value, value, 1) for case, value in row.items() if case[:2] != "Ja"}
        for key, row in exactly_met().items()
    }
    run = bench_codec.Run(figures=figures, absent={JAVA: "java is absent: install a JDK"})
    report.conclude("codec", bench_codec.section(run, 1))
    shown = capsys.readouterr().out
    assert "Not measured: Java (java is absent: install a JDK)." in shown
    assert "| encode against Kafka's Java, large: at least 1x | absent | not measured |" in shown
    assert "| absent |" in shown
    assert (tmp_path / "benchmarks.md").read_text().endswith(shown.rstrip("\n") + "\n")
    stored = json.loads((tmp_path / "benchmarks.json").read_text())["codec"]
    assert stored["figures"]["absent"] == run.absent
    assert stored["figures"]["b"][f"{OURS} decode"] == {"minimum_ns": 1000.0, "median_ns": 1000.0}
