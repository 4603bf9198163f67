"""Figures as SVG, with matplotlib, which can be embedded without scripts and load nothing.

Text stays text, and everything but data is drawn in the page's own colour, so that figures can be
read in a dark theme. Names come from peers: they are printed, and never parsed as markup.
"""

from __future__ import annotations

import io
import re
import warnings
from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from typing import Any, Final, TypeAlias

from kproto.errors import MissingExtraError
from kproto.safe_text import printable
from wiredump.report.measured import Row
from wiredump.report.requests import TIME_BUCKETS, Errors, Latency, LatencyTimes, Traffic

try:
    from matplotlib import rc_context
    from matplotlib.figure import Figure
except ImportError as error:  # pragma: no cover (where the extra is not installed)
    raise MissingExtraError("a report needs matplotlib", extra="wiredump") from error

__all__ = [
    "OUTCOMES", "errors_plot", "latency_plot", "latency_times_plot", "reassignments_plot",
    "traffic_plot",
]  # fmt: skip

_INK: Final = "#010203"
"""Stands for the page's colour until the SVG is there."""

_COLOURS: Final = (
    "#4e79a7", "#e15759", "#f28e2b", "#59a14f", "#b07aa1", "#76b7b2", "#edc948", "#9c755f",
)  # fmt: skip

OUTCOMES: Final = {
    "completed": "#59a14f",
    "in progress": "#4e79a7",
    "cancelled": "#f28e2b",
    "replaced": "#b07aa1",
    "refused": "#e15759",
    "unknown": "#8c8c8c",
}

WIDTHS: Final = {"wide": 10.0, "narrow": 5.2}
"""Inches of 72 of the page's pixels, by the class of the SVG. Each plot is made twice, so that it
uses the width of a desk's window and its text can be read on a phone."""

MOST_BARS: Final = 25
MOST_REASSIGNMENTS: Final = 60
MOST_NAMES: Final = 7
LONGEST_BESIDE: Final = 20
"""Characters of a name in a legend that has another one beside it."""

_STYLE: Final[dict[Any, Any]] = {
    "svg.fonttype": "none",
    "text.parse_math": False,
    "font.family": "sans-serif",
    "font.size": 10,
    "text.color": _INK,
    "axes.labelcolor": _INK,
    "axes.edgecolor": _INK,
    "xtick.color": _INK,
    "ytick.color": _INK,
    "grid.color": _INK,
    "grid.alpha": 0.15,
    "axes.axisbelow": True,
    "legend.frameon": False,
}


Plots: TypeAlias = tuple[str, str]
"""SVG of a plot for wide windows, and for narrow ones."""


def traffic_plot(traffic: Sequence[Traffic]) -> Plots | None:
    """Requests by api, those with errors apart."""
    counts: dict[str, list[int]] = {}
    for each in traffic:
        held = counts.setdefault(each.api or "unknown", [0, 0])
        held[0] += each.requests - each.failed
        held[1] += each.failed
    rows = sorted(counts.items(), key=lambda row: -sum(row[1]))[:MOST_BARS][::-1]
    if not rows:
        return None

    def draw(axes: Any) -> None:
        names = [_label(name) for name, _ in rows]
        fine, failed = [row[1][0] for row in rows], [row[1][1] for row in rows]
        axes.barh(range(len(rows)), fine, color=_COLOURS[0], label="without errors")
        axes.barh(range(len(rows)), failed, left=fine, color=_COLOURS[1], label="with errors")
        axes.set_yticks(range(len(rows)), names)
        axes.set_xlabel("requests")
        axes.xaxis.get_major_locator().set_params(integer=True)
        _legend(axes)
        axes.grid(axis="x")

    return _svg("traffic", draw, height=1.2 + 0.28 * len(rows))


