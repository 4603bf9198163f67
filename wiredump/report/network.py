"""How packets fared, by connection: sent again, out of order, missing, without room, reset."""

from __future__ import annotations

import heapq
from collections import Counter
from statistics import median
from typing import Any, Final, NamedTuple

from wiredump.report.html import count, duration, table
from wiredump.tables.reading import TableFolder

__all__ = ["Network", "measure_network", "network_section"]

MOST_SHOWN: Final = 500
_COUNTS: Final = (
    "retransmitted", "retransmitted_bytes", "out_of_order", "holes", "missing_bytes",
    "zero_windows", "resets",
)  # fmt: skip
_TROUBLE: Final = ("retransmitted", "out_of_order", "holes", "zero_windows", "resets")
_COLUMNS: Final = ("connection", "client", "broker", *_COUNTS, "handshake_ns")


class Network(NamedTuple):
    """``connections`` there are, ``troubled`` those of them with any of what is counted in
    ``totals``; ``worst`` the ones with the most. ``handshakes``: least, median and most."""

    connections: int
    troubled: int
    totals: Counter[str]
    handshakes: tuple[int, int, int] | None
    worst: list[dict[str, Any]]


def measure_network(folder: TableFolder) -> Network:
    """Read ``connections``. Raises InputError."""
    connections = troubled = 0
    totals: Counter[str] = Counter()
    handshakes: list[int] = []
    worst: list[tuple[int, int, dict[str, Any]]] = []
    for rows in folder.batches("connections", _COLUMNS):
        for row in rows.to_pylist():
            connections += 1
            totals.update({name: row[name] or 0 for name in _COUNTS})
            if row["handshake_ns"] is not None:
                handshakes.append(row["handshake_ns"])
            trouble = sum(row[name] or 0 for name in _TROUBLE)
            if trouble:
                troubled += 1
                worst.append((trouble, -row["connection"], row))
        worst = heapq.nlargest(MOST_SHOWN, worst, key=lambda each: each[:2])
    trips = (min(handshakes), int(median(handshakes)), max(handshakes)) if handshakes else None
    return Network(connections, troubled, totals, trips, [row for _, _, row in worst])


def network_section(network: Network) -> str:
    """The section of the page."""
    some, every = count(network.troubled), count(network.connections)
    told = f"<p>{some} of {every} connections had retransmissions, holes, resets or the like.</p>\n"
    if network.handshakes is not None:
        least, middle, most = map(duration, network.handshakes)
        told += f"<p>Handshakes took {least} to {most}, half of them at most {middle}.</p>\n"
    if not network.troubled:
        return told
    told += (
        '<p class="soft">resent, bytes: segments sent again, and their bytes. late: segments out '
        "of order. missing: bytes that were never captured. full: segments that announce a "
        "window of 0.</p>\n"
    )
    heads = (
        "connection", "client", "broker", "resent#", "bytes#", "late#", "holes#", "missing#",
        "full#", "resets#", "handshake#",
    )  # fmt: skip
    rows: list[tuple[Any, ...]] = [
        ("all", "", "", *(network.totals[name] for name in _COUNTS), ""),
        *(
            (
                f"c{row['connection']}", row["client"], row["broker"],
                *(row[name] for name in _COUNTS),
                "" if row["handshake_ns"] is None else duration(row["handshake_ns"]),
            )
            for row in network.worst
        ),
    ]  # fmt: skip
    if len(network.worst) < network.troubled:
        told += f'<p class="soft">The {count(len(network.worst))} with the most.</p>\n'
    return told + table("network", heads, rows)
