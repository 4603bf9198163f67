"""Damaged captures: the tables of any number of processes and of Spark are those of one process,
with every packet that is away from the damage, and bytes read and lost are those of the file."""

from __future__ import annotations

import gzip
import random
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from tests.captures.test_captures import uncompressed
from tests.wiredump.commands import wiredump
from tests.wiredump.readers.containers import Form
from tests.wiredump.readers.damaging import FORMS, damaged
from tests.wiredump.spark.pipeline import pipeline, single
from tests.wiredump.spark.test_tables import compare, through_spark
from wiredump.rows.schema import TABLES

pytestmark = pytest.mark.slow

ids = [form.name + form.order for form in FORMS]


def write(folder: Path, form: Form, seed: int) -> tuple[Path, list[int]]:
    """A damaged capture, and the times of the packets that have to survive."""
    made = damaged(random.Random(seed), form)
    path = folder / f"{form.name}-{'le' if form.order == '<' else 'be'}-{seed}.cap"
    path.write_bytes(made.data)
    return path, [record.time for record in made.survivors]


def require_counted(folder: Path, *paths: Path) -> None:
    """Bytes read and bytes lost of all files together are their sizes."""
    read = pq.read_table(folder / "lineage").column("bytes").to_pylist()
    account = pq.read_table(folder / "account").to_pylist()
    lost = [each["bytes"] for each in account if each["what"].startswith("lost: ")]
    assert sum(read) + sum(lost) == sum(path.stat().st_size for path in paths)


@pytest.mark.parametrize("form", FORMS, ids=ids)
def test_processes_and_stages(
    form: Form, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for seed in (3, 16):
        path, survivors = write(tmp_path, form, seed)
        one, jobs, parts = (tmp_path / f"{name}-{seed}" for name in ("one", "jobs", "parts"))
        expected = single([str(path)], one, told=True)
        times = pq.read_table(one / "packets").column("timestamp_ns").to_pylist()
        assert not set(survivors) - set(times), seed
        require_counted(one, path)
        tables = ",".join(name for name in TABLES if name != "packets")
        code, _, err = wiredump(
            capsys, "table", str(path), "--out", str(jobs), "--jobs", "2", "--tables", tables
        )
        assert code == 0, err
        assert "damaged place" in err
        require_counted(jobs, path)
        anomalies = pq.read_table(jobs / "anomalies").column("kind").to_pylist()
        assert "damaged" in anomalies
        found, redone, _ = pipeline([str(path)], parts, split_bytes=20_000, tasks=2, told=True)
        assert redone == {0}
        assert found == expected


@pytest.mark.java
def test_spark(spark, tmp_path: Path) -> None:
    """Several captures are merged; of one, all parts but the damaged file's are read once."""
    for paths in (
        [write(tmp_path, form, 5)[0] for form in FORMS[1:5]],
        [write(tmp_path, FORMS[0], 16)[0]],
    ):
        texts = [str(path) for path in paths]
        one, out = tmp_path / f"one-{len(paths)}", tmp_path / f"spark-{len(paths)}"
        single(texts, one)
        made = through_spark(spark, texts, out, split_bytes=30_000)
        assert sorted(made.again) == sorted(texts)
        compare(one, out)
        require_counted(out, *paths)


@pytest.mark.java
def test_compressed_captures_are_read_in_runs(spark, tmp_path: Path) -> None:
    """One task decompresses each to a file that the others read; it goes with the other files of
    the run."""
    plain, _ = write(tmp_path, FORMS[0], 3)
    paths = [tmp_path / "a.pcap.gz", tmp_path / "b.pcap.gz"]
    paths[0].write_bytes(gzip.compress(plain.read_bytes()))
    paths[1].write_bytes(gzip.compress(uncompressed("mock-2.4")))
    for named in (paths, paths[1:]):
        one, out = tmp_path / f"one-{len(named)}", tmp_path / f"spark-{len(named)}"
        single([str(path) for path in named], one)
        through_spark(spark, [str(path) for path in named], out, split_bytes=30_000)
        compare(one, out)
        assert not [*out.rglob("decompressed*")]
