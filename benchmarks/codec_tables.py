"""The codec's figures as tables of microseconds and ratios. Neither measures nor judges."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from benchmarks.codec_marks import (
    CONSTRUCT,
    FLOOR,
    GO,
    JAVA,
    JMH,
    KAFKA_PYTHON,
    KIO,
    OURS,
    PURE,
    RUST,
    Figures,
    ratio,
)
from benchmarks.outer import GROWN, REUSED
from benchmarks.timing import Timing
from benchmarks.workloads import WORKLOADS, Workload

__all__ = ["tables"]

ABSENT = "absent"
AIOKAFKA = "aiokafka"


def tables(
    figures: Figures, own: Figures, versions: Mapping[str, int], engine: str
) -> list[list[list[str]]]:
    """Return the tables. ``own`` has aiokafka and ours on bytes of ``versions``, by workload. The
    outer marks have tables only if they were measured."""
    ours = [OURS, *([PURE] if engine == "native" else [])]
    pythons, outers = [KIO, KAFKA_PYTHON, CONSTRUCT], [JAVA, GO, RUST]
    found = [
        _side_by_side(figures, "decode", "", ours, pythons),
        _side_by_side(figures, "encode", "", ours, pythons),
    ]
    if any(case.startswith(tuple(outers)) for row in figures.values() for case in row):
        found += [
            _side_by_side(figures, "decode", "other languages: ", [OURS], outers, [JMH]),
            _side_by_side(figures, "encode", "other languages: ", [OURS], outers, [JMH]),
            _buffers(figures),
        ]
    found += [_floor(figures), _validate(figures)]
    return [*found, *(_aiokafka(own, versions, operation) for operation in ("decode", "encode"))]


def _side_by_side(
    figures: Figures,
    operation: str,
    title: str,
    ours: Sequence[str],
    others: Sequence[str],
    beside: Sequence[str] = (),
) -> list[list[str]]:
    """Return microseconds of each codec, and the ratios of ``others`` to ours."""
    ratios = [f"{codec} / {OURS}" for codec in others]
    rows = [[f"{title}{operation}, µs", "bytes", *ours, *others, *beside, *ratios]]
    for workload in WORKLOADS:
        timings = figures[workload.key]
        codecs = [*ours, *others, *beside]
        rows.append(
            [
                *_named(workload, workload.version, workload.size),
                *(_micro(timings.get(f"{codec} {operation}")) for codec in codecs),
                *(_times(ratio(timings, codec, operation)) for codec in others),
            ]
        )
    return rows


def _buffers(figures: Figures) -> list[list[str]]:
    """Return what Go and Rust gain from a known size, and from a reused buffer."""
    kinds = {"encode": "sized", GROWN: "growing", REUSED: "kept"}
    cases = {f"{codec} {each}": f"{codec}, {kinds[each]}" for codec in (GO, RUST) for each in kinds}
    rows = [["encode by kind of buffer, µs", "bytes", OURS, *cases.values()]]
    for workload in WORKLOADS:
        timings = figures[workload.key]
        cells = [_micro(timings.get(case)) for case in (f"{OURS} encode", *cases)]
        rows.append([*_named(workload, workload.version, workload.size), *cells])
    return rows


def _floor(figures: Figures) -> list[list[str]]:
    rows = [["decode and its lower bound, µs", "bytes", OURS, "clone in C", "decode / clone"]]
    for workload in WORKLOADS:
        timings = figures[workload.key]
        over = ratio(timings, OURS, "decode", FLOOR, "clone")
        cells = [_micro(timings.get(name)) for name in (f"{OURS} decode", f"{FLOOR} clone")]
        rows.append([*_named(workload, workload.version, workload.size), *cells, _times(over)])
    return rows


def _validate(figures: Figures) -> list[list[str]]:
    rows = [["validate, µs", "bytes", OURS, "decode / validate"]]
    for workload in WORKLOADS:
        timings = figures[workload.key]
        rows.append(
            [
                *_named(workload, workload.version, workload.size),
                _micro(timings.get(f"{OURS} validate")),
                _times(ratio(timings, OURS, "decode", OURS, "validate")),
            ]
        )
    return rows


def _aiokafka(own: Figures, versions: Mapping[str, int], operation: str) -> list[list[str]]:
    title = f"at aiokafka's versions: {operation}, µs"
    rows = [[title, "bytes", OURS, AIOKAFKA, f"{AIOKAFKA} / {OURS}"]]
    for workload in WORKLOADS:
        if workload.key not in own:
            rows.append([workload.key + " " + workload.title, "", "", ABSENT, ABSENT])
            continue
        timings, version = own[workload.key], versions[workload.key]
        size = len(workload.message().encode(version))
        cells = [_micro(timings.get(f"{codec} {operation}")) for codec in (OURS, AIOKAFKA)]
        times = _times(ratio(timings, AIOKAFKA, operation))
        rows.append([*_named(workload, version, size), *cells, times])
    return rows


def _named(workload: Workload, version: int, size: int) -> tuple[str, str]:
    return f"{workload.key} {workload.title} v{version}", f"{size:,}"


def _micro(timing: Timing | None) -> str:
    if timing is None:
        return ABSENT
    value = timing.minimum / 1000
    return f"{value:.2f}" if value < 10 else f"{value:.1f}" if value < 100 else f"{value:.0f}"


def _times(value: float | None) -> str:
    return ABSENT if value is None else f"{value:.2f}x"
