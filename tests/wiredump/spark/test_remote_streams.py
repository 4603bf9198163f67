"""Rotating captures whose tables, checkpoint or files are in an object store: each row exactly
once, wherever a run is killed. (``test_hdfs`` has the same for HDFS.)"""

from __future__ import annotations

import random
from pathlib import Path

import pytest
from click.testing import CliRunner
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from tests.support.full import quick
from tests.support.object_store import Bucket, ObjectStore
from tests.wiredump.spark import made_up
from tests.wiredump.spark.fake_session import FakeSession, session
from tests.wiredump.spark.rotating import (
    FEW,
    cut_off,
    difference,
    follow,
    killed,
    one_process,
    rotate,
    to_the_end,
)
from wiredump.cli import cli
from wiredump.spark.rotation import Rotation
from wiredump.storage import Location

__all__ = ["session"]


@pytest.mark.slow
@settings(
    deadline=None,
    max_examples=quick(4, 1),
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)
@given(st.integers(0, 2**32), st.integers(1, 200), st.integers(1, 120))
@example(0, 1, 1)
def test_killed_anywhere(
    tmp_path_factory: pytest.TempPathFactory, session: FakeSession, store: ObjectStore,
    seed: int, first: int, second: int,
) -> None:  # fmt: skip
    """At any object that is made, copied or removed, and once more while that is put right."""
    folder, root = tmp_path_factory.mktemp("killed"), Location(store.bucket().uri("root"))
    cut_off(session, seed, (first, second), folder, root, FEW)


@pytest.mark.slow
def test_kill_9(tmp_path: Path, session: FakeSession, bucket: Bucket, rng: random.Random) -> None:
    killed(session, rng, tmp_path, Location(bucket.uri("root")), FEW)


@pytest.mark.slow
def test_captures_in_a_bucket(tmp_path: Path, session: FakeSession, bucket: Bucket) -> None:
    """Of a folder and of a pattern; tables on another file system than the checkpoint."""
    files = rotate(made_up.capture(3, connections=6, kind="pcap"), [40, 80], tmp_path / "in")
    for path in files:
        bucket.put(f"day/{path.name}", path.read_bytes())
    bucket.put("day/.hidden", b"x")
    for name, where in (("folder", "day"), ("pattern", "day/r*")):
        root = tmp_path / name
        stream = follow(bucket.uri(where), root, FEW, max_files=1)
        if name == "folder":
            stream.state = bucket.uri("state")
        to_the_end(session, stream)
        found = difference(one_process(files, tmp_path / "one", FEW), root / "out")
        assert set(found) == {"lineage"}
        assert f"s3://{bucket.name}/day/r.pcap" in str(found)
        assert "testing" not in str(found)
    bucket.put("night/notes.txt", b"broker{}\n" * 9)
    night = Rotation(bucket.uri("night"))
    assert night.files() == []
    assert [Location(each).shown for each in night.others] == [
        f"s3://{bucket.name}/night/notes.txt"
    ]
    assert Rotation(bucket.uri("tomorrow")).files() == [], "there may be some later"


def test_a_checkpoint_is_named(bucket: Bucket) -> None:
    made = CliRunner().invoke(
        cli, ["spark", "--follow", "in", "--out", bucket.uri("t")], standalone_mode=False
    )
    assert "--follow needs --checkpoint" in str(made.exception.message)  # type: ignore[union-attr]
