"""Rotating captures whose tables, checkpoint or files are in an object store: each row exactly
once, wherever a run is killed. (``test_hdfs`` has the same for HDFS.)"""

from __future__ import annotations

import random
from pathlib import Path

import pytest
from click.testing import CliRunner
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.support.full import quick
from tests.support.object_store import Bucket, ObjectStore
from tests.wiredump.spark import made_up
from tests.wiredump.spark.fake_session import FakeSession, session
from tests.wiredump.spark.rotating import (
    cut_off,
    difference,
    follow,
    killed,
    never,
    one_process,
    rotate,
)
from wiredump.cli import cli
from wiredump.spark.checkpoint import Checkpoint, CheckpointError
from wiredump.spark.rotation import Rotation, RotationError
from wiredump.storage import Location

__all__ = ["session"]


@pytest.mark.slow
@settings(
    deadline=None,
    max_examples=quick(4, 1),
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)
@given(st.integers(0, 2**32), st.integers(1, 200), st.integers(1, 120))
def test_killed_anywhere(
    tmp_path_factory: pytest.TempPathFactory, session: FakeSession, store: ObjectStore,
    seed: int, first: int, second: int,
) -> None:  # fmt: skip
    """At any object that is made, copied or removed, and once more while that is put right."""
    folder, root = tmp_path_factory.mktemp("killed"), Location(store.bucket().uri("root"))
    cut_off(session, seed, (first, second), folder, root)


@pytest.mark.slow
@pytest.mark.parametrize("where", ["path", "s3"])
def test_kill_9(
    tmp_path: Path, session: FakeSession, bucket: Bucket, rng: random.Random, where: str
) -> None:
    root = Location(str(tmp_path / "root") if where == "path" else bucket.uri("root"))
    killed(session, rng, tmp_path, root)


@pytest.mark.slow
def test_captures_in_a_bucket(tmp_path: Path, session: FakeSession, bucket: Bucket) -> None:
    """Of a folder and of a pattern; tables on another file system than the checkpoint."""
    files = rotate(made_up.capture(3, connections=6, kind="pcap"), [40, 80], tmp_path / "in")
    for number, path in enumerate(files, 1):
        bucket.put(f"day/{path.name}", path.read_bytes())
        bucket.put("day/.hidden", b"x")
        for name, where in (("folder", "day"), ("pattern", "day/r*")):
            root = tmp_path / name
            stream = follow(bucket.uri(where), root)
            if name == "folder":
                stream.checkpoint = bucket.uri("checkpoint")
            stream.run(session, available_now=True, wait=never)
            expected = one_process(files[:number], tmp_path / "one")
            found = difference(expected, root / "out")
            assert set(found) == {"lineage"}
            assert f"s3://{bucket.name}/day/r.pcap" in str(found)
            assert "testing" not in str(found)
    bucket.put("night/journal.jsonl", b'{"sequence": 1}\n')
    with pytest.raises(RotationError, match=f"s3://{bucket.name}/night/journal.jsonl is not a"):
        Rotation(bucket.uri("night")).files()
    assert Rotation(bucket.uri("tomorrow")).files() == [], "there may be some later"


@pytest.mark.slow
def test_another_run_takes_over(tmp_path: Path, session: FakeSession, bucket: Bucket) -> None:
    """No lock is left by a run that was killed; one that goes on finds that it is not the last."""
    rotate(made_up.capture(3, kind="pcap"), [20], tmp_path / "in")
    stream = follow(tmp_path / "in", Location(bucket.uri("mine")), batch_bytes=1)

    def interrupted() -> bool:
        """Between two batches of this run, another begins."""
        rotate(made_up.capture(3, kind="pcap"), [20, 40, 60], tmp_path / "in")
        with Checkpoint(stream.checkpoint) as other:
            other.require_owner()
        return True

    with pytest.raises(CheckpointError, match=r"another run is using s3://.*/mine/checkpoint"):
        stream.run(session, available_now=False, wait=interrupted)
    stream.run(session, available_now=True, wait=never)
    assert "mine/out/_SUCCESS" in bucket.keys()  # noqa: SIM118 (not a dict)


def test_a_folder_that_is_no_checkpoint(bucket: Bucket, tmp_path: Path) -> None:
    bucket.put("c/theirs", b"x")
    with Checkpoint(bucket.uri("c")) as store, pytest.raises(CheckpointError, match=r"/c is nei"):
        store.begin(None)  # type: ignore[arg-type] # fails before
    made = CliRunner().invoke(
        cli, ["spark", "--follow", "in", "--out", bucket.uri("t")], standalone_mode=False
    )
    assert "--follow needs --checkpoint" in str(made.exception.message)  # type: ignore[union-attr]
