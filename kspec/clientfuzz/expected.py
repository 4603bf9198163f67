"""Expected differences: documented disagreements, each with a reason, in an ``expected.yaml``.

A disagreement that no row explains is a finding.
"""

from __future__ import annotations

from pathlib import Path
from typing import TypeVar

import msgspec

__all__ = ["ExpectedDifference", "load_expected"]


class ExpectedDifference(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The part that every row has. ``decoders`` and ``brokers`` add what a row matches."""

    id: str
    reason: str


Row = TypeVar("Row", bound=ExpectedDifference)


def load_expected(folder: Path, row_type: type[Row]) -> tuple[Row, ...]:
    """Read the rows of a folder's ``expected.yaml`` in file order."""
    import yaml

    rows = yaml.safe_load((folder / "expected.yaml").read_text("utf-8"))
    return tuple(msgspec.convert(rows or [], list[row_type]))  # type: ignore[valid-type]
