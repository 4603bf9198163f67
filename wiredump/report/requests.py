"""What the page says about requests, by queries over the table. The number of groups is limited,
since names come from peers."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from typing import Any, Final, NamedTuple

from wiredump.questions.answers import Answer, Tables

__all__ = [
    "OTHERS", "Client", "Errors", "Latency", "LatencyTimes", "Requests", "Traffic",
    "measure_requests",
]  # fmt: skip

OTHERS: Final = "(others)"

MOST_CLIENTS: Final = 1000
"""The busiest clients, whose requests are counted one by one; those of others are counted
together."""
MOST_ERRORS: Final = 1000
MOST_EXAMPLES: Final = 20
"""Requests shown of each error."""
MOST_VERSIONS: Final = 10_000
"""Pairs of api and version; others are counted together."""
TIME_BUCKETS: Final = 60

QUANTILES: Final = (0.5, 0.9, 0.99, 0.999)

_OF_ERRORS: Final = (
    "requested_ns, connection, request_offset, client, broker, client_id, api, api_version, "
    "correlation_id, latency_ns, errors"
)
_CLIENT: Final = "software_name, software_version, client_id"

_SPAN: Final = "SELECT min(requested_ns), max(requested_ns) FROM requests"
_TRAFFIC: Final = """
SELECT api_key, api, api_version, count(request_offset) AS requests,
  coalesce(sum(request_size), 0), coalesce(sum(response_size), 0),
  count(*) FILTER (WHERE array_size(errors) > 0),
  count(*) FILTER (WHERE request_offset IS NOT NULL AND expected AND response_offset IS NULL)
FROM requests GROUP BY ALL ORDER BY requests DESC, api_key, api, api_version"""
_PERCENTILES: Final = ", ".join(
    f"percentile_disc({each}) WITHIN GROUP (ORDER BY latency_ns)" for each in QUANTILES
)
_LATENCIES: Final = f"""
SELECT coalesce(api, 'unknown') AS api, count(*), {_PERCENTILES}, max(latency_ns)
FROM requests WHERE latency_ns IS NOT NULL GROUP BY ALL ORDER BY api"""
_TIMELINE: Final = f"""
WITH span AS (SELECT min(requested_ns) AS first, max(requested_ns) AS last FROM requests)
SELECT part_of(requested_ns, first, last, {TIME_BUCKETS}) AS part,
  percentile_disc(0.5) WITHIN GROUP (ORDER BY latency_ns),
  percentile_disc(0.99) WITHIN GROUP (ORDER BY latency_ns)
FROM requests, span
WHERE requested_ns IS NOT NULL AND latency_ns IS NOT NULL
  AND api NOT IN ('Fetch', 'ShareFetch', 'JoinGroup', 'SyncGroup')
GROUP BY part ORDER BY part"""
_ALL_CLIENTS: Final = f"""
SELECT count(*) FROM (SELECT DISTINCT {_CLIENT} FROM requests WHERE api_version IS NOT NULL)"""
_CLIENTS: Final = f"""
WITH used AS (
  SELECT {_CLIENT}, coalesce(api, 'unknown') AS api, api_version, count(*) AS number
  FROM requests WHERE api_version IS NOT NULL GROUP BY ALL
), counted AS (
  SELECT *, sum(number) OVER (PARTITION BY {_CLIENT}) AS total FROM used
), ranked AS (
  SELECT *, dense_rank() OVER (ORDER BY total DESC, {_CLIENT}) <= {MOST_CLIENTS} AS listed
  FROM counted
)
SELECT if(listed, software_name, '{OTHERS}') AS name, if(listed, software_version, NULL) AS version,
  if(listed, client_id, NULL) AS id, api, api_version, sum(number)
