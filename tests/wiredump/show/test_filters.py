"""Which items pass: each filter is what it says, and all of them are and."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from kproto.errors import UnknownNameError
from tests.wiredump.show import examples
from wiredump.model import Exchange, Item
from wiredump.show.exchange_view import ExchangeView
from wiredump.show.filters import Filters, Moment, api_keys, moment

ITEMS = examples.listen(
    examples.FALLBACK
    + examples.HELLO
    + examples.REFUSED
    + examples.PRODUCE
    + examples.PLAIN
    + examples.UNANSWERED
)


def kept(items: list[Item] = ITEMS, **filters) -> list[int | str]:
    """Correlation ids, and the kinds of anomalies."""
    chosen = Filters(**filters)
    out: list[int | str] = []
    for item in items:
        if isinstance(item, Exchange):
            if chosen.passes(ExchangeView(item), 0):
                out.append(item.correlation_id)
        elif chosen.passes_anomaly(item, 0):
            out.append(item.kind)
    return out


def test_each_filter() -> None:
    everything = [1, 2, 5, 6, 7, 10, "unanswered"]
    assert kept() == everything
    assert kept(api_keys=frozenset({18, 0})) == [1, 2, 6]
    assert kept(errors=True) == [1, 5, 10, "unanswered"]
    assert kept(client_id="acc") == [1, 2, 5, 6, 7]
    assert kept(client_id="nobody") == []
    assert kept(software="kafka-python") == kept(software="kafka-python 3.0.12") == everything
    assert kept(software="kafka") == []
    assert kept(connections=frozenset({0})) == everything
    assert kept(connections=frozenset({1})) == []
    assert kept(min_latency_ns=10**6) == [1, 2, 5, 7]
    assert kept(min_latency_ns=10**6 + 1) == []
    assert kept(grep='"topics":') == [5, 10]
    assert kept(grep="in progress") == [5]
    assert kept(grep="hunter2") == kept(grep="AHVzZXI") == []
    assert kept(grep="the capture ends") == ["unanswered"]
    assert kept(since=Moment(6 * 10**6, True), until=Moment(7 * 10**6, False)) == [6, 7]
    assert kept(errors=True, client_id="acc", api_keys=frozenset({18})) == [1]


def test_anomalies_without_a_connection() -> None:
    lone: list[Item] = [
        replace(item, connection=None) for item in ITEMS if not isinstance(item, Exchange)
    ]
    assert kept(lone) == kept(lone, errors=True) == ["unanswered"]
    assert kept(lone, software="x") == kept(lone, connections=frozenset({0})) == []


def test_apis_by_key_and_any_form_of_name() -> None:
    for name in ("45", "AlterPartitionReassignments", "ALTER_PARTITION_REASSIGNMENTS"):
        assert api_keys(name) == {45}
    assert api_keys("AlterPartitionReassignmentsRequest") == {45}
    assert api_keys("ListReassignments") == {32240}
    assert api_keys("-1") == {-1}
    with pytest.raises(UnknownNameError, match="unknown API 'Alter'"):
        api_keys("Alter")


def test_moments() -> None:
    assert moment("1.5") == Moment(1_500_000_000, True)
    assert moment("1970-01-01T00:00:01") == Moment(10**9, False)
    assert moment("1970-01-01T01:00:00.000001+01:00") == Moment(1000, False)
    for text in ("", "nan", "inf", "yesterday"):
        with pytest.raises(ValueError, match="is not a time"):
            moment(text)
