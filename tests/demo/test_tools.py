"""The demo's part on Kafka's tools: all steps come out right, and a wrong one is noticed."""

import dataclasses
from pathlib import Path

import pytest

from demo import tools
from kproto.errors import AbsentError
from tests.support.toolchain import require

pytestmark = pytest.mark.slow


@pytest.mark.java
def test_every_step_comes_out_right() -> None:
    require("java", "maven")
    lines: list[str] = []
    assert tools.play_tools(lines.append) is True
    assert len(lines) == 1 + len(tools.TOOL_STEPS)
    assert all(line.startswith("  ✓ ") for line in lines[1:])


def test_a_step_that_differs_is_noticed(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(tools, "installed_tools", lambda: tmp_path)
    right = dataclasses.replace(tools.TOOL_STEPS[0], run=lambda run: None)
    wrong = dataclasses.replace(tools.TOOL_STEPS[1], run=lambda run: "the log is empty")
    monkeypatch.setattr(tools, "TOOL_STEPS", [right, wrong])
    lines: list[str] = []
    assert tools.play_tools(lines.append) is False
    assert lines[1:] == [f"  ✓ {right.title}", f"  ✗ {wrong.title}: the log is empty"]


def test_without_java_nothing_is_played(monkeypatch: pytest.MonkeyPatch) -> None:
    def absent() -> Path:
        raise AbsentError("needs a JDK")

    monkeypatch.setattr(tools, "installed_tools", absent)
    lines: list[str] = []
    assert tools.play_tools(lines.append) is None
    assert lines == ["Kafka's tools: needs a JDK"]
