"""What Spark's filters and the wanted columns leave to decode. Filters only skip exchanges none of
whose rows can pass; Spark applies them again."""

from __future__ import annotations

import sys
from collections.abc import Iterable
from datetime import UTC, datetime, timedelta
from typing import Any, Final

from pyspark.sql import datasource

from kproto.errors import UnknownNameError
from wiredump.rows.exchange_filter import FILTERED, ExchangeFilter
from wiredump.show.filters import api_keys

__all__ = ["exchange_filter", "is_pushing", "needs_bodies"]

_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
_MICROSECOND: Final = timedelta(microseconds=1)
_OF_BODIES: Final = frozenset({"errors", "throttle_time_ms", "problem", "api"})
"""The columns of ``requests`` that come from bodies, or with them."""
_TIMES: Final = frozenset({"requested", "response_last", "first", "last"})
"""Columns with a time that is not before an exchange's first byte nor after its last one, without
``_ns`` or ``_at``."""


def is_pushing() -> bool:
    """Whether Spark hands over filters. With the setting
    ``spark.sql.python.filterPushdown.enabled`` it plans in a module of its own; without, it refuses
    a reader that takes filters."""
    name = "pyspark.sql.worker.data_source_pushdown_filters"
    spec = getattr(sys.modules.get("__main__"), "__spec__", None)
    return name in sys.modules or getattr(spec, "name", "") == name


def needs_bodies(table: str, columns: Iterable[str]) -> bool:
    """Whether these columns of a table need bodies."""
    return table != "frames" and (table != "requests" or bool(_OF_BODIES.intersection(columns)))


def exchange_filter(table: str, filters: Iterable[Any]) -> ExchangeFilter | None:
    """Return what lets pass all exchanges with rows of ``table`` that pass the filters, which are
    PySpark's; None if nothing can be skipped."""
    found = ExchangeFilter()
    if table not in FILTERED:
        return None
    for each in filters:
        found = _with(found, table, each)
    return None if found == ExchangeFilter() else found


def _with(found: ExchangeFilter, table: str, filter_: Any) -> ExchangeFilter:
    name = ".".join(getattr(filter_, "attribute", ()))
    values = _values(filter_)
    if values is not None and None in values:
        return found
    if name == "connection" and values is not None:
        return found.also(connections=frozenset(values))
    if name == "api_key" and values is not None:
        return found.also(api_keys=frozenset(values))
    if name == "api" and values is not None:
        return found.also(api_keys=frozenset(key for each in values for key in _keys(each)))
    if _is_time(table, name):
        return _in_time(found, filter_, name)
    return found


def _values(filter_: Any) -> tuple[Any, ...] | None:
    if isinstance(filter_, datasource.EqualTo | datasource.EqualNullSafe):
        return (filter_.value,)
    return tuple(filter_.value) if isinstance(filter_, datasource.In) else None


def _keys(name: Any) -> frozenset[int]:
    """Return the API keys of a name; none of an unknown one, which no row has."""
    try:
        return api_keys(str(name))
    except UnknownNameError:
        return frozenset()


def _is_time(table: str, name: str) -> bool:
    column, _, unit = name.rpartition("_")
    return unit in ("ns", "at") and (
        column in _TIMES or (table, column) == ("batches", "timestamp")
    )


def _in_time(found: ExchangeFilter, filter_: Any, name: str) -> ExchangeFilter:
    value = filter_.value if hasattr(filter_, "value") else None
    if name.endswith("_at"):
        if not isinstance(value, datetime):
            return found
        aware = value if value.tzinfo is not None else value.astimezone()
        value = (aware - _EPOCH) // _MICROSECOND * 1000
    if not isinstance(value, int):
        return found
    if isinstance(filter_, datasource.GreaterThan | datasource.GreaterThanOrEqual):
        return found.also(since_ns=value)
    if isinstance(filter_, datasource.LessThan | datasource.LessThanOrEqual):
        return found.also(until_ns=value + 999)  # columns of microseconds are rounded down
    if isinstance(filter_, datasource.EqualTo):
        return found.also(since_ns=value, until_ns=value + 999)
    return found
