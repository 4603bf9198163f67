"""The capture whose answers the documentation shows, and its tables."""

from __future__ import annotations

from pathlib import Path
from typing import Final

from click.testing import CliRunner

from tests.support.toolchain import require_module
from wiredump.cli import cli

__all__ = ["CAPTURE", "tables_of_operations"]

CAPTURE: Final = Path(__file__).with_name("operations.pcapng.zst")


def tables_of_operations(folder: Path) -> str:
    """Write its tables into ``folder``, and return where."""
    for name in ("duckdb", "cryptography"):
        require_module(name)
    out = str(folder / "operations")
    made = CliRunner().invoke(cli, ["table", str(CAPTURE), "--out", out])
    assert made.exit_code == 0, made.output
    return out
