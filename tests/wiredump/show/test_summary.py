"""What it all came to."""

from __future__ import annotations

import io
import math

from hypothesis import given
from hypothesis import strategies as st
from rich.console import Console

from tests.wiredump.show import examples
from wiredump.model import Exchange
from wiredump.show.exchange_view import ExchangeView
from wiredump.show.summary import Latencies, Summary


@given(st.lists(st.integers(0, 10**13), min_size=1), st.sampled_from([0.5, 0.99, 1.0, 0.01]))
def test_percentiles_are_right_within_a_bucket(durations: list[int], share: float) -> None:
    latencies = Latencies()
    for each in durations:
        latencies.add(each)
    exact = sorted(durations)[math.ceil(share * len(durations)) - 1]
    told = latencies.percentile(share)
    assert told is not None
    assert exact <= told + 1
    assert told <= max(2, exact * 2 ** (1 / 16) * 1.000001 + 1)


def summary_of(pieces) -> Summary:
    summary = Summary()
    for item in examples.listen(pieces):
        if isinstance(item, Exchange):
            summary.exchange(ExchangeView(item))
        else:
            summary.anomaly(item)
    return summary


def text(summary: Summary) -> list[str]:
    out = io.StringIO()
    console = Console(width=160, file=out)
    for each in summary.render():
        console.print(each)
    return [line.rstrip() for line in out.getvalue().splitlines()]


def test_the_summary_to_the_letter() -> None:
    summary = summary_of(
        examples.FALLBACK + examples.REFUSED + examples.PRODUCE + examples.CUT + examples.UNANSWERED
    )
    summary.account = {"frames": 12, "gaps": 3}
    assert text(summary) == [
        "",
        "api                          version  requests  unanswered  median     p99  highest  "
        "errors",
        "AlterPartitionReassignments        0         1              1.0 ms  1.0 ms   1.0 ms  "
        "1 NO_REASSIGNMENT_IN_PROGRESS, 1 INVALID_REPLICA_ASSIGNMENT",
        "ApiVersions                        4         1              1.0 ms  1.0 ms   1.0 ms  "
        "1 UNSUPPORTED_VERSION",
        "Metadata                           0         1           1",
        "Metadata                           9         1              1.0 ms  1.0 ms   1.0 ms",
        "Produce                            7         1",
        "5 requests on 1 connection",
        "1 exchange not decoded to the end",
        "anomalies: 1 gap, 1 cut, 1 unanswered",
        "bytes: frames 12, gaps 3",
    ]


def test_as_json() -> None:
    api = {
        "api": "ApiVersions",
        "api_version": 4,
        "requests": 1,
        "unanswered": 0,
        "latency_median_ns": 10**6,
        "latency_p99_ns": 10**6,
        "latency_highest_ns": 10**6,
        "errors": {"UNSUPPORTED_VERSION": 1},
    }
    assert summary_of(examples.FALLBACK).record() == {
        "type": "summary",
        "connections": 1,
        "apis": [api],
        "undecoded": 0,
        "anomalies": {},
        "closed": {},
        "account": {},
        "skipped": {},
    }
