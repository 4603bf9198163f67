"""The demo's part on data: all steps come out right, and a wrong one is noticed."""

import dataclasses

import pytest

from demo import data
from kproto.journal import Entry

pytestmark = [pytest.mark.slow, pytest.mark.filterwarnings("ignore")]


def test_every_step_comes_out_right() -> None:
    pytest.importorskip("kafka")
    lines: list[str] = []
    shown: list[Entry] = []
    assert data.play_data(lines.append, shown.extend) is True
    assert len(lines) == 1 + len(data.DATA_STEPS)
    assert all(line.startswith("  ✓ ") for line in lines[1:])
    sent = [each for each in shown if each.direction == "request"]
    assert len(sent) == 2
    assert len({each.decode().body.topic_data[0].partition_data[0].records for each in sent}) == 1


def test_a_step_that_differs_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("kafka")
    first = dataclasses.replace(data.DATA_STEPS[0], run=lambda run: run.mock.nothing)
    monkeypatch.setattr(data, "DATA_STEPS", [first])
    lines: list[str] = []
    assert data.play_data(lines.append, lambda entries: None) is False
    assert lines[1].startswith("  ✗ an idempotent producer appends two records: AttributeError")
