"""Answers as metrics, in the text format of OpenMetrics, which Prometheus reads; prometheus_client
writes it. Needs the extra ``metrics``.

A column of numbers is a gauge, named after the question and the column; without any, each row is a
1. Text, and numbers that are names (a partition, a producer id), are labels. Rows of a time series
have ``since``, which becomes the time of their samples: ``promtool tsdb create-blocks-from
openmetrics`` imports them. Other times are gauges of seconds since the epoch, and durations are in
seconds.
"""

from __future__ import annotations

import importlib
import importlib.util
from collections import Counter
from collections.abc import Iterable, Iterator
from datetime import UTC, datetime
from typing import Any, Final

from kproto.errors import MissingExtraError
from kproto.safe_text import printable
from wiredump.questions.answers import Answer

__all__ = ["openmetrics", "require_prometheus_client"]

_SERIES_TIME: Final = "since"
_NUMBERS: Final = ("INTEGER", "BIGINT", "SMALLINT", "HUGEINT", "DOUBLE", "DECIMAL", "FLOAT")
_NAMES: Final = frozenset({"partition", "producer_id", "epoch", "generation", "lowest", "highest"})
_MILLISECONDS: Final = "_ms"


def require_prometheus_client() -> None:
    """Raise MissingExtraError if prometheus_client is not installed."""
    if importlib.util.find_spec("prometheus_client") is None:
        raise MissingExtraError("OpenMetrics needs prometheus_client", extra="metrics")


def openmetrics(answers: Iterable[tuple[str, Answer]]) -> str:
    """Return answers to questions, by name, as one document."""
    require_prometheus_client()
    exposition = importlib.import_module("prometheus_client.openmetrics.exposition")
    families = [family for name, found in answers for family in _families(name, found)]
    text: bytes = exposition.generate_latest(_Collected(families))
    return text.decode()


class _Collected:
    """What prometheus_client takes for a registry."""

    def __init__(self, families: list[Any]) -> None:
        self._families = families

    def collect(self) -> list[Any]:
        return self._families


def _families(question: str, found: Answer) -> Iterator[Any]:
    core = importlib.import_module("prometheus_client.core")
    kinds = dict(zip(found.columns, found.types, strict=True))
    labels = [name for name in found.columns if not _is_value(name, kinds[name])]
    rows = _labelled(found, labels)
    named = [*labels, "row"] if any(values[-1] for values, _ in rows) else labels
    values_of = [name for name in kinds if _is_value(name, kinds[name]) and name != _SERIES_TIME]
    if not values_of:
        family = core.GaugeMetricFamily(
            f"wiredump_{question}_rows".replace("-", "_"), f"rows of {question}", labels=named
        )
        for values, row in rows:
            family.add_metric(values[: len(named)], 1, timestamp=_time(row))
        yield family
    for column in values_of:
        kind = kinds[column]
        name, unit = f"wiredump_{question}_{column}".replace("-", "_"), ""
        if column.endswith(_MILLISECONDS) or kind.startswith("TIMESTAMP"):
            name, unit = f"{name.removesuffix(_MILLISECONDS)}_seconds", "seconds"
        family = core.GaugeMetricFamily(
            name, f"{column} of the question {question}", labels=named, unit=unit
        )
        for values, row in rows:
            value = _seconds(row[column], column)
            if value is not None:
                family.add_metric(values[: len(named)], value, timestamp=_time(row))
        yield family


def _labelled(found: Answer, labels: list[str]) -> list[tuple[list[str], dict[str, Any]]]:
    """Return the values of labels for each row, so that samples of one series follow each other.
    Rows with the same labels, which are not of a time series, are numbered by ``row``."""
    seen: Counter[tuple[Any, ...]] = Counter()
    made = []
    for row in found.records():
        values = ["" if row[name] is None else _text(row[name]) for name in labels]
        key = (*values, row.get(_SERIES_TIME))
        seen[key] += 1
        made.append(([*values, str(seen[key]) if seen[key] > 1 else ""], row))
    return sorted(made, key=lambda each: (each[0], _time(each[1]) or 0))


def _is_value(name: str, kind: str) -> bool:
    is_number = kind.startswith(_NUMBERS) and not kind.endswith("[]")
    return kind.startswith("TIMESTAMP") or (is_number and name not in _NAMES)


def _text(value: Any) -> str:
    """Return a label's value, with unprintable characters escaped: it may come from a peer."""
    return printable(",".join(map(str, value)) if isinstance(value, list) else str(value))


def _time(row: dict[str, Any]) -> float | None:
    found = row.get(_SERIES_TIME)
    return found.replace(tzinfo=UTC).timestamp() if isinstance(found, datetime) else None


def _seconds(value: Any, column: str) -> float | None:
    match value:
        case None:
            return None
        case datetime():
            return value.replace(tzinfo=UTC).timestamp()
    return float(value) / 1000 if column.endswith(_MILLISECONDS) else float(value)
