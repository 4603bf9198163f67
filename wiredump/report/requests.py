"""Count the rows of ``requests`` with Arrow's kernels; Python sees only groups.

Latencies are counted in 32 buckets per octave, so that percentiles are within 2 % of exact ones,
whatever their number. The number of groups is limited, since names come from peers.
"""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from typing import Any, Final, NamedTuple

import pyarrow as pa
import pyarrow.compute as pc

from wiredump.tables.reading import TableFolder

__all__ = ["OTHERS", "Client", "Errors", "Latency", "Requests", "Traffic", "measure_requests"]

OTHERS: Final = "(others)"

MOST_CLIENTS: Final = 1000
"""Clients whose requests are counted one by one; those of others are counted together."""
MOST_ERRORS: Final = 1000
MOST_EXAMPLES: Final = 20
"""Requests shown of each error."""
MOST_VERSIONS: Final = 10_000
"""Pairs of api and version; others are counted together."""
MOST_NAMES: Final = 1_000_000
"""Clients that are told apart in order to count them."""
BUCKETS: Final = 32
"""Of latency, to an octave."""
TIME_BUCKETS: Final = 60

_COLUMNS: Final = (
    "api_key", "api", "api_version", "request_offset", "response_offset", "requested_ns",
    "latency_ns", "request_size", "response_size", "expected", "errors", "client_id",
    "software_name", "software_version",
)  # fmt: skip
_OF_ERRORS: Final = (
    "requested_ns", "connection", "request_offset", "client", "broker", "client_id", "api",
    "api_version", "correlation_id", "latency_ns", "errors",
)  # fmt: skip


class Traffic(NamedTuple):
    """Of one api and version."""

    api_key: int | None
    api: str | None
    version: int | None
    requests: int
    request_bytes: int
    response_bytes: int
    failed: int
    unanswered: int


class Latency(NamedTuple):
    """Of one api; nanoseconds by quantile."""

    api: str
    answers: int
    quantiles: dict[float, float]
    greatest: int


class Client(NamedTuple):
    """``versions``: by api, the versions it used and how often."""

    software: str | None
    version: str | None
    client_id: str | None
    requests: int
    versions: dict[str, dict[int, int]]


class Errors(NamedTuple):
    """``counts``: by name, the number in each of ``TIME_BUCKETS`` spans of ``width_ns``.
    ``examples``: by name, the first requests whose responses have it."""

    start_ns: int
    width_ns: int
    counts: dict[str, list[int]]
    examples: dict[str, list[dict[str, Any]]]


class Requests(NamedTuple):
    """``first_ns`` and ``last_ns`` are None without any request. ``all_clients`` counts the clients
    that are not in ``clients``, too; ``MOST_NAMES`` of those at most."""

    total: int
    failed: int
    unanswered: int
    first_ns: int | None
    last_ns: int | None
    traffic: list[Traffic]
    latencies: list[Latency]
    clients: list[Client]
    all_clients: int
    errors: Errors | None


QUANTILES: Final = (0.5, 0.9, 0.99, 0.999)


def measure_requests(folder: TableFolder) -> Requests:
    """Two passes: the first for the time they span."""
    span = _span(folder)
    measuring = _Measuring(span)
    for rows in folder.batches("requests", [*dict.fromkeys((*_COLUMNS, *_OF_ERRORS))]):
        measuring.add(rows)
    return measuring.result()


def _span(folder: TableFolder) -> tuple[int, int] | None:
    span: tuple[int, int] | None = None
    for rows in folder.batches("requests", ["requested_ns"]):
        found = pc.min_max(rows["requested_ns"]).as_py()
        if found["min"] is not None:
            least, greatest = found["min"], found["max"]
            span = (least, greatest) if span is None else (
                min(span[0], least), max(span[1], greatest)
            )  # fmt: skip
    return span


def _groups(
    rows: pa.Table, keys: list[str], values: list[tuple[Any, str]]
) -> list[tuple[Any, ...]]:
    """A tuple a group: keys, then aggregates."""
    found = rows.group_by(keys, use_threads=False).aggregate(values)
    names = [*keys, *(name for name in found.column_names if name not in keys)]
    return list(zip(*(found[name].to_pylist() for name in names), strict=True))


