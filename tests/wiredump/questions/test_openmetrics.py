"""Answers as OpenMetrics: prometheus_client's own parser reads what the rows say."""

from __future__ import annotations

import importlib
from datetime import datetime
from decimal import Decimal
from typing import Any

import pytest
from click.testing import CliRunner

from tests.support.toolchain import require_module
from tests.wiredump.questions.operations import CAPTURE
from wiredump.cli import cli
from wiredump.questions.answers import Answer
from wiredump.questions.openmetrics import openmetrics
from wiredump.questions.saved import questions


def samples(text: str) -> dict[str, list[tuple[dict[str, str], float, float | None]]]:
    """By family: labels, value and time of each sample."""
    parser = importlib.import_module("prometheus_client.openmetrics.parser")
    return {
        family.name: [
            (each.labels, each.value, None if each.timestamp is None else float(each.timestamp))
            for each in family.samples
        ]
        for family in parser.text_string_to_metric_families(text)
    }


def test_numbers_are_gauges_and_names_are_labels() -> None:
    require_module("prometheus_client")
    columns = ("topic", "partition", "took_ms", "first_seen", "names", "bytes")
    types = ("VARCHAR", "INTEGER", "DOUBLE", "TIMESTAMP", "INTEGER[]", "HUGEINT")
    rows: list[tuple[Any, ...]] = [
        ('a"\n', 1, 1500.0, datetime(1970, 1, 1, 0, 1), [1, 2], Decimal(7)),
        (None, 2, None, None, None, 8),
        (None, 2, None, None, None, 9),
    ]
    found = samples(openmetrics([("slow-things", Answer(columns, types, rows))]))
    one = {"topic": 'a"\\n', "partition": "1", "names": "1,2", "row": ""}
    assert found["wiredump_slow_things_took_seconds"] == [(one, 1.5, None)]
    assert found["wiredump_slow_things_first_seen_seconds"] == [(one, 60.0, None)]
    other = {"topic": "", "partition": "2", "names": ""}
    assert found["wiredump_slow_things_bytes"] == [
        (other | {"row": ""}, 8.0, None), (other | {"row": "2"}, 9.0, None), (one, 7.0, None),
    ]  # fmt: skip


def test_a_time_series_has_the_times_of_its_rows() -> None:
    require_module("prometheus_client")
    columns, types = ("group_id", "since", "lag"), ("VARCHAR", "TIMESTAMP", "BIGINT")
    rows: list[tuple[Any, ...]] = [
        (group, datetime(1970, 1, 1, 0, minute), 10 * minute)
        for minute in (2, 1)
        for group in ("b", "a")
    ]
    found = samples(openmetrics([("lag", Answer(columns, types, rows))]))
    assert found == {
        "wiredump_lag_lag": [
            ({"group_id": group}, 10.0 * minute, 60.0 * minute)
            for group in ("a", "b")
            for minute in (1, 2)
        ]
    }


@pytest.mark.slow
def test_every_question_is_a_part_of_one_document() -> None:
    require_module("prometheus_client")
    result = CliRunner().invoke(cli, ["ask", str(CAPTURE), "--format", "openmetrics"])
    assert result.exit_code == 0, result.output
    found = samples(result.stdout)
    for name in questions():
        assert any(each.startswith(f"wiredump_{name.replace('-', '_')}_") for each in found), name
    lag = found["wiredump_lag_lag"]
    assert {each[0]["group_id"] for each in lag} == {"shipping"}
    assert all(when is not None for _, _, when in lag)
