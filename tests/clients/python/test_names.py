"""Each Python client has a test for each of the situations."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

HERE = Path(__file__).parent
SITUATIONS = (HERE.parent / "situations.txt").read_text().splitlines()


@pytest.mark.parametrize("client", ["aiokafka", "confluent_kafka"])
def test_no_situation_is_left_out(client: str) -> None:
    names = re.findall(r"def test_(\w+)\(", (HERE / f"test_{client}.py").read_text())
    assert [name.replace("_", " ") for name in names] == SITUATIONS