class _Measuring:
    def __init__(self, span: tuple[int, int] | None) -> None:
        self._span = span
        self._width = (
            1 if span is None else max(1, math.ceil((span[1] - span[0] + 1) / TIME_BUCKETS))
        )
        self._traffic: dict[tuple[Any, ...], list[int]] = defaultdict(lambda: [0] * 5)
        self._buckets: dict[str, Counter[int]] = defaultdict(Counter)
        self._greatest: dict[str, int] = {}
        self._clients: dict[tuple[Any, ...], dict[str, Counter[int]]] = {}
        self._unlisted: set[int] = set()
        self._errors: dict[str, list[int]] = {}
        self._examples: dict[str, list[tuple[Any, ...]]] = defaultdict(list)

    def add(self, rows: pa.Table) -> None:
        failed = pc.greater(pc.list_value_length(rows["errors"]), 0)
        unanswered = pc.and_(
            pc.and_(pc.is_valid(rows["request_offset"]), rows["expected"]),
            pc.is_null(rows["response_offset"]),
        )
        rows = rows.append_column("failed", failed).append_column("unanswered", unanswered)
        keys = ["api_key", "api", "api_version"]
        sums = [(name, "sum") for name in ("request_size", "response_size", "failed", "unanswered")]
        for key, api, version, *counts in _groups(rows, keys, [([], "count_all"), *sums]):
            group = (key, api, version)
            if group not in self._traffic and len(self._traffic) >= MOST_VERSIONS:
                group = (None, OTHERS, None)
            held = self._traffic[group]
            for place, count in enumerate(counts):
                held[place] += count or 0
        self._add_latencies(rows)
        self._add_clients(rows)
        self._add_errors(rows)

    def _add_latencies(self, rows: pa.Table) -> None:
        rows = rows.filter(pc.is_valid(rows["latency_ns"]))
        waited = pc.max_element_wise(rows["latency_ns"], 1)
        # A clock may be wrong by decades, which no double holds to the nanosecond.
        length = pc.log2(pc.cast(waited, pa.float64(), safe=False))
        bucket = pc.floor(pc.multiply(length, float(BUCKETS)))
        rows = rows.append_column("bucket", pc.cast(bucket, pa.int32()))
        values = [([], "count_all"), ("latency_ns", "max")]
        for api, place, count, greatest in _groups(rows, ["api", "bucket"], values):
            name = api or "unknown"
            self._buckets[name][place] += count
            self._greatest[name] = max(self._greatest.get(name, 0), greatest)

    def _add_clients(self, rows: pa.Table) -> None:
        rows = rows.filter(pc.is_valid(rows["api_version"]))
        keys = ["software_name", "software_version", "client_id", "api", "api_version"]
        for *who, api, version, count in _groups(rows, keys, [([], "count_all")]):
            key = tuple(who)
            if key not in self._clients and len(self._clients) >= MOST_CLIENTS:
                if len(self._unlisted) < MOST_NAMES:
                    self._unlisted.add(hash(key))
                key = (OTHERS, None, None)
            apis = self._clients.setdefault(key, defaultdict(Counter))
            apis[api or "unknown"][version] += count

    def _add_errors(self, rows: pa.Table) -> None:
        if self._span is None:
            return
        times = pc.take(rows["requested_ns"], pc.list_parent_indices(rows["errors"]))
        bucket = pc.divide(pc.subtract(times, self._span[0]), self._width)
        found = pa.table({"name": pc.list_flatten(rows["errors"]), "bucket": bucket})
        found = found.filter(pc.is_valid(found["bucket"]))
        for name, place, count in _groups(found, ["name", "bucket"], [([], "count_all")]):
            if name not in self._errors and len(self._errors) >= MOST_ERRORS:
                name = OTHERS
            self._errors.setdefault(name, [0] * TIME_BUCKETS)[place] += count
        self._add_examples(rows.filter(rows["failed"]).select(_OF_ERRORS))

    def _add_examples(self, rows: pa.Table) -> None:
        """Keep the first requests of each error, in whichever order files have them."""
        rows = rows.filter(pc.is_valid(rows["requested_ns"]))
        rows = rows.sort_by([(name, "ascending") for name in _OF_ERRORS[:3]])
        added: dict[str, list[int]] = defaultdict(list)
        for place, names in enumerate(rows["errors"].to_pylist()):
            for name in names:
                if name in self._errors and len(added[name]) < MOST_EXAMPLES:
                    added[name].append(place)
        for name, places in added.items():
            taken = rows.take(places)
            found = zip(*(taken[column].to_pylist() for column in _OF_ERRORS), strict=True)
            held = sorted([*self._examples[name], *found], key=lambda row: _order(row[:3]))
            self._examples[name] = held[:MOST_EXAMPLES]

    def result(self) -> Requests:
        traffic = [
            Traffic(*key, *counts)
            for key, counts in sorted(self._traffic.items(), key=lambda each: _order(each[0]))
        ]
        clients = [
            Client(who[0], who[1], who[2], sum(sum(each.values()) for each in apis.values()),
                   {api: dict(sorted(each.items())) for api, each in sorted(apis.items())})
            for who, apis in sorted(self._clients.items(), key=lambda each: _order(each[0]))
        ]  # fmt: skip
        latencies = [
            Latency(
                api, counts.total(), _quantiles(counts, self._greatest[api]), self._greatest[api]
            )
            for api, counts in sorted(self._buckets.items())
        ]
        errors = dict(sorted(self._errors.items(), key=lambda each: (-sum(each[1]), each[0])))
        first, last = self._span or (None, None)
        return Requests(
            sum(each.requests for each in traffic),
            sum(each.failed for each in traffic),
            sum(each.unanswered for each in traffic),
            first,
            last,
            traffic,
            latencies,
            clients,
            len(clients) + max(0, len(self._unlisted) - 1),  # OTHERS is one of them
            None
            if first is None
            else Errors(
                first,
                self._width,
                errors,
                {
                    name: [dict(zip(_OF_ERRORS, row, strict=True)) for row in rows]
                    for name, rows in self._examples.items()
                },
            ),
        )


def _order(key: tuple[Any, ...]) -> list[tuple[bool, Any]]:
    return [(each is None, each if each is not None else 0) for each in key]


def _quantiles(counts: Counter[int], greatest: int) -> dict[float, float]:
    """The middle of the bucket that has the one so far from the least."""
    found = {}
    total = counts.total()
    for quantile in QUANTILES:
        wanted, passed = math.ceil(total * quantile), 0
        for bucket, count in sorted(counts.items()):
            passed += count
            if passed >= wanted:
                found[quantile] = min(2 ** ((bucket + 0.5) / BUCKETS), greatest)
                break
    return found
