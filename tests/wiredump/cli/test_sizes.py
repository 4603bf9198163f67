"""``--memory``: a size in any unit, and the bound that the readers are given."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click
import pytest
from click.testing import CliRunner
from hypothesis import given
from hypothesis import strategies as st

from tests.wiredump.spark.made_up import capture
from wiredump.cli import cli
from wiredump.cli.sizes import size
from wiredump.readers import Limits

UNITS = {"B": 1, "kB": 10**3, "KB": 10**3, "MB": 10**6, "GB": 10**9, "KiB": 2**10, "MiB": 2**20,
         "GiB": 2**30}  # fmt: skip


def of(text: str) -> int | None:
    option = click.Option(["--memory"])
    return size(click.Context(click.Command("x")), option, text)


@given(st.integers(1, 10**7), st.sampled_from(sorted(UNITS)), st.sampled_from(("", " ")))
def test_units(number: int, unit: str, space: str) -> None:
    expected = number * UNITS[unit]
    if expected >= 10**6:
        assert of(f"{number}{space}{unit}") == expected
    else:
        with pytest.raises(click.BadParameter, match="the minimum is 1MB"):
            of(f"{number}{space}{unit}")


def test_part_of_one() -> None:
    assert of("1.5GB") == 1_500_000_000
    for nonsense in ("", "MB", "1e6MB", "1MBit", "1 000MB", "\u0661MB", "1mB x"):
        with pytest.raises(click.BadParameter, match="is not a size"):
            of(nonsense)


@pytest.mark.parametrize(
    "arguments",
    [
        ["show"],
        ["table", "--out", "tables"],
        ["extract", "--out", "one.jsonl", "--connection", "0"],
        ["audit", "--to", "kafka-4.1"],
    ],
)
def test_every_command_hands_it_on(
    arguments: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "a.pcap"
    path.write_bytes(capture(3))
    monkeypatch.chdir(tmp_path)
    told: list[int | None] = []
    within = Limits.within

    def noted(memory: int | None, **options: Any) -> Limits:
        told.append(memory)
        return within(memory, **options)

    monkeypatch.setattr(Limits, "within", noted)
    result = CliRunner().invoke(cli, [*arguments, str(path), "--memory", "3MiB"])
    assert result.exit_code in (0, 1), result.output
    assert told == [3 << 20]
