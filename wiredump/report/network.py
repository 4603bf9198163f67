"""How packets fared, by connection: retransmissions, order, holes, windows of 0 and resets; and how
long data took to be acknowledged."""

from __future__ import annotations

from collections import Counter
from typing import Any, Final, NamedTuple

from wiredump.questions.answers import Tables
from wiredump.report.blocks import Block, Cell, Note, Table, count, cut, duration

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

_SUM: Final = " + ".join(f"coalesce({name}, 0)" for name in _TROUBLE)
_TOTALS: Final = f"""
SELECT count(*) AS connections, count(*) FILTER (WHERE {_SUM} > 0) AS troubled,
  {", ".join(f"coalesce(sum({name}), 0) AS {name}" for name in (*_COUNTS, *_BY_END))}
FROM connections"""
_TIMES: Final = " UNION ALL ".join(
    f"SELECT '{what}', min({least}), percentile_disc(0.5) WITHIN GROUP (ORDER BY {middle}), "
    f"max({most}) FROM connections WHERE {timed}"
    for what, least, middle, most, timed in (
        ("handshake", *["handshake_ns"] * 3, "handshake_ns IS NOT NULL"),
        *(
            (end, *(f"{end}_rtt_{name}_ns" for name in ("min", "median", "max")),
             f"{end}_rtt_samples > 0")
            for end in _ENDS
        ),
    )
)  # fmt: skip
_WORST: Final = f"""
SELECT * FROM connections WHERE {_SUM} > 0 ORDER BY {_SUM} DESC, run, connection
LIMIT {MOST_SHOWN}"""


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


def measure_network(tables: Tables) -> Network:
    """Read ``connections``. Raises QueryError."""
    sums, spans, worst = tables.answers((_TOTALS, _TIMES, _WORST))
    (totals,) = sums.records()
    times = {
        what: Times(least, int(middle), most)
        for what, least, middle, most in spans.rows
        if least is not None
    }
    handshakes = times.pop("handshake", None)
    connections, troubled = totals.pop("connections"), totals.pop("troubled")
    return Network(connections, troubled, Counter(totals), handshakes, times, worst.records())


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
