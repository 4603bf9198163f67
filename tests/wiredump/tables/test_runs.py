"""Rows of several runs in one folder are unique by their run, whichever way they were written."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest

from tests.support.object_store import Bucket
from tests.wiredump.spark import made_up
from wiredump.cli import main
from wiredump.rows.schema import TABLES
from wiredump.storage import Location
from wiredump.tables.run import derived_run, is_run


@pytest.fixture
def captures(tmp_path: Path) -> list[str]:
    paths = [tmp_path / "a.pcap", tmp_path / "b.pcap"]
    for seed, path in enumerate(paths):
        path.write_bytes(made_up.capture(seed, exchanges=20))
    return list(map(str, paths))


def run(capsys: pytest.CaptureFixture[str], *arguments: str) -> tuple[int, str, str]:
    with pytest.raises(SystemExit) as ended:
        main(list(arguments))
    code = ended.value.code
    return code if isinstance(code, int) else 0, *capsys.readouterr()


def rows(folder: str, table: str) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = pq.read_table(f"{folder}/{table}").to_pylist()
    return found


@pytest.mark.usefixtures("every_process")
@pytest.mark.parametrize("jobs", ["1", pytest.param("2", marks=pytest.mark.slow)])
def test_rows_of_appended_runs_are_unique(
    capsys: pytest.CaptureFixture[str], captures: list[str], tmp_path: Path, jobs: str
) -> None:
    out = str(tmp_path / "out")
    for path in captures:
        code, told, _ = run(
            capsys, "table", path, "--out", out, "--mode", "append", "--json", "--jobs", jobs
        )
        assert code == 0
        assert json.loads(told)["run"] == derived_run([path])
    for name in ("connections", "requests", "frames", "bodies", "lineage"):
        found = rows(out, name)
        assert {row["run"] for row in found} == {derived_run([path]) for path in captures}
        keys = [tuple(row[each] for each in ("run", *TABLES[name].order)) for row in found]
        assert len(set(keys)) == len(keys) > 1
    without = [row["connection"] for row in rows(out, "connections")]
    assert len(set(without)) < len(without), "or else no run was needed to tell them apart"


@pytest.mark.slow
def test_an_audit_counts_the_connections_of_all_runs(
    capsys: pytest.CaptureFixture[str], captures: list[str], tmp_path: Path
) -> None:
    out = str(tmp_path / "out")
    for path in captures:
        run(capsys, "table", path, "--out", out, "--mode", "append")
    together, *alone = (
        json.loads(run(capsys, "audit", source, "--to", "kafka-4.1", "--json")[1])
        for source in (out, *captures)
    )
    counts = [sum(each["connections"] for each in told["clients"]) for told in (together, *alone)]
    assert counts[0] == sum(counts[1:]) > 1


@pytest.mark.slow
def test_a_run_replaces_itself_and_may_have_another_id(
    capsys: pytest.CaptureFixture[str], captures: list[str], tmp_path: Path
) -> None:
    out = str(tmp_path / "out")
    for more, code, problem in (
        ((), 0, ""),
        ((), 0, ""),
        (("--mode", "append"), 0, ""),
        (("--tables", "requests"), 1, "with other tables"),
        (("--run", "again"), 1, "is not empty"),
        (("--mode", "append", "--run", "again"), 0, ""),
        (("--mode", "append"), 0, ""),
        (("--mode", "append", "--run", "7"), 2, "not a valid id"),
    ):
        ended, _, err = run(capsys, "table", captures[0], "--out", out, *more)
        assert (ended, problem in err) == (code, True), err
    assert [row["run"] for row in rows(out, "lineage")] == ["again", derived_run(captures[:1])]


@pytest.mark.usefixtures("every_process")
@pytest.mark.parametrize("jobs", ["1", "2"])
def test_a_run_that_fails_leaves_the_others(
    capsys: pytest.CaptureFixture[str], captures: list[str], tmp_path: Path, jobs: str
) -> None:
    out = tmp_path / "out"
    run(capsys, "table", captures[0], "--out", str(out))
    before = sorted(out.rglob("*"))
    code, _, err = run(
        capsys, "table", captures[1], str(tmp_path / "none"), "--out", str(out), "--mode", "append",
        "--jobs", jobs,
    )  # fmt: skip
    assert (code, "none" in err) == (1, True)
    assert sorted(out.rglob("*")) == before


@pytest.mark.usefixtures("every_process")
@pytest.mark.slow
@pytest.mark.parametrize("jobs", ["1", "2"])
@pytest.mark.parametrize("place", ["path", "s3"])
def test_modes(
    capsys: pytest.CaptureFixture[str], captures: list[str], tmp_path: Path, bucket: Bucket,
    place: str, jobs: str,
) -> None:  # fmt: skip
    """By one process and by several, on the local file system and in an object store: the second
    run beside the first, and one in place of both; a failure leaves them as they are."""
    out = Location(str(tmp_path / "out") if place == "path" else bucket.uri("out"))
    common = ["--out", str(out), "--jobs", jobs, "--tables", "requests,connections"]

    def written(mode: str, *sources: str) -> tuple[set[str], int]:
        code, *_ = run(capsys, "table", *sources, *common, "--mode", mode)
        assert code == 0
        files = list(out.glob("requests/run=*/*.parquet"))
        rows = 0
        for file in files:
            with file.open_input() as opened:
                rows += pq.ParquetFile(opened).metadata.num_rows
        assert (out / "_SUCCESS").exists()
        assert not (out / "_staging").exists()
        return {file.parent.name for file in files}, rows

    first, some = written("error", captures[0])
    both, more = written("append", captures[1])
    assert first < both
    assert more > some > 0
    code, _, err = run(capsys, "table", captures[0], *common)
    assert (code, "is not empty" in err) == (1, True)
    assert written("append", captures[1]) == (both, more)
    before = sorted(map(str, out.files()))
    code, _, err = run(capsys, "table", str(tmp_path / "none"), *common, "--mode", "overwrite")
    assert (code, "none" in err) == (1, True)
    assert sorted(map(str, out.files())) == before
    assert written("overwrite", captures[0]) == (first, some)
    assert {file.name for file in (out / "_manifests").files()} == {
        f"{name.removeprefix('run=')}.json" for name in first
    }
    (out / "theirs").write_bytes(b"")
    code, _, err = run(capsys, "table", captures[0], *common, "--mode", "overwrite")
    assert (code, "theirs, which is not a table" in err) == (1, True)


def test_the_id_is_of_the_contents_in_their_order(captures: list[str], tmp_path: Path) -> None:
    copy = tmp_path / "copy"
    copy.write_bytes(Path(captures[0]).read_bytes())
    first = derived_run(captures)
    assert is_run(first)
    assert derived_run([str(copy), captures[1]]) == first != derived_run(captures[::-1])
    copy.write_bytes(copy.read_bytes()[:-1] + b"?")
    assert derived_run([str(copy), captures[1]]) != first
    assert derived_run(["-"]) != derived_run(["-"])
