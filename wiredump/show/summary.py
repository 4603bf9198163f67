"""The totals of what was shown: requests by API and version, latencies, errors, anomalies, and
where the captures' bytes went. Memory is bounded."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Final

from rich.console import RenderableType
from rich.table import Table
from rich.text import Text

from kproto.safe_text import printable
from wiredump.model import Anomaly, Connection
from wiredump.show.exchange_view import ExchangeView, seconds
from wiredump.skipped import bytes_of, skipped_of

__all__ = ["Latencies", "Summary"]

_STEPS: Final = 16
"""Buckets of the histogram for each power of two: percentiles are exact to 4.5 %."""

MOST_NAMES: Final = 10_000
"""The most APIs, versions or errors that are counted separately."""


class Latencies:
    """A histogram of durations."""

    def __init__(self) -> None:
        self._buckets: Counter[int] = Counter()
        self.highest_ns = 0

    def add(self, duration_ns: int) -> None:
        self._buckets[int(math.log2(duration_ns) * _STEPS) if duration_ns > 0 else -1] += 1
        self.highest_ns = max(self.highest_ns, duration_ns)

    def percentile(self, share: float) -> int | None:
        """Return the duration that ``share`` of all do not exceed, to a bucket; None without
        any."""
        wanted = math.ceil(share * self._buckets.total())
        seen = 0
        for bucket in sorted(self._buckets):
            seen += self._buckets[bucket]
            if seen >= wanted:
                return min(self.highest_ns, round(2 ** ((bucket + 1) / _STEPS)))
        return None


class _Api:
    """The counts of an API at a version."""

    def __init__(self) -> None:
        self.requests = 0
        self.unanswered = 0
        self.errors: Counter[str] = Counter()
        self.latencies = Latencies()


class Summary:
    """Counts what is shown; ``account`` is the source's account of bytes, if it has one."""

    def __init__(self) -> None:
        self.apis: dict[tuple[str, int], _Api] = {}
        self.anomalies: Counter[str] = Counter()
        self.undecoded = 0
        self.connections: set[int] = set()
        self.account: Mapping[str, int] = {}
        self.closed: Counter[str] = Counter()

    def exchange(self, view: ExchangeView) -> None:
        exchange = view.exchange
        self._connection(exchange.connection.number)
        self.undecoded += any(view.problems)
        if exchange.request is None:
            return  # counted as an anomaly
        key = (view.api or "unknown", exchange.api_version)
        if key not in self.apis and len(self.apis) >= MOST_NAMES:
            key = ("others", -1)
        api = self.apis.setdefault(key, _Api())
        api.requests += 1
        api.unanswered += view.unanswered
        if exchange.latency_ns is not None:
            api.latencies.add(exchange.latency_ns)
        for name in dict.fromkeys(error.name for error in view.errors):
            api.errors[name] += 1

    def anomaly(self, anomaly: Anomaly) -> None:
        if anomaly.connection is not None:
            self._connection(anomaly.connection.number)
        self.anomalies[anomaly.kind] += 1

    def ended(self, connections: Iterable[Connection]) -> None:
        """Count how connections ended."""
        for each in connections:
            if each.closed_by is not None:
                verb = "closed" if each.closed_with == "fin" else "reset"
                self.closed[f"{verb} by the {each.closed_by}"] += 1

    def _connection(self, number: int) -> None:
        if len(self.connections) < MOST_NAMES:
            self.connections.add(number)

    # -- how it looks ------------------------------------------------------------------------

    def record(self) -> dict[str, Any]:
        """Return the totals as a JSON object."""
        return {
            "type": "summary",
            "connections": len(self.connections),
            "apis": [
                {
                    "api": name,
                    "api_version": version if version >= 0 else None,
                    "requests": api.requests,
                    "unanswered": api.unanswered,
                    "latency_median_ns": api.latencies.percentile(0.5),
                    "latency_p99_ns": api.latencies.percentile(0.99),
                    "latency_highest_ns": api.latencies.highest_ns,
                    "errors": dict(sorted(api.errors.items())),
                }
                for (name, version), api in sorted(self.apis.items())
            ],
            "undecoded": self.undecoded,
            "anomalies": dict(sorted(self.anomalies.items())),
            "closed": dict(sorted(self.closed.items())),
            "account": bytes_of(self.account),
            "skipped": skipped_of(self.account),
        }

    def render(self) -> Iterator[RenderableType]:
        """Yield a table, and a line for each of the other totals."""
        yield Text()
        if self.apis:
            yield self._table()
        requests = sum(api.requests for api in self.apis.values())
        yield Text(f"{_many(requests, 'request')} on {_many(len(self.connections), 'connection')}")
        if self.closed:
            yield Text(f"connections: {_counts(self.closed)}")
        if self.undecoded:
            yield Text(f"{_many(self.undecoded, 'exchange')} not decoded to the end", style="red")
        if self.anomalies:
            yield Text(f"anomalies: {_counts(self.anomalies)}", style="yellow")
        if bytes_of(self.account):
            named = (f"{name} {size}" for name, size in bytes_of(self.account).items())
            yield Text(f"bytes: {', '.join(named)}")
        packets = Counter(skipped_of(self.account))
        if packets:
            yield Text(f"packets without TCP: {_counts(packets)}", style="yellow")

    def _table(self) -> Table:
        table = Table(box=None, pad_edge=False)
        table.add_column("api", no_wrap=True)
        for title in ("version", "requests", "unanswered", "median", "p99", "highest"):
            table.add_column(title, no_wrap=True, justify="right")
        table.add_column("errors")
        for (name, version), api in sorted(self.apis.items()):
            latencies = api.latencies
            times = [latencies.percentile(0.5), latencies.percentile(0.99)]
            highest = latencies.highest_ns if times[0] is not None else None
            table.add_row(
                Text(printable(name), style="bold"),
                str(version) if version >= 0 else "",
                str(api.requests),
                Text(str(api.unanswered or ""), style="red"),
                *("" if time is None else seconds(time) for time in (*times, highest)),
                Text(_counts(api.errors), style="red"),
            )
        return table


def _counts(counter: Counter[str]) -> str:
    return ", ".join(f"{count} {name}" for name, count in counter.most_common())


def _many(count: int, what: str) -> str:
    return f"{count} {what}{'s' * (count != 1)}"
