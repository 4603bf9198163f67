"""A batch whose driver is killed at any change of a file, and repeated by the same command."""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest

from tests.support.full import quick
from tests.wiredump.spark.knowing import knowing
from tests.wiredump.spark.pipeline import single
from wiredump.questions.database import FolderTables
from wiredump.rows.schema import TABLES
from wiredump.tables.reading import InputError, TableFolder

PROGRAM = Path(__file__).with_name("killed_batch.py")
ROOT = Path(__file__).parents[3]
TABLES_HERE = tuple(name for name in TABLES if name not in ("packets", "lineage", "account"))
KILLS = int(os.environ.get("KPROTO_KILLS", quick(6, 2)))
COUNT = ["SELECT run, count(*) FROM requests GROUP BY run ORDER BY run"]


def run(
    at: int, capture: Path, out: Path, run_id: str, by: str
) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, str(PROGRAM), str(at), str(capture), str(out), run_id, by]
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    return subprocess.run(command, env=environment, capture_output=True, text=True, check=False)


def readable(out: Path) -> dict[str, int]:
    """The rows of each run that readers find."""
    try:
        TableFolder(str(out))
    except InputError:
        return {}
    (found,) = FolderTables(str(out)).answers(COUNT)
    return dict(found.rows)


@pytest.mark.slow
@pytest.mark.parametrize("by", ["", "date,hour,api"])
def test_a_retry_needs_nobody(tmp_path: Path, by: str) -> None:
    """Whatever a kill leaves, readers find all rows of a run or none, and those of the other run;
    the retry is the same command."""
    capture, out = tmp_path / "a.pcap", tmp_path / "out"
    capture.write_bytes(knowing())
    count = len(single([str(capture)], tmp_path / "one", tables=TABLES_HERE)["requests"])
    whole = run(0, capture, out, "other", by)
    assert whole.returncode == 0, whole.stderr
    seed = os.environ.get("KPROTO_SEED", "0")
    print(f"seed {seed}")
    for at in sorted(random.Random(f"{seed} {by}").sample(range(1, int(whole.stdout)), KILLS)):
        killed = run(at, capture, out, "mine", by)
        assert killed.returncode == -signal.SIGKILL, killed.stderr
        assert readable(out) in ({"other": count}, {"other": count, "mine": count}), at
        again = run(0, capture, out, "mine", by)
        assert again.returncode == 0, (at, again.stderr)
        assert readable(out) == {"other": count, "mine": count}, at
        assert not (out / "_staging").exists()
        assert (out / "_SUCCESS").exists()
    found = FolderTables(str(out)).answers([f"SELECT * FROM {name}" for name in TABLES_HERE])
    for name, each in zip(TABLES_HERE, found, strict=True):
        expected = [
            row
            for file in (tmp_path / "one" / name).rglob("*.parquet")
            for row in pq.read_table(file).to_pylist()
        ]
        assert of_table(name, each.records()) == of_table(name, 2 * expected), name


def of_table(name: str, rows: list[dict[str, Any]]) -> list[str]:
    columns = [column.name for column in TABLES[name].columns]
    return sorted(repr({column: row[column] for column in columns}) for row in rows)