def latency_plot(latencies: Sequence[Latency]) -> Plots | None:
    """From the median to the slowest, by api."""
    rows = sorted(latencies, key=lambda each: each.quantiles[0.99])[-MOST_BARS:]
    if not rows:
        return None

    def draw(axes: Any) -> None:
        for place, each in enumerate(rows):
            median, high = (each.quantiles[q] / 1e6 for q in (0.5, 0.99))
            axes.plot([median, high], [place, place], color=_COLOURS[0], linewidth=5)
            axes.plot(each.greatest / 1e6, place, "|", color=_COLOURS[1], markersize=10)
        axes.set_xscale("log")
        # Its own labels are markup, which is never read here.
        axes.xaxis.set_major_formatter(lambda value, place: f"{value:g}")
        axes.xaxis.set_minor_formatter(_between if _is_narrow(axes.get_xlim()) else lambda *_: "")
        axes.set_yticks(range(len(rows)), [_label(each.api) for each in rows])
        axes.set_xlabel("ms: median to 99 %, slowest (|)")
        axes.grid(axis="x")

    return _svg("latency", draw, height=0.9 + 0.28 * len(rows))


def errors_plot(errors: Errors | None) -> Plots | None:
    """Errors over time, the most frequent by name."""
    if errors is None or not errors.counts:
        return None
    named = list(errors.counts.items())
    shown = named[:MOST_NAMES]
    if len(named) > MOST_NAMES:
        rest = [sum(column) for column in zip(*(row for _, row in named[MOST_NAMES:]), strict=True)]
        shown.append((f"{len(named) - MOST_NAMES} others", rest))

    def draw(axes: Any) -> None:
        places = [(errors.start_ns + errors.width_ns * each) / 1e9 for each in range(TIME_BUCKETS)]
        below = [0] * TIME_BUCKETS
        for (name, counts), colour in zip(shown, _COLOURS, strict=False):
            width = errors.width_ns / 1e9
            label = _label(name)
            axes.bar(places, counts, width, below, align="edge", color=colour, label=label)
            below = [one + other for one, other in zip(below, counts, strict=True)]
        _time_axis(axes, places[0], places[-1] + errors.width_ns / 1e9)
        axes.set_ylabel("responses")
        axes.yaxis.get_major_locator().set_params(integer=True)
        axes.grid(axis="y")
        _legend(axes)

    return _svg("errors", draw, height=2.8 + 0.1 * len(shown))


def latency_times_plot(times: LatencyTimes | None) -> Plots | None:
    """The median and the 99th percentile over time."""
    if times is None:
        return None

    def draw(axes: Any) -> None:
        width = times.width_ns / 1e9
        start = times.start_ns / 1e9
        for name, values, colour in (
            ("99 %", times.highs, _COLOURS[1]), ("median", times.medians, _COLOURS[0]),
        ):  # fmt: skip
            places = [start + width * (at + 0.5) for at, each in enumerate(values) if each]
            found = [each / 1e6 for each in values if each]
            axes.plot(places, found, "o-", color=colour, markersize=3, linewidth=1, label=name)
        axes.set_yscale("log")
        axes.yaxis.set_major_formatter(lambda value, place: f"{value:g}")
        axes.yaxis.set_minor_formatter(_between if _is_narrow(axes.get_ylim()) else lambda *_: "")
        _time_axis(axes, start, start + width * TIME_BUCKETS)
        axes.set_ylabel("ms")
        axes.grid(axis="y")
        _legend(axes)

    return _svg("latency-times", draw, height=2.8)


def reassignments_plot(rows: Sequence[Row], end_ns: int | None) -> Plots | None:
    """A line for each reassignment, from asked to ended."""
    lifetimes = [(row, *_lifetime(row, end_ns)) for row in rows]
    lifetimes = [each for each in lifetimes if each[1]][:MOST_REASSIGNMENTS][::-1]
    if not lifetimes:
        return None

    def draw(axes: Any) -> None:
        labelled = set()
        for place, (row, start, end) in enumerate(lifetimes):
            outcome = row["outcome"]
            label = None if outcome in labelled else outcome
            labelled.add(outcome)
            colour = OUTCOMES.get(outcome, _COLOURS[0])
            axes.plot([start / 1e9, end / 1e9], [place] * 2, color=colour, linewidth=4, label=label)
            ended = "x" if outcome == "refused" else "|" if row["ended_ns"] is None else "o"
            axes.plot(end / 1e9, place, ended, color=colour, markersize=5)
        names = [_label(f"{row['topic'] or '?'}-{row['partition']}") for row, _, _ in lifetimes]
        axes.set_yticks(range(len(lifetimes)), names)
        _time_axis(
            axes, min(each[1] for each in lifetimes) / 1e9, max(each[2] for each in lifetimes) / 1e9
        )
        axes.grid(axis="x")
        axes.set_ylim(-0.8, len(lifetimes) - 0.2)
        _legend(axes, most=3)

    return _svg("reassignments", draw, height=1.2 + 0.22 * len(lifetimes))