FROM ranked GROUP BY ALL ORDER BY name, version, id, api, api_version"""
_ORDER: Final = "requested_ns, run, connection, request_offset, response_offset"
_FAILED: Final = f"""
(SELECT explode(errors) AS error, run, response_offset, {_OF_ERRORS} FROM requests
 WHERE requested_ns IS NOT NULL)"""
_ERRORS: Final = f"""
WITH span AS (SELECT min(requested_ns) AS first, max(requested_ns) AS last FROM requests)
SELECT error, part_of(requested_ns, first, last, {TIME_BUCKETS}) AS part, count(*)
FROM {_FAILED}, span GROUP BY ALL"""
_EXAMPLES: Final = f"""
SELECT error, {_OF_ERRORS} FROM (
  SELECT *, row_number() OVER (
    PARTITION BY error ORDER BY {_ORDER}) AS place
  FROM {_FAILED}
)
WHERE place <= {MOST_EXAMPLES} ORDER BY {_ORDER}, error"""


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
    quantiles: dict[float, int]
    greatest: int


class LatencyTimes(NamedTuple):
    """The median and the 99th percentile in each of ``TIME_BUCKETS`` spans of ``width_ns``, of
    requests that do not wait on purpose; None where there are none."""

    start_ns: int
    width_ns: int
    medians: list[int | None]
    highs: list[int | None]


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
    that are not in ``clients``, too."""

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
    latency_times: LatencyTimes | None


def measure_requests(tables: Tables) -> Requests:
    """Read ``requests``. Raises QueryError."""
    queries = (_SPAN, _TRAFFIC, _LATENCIES, _CLIENTS, _ALL_CLIENTS, _ERRORS, _EXAMPLES, _TIMELINE)
    answers = tables.answers(queries)
    span, traffic, latencies, clients, all_clients, errors, examples, timeline = answers
    ((first, last),) = span.rows
    ((number,),) = all_clients.rows
    versions = _traffic(traffic.rows)
    return Requests(
        sum(each.requests for each in versions),
        sum(each.failed for each in versions),
        sum(each.unanswered for each in versions),
        first,
        last,
        versions,
        [
            Latency(api, count, dict(zip(QUANTILES, map(int, quantiles), strict=True)), greatest)
            for api, count, *quantiles, greatest in latencies.rows
        ],
        _clients(clients.rows),
        number,
        None if first is None else _errors(first, last, errors.rows, examples),
        None if first is None else _latency_times(first, last, timeline.rows),
    )


def _latency_times(
    first: int, last: int, rows: Iterable[tuple[int, int, int]]
) -> LatencyTimes | None:
    medians: list[int | None] = [None] * TIME_BUCKETS
    highs: list[int | None] = [None] * TIME_BUCKETS
    for part, median, high in rows:
        medians[part], highs[part] = int(median), int(high)
    if not any(each is not None for each in medians):
        return None
    return LatencyTimes(first, _width(first, last), medians, highs)


def _width(first: int, last: int) -> int:
    return (last - first + TIME_BUCKETS) // TIME_BUCKETS


def _traffic(rows: list[tuple[Any, ...]]) -> list[Traffic]:
    found = [Traffic(*row) for row in rows[:MOST_VERSIONS]]
    if len(rows) > MOST_VERSIONS:
        sums = map(sum, zip(*(row[3:] for row in rows[MOST_VERSIONS:]), strict=True))
        found.append(Traffic(None, OTHERS, None, *sums))
    return sorted(found, key=lambda each: [(part is None, part or 0) for part in each[:3]])


def _clients(rows: Iterable[tuple[Any, ...]]) -> list[Client]:
    found: dict[tuple[Any, ...], dict[str, dict[int, int]]] = {}
    for *who, api, version, number in rows:
        found.setdefault(tuple(who), {}).setdefault(api, {})[version] = number
    return [
        Client(name, version, id_, sum(sum(used.values()) for used in apis.values()), apis)
        for (name, version, id_), apis in found.items()
    ]


def _errors(
    first: int, last: int, rows: Iterable[tuple[str, int, int]], examples: Answer
) -> Errors:
    counts: dict[str, list[int]] = {}
    for name, bucket, count in rows:
        counts.setdefault(name, [0] * TIME_BUCKETS)[bucket] = count
    ordered = sorted(counts, key=lambda name: (-sum(counts[name]), name))
    kept = {name: counts[name] for name in ordered[:MOST_ERRORS]}
    if len(ordered) > MOST_ERRORS:
        others = zip(*(counts[name] for name in ordered[MOST_ERRORS:]), strict=True)
        kept[OTHERS] = list(map(sum, others))
    requests: dict[str, list[dict[str, Any]]] = defaultdict(list)
    for row in examples.records():
        if row["error"] in kept:
            requests[row["error"]].append(row)
    return Errors(first, _width(first, last), kept, requests)
