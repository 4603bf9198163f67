"""How packets fared, by connection: retransmissions, order, holes, windows of 0 and resets; and how
long data took to be acknowledged."""

from __future__ import annotations

import heapq
from collections import Counter
from statistics import median
from typing import Any, Final, NamedTuple

from wiredump.report.blocks import Block, Cell, Note, Table, count, cut, duration
from wiredump.tables.reading import TableFolder

__all__ = ["Network", "Times", "measure_network", "network_section"]

MOST_SHOWN: Final = 500
_ENDS: Final = ("client", "broker")
_COUNTS: Final = (
    "retransmitted", "retransmitted_bytes", "out_of_order", "holes", "missing_bytes",
    "zero_windows", "resets",
)  # fmt: skip
_TROUBLE: Final = ("retransmitted", "out_of_order", "holes", "zero_windows", "resets")
_BY_END: Final = tuple(f"{end}_{name}" for name in _COUNTS for end in _ENDS)
_MEDIANS: Final = tuple(f"{end}_rtt_median_ns" for end in _ENDS)
_COLUMNS: Final = (
    "connection", "client", "broker", *_COUNTS, *_BY_END, "handshake_ns", *_MEDIANS,
    *(f"{end}_rtt_{name}" for end in _ENDS for name in ("samples", "min_ns", "max_ns")),
)  # fmt: skip


class Times(NamedTuple):
    """The least and the greatest time, and the median of the connections' medians."""

    least: int
    middle: int
    most: int


class Network(NamedTuple):
    """``connections`` is the number of connections, ``troubled`` the number of those with anything
    that ``totals`` counts; ``worst`` are those with the most. ``round_trips`` has an entry for each
    end whose data was timed."""

    connections: int
    troubled: int
    totals: Counter[str]
    handshakes: Times | None
    round_trips: dict[str, Times]
    worst: list[dict[str, Any]]


def measure_network(folder: TableFolder) -> Network:
    """Read ``connections``. Raises InputError."""
    connections = troubled = 0
    totals: Counter[str] = Counter()
    handshakes: list[int] = []
    trips: dict[str, list[tuple[int, int, int]]] = {end: [] for end in _ENDS}
    worst: list[tuple[int, int, dict[str, Any]]] = []
    for rows in folder.batches("connections", _COLUMNS):
        for row in rows.to_pylist():
            connections += 1
            totals.update({name: row[name] or 0 for name in (*_COUNTS, *_BY_END)})
            if row["handshake_ns"] is not None:
                handshakes.append(row["handshake_ns"])
            for end in _ENDS:
                if row[f"{end}_rtt_samples"]:
                    trips[end].append(
                        tuple(row[f"{end}_rtt_{name}_ns"] for name in ("min", "median", "max"))
                    )
            trouble = sum(row[name] or 0 for name in _TROUBLE)
            if trouble:
                troubled += 1
                worst.append((trouble, -row["connection"], row))
        worst = heapq.nlargest(MOST_SHOWN, worst, key=lambda each: each[:2])
    return Network(
        connections, troubled, totals, _times([(each,) * 3 for each in handshakes]),
        {end: times for end in _ENDS if (times := _times(trips[end])) is not None},
        [row for _, _, row in worst],
    )  # fmt: skip


def _times(found: list[tuple[int, int, int]]) -> Times | None:
    """Combine the minimum, the median and the maximum of each connection."""
    if not found:
        return None
    least, middle, most = zip(*found, strict=True)
    return Times(min(least), int(median(middle)), max(most))


def network_section(network: Network) -> list[Block]:
    """Return the section of the page."""
    some, every = count(network.troubled), count(network.connections)
    said = [f"{some} of {every} connections had retransmissions, holes, resets or the like."]
    if network.handshakes is not None:
        least, middle, most = (duration(each).text for each in network.handshakes)
        said.append(f"Handshakes took {least} to {most}, half of them at most {middle}.")
    for end, times in network.round_trips.items():
        other = _ENDS[end == "client"]
        least, middle, most = (duration(each).text for each in times)
        said.append(
            f"Where the capture was made, data of the {end}s was acknowledged by the {other}s "
            f"after {least} to {most}; the median of the connections' medians is {middle}."
        )
    blocks: list[Block] = [Note(each, "") for each in said]
    if not network.troubled:
        return blocks
    heads = (
        "connection", "client", "broker", "resent#", "bytes#", "late#", "holes#", "missing#",
        "full#", "resets#", "handshake#", "client rtt#", "broker rtt#",
    )  # fmt: skip
    rows = [
        (
            f"c{row['connection']}", row["client"], row["broker"],
            *(_by_end(row, name) for name in _COUNTS),
            *(duration(row[name]) for name in ("handshake_ns", *_MEDIANS)),
        )
        for row in network.worst
    ]  # fmt: skip
    total = ("all", "", "", *(_by_end(network.totals, name) for name in _COUNTS), "", "", "")
    return [
        *blocks,
        Note(
            "resent, bytes: segments sent again, and their bytes. late: segments out of order. "
            "missing: bytes that were never captured. full: segments that announce a window of 0. "
            "rtt: median time from data of that end to its acknowledgement. In brackets: what the "
            "client sent, and what the broker sent."
        ),
        Table("network", heads, rows, total),
        *cut(len(network.worst), network.troubled, "worst"),
    ]


def _by_end(row: Any, name: str) -> Any:
    """Return a count, followed by those of both ends unless it is 0."""
    if not row[name]:
        return row[name]
    client, broker = (row[f"{end}_{name}"] for end in _ENDS)
    return Cell(f"{count(row[name])} ({count(client)} + {count(broker)})", row[name])
