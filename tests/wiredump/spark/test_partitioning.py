"""Files divided by the columns of their rows."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.support.full import quick
from tests.wiredump.spark.fake_session import FakeSession
from wiredump.spark import partitioning
from wiredump.spark.partitioning import divide
from wiredump.storage import Location
from wiredump.tables.arrow import arrow_schema, of_file
from wiredump.tables.publishing import Part
from wiredump.tables.writer import encodings

HOUR_NS = 3_600_000_000_000
TABLE = "requests"


def divided(folder: Path, files: list[list[int | None]], by: tuple[str, ...], few: int) -> Any:
    """The rows of each folder, in the order of files; ``few`` rows are divided by the driver."""
    staging, parts = folder / "staging", []
    (staging / TABLE).mkdir(parents=True)
    schema = arrow_schema(TABLE)
    for number, times in enumerate(files):
        rows = [
            {"request_ns": time, "api": f"api{(time or 0) % 2}", "correlation_id": place}
            for place, time in enumerate(times)
        ]
        table = of_file(TABLE, pa.Table.from_pylist(rows, schema))
        name = f"{number}.parquet"
        pq.write_table(table, staging / TABLE / name, row_group_size=3, **encodings(table.schema))
        parts.append({TABLE: Part(name, len(rows))})
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(partitioning, "_FEW", few)
        made = divide(FakeSession(), Location(str(staging)), by, (), parts)  # type: ignore[arg-type]
    found: dict[str, list[Any]] = {}
    for each in made:
        file = pq.ParquetFile(staging / TABLE / each[TABLE].file)
        assert file.metadata.num_rows == each[TABLE].rows
        place = each[TABLE].file.rpartition("/")[0]
        found.setdefault(place, []).append((file.schema_arrow.names, file.read().to_pylist()))
    return {place: sorted(map(str, each)) for place, each in found.items()}


times = st.one_of(st.none(), st.integers(-2 * HOUR_NS, 2 * HOUR_NS), st.just(HOUR_NS - 1))
close = st.integers(5 * HOUR_NS, 6 * HOUR_NS - 1)


@pytest.mark.slow
@settings(deadline=None, max_examples=quick(50, 15))
@given(
    files=st.lists(st.lists(st.one_of(close, times) | close, max_size=7), min_size=1, max_size=3),
    by=st.sampled_from([("date", "hour"), ("hour", "date"), ("hour",), ("date",), ("date", "api")]),
)
def test_driver_and_tasks_divide_alike(files: list[list[int | None]], by: tuple[str, ...]) -> None:
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        in_tasks = divided(folder / "tasks", files, by, -1)
        assert divided(folder / "driver", files, by, 1 << 30) == in_tasks