def _lifetime(row: Row, end_ns: int | None) -> tuple[int, int]:
    times = [
        row[name]
        for name in ("asked_ns", "answered_ns", "first_listed_ns", "last_listed_ns", "ended_ns")
        if row[name] is not None
    ]
    if not times:
        return 0, 0
    open_end = row["outcome"] == "in progress" and end_ns is not None
    return min(times), max([*times, end_ns] if open_end and end_ns else times)


def _time_axis(axes: Any, start: float, end: float) -> None:
    """Times of day between two, in seconds since the epoch: as many as there is room for."""
    if end <= start:
        start, end = start - 0.5, end + 0.5
    axes.set_xlim(start - (end - start) * 0.01, end + (end - start) * 0.01)
    steps = 3 if axes.figure.get_figwidth() < WIDTHS["wide"] else 5
    ticks = [start + (end - start) * place / steps for place in range(steps + 1)]
    axes.set_xticks(ticks, [_clock(each, end - start) for each in ticks])
    axes.set_xlabel("UTC")


def _is_narrow(limits: tuple[float, float]) -> bool:
    """Whether powers of ten alone would leave a logarithmic axis nearly without numbers."""
    return limits[1] / limits[0] < 100


def _between(value: float, place: int) -> str:
    """Of the numbers between two powers of ten, 2 and 5."""
    text = f"{value:g}"
    return text if text.strip("0.") in ("2", "5") else ""


def _legend(axes: Any, most: int = 2) -> None:
    """Below the plot, in so many columns at most: one where names are so long that a reader's font,
    which may be wider than the one measured here, would push a second out of the figure."""
    names = axes.get_legend_handles_labels()[1]
    columns = 1 if max(map(len, names), default=0) > LONGEST_BESIDE else most
    axes.figure.legend(loc="outside lower center", ncols=columns)


def _clock(seconds: float, span: float) -> str:
    try:
        moment = datetime.fromtimestamp(seconds, UTC)
    except (ValueError, OverflowError, OSError):
        return f"{seconds:.3f}"
    if span > 2 * 86400:
        return moment.strftime("%m-%d %H:%M")
    text = moment.strftime("%H:%M:%S")
    return text if span > 20 else f"{text}.{moment.microsecond // 1000:03}"


def _label(name: str) -> str:
    text = printable(name)
    return text if len(text) <= 28 else text[:27] + "…"


def _svg(name: str, draw: Callable[[Any], None], *, height: float) -> Plots:
    wide, narrow = (_drawn(f"{name}-{kind}", kind, draw, height) for kind in WIDTHS)
    return wide, narrow


def _drawn(name: str, kind: str, draw: Callable[[Any], None], height: float) -> str:
    with rc_context({**_STYLE, "svg.hashsalt": name}), warnings.catch_warnings():
        # Its own font lacks glyphs that the reader's will have.
        warnings.simplefilter("ignore", UserWarning)
        figure = Figure(figsize=(WIDTHS[kind], height), layout="constrained")
        figure.patch.set_visible(False)
        axes = figure.add_subplot()
        axes.patch.set_visible(False)
        for side in ("top", "right"):
            axes.spines[side].set_visible(False)
        draw(axes)
        out = io.StringIO()
        figure.savefig(out, format="svg", metadata={"Date": None, "Creator": None})
    text = out.getvalue()
    text = text[text.index("<svg") :].replace(_INK, "currentColor")
    text = re.sub(r"<metadata>.*?</metadata>", "", text, flags=re.DOTALL)
    text = re.sub(r'(<svg[^>]*?) width="[^"]*"', r"\1", text, count=1)
    text = re.sub(r'(<svg[^>]*?) height="[^"]*"', r"\1", text, count=1)
    text = text.replace("<svg", f'<svg class="{kind}"', 1)
    # One page has several: their ids must not meet.
    text = re.sub(r'\bid="', f'id="{name}-', text)
    text = re.sub(r"url\(#", f"url(#{name}-", text)
    return re.sub(r'href="#', f'href="#{name}-', text)
